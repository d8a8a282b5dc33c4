"""Slash commands: input that the chat handles itself instead of sending it to the agent."""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from difflib import get_close_matches

from msgspec import Struct

from hone.app import Hone
from hone.cli import changes, modes, reviews, skill_text
from hone.cli.listing import table
from hone.cli.output import columns, wrap_words
from hone.cli.pending import waiting
from hone.cli.render import account
from hone.core.errors import HoneError, Refused
from hone.core.ledger import ChangeId, ChangeQuery
from hone.core.loading import import_object
from hone.core.permissions import Mode
from hone.core.regex import regex
from hone.core.topics import NAMES
from hone.core.visible import one_line, text_to_path, visible
from hone.knowledge import descriptions, journal, places
from hone.knowledge.keeper import Keeper
from hone.knowledge.snapshots import journals
from hone.learning.reports import queued, reports
from hone.registry import FEATURES
from hone.runtime.session import Session

LATEST = 10
"""Conversations or changes in a list."""
_COMMAND = regex(r"/(?=[0-9-]*[A-Za-z])([A-Za-z0-9][A-Za-z0-9-]*)(?:\s+(.*))?", re.DOTALL)


@dataclass(slots=True)
class ChatState:
    """A chat as it stands: who serves it, which conversation it is about, and how much of it is shown.
    `seen` are the changes that were shown whole: only those can be approved."""

    hone: Hone
    session: Session
    verbose: bool = False
    seen: set[ChangeId] = field(default_factory=set)

    @property
    def keeper(self) -> Keeper:
        return self.hone.keeper


class SlashRequest(Struct, frozen=True):
    """What a command has to say to the agent: the user's words, and what Hone tells with them."""

    words: str
    aside: str


Act = Callable[[ChatState, str], Awaitable[str | SlashRequest]]


class Command(Struct, frozen=True):
    act: Act
    help: str
    argument: str = ""


def parse(message: str) -> tuple[str, str] | None:
    """The command's name and argument; None for what is meant for the agent, such as a path."""
    found = _COMMAND.fullmatch(message.strip())
    return (found[1].lower(), (found[2] or "").strip()) if found else None


async def obey(state: ChatState, name: str, argument: str) -> str | SlashRequest:
    """What to print, or to send. A command that fails says why, and nothing else happens. Raises EOFError to
    leave."""
    command = COMMANDS.get({"exit": "quit"}.get(name, name))
    try:
        return await (command.act(state, argument) if command else _other(state, name, argument))
    except HoneError as error:
        return visible(str(error))


async def _other(state: ChatState, name: str, argument: str) -> str | SlashRequest:
    """Every skill is a command, unless it has the name of one of ours."""
    skills = [each.name for each in await state.hone.library.listed()]
    if name in skills:
        return await _ask_for(state, name, argument)
    near = ", ".join(f"/{each}" for each in get_close_matches(name, [*COMMANDS, *skills]))
    return f"There is no command /{name}.{f' Close: {near}.' if near else ''} /help lists those there are."


async def _ask_for(state: ChatState, name: str, words: str) -> SlashRequest:
    aside = await state.hone.library.use([name], state.session.id)
    return SlashRequest(words or f"Use the skill {name}.", aside)


async def _help(_: ChatState, __: str) -> str:
    rows = [(f"/{name} {each.argument}".rstrip(), each.help) for name, each in COMMANDS.items()]
    return "\n".join(
        (
            *(f"  {name:<18}{text}" for name, text in rows),
            "Enter sends. Alt-Enter, or a \\ at the end of a line, begins another line.",
            "Every skill is a command, too: /NAME and what to do with it.",
            "Tab completes commands and, after @ or in a path, the names of files.",
            "Ctrl-C stops the answer that is being given.",
        )
    )


async def _model(state: ChatState, name: str) -> str:
    session = state.session
    if name and len(session.transcript):
        state.session = await state.hone.resume(session.id, name)
    elif name:
        opening = session.opening
        state.session = await state.hone.session(name, opening.wanted if opening else "")
    state.session.set_mode(session.mode)
    return f"Talking to {visible(state.session.agent.prefix.model)}."


async def _mode(state: ChatState, name: str) -> str:
    if not name:
        return "\n".join(modes.table(state.session.mode))
    if name.lower() not in list(Mode):
        raise Refused(f"There is no mode {one_line(name, 40)!r}. Use one of: {', '.join(Mode)}.")
    state.session.set_mode(name.lower())
    return "\n".join(wrap_words(modes.describe(state.session.mode)))


async def _sessions(state: ChatState, _: str) -> str:
    listed = await state.hone.sessions.list(limit=LATEST)
    return table(listed, columns()) if listed else "There are no sessions yet."


async def _resume(state: ChatState, beginning: str) -> str:
    if not beginning:
        return "Which one? /sessions lists them; then: /resume ID"
    state.session = await state.hone.resume(beginning)
    mode = state.session.mode
    said = "" if mode is Mode.AUTO else f" {modes.describe(mode)}"
    return f"Going on with {state.session.id}, {len(state.session.transcript):,} messages.{said}"


async def _compact(state: ChatState, focus: str) -> str:
    return await state.session.compact(focus) or "There is too little to shorten yet."


async def _usage(state: ChatState, _: str) -> str:
    spent = await state.hone.sessions.spending(state.session.id)
    return account(each.usage for each in spent) if spent else "Nothing has been spent in this session yet."


async def _verbose(state: ChatState, _: str) -> str:
    state.verbose = not state.verbose
    return f"Results are shown {'whole' if state.verbose else 'by their first lines'}."


