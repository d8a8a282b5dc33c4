"""Commands that the owner queued for a worker: an experiment or an import."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from msgspec import Struct

Argument = str | int | bool


class CommandState(StrEnum):
    WAITING = "waiting"
    """Waiting, or in progress."""
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class QueuedCommand(Struct, frozen=True):
    """A queued command. `kind` says which part does it, `title` names it for people. `said` is its progress,
    its result or its error. `tries` counts failures since the last successful step. It rests until `due`."""

    number: int
    kind: str
    title: str
    arguments: Mapping[str, Argument]
    created: datetime
    state: CommandState = CommandState.WAITING
    said: str = ""
    tries: int = 0
    due: datetime | None = None
    ended: datetime | None = None


class CommandStep(Struct, frozen=True):
    """The result of a step. `again`: when the next step may begin, if there is more to do."""

    said: str
    again: datetime | None = None
