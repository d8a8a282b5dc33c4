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
    """Send copies to the memory backend."""
    TEND = "tend"
    """Run the curator, make vectors, and do what else features do when nobody waits for it."""
    COMMAND = "command"
    """Do a step of a command that the owner queued: an experiment or an import."""


class WorkItem(Struct, frozen=True):
    """One piece of work. `owner` is its owner in a database that several share; empty: the home's own."""

    kind: TicketKind
    owner: str = ""
    job: JobId | None = None


class WorkResult(Struct, frozen=True):
    """The result of a work item. `worked`: whether this worker worked on the review or command, rather than
    another. `tend` and `command` say when the owner's next TEND and COMMAND work is due; None: nothing is in
    sight."""

    worked: bool = True
    tend: datetime | None = None
    command: datetime | None = None


Perform = Callable[[WorkItem], Awaitable[WorkResult]]


class WorkerStatus(Struct, frozen=True):
    """A worker somewhere. `busy` is what it works on, at most `concurrency` items. `answers`: it has a
    heartbeat. A worker that does not answer but holds its claim was stopped; it keeps its work until it
    ends."""

    name: str
    since: datetime
    concurrency: int
    busy: int
    answers: bool


class DeliveryStatus(Struct, frozen=True):
    """The workers, how much waits for one by kind, and for how many seconds the oldest item has waited."""

    workers: Sequence[WorkerStatus] = ()
    waiting: Mapping[str, int] = {}
    oldest: Mapping[str, float] = {}


class Delivery(Protocol):
    """Hone's own rows decide what is delivered and what was done. Work delivered twice is done once; work
    that was broken off is delivered again."""

    async def serve(self, perform: Perform, concurrency: int, say: Callable[[str], None]) -> None:
        """Deliver work, a bounded amount at a time, until the caller is cancelled. Then running work gets a
        few seconds before it returns to the queue. `say` hears of trouble that passes without help."""
        ...

    async def status(self) -> DeliveryStatus: ...
