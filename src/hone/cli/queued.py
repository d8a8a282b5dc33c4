"""Do the commands that the owner queued, step by step, and report their progress."""

from collections.abc import Iterator, Sequence

from hone.app import Hone
from hone.core.errors import HoneError, Missing
from hone.core.queued import CommandState, CommandStep, QueuedCommand
from hone.core.visible import one_line
from hone.runtime.queued import CommandQueue

SHOWN = 5
"""How many ended commands to show."""
QUEUED = "Queued as command {number}. A worker does it; to see how far it is: hone worker status"


async def do_next(hone: Hone) -> str:
    """Do a step of the first command that is due and that nobody works on. Return its result; empty if there
    is none."""
    queue, now = CommandQueue(hone.documents, hone.clock), hone.clock.now()
    for each in queue.waiting():
        if each.due is not None and each.due > now:
            continue
        async with hone.stores.claims.hold(f"command-{each.number}") as held:
            # Another process may have done it since.
            if held and (found := _find(queue, each.number)) == each:
                return await _do(hone, queue, found)
    return ""


def _find(queue: CommandQueue, number: int) -> QueuedCommand | None:
    try:
        return queue.find(number)
    except Missing:
        return None


async def _do(hone: Hone, queue: CommandQueue, command: QueuedCommand) -> str:
    try:
        step = await _step(hone, command)
    except (HoneError, OSError) as error:
        queue.fail(command.number, str(error))
    else:
        queue.note(command.number, step)
    found = _find(queue, command.number)
    return f"command {command.number}: {describe(found)}" if found else f"command {command.number} is gone"


async def _step(hone: Hone, command: QueuedCommand) -> CommandStep:
    for part in hone.parts("perform"):
        step = await part.perform(command)
        if step is not None:
            return step
    raise HoneError(f"Nothing here knows how to do {one_line(command.kind, 40)!r}.")


def describe(command: QueuedCommand) -> str:
    title, said = one_line(command.title, 80), one_line(command.said, 200)
    if command.state is CommandState.FAILED:
        return f"{title}: failed. {said}"
    if command.state is CommandState.CANCELLED:
        return f"{title}: cancelled"
    if command.state is CommandState.DONE:
        return f"{title}: {said}"
    until = f" It continues at {command.due.astimezone():%H:%M}." if command.tries and command.due else ""
    return f"{title}: {said or 'waits'}{until}"


def describe_commands(commands: Sequence[QueuedCommand]) -> Iterator[str]:
    """Yield one line for each waiting command, and for the last ended ones."""
    ended = [each for each in commands if each.state is not CommandState.WAITING]
    for each in commands:
        if each.state is CommandState.WAITING or each in ended[-SHOWN:]:
            yield f"Command {each.number}, {describe(each)}"


def end_command(hone: Hone, number: int) -> str:
    found = CommandQueue(hone.documents, hone.clock).cancel(number)
    return f"Command {number} is cancelled: {one_line(found.title, 80)}."
