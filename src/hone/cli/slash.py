"""Slash commands: input that the chat handles itself instead of sending it to the agent."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from difflib import get_close_matches

from msgspec import Struct

from hone.app import Hone
from hone.cli import changes, modes, reviews, skill_text
from hone.cli.listing import table
from hone.cli.output import columns, wrap_words
from hone.cli.pending import waiting
from hone.core.errors import HoneError, Refused
from hone.core.ledger import ChangeId, ChangeQuery
from hone.core.loading import import_object
from hone.core.messages import Message, user
from hone.core.permissions import Mode
from hone.core.regex import regex
from hone.core.topics import NAMES
from hone.core.trust import Trust
from hone.core.visible import one_line, text_to_path, visible
from hone.knowledge import descriptions, journal, places
from hone.knowledge.keeper import Keeper
from hone.knowledge.snapshots import journals
from hone.learning.reports import queued, reports
from hone.registry import FEATURES
from hone.runtime.session import Session

LATEST = 10
"""How many conversations or changes to list."""
_COMMAND = regex(
    r"/(?=[0-9-]*[A-Za-z])([A-Za-z0-9][A-Za-z0-9-]*|[A-Za-z0-9][\w-]*:[\w.-]+)(?:\s+(.*))?", re.DOTALL
)


@dataclass(slots=True)
class ChatState:
    """The current state of a chat: its Hone, its conversation, and how much of it is shown. `seen` are the
    changes that were shown in full: only those can be approved."""

    hone: Hone
    session: Session
    verbose: bool = False
    seen: set[ChangeId] = field(default_factory=set)

    @property
    def keeper(self) -> Keeper:
        return self.hone.keeper


class SlashRequest(Struct, frozen=True):
    """What a command sends to the agent: the user's words, and what Hone adds to them. `message` is sent
    instead of the words if there is more than words, with `voice` as its label."""

    words: str
    aside: str = ""
    message: Message | None = None
    voice: Trust | None = None


class SlashDraft(Struct, frozen=True):
    """Words for the prompt, for the user to change and send. `said` is printed first."""

    words: str
    said: str = ""


class SlashMenu(Struct, frozen=True):
    """A list to choose from. `then` gets the index of the row, from 0. `above` is printed first."""

    title: str
    rows: Sequence[str]
    then: "Callable[[int], Awaitable[SlashResult]]"
    above: str = ""


SlashResult = str | SlashRequest | SlashDraft | SlashMenu
Act = Callable[[ChatState, str], Awaitable[SlashResult]]


class Command(Struct, frozen=True):
    act: Act
    help: str
    argument: str = ""


def parse(message: str) -> tuple[str, str] | None:
    """Return the command's name and argument; None for text that is meant for the agent, such as a path."""
    found = _COMMAND.fullmatch(message.strip())
    return (found[1].lower(), (found[2] or "").strip()) if found else None


def parse_own(message: str) -> str:
    """Return the command that the owner wants to run; empty if it is none."""
    return message.strip()[1:].strip() if message.lstrip().startswith("!") else ""


async def obey(state: ChatState, name: str, argument: str) -> SlashResult:
    """Return what to print, to send or to choose from. A failing command says why, and nothing else happens.
    Raises EOFError to leave."""
    command = COMMANDS.get(ALIASES.get(name, name))
    return await settle(command.act(state, argument) if command else _other(state, name, argument))


async def settle(result: Awaitable[SlashResult]) -> SlashResult:
    """Wait for a command. Return its error as text."""
    try:
        return await result
    except HoneError as error:
        return visible(str(error))


async def _other(state: ChatState, name: str, argument: str) -> SlashResult:
    """Handle other names. Every skill is a command, unless it has the name of one of ours, and so is a
    server's prompt."""
    if ":" in name:
        return await _expand(state, name, argument)
    skills = [each.name for each in await state.hone.library.listed()]
    if name in skills:
        return await _ask_for(state, name, argument)
    near = " or ".join(f"/{each}" for each in get_close_matches(name, [*COMMANDS, *skills]))
    hint = f" Did you mean {near}?" if near else ""
    return f"There is no command /{name}.{hint} /help lists all commands."


async def _expand(state: ChatState, name: str, argument: str) -> SlashResult:
    folder = text_to_path(state.session.header.folder)
    for part in state.hone.parts("expand", folder):
        if found := await part.expand(name, argument, folder):
            words = f"Follow {found.name}."
            return SlashRequest(words, message=user(words, found))
    return f"There is no command /{one_line(name, 60)}. /help lists all commands."


async def _ask_for(state: ChatState, name: str, words: str) -> SlashRequest:
    aside = await state.hone.library.use([name], state.session.id)
    return SlashRequest(words or f"Use the skill {name}.", aside)


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
    return table(listed, columns()) if listed else "There are no conversations yet."


async def _compact(state: ChatState, focus: str) -> str:
    return await state.session.compact(focus) or "This conversation is too short to compact."


async def _verbose(state: ChatState, _: str) -> str:
    state.verbose = not state.verbose
    return "Results are shown in full." if state.verbose else "Long results are folded."


async def _skills(state: ChatState, query: str) -> str:
    found = await skill_text.find_skills(state.hone.library, query)
    return skill_text.table(found, columns()) if found else "No skill matches."


async def _skill(state: ChatState, argument: str) -> SlashResult:
    if not argument:
        return "Which skill? Try /skill NAME and what to do. /skills lists them."
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
    return changes.table(found, columns()) if found else "Nothing has changed yet."


async def _pending(state: ChatState, _: str) -> str:
    found = await descriptions.describe(state.keeper, await state.keeper.ledger.pending())
    if not found:
        return "No lesson waits for your approval."
    width = columns()
    return "\n".join(
        (
            *(changes.line(each, width) for each in found),
            "/approve ID shows one of them. /reject ID rejects it.",
        )
    )


