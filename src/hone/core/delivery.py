"""Bring due work to workers: the port between what is queued and who does it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from hone.core.jobs import JobId


class TicketKind(StrEnum):
    WAKE = "wake"
    """Something became due: turn looks into reviews."""
    REVIEW = "review"
    DELIVER = "deliver"
    """Copies for the memory backend."""
    TEND = "tend"
    """The curator, vectors, and what else features do when nobody waits for it."""
    COMMAND = "command"
    """A step of a command that the owner queued: an experiment or an import."""


class WorkItem(Struct, frozen=True):
    """One piece of work. `owner` is whose, in a database that several share; empty: the home's own."""

    kind: TicketKind
    owner: str = ""
    job: JobId | None = None


class WorkResult(Struct, frozen=True):
    """What came of it. `worked`: of a review or a command, whether it was worked on, and not somebody else's.
    `tend` and `command` say when the owner has something for TEND and COMMAND to do; None: nothing in
    sight."""

    worked: bool = True
    tend: datetime | None = None
    command: datetime | None = None


Perform = Callable[[WorkItem], Awaitable[WorkResult]]


class WorkerStatus(Struct, frozen=True):
    """A worker somewhere. `busy` is what it works on, of `concurrency` at most. `answers`: its heart beats.
    One that does not answer and holds its claim was stopped; it keeps its work until it ends."""

    name: str
    since: datetime
    concurrency: int
    busy: int
    answers: bool


class DeliveryStatus(Struct, frozen=True):
    """Who works, how much waits for a worker, by kind, and for how many seconds the oldest of it has."""

    workers: Sequence[WorkerStatus] = ()
    waiting: Mapping[str, int] = {}
    oldest: Mapping[str, float] = {}


class Delivery(Protocol):
    """What is delivered is decided by Hone's own rows, and so is what was done: work that comes twice is done
    once, work that was begun and broken off comes again."""

    async def serve(self, perform: Perform, concurrency: int, say: Callable[[str], None]) -> None:
        """Have work done, so much at a time, until the caller is cancelled. Then what is under way gets some
        seconds, and goes back into the queue. `say` hears of trouble that passes by itself."""
        ...

    async def status(self) -> DeliveryStatus: ...
