"""What can be said to the chat itself instead of to the agent: commands that begin with a slash."""

import re
import shutil
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from hone.app import Hone
from hone.cli.listing import table
from hone.cli.render import account
from hone.cli.visible import visible
from hone.core.errors import HoneError
from hone.runtime.session import Session

_COMMAND = re.compile(r"/([A-Za-z]+)(?:\s+(.*))?", re.DOTALL)


@dataclass(slots=True)
class Talk:
    """A chat as it stands: who serves it, which conversation it is about, and how much of it is shown."""

    hone: Hone
    session: Session
    verbose: bool = False


@dataclass(frozen=True, slots=True)
class Command:
    act: Callable[[Talk, str], Awaitable[str]]
    help: str
    argument: str = ""


def parse(message: str) -> tuple[str, str] | None:
    """The command's name and argument; None for what is meant for the agent, such as a path."""
    found = _COMMAND.fullmatch(message.strip())
    return (found[1].lower(), (found[2] or "").strip()) if found else None


async def obey(talk: Talk, name: str, argument: str) -> str:
    """What to print. A command that fails says why, and nothing else happens. Raises EOFError to leave."""
    command = COMMANDS.get({"exit": "quit"}.get(name, name))
    if command is None:
        return f"There is no command /{name}. /help lists those there are."
    try:
        return await command.act(talk, argument)
    except HoneError as error:
        return visible(str(error))


async def _help(_: Talk, __: str) -> str:
    rows = [(f"/{name} {each.argument}".rstrip(), each.help) for name, each in COMMANDS.items()]
    return "\n".join(
        (
            *(f"  {name:<18}{text}" for name, text in rows),
            "Enter sends. Alt-Enter, or a \\ at the end of a line, begins another line.",
            "Tab completes commands and, after @ or in a path, the names of files.",
            "Ctrl-C stops the answer that is being given.",
        )
    )


async def _model(talk: Talk, name: str) -> str:
    session = talk.session
    if name and len(session.transcript):
        talk.session = await talk.hone.resume(session.id, name)
    elif name:
        talk.session = await talk.hone.session(name)
    return f"Talking to {visible(talk.session.agent.prefix.model)}."


async def _sessions(talk: Talk, _: str) -> str:
    listed = await talk.hone.sessions.list(limit=10)
    return table(listed, shutil.get_terminal_size().columns) if listed else "There are no sessions yet."


async def _resume(talk: Talk, beginning: str) -> str:
    if not beginning:
        return "Which one? /sessions lists them; then: /resume ID"
    talk.session = await talk.hone.resume(beginning)
    return f"Going on with {talk.session.id}, {len(talk.session.transcript):,} messages."


async def _compact(talk: Talk, focus: str) -> str:
    before = len(talk.session.transcript)
    if not await talk.session.compact(focus):
        return "There is too little to shorten yet."
    gone = before - len(talk.session.transcript) + 1
    return f"Notes now stand for {gone:,} older messages, which are kept in the store."


async def _usage(talk: Talk, _: str) -> str:
    spent = await talk.hone.sessions.spending(talk.session.id)
    return account(each.usage for each in spent) if spent else "Nothing has been spent in this session yet."


async def _verbose(talk: Talk, _: str) -> str:
    talk.verbose = not talk.verbose
    return f"Results are shown {'whole' if talk.verbose else 'by their first lines'}."


async def _quit(_: Talk, __: str) -> str:
    raise EOFError


COMMANDS: Mapping[str, Command] = {
    "help": Command(_help, "This list."),
    "model": Command(_model, "Show the model, or go on with another one.", "[NAME]"),
    "sessions": Command(_sessions, "The latest conversations."),
    "resume": Command(_resume, "Go on with another conversation.", "ID"),
    "compact": Command(_compact, "Put notes in the place of older messages.", "[FOCUS]"),
    "usage": Command(_usage, "What this conversation has cost so far."),
    "verbose": Command(_verbose, "Show results whole, or by their first lines."),
    "quit": Command(_quit, "Leave; so does Ctrl-D."),
}