async def _approve(state: ChatState, argument: str) -> str:
    """Approve a change. It must have been shown first; what was shown takes effect, since a pending change
    never changes."""
    id = _id("approve", argument)
    [change] = await waiting(state.keeper, [id])
    if id not in state.seen:
        state.seen.add(id)
        return "\n".join(
            (*changes.account(change), f"Type /approve {id} again to approve it, or /reject {id}.")
        )
    made = await state.keeper.approve(id)
    return f"Approved as change {made.id}. Undo it with: /undo {made.id}"


async def _reject(state: ChatState, argument: str) -> str:
    id = _id("reject", argument)
    await waiting(state.keeper, [id])
    made = await state.keeper.reject(id)
    return f"Rejected as change {made.id}."


async def _undo(state: ChatState, argument: str) -> str:
    id = _id("undo", argument)
    [change] = await descriptions.describe_groups(state.keeper, [await state.keeper.ledger.entry(id)])
    made = await state.keeper.undo(id)
    return "\n".join(
        (
            *map(changes.line, (change, *change.others)),
            f"Change {id} is undone by change {made.id}. Restore it with: /undo {made.id}",
        )
    )


async def _reviews(state: ChatState, _: str) -> str:
    found = await reports(state.hone, await state.hone.jobs.jobs(LATEST))
    return reviews.table(found, columns()) if found else "There has been no review yet."


async def _review(state: ChatState, topic: str) -> str:
    """Start a review. It runs beside the conversation, like automatic ones."""
    if topic not in ("", *NAMES):
        raise Refused(f"There is no topic {one_line(topic, 40)!r}. Use one of: {', '.join(sorted(NAMES))}.")
    if not len(state.session.transcript):
        raise Refused("There is nothing to review yet.")
    topics = frozenset({topic}) if topic else NAMES
    job = await queued(state.hone, state.session.id, topics, datetime.now(UTC))
    state.hone.background.notify()
    pause = state.hone.background.pause
    when = f"begins when you have been quiet for {pause:.0f} seconds" if pause else "has begun"
    return f"Review {job.id} {when}. You can keep working; /reviews shows the result."


def _id(command: str, argument: str) -> ChangeId:
    if not (argument.isascii() and argument.isdigit() and len(argument) < 16):
        listing = "/log" if command == "undo" else "/pending"
        raise Refused(f"Which change? Give its number, as in: /{command} 12. {listing} lists them.")
    return ChangeId(int(argument))


async def _quit(_: ChatState, __: str) -> str:
    raise EOFError


def _load(place: str) -> Act:
    """Return a feature's command, imported when it is first typed."""

    async def act(state: ChatState, argument: str) -> SlashResult:
        result: SlashResult = await import_object(place)(state, argument)
        return result

    return act


def _own(place: str, help: str, argument: str = "") -> Command:
    """Return a command of the chat, imported when it is first typed."""
    return Command(_load(f"hone.cli.slash_commands.{place}"), help, argument)


ALIASES = {"exit": "quit", "usage": "cost"}
"""Aliases of commands, which the help does not list."""
COMMANDS: Mapping[str, Command] = {
    "help": _own("helping:show_help", "List the commands and keys."),
    "new": _own("conversation:begin", "Begin a new conversation."),
    "clear": _own("conversation:clear", "Begin a new conversation on an empty screen."),
    "retry": _own("conversation:retry", "Ask for another answer to your last message."),
    "edit": _own("conversation:edit", "Change your last message and send it again."),
    "sessions": Command(_sessions, "List the latest conversations."),
    "resume": _own("resuming:resume", "Continue another conversation.", "[ID or WORDS]"),
    "compact": Command(_compact, "Replace older messages with notes.", "[FOCUS]"),
    "export": _own("conversation:export", "Write this conversation to a file.", "[FILE]"),
    "copy": _own("conversation:copy", "Copy the last answer to the clipboard."),
    "output": _own("conversation:show_output", "Show a tool's result in full.", "[N]"),
    "verbose": Command(_verbose, "Show all results in full, or fold long ones."),
    "context": _own("figures:show_context", "Show what fills the context window."),
    "cost": _own("figures:show_cost", "Show what this conversation has cost."),
    "model": _own("models:switch", "Choose a model.", "[NAME]"),
    "mode": Command(_mode, "Show or change what needs your approval.", "[NAME]"),
    "permissions": _own("approvals:permissions", "List stored approvals, and remove them.", "[remove N]"),
    "doctor": _own("checks:examine", "Check the home folder, the model and the sandbox."),
    "remember": _own("memory:remember", "Save a sentence of yours in the journal.", "TEXT"),
    "memory": Command(_memory, "Show the journal."),
    "skills": Command(_skills, "List skills, or search them.", "[QUERY]"),
    "skill": Command(_skill, "Use a skill that has a command's name.", "NAME [WORDS]"),
    "pending": Command(_pending, "List lessons that wait for your approval."),
    "approve": Command(_approve, "Show a lesson that waits, then approve it.", "ID"),
    "reject": Command(_reject, "Reject a lesson that waits.", "ID"),
    "log": Command(_log, "List the latest changes to journal and skills."),
    "undo": Command(_undo, "Undo one of these changes.", "ID"),
    "reviews": Command(_reviews, "List the reviews of past conversations."),
    "review": Command(_review, "Review this conversation now.", "[TOPIC]"),
    **{
        name: Command(_load(place), help, argument)
        for feature in FEATURES
        for name, (place, help, argument) in feature.slash.items()
    },
    "quit": Command(_quit, "Leave. Ctrl-D does the same."),
}
