"""The values of templates: calls that worked in one session, kept as examples for the start of others."""

from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from hone.core.ids import SessionId
from hone.core.trust import Trust


class Work(StrEnum):
    """The kind of work that most calls of a session did."""

    CODE = "code"
    FILE = "file"
    RESEARCH = "research"
    MIXED = "mixed"


class Example(Struct, frozen=True):
    """A call and its own result. `size` is how long the result was; `said` and `trust` are the labels that
    the call and the result had where they happened."""

    tool: str
    arguments: str
    result: str
    size: int
    said: Trust
    trust: Trust


class Template(Struct, frozen=True):
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
