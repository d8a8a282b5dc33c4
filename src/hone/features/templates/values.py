"""The values of templates: calls that worked in one session, kept as examples for the start of others."""

from collections.abc import Collection
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct

from hone.core.ids import SessionId
from hone.core.sealed import TrustWord

Word = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9_-]{1,64}\Z")]


class WorkKind(StrEnum):
    """The kind of work that most calls of a session did."""

    CODE = "code"
    FILE = "file"
    RESEARCH = "research"
    MIXED = "mixed"


class Example(Struct, frozen=True, forbid_unknown_fields=True):
    """A call and its own result, with their original labels. `size` is the original length of the result."""

    tool: Word
    arguments: str
    result: str
    size: Annotated[int, Meta(ge=0)]
    call_trust: TrustWord
    result_trust: TrustWord


class Template(Struct, frozen=True, forbid_unknown_fields=True, rename={"work": "type"}):
    """`uses` are the sessions that began with it; `effect` is how much it was measured to help (negative: to
    harm), None if it was not measured."""

    name: Word
    work: WorkKind
    session: SessionId
    created: Annotated[datetime, Meta(tz=True)]
    description: str
    tags: tuple[str, ...]
    examples: tuple[Example, ...]
    uses: tuple[SessionId, ...] = ()
    effect: float | None = None


def is_listed(template: Template, work: str | None, tags: Collection[str]) -> bool:
    """Tell whether a template is of this kind of work and has one of these tags. A missing criterion does not
    matter."""
    return work in (None, template.work) and (not tags or bool(set(tags) & set(template.tags)))
