"""A template: calls that worked in one session, kept as examples for the beginning of others."""

from datetime import datetime
from enum import StrEnum

from hone.core.ids import SessionId
from hone.core.trust import Trust
from hone.core.value import dataclass


class Work(StrEnum):
    """The kind of work that most calls of a session did."""

    CODE = "code"
    FILE = "file"
    RESEARCH = "research"
    MIXED = "mixed"


@dataclass(frozen=True, slots=True)
class Example:
    """A call and its own result. `size` is how long the result was; `said` and `trust` are the labels that
    the call and the result had where they happened."""

    tool: str
    arguments: str
    result: str
    size: int
    said: Trust
    trust: Trust


@dataclass(frozen=True, slots=True)
class Template:
    """`uses` are the sessions that began with it; `effect` is by how much it was measured to help (negative:
    to harm), None if nobody has measured it."""

    name: str
    work: Work
    session: SessionId
    created: datetime
    examples: tuple[Example, ...]
    description: str = ""
    tags: tuple[str, ...] = ()
    uses: tuple[SessionId, ...] = ()
    effect: float | None = None
