"""Make a template from a session, and start a session with a template."""

import asyncio
import re
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from hone.core.clock import Clock
from hone.core.embedding import Meanings
from hone.core.errors import Refused
from hone.core.ids import SessionId
from hone.core.loading import import_object
from hone.core.messages import Message, Role, SystemNote, ToolCall, answer, assistant
from hone.core.ports import Sessions, StoredSession
from hone.core.screen import screen
from hone.core.secrets import redact
from hone.core.tool import Toolbox
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from hone.core.value import replace
from hone.core.visible import one_line
from hone.features.templates.selection import MOST, choose, extract, happened, usable
from hone.features.templates.store import AUTO, Templates
from hone.features.templates.values import Template, WorkKind
from hone.knowledge.skills.similar import words as split

RATE = "hone.knowledge.nearness:rate"
"""Imported if an embedder is set."""
DESCRIPTION = 200
HEADING = "# Examples from an earlier session, not part of this conversation"


class TemplateOptions(Struct, frozen=True):
    """The owner's options for a template; missing ones are derived."""

    name: str = ""
    work: WorkKind | None = None
    most: int = MOST
    description: str = ""
    tags: tuple[str, ...] = ()


async def make(
    templates: Templates,
    store: Sessions,
    beginning: str,
    tools: Toolbox,
    options: TemplateOptions,
    clock: Clock,
) -> Template:
    """Make a template of a session and store it. Raises Refused if there is nothing to make it of."""
    session = await store.find(beginning)
    stored = await store.load(session)
    lines = [line.transcript.nodes for line in (*await store.earlier(session), stored)]
    specs = {name: tool.spec for name, tool in tools.items()}
    work, examples = extract(
        happened(lines),
        specs,
        redact,
        lambda text: bool(screen(text).flags),
        work=options.work,
        most=options.most,
    )
    if not examples:
        raise Refused(f"Session {session} has no call that succeeded and could be an example.")
    about = one_line(redact(options.description), DESCRIPTION) or _about(stored)
    taken = await asyncio.to_thread(templates.names)
    named = slug(about) if about.isascii() else ""
    name = options.name or free_name(named or f"{work}-{session[:6]}", {*taken, AUTO})
    made = Template(name, work, session, clock.now(), about, options.tags, examples)
    await templates.add(made)
    return made


def _about(stored: StoredSession) -> str:
    """Return the owner's first words. Nobody else's: they would be repeated in Hone's own voice."""
    for node in stored.transcript.nodes:
        if node.is_owners and node.message.text.strip():
            return one_line(redact(node.message.text), DESCRIPTION)
    return ""


def slug(text: str) -> str:
    """Make a name from the first words of a text."""
    return "-".join(re.findall(r"[a-z0-9]+", text.casefold())[:5])[:40].strip("-")


def free_name(name: str, taken: Collection[str]) -> str:
    """Return the name, with a number appended if it is taken."""
    numbered = (f"{name}-{number}" for number in range(2, len(taken) + 3))
    return next(each for each in (name, *numbered) if each not in taken)


class Seeding(Struct, frozen=True):
    """How a new conversation begins with a template: the named one, or the best match."""

    templates: Templates
    wanted: str
    clock: Clock
    meanings: Meanings | None = None

    async def begin(self, words: str, transcript: Transcript, tools: Toolbox) -> tuple[Transcript, str]:
        if self.wanted != AUTO:
            chosen, why = await self.named(tools), ""
        else:
            found, _ = await self.templates.all()
            fitting = [fit for each in found if (fit := usable(each, tools)).examples]
            choice = choose(fitting, split(words), split, await self._rate(words, fitting))
            if choice is None:
                return transcript, _none(found)
            chosen, why = choice.template, f" ({choice.why})"
        count = f"{len(chosen.examples)} examples" if len(chosen.examples) > 1 else "1 example"
        line = f"Begins with template {chosen.name}: {count} from an earlier session{why}."
        return seeded(chosen, transcript.root, self.clock.now()), line

    async def _rate(self, words: str, templates: Sequence[Template]) -> Mapping[str, float]:
        """Return how near the templates are to a task in meaning, by name; nothing without an embedder."""
        told = {each.name: each.description for each in templates if each.description}
        if self.meanings is None or not told:
            return {}
        found: Sequence[float] = await import_object(RATE)(self.meanings, words, list(told.values()))
        return dict(zip(told, found, strict=False))

    async def named(self, tools: Toolbox) -> Template:
        """Return a template by name. Raises Missing, Corrupt, or Refused if none of its tools is here."""
        template = await self.templates.read(self.wanted)
        fit = usable(template, tools)
        if not fit.examples:
            names = ", ".join(sorted({each.tool for each in template.examples}))
            raise Refused(f"Template {self.wanted} shows calls of {names}, and this agent has no such tool.")
        return fit

    async def count(self, template: str, session: SessionId) -> None:
        await self.templates.count(template, session)


def _none(found: Sequence[Template]) -> str:
    if found:
        return "No template fits: they show tools that are not here, or were measured to harm."
    return "There is no template yet; hone templates create SESSION makes one."


def announcement(template: Template) -> str:
    about = f", {one_line(template.description, DESCRIPTION)}" if template.description else ""
    count = f"{len(template.examples)} calls" if len(template.examples) > 1 else "1 call"
    return "\n".join(
        (
            HEADING,
            f"- Template {template.name} ({template.work} work{about}): {count} that worked.",
            "- They show how to call tools. Nothing in them was asked, said or done in this conversation, "
            "and what they show may have changed since.",
        )
    )


def seeded(template: Template, root: str, now: datetime) -> Transcript:
    """Return the examples as a beginning. Each keeps its labels, so that what is learned afterwards rests on
    them as in their own conversation; the last word is the assistant's, so that the user's follows."""
    chain = Transcript(root)

    def say(message: Message, trust: Trust) -> None:
        nonlocal chain
        chain = chain.then(replace(message, template=template.name), trust, now)

    say(Message(Role.USER, (SystemNote(announcement(template)),)), Trust.AGENT)
    for number, example in enumerate(template.examples, 1):
        call = ToolCall(f"example_{number}", example.tool, example.arguments)
        say(assistant(call), min(example.call_trust, Trust.AGENT, chain.trust))
        say(answer(call, example.result), min(example.result_trust, Trust.AGENT))
    ending = f"(End of the examples from template {template.name}. The conversation begins here.)"
    say(assistant(ending), min(Trust.AGENT, chain.trust))
    return chain
