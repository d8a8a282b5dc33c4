"""Commands that the owner queued, for a worker to do: an experiment, an import."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from msgspec import Struct

Argument = str | int | bool


class CommandState(StrEnum):
    WAITING = "waiting"
    """It waits, or a worker is at it."""
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class QueuedCommand(Struct, frozen=True):
    """`kind` says which part does it, `title` names it for a person. `said` is how far it is, what came of it
    or what went wrong. `tries` counts failures since the last step that succeeded. It rests until `due`."""

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
    """What a step came to. `again`: when the next one may begin, if there is more to do."""

    said: str
    again: datetime | None = None