async def _skills(state: ChatState, query: str) -> str:
    found = await skill_text.find_skills(state.hone.library, query)
    return skill_text.table(found, columns()) if found else "There are no such skills."


async def _skill(state: ChatState, argument: str) -> str | SlashRequest:
    if not argument:
        return "Which one? /skills lists them; then: /skill NAME and what to do with it"
    name, *words = argument.split(maxsplit=1)
    return await _ask_for(state, name, "".join(words))


async def _memory(state: ChatState, _: str) -> str:
    rows: list[str] = []
    for target in journals(text_to_path(state.session.header.folder)):
        entries = journal.entries(await state.keeper.text(target))
        said = "".join(map(journal.format_entry, entries)).rstrip("\n") or "  (nothing)"
        rows += [f"{places.name_of(target)}:", visible(said)]
    return "\n".join(rows)


async def _log(state: ChatState, _: str) -> str:
    found = await descriptions.describe(
        state.keeper, await state.keeper.ledger.entries(ChangeQuery(limit=LATEST))
    )
    return changes.table(found, columns()) if found else "Nothing was changed yet."


async def _pending(state: ChatState, _: str) -> str:
    found = await descriptions.describe(state.keeper, await state.keeper.ledger.pending())
    if not found:
        return "Nothing waits for you."
    width = columns()
    return "\n".join((*(changes.line(each, width) for each in found), "/approve ID shows one; /reject ID."))


async def _approve(state: ChatState, argument: str) -> str:
    """Shown first; what was shown is what takes effect, since a change that waits stays as it is."""
    id = _id(argument)
    [change] = await waiting(state.keeper, [id])
    if id not in state.seen:
        state.seen.add(id)
        return "\n".join(
            (*changes.account(change), f"/approve {id} once more lets it take effect; or /reject {id}")
        )
    made = await state.keeper.approve(id)
    return f"Change {id} is approved by change {made.id}. Take it back with: /undo {made.id}"


async def _reject(state: ChatState, argument: str) -> str:
    id = _id(argument)
    await waiting(state.keeper, [id])
    made = await state.keeper.reject(id)
    return f"Change {id} is rejected by change {made.id}."


async def _undo(state: ChatState, argument: str) -> str:
    id = _id(argument)
    [change] = await descriptions.describe_groups(state.keeper, [await state.keeper.ledger.entry(id)])
    made = await state.keeper.undo(id)
    return "\n".join(
        (
            *map(changes.line, (change, *change.others)),
            f"Change {id} is undone by change {made.id}. Take that back with: /undo {made.id}",
        )
    )


async def _reviews(state: ChatState, _: str) -> str:
    found = await reports(state.hone, await state.hone.jobs.jobs(LATEST))
    return reviews.table(found, columns()) if found else "There was no review yet."


async def _review(state: ChatState, topic: str) -> str:
    """It is done beside the conversation, like those that come by themselves."""
    if topic not in ("", *NAMES):
        raise Refused(f"{one_line(topic, 40)!r} is neither {' nor '.join(sorted(NAMES))}.")
    if not len(state.session.transcript):
        raise Refused("There is nothing to look back over yet.")
    topics = frozenset({topic}) if topic else NAMES
    job = await queued(state.hone, state.session.id, topics, datetime.now(UTC))
    state.hone.background.notify()
    return f"Looking back over this conversation: review {job.id}. /reviews has it; you can go on."


def _id(argument: str) -> ChangeId:
    if not (argument.isascii() and argument.isdigit() and len(argument) < 16):
        raise Refused(f"{one_line(argument, 40)!r} is no change; give its number, as /log and /pending do.")
    return ChangeId(int(argument))


async def _quit(_: ChatState, __: str) -> str:
    raise EOFError


def _load(place: str) -> Act:
    """Return a feature's command, which is imported when it is first typed."""

    async def act(state: ChatState, argument: str) -> str | SlashRequest:
        result: str | SlashRequest = await import_object(place)(state, argument)
        return result

    return act


COMMANDS: Mapping[str, Command] = {
    "help": Command(_help, "This list."),
    "model": Command(_model, "Show the model, or go on with another one.", "[NAME]"),
    "mode": Command(_mode, "Show or change what is done without a question.", "[NAME]"),
    "sessions": Command(_sessions, "The latest conversations."),
    "resume": Command(_resume, "Go on with another conversation.", "ID"),
    "skills": Command(_skills, "All skills, or those for some words.", "[QUERY]"),
    "skill": Command(_skill, "Use a skill whose name is also a command's.", "NAME [WORDS]"),
    "memory": Command(_memory, "What the journal says now."),
    "pending": Command(_pending, "What was learned and waits for you."),
    "approve": Command(_approve, "Show what waits, and let it take effect.", "ID"),
    "reject": Command(_reject, "Turn down what waits.", "ID"),
    "log": Command(_log, "The latest changes in what is known."),
    "undo": Command(_undo, "Take a change back.", "ID"),
    "reviews": Command(_reviews, "What was learned in the background, and how."),
    "review": Command(_review, "Look back over this conversation now.", "[TOPIC]"),
    "compact": Command(_compact, "Put notes in the place of older messages.", "[FOCUS]"),
    "usage": Command(_usage, "What this conversation has cost so far."),
    "verbose": Command(_verbose, "Show results whole, or by their first lines."),
    **{
        name: Command(_load(place), help, argument)
        for feature in FEATURES
        for name, (place, help, argument) in feature.slash.items()
    },
    "quit": Command(_quit, "Leave; so does Ctrl-D."),
}
