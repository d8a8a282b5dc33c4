"""The queue of one owner's commands. It consists of documents, so that any machine can add a command and any
worker can do it.

Each step stores its own results, and a repeated step finds them there. The queue only holds what waits, its
progress and its result.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta

import msgspec

from hone.core.clock import Clock
from hone.core.documents import NEW, QUEUED, Documents, change
from hone.core.errors import Conflict, Corrupt, Missing, Refused
from hone.core.queued import Argument, CommandState, CommandStep, QueuedCommand
from hone.core.value import replace

SUFFIX = ".json"
KEPT = 20
"""How many ended commands are still listed."""
TRIES = 3
FIRST_REST = timedelta(minutes=1)
"""The wait before another try, doubled each time."""


class CommandQueue:
    """Every method waits for the disk or the database. Raises StoreError."""

    def __init__(self, documents: Documents, clock: Clock) -> None:
        self._documents = documents
        self._clock = clock

    def add(self, kind: str, title: str, arguments: Mapping[str, Argument]) -> QueuedCommand:
        """Queue a command, unless the same one waits already. Return the one that waits."""
        while True:
            known = self.all()
            for each in known:
                if each.state is CommandState.WAITING and (each.kind, each.arguments) == (kind, arguments):
                    return each
            number = max((each.number for each in known), default=0) + 1
            made = QueuedCommand(number, kind, title, arguments, self._clock.now())
            try:
                self._documents.write(QUEUED, _name(number), msgspec.json.encode(made), NEW)
            except Conflict:
                continue  # another process queued one
            self._forget(known)
            return made

    def all(self) -> Sequence[QueuedCommand]:
        """Return all known commands, oldest first."""
        return sorted(self._read_all(), key=lambda each: each.number)

    def waiting(self) -> Sequence[QueuedCommand]:
        return [each for each in self.all() if each.state is CommandState.WAITING]

    def find(self, number: int) -> QueuedCommand:
        data = self._documents.read(QUEUED, _name(number))
        if data is None:
            raise Missing(f"There is no queued command {number}. See: hone worker status")
        return _decode(data, number)

    def next_due(self) -> datetime | None:
        """Return when the next step can begin; None if nothing waits."""
        now = self._clock.now()
        return min((each.due or now for each in self.waiting()), default=None)

    def note(self, number: int, step: CommandStep) -> None:
        """Record the result of a step."""
        if step.again is None:
            self._end(number, CommandState.DONE, step.said)
        else:
            self._change(number, lambda each: replace(each, said=step.said, tries=0, due=step.again))

    def fail(self, number: int, error: str) -> None:
        """Note that a step failed. It is tried again later, a few times."""
        now = self._clock.now()

        def failed(each: QueuedCommand) -> QueuedCommand:
            tries = each.tries + 1
            if tries >= TRIES:
                return replace(each, said=error, tries=tries, state=CommandState.FAILED, ended=now)
            return replace(each, said=error, tries=tries, due=now + FIRST_REST * 2 ** (tries - 1))

        self._change(number, failed)

    def cancel(self, number: int) -> QueuedCommand:
        """Remove a command from the queue. A running step finishes, and none follows. Raises Refused if the
        command has ended."""
        found = self.find(number)
        if found.state is not CommandState.WAITING:
            raise Refused(f"Command {number} has ended already: {found.state}.")
        self._end(number, CommandState.CANCELLED, found.said)
        return found

    def _end(self, number: int, state: CommandState, said: str) -> None:
        now = self._clock.now()
        self._change(number, lambda each: replace(each, state=state, said=said, tries=0, ended=now))

    def _change(self, number: int, edit: Callable[[QueuedCommand], QueuedCommand]) -> None:
        """Change a waiting command. One that was cancelled or deleted in the meantime stays so."""

        def changed(data: bytes | None) -> bytes | None:
            found = _decode(data, number) if data is not None else None
            if found is None or found.state is not CommandState.WAITING:
                return None
            return msgspec.json.encode(edit(found))

        change(self._documents, QUEUED, _name(number), changed)

    def _read_all(self) -> Iterator[QueuedCommand]:
        for name in self._documents.names(QUEUED):
            number = name.removesuffix(SUFFIX)
            if number.isdecimal() and (data := self._documents.read(QUEUED, name)) is not None:
                with suppress(Corrupt):  # `find` says why
                    yield _decode(data, int(number))

    def _forget(self, known: Sequence[QueuedCommand]) -> None:
        ended = [each for each in known if each.state is not CommandState.WAITING]
        for each in ended[:-KEPT]:
            self._documents.delete(QUEUED, _name(each.number))


def _name(number: int) -> str:
    return f"{number}{SUFFIX}"


def _decode(data: bytes, number: int) -> QueuedCommand:
    try:
        return msgspec.json.decode(data, type=QueuedCommand)
    except msgspec.DecodeError as error:
        raise Corrupt(f"The queued command {number} cannot be read: {error}.") from error
