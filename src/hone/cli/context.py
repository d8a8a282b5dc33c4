"""Open the home, run a session and handle Ctrl-C for one command."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import Self, TypeVar

import click

from hone.app import Hone
from hone.cli.options import Options
from hone.cli.output import echo
from hone.core import seldom
from hone.core.errors import HoneError, Refused, SettingsError
from hone.core.events import Emit, TurnEnded
from hone.core.ledger import ChangeState
from hone.core.loading import import_object
from hone.core.messages import Message
from hone.core.trust import Trust
from hone.core.turn import Stop, Turn
from hone.core.visible import one_line, visible
from hone.knowledge.keeper import Keeper
from hone.knowledge.sections import find_past
from hone.runtime.session import Session
from hone.runtime.task_runner import Form

Result = TypeVar("Result")
Act = Callable[[], object]
Output = Iterable[str] | int | None

FIND = "hone.cli.resuming:find_session"
"""Imported to continue a conversation."""
FIND_LESSONS = "hone.knowledge.wording:find_lessons"
"""Imported to show what was learned."""
RECENT = 20
"""How many reviews to search for ones that nobody has seen."""


def with_home(options: Options, act: Callable[[Hone], Awaitable[Result]]) -> Result:
    """Open the home for `act`. Anything to say besides the result goes to standard error."""

    async def whole() -> Result:
        async with Hone(home=options.home, learning="queue") as hone:
            try:
                result = await act(hone)
            except HoneError as error:
                tell(hone, but=str(error))
                raise
            tell(hone)
            return result

    return asyncio.run(whole())


@contextmanager
def unopened_home(options: Options) -> Iterator[Hone]:
    """Provide an unopened home for a command that asks and waits. What it reads from a remote database is
    closed."""
    hone = Hone(home=options.home, learning="off")
    try:
        yield hone
    finally:
        if hone.settings.database:
            asyncio.run(hone.close())


def in_home(act: Callable[..., Awaitable[Output]]) -> Callable[..., int | None]:
    """Turn a coroutine that gets the open home into a command's function. Lines that it returns are printed
    when the home is closed; a number is the exit code."""

    @click.pass_obj
    @wraps(act)
    def command(options: Options, /, **arguments: object) -> int | None:
        result = with_home(options, lambda hone: act(hone, **arguments))
        if result is None or isinstance(result, int):
            return result
        echo([result] if isinstance(result, str) else result)
        return None

    return command


def ledger_of(hone: Hone) -> Keeper:
    """Return the keeper for reading the ledger. Raises Refused if there is none to open."""
    keeper = hone.keeper
    if keeper.rules.closed and not hone.stores.readonly:
        raise Refused(f"{keeper.rules.closed} Its log cannot be opened either.")
    return keeper


def writable_keeper(hone: Hone) -> Keeper:
    """Return the keeper for changing the home. Raises Refused if nothing can be changed."""
    keeper = ledger_of(hone)
    if keeper.rules.closed:
        raise Refused(f"{keeper.rules.closed} Nothing was changed.")
    return keeper


def tell(hone: Hone, but: str = "") -> None:
    for sentence in news(hone):
        if sentence not in but:
            click.echo(visible(sentence), err=True)


def news(hone: Hone) -> list[str]:
    """Return what Hone has to say besides the conversation, each sentence once."""
    sentences, hone.notices[:] = list(hone.notices), []
    return sentences


async def open_session(hone: Hone, options: Options) -> Session:
    """Return a new conversation, or the one that the options name. Raises Missing."""
    if not options.resume and not options.last:
        return await hone.session(options.model, options.template)
    found = await import_object(FIND)(hone, options)
    return await hone.resume(found, options.model)


def waiting(count: int, command: str, hint: str = "") -> str:
    """Say in one line what waits, how to see it, and how to need that less often."""
    said = f"{count:,} lessons wait for you: {command}" if count > 1 else f"1 lesson waits for you: {command}"
    return f"{said} ({hint})" if hint else said


def trust_hint(hone: Hone) -> str:
    """Say how lessons of this folder could take effect without waiting; empty if it is trusted."""
    if hone.folders.trusts(hone.folder):
        return ""
    return "this folder is not trusted; to trust it: hone trust"


async def tell_past(hone: Hone) -> None:
    """Report once how many entries are past their date."""
    if count := len(await find_past(hone.keeper, hone.folder, hone.library.today)):
        one, many = "1 journal entry is past its date", f"{count:,} journal entries are past their date"
        hone.notices.append(f"{one if count == 1 else many} and no longer used: hone recheck")


async def recap(hone: Hone, command: str) -> list[str]:
    """Say in one line what was learned since the owner last spoke, and how to see all of it."""
    with suppress(HoneError):
        spoken = await hone.sessions.list(1, own=True)
        if not spoken or hone.settings.learning.show == "off":
            return []
        recent = [job for job in await hone.jobs.jobs(RECENT) if job.ended and job.ended > spoken[0].updated]
        made = [await hone.ledger.entry(each) for job in recent for each in job.changes]
        active = [each for each in made if each.change.standing is ChangeState.ACTIVE]
        lessons = await import_object(FIND_LESSONS)(hone.ledger, active) if active else ()
        told = [each.text or each.replaced for each in lessons]
        more = f" and {len(told) - 1:,} more" if len(told) > 1 else ""
        if told:
            return [f'✎ learned since you last spoke: "{one_line(told[0], 70)}"{more} · {command}']
    return []


class Interrupts:
    """While this context is active, Ctrl-C does what the innermost `heed` says, or nothing if there is
    none."""

    def __init__(self) -> None:
        self._steps: list[Act] = []

    def __enter__(self) -> Self:
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self.press)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)

    def press(self) -> None:
        if self._steps:
            (self._steps.pop(0) if len(self._steps) > 1 else self._steps[0])()

    @contextmanager
    def heed(self, *steps: Act) -> Iterator[None]:
        """Handle Ctrl-C with these steps. The first press runs the first step, and so on; the last one
        repeats."""
        outer, self._steps = self._steps, list(steps)
        try:
            yield
        finally:
            self._steps = outer


async def take_turn(
    session: Session,
    message: str | Message,
    emit: Emit,
    interrupts: Interrupts,
    *,
    voice: Trust | None = None,
    aside: str = "",
    form: Form | None = None,
) -> Turn:
    """Send a message. Ctrl-C ends the turn in order; pressed again, it ends it at once."""
    sending = asyncio.ensure_future(session.send(message, emit, voice=voice, aside=aside, form=form))
    try:
        with interrupts.heed(session.cancel, sending.cancel):
            return await sending
    except asyncio.CancelledError:
        if not sending.cancelled():
            raise
        turn = Turn(session.header.origin).ended(Stop.INTERRUPTED, "interrupted")
        emit(TurnEnded(turn))
        return turn


def find_editor(file: Path) -> list[str]:
    """Return the command of the user's editor. Raises SettingsError if there is none for this file."""
    editor = seldom.shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "")
    if not editor:
        raise SettingsError(f"No editor is named. Set EDITOR, or open {file} yourself.")
    return editor


def open_editor(file: Path) -> None:
    """Run the editor until it is closed. Raises HoneError if it cannot be started or fails."""
    editor = find_editor(file)
    try:
        code = subprocess.run([*editor, str(file)], check=False).returncode
    except OSError as error:
        raise SettingsError(f"The editor {editor[0]!r} cannot be started: {error.strerror}.") from error
    if code:
        raise HoneError(f"The editor ended with exit code {code}.")
