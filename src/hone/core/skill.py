"""Summaries of skills, and the Protocol of the catalog that lists, ranks, searches and counts them."""

from collections.abc import Collection, Mapping, Sequence
from datetime import date
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from hone.core.ids import SessionId
from hone.core.ledger import Actor

DOCUMENT = "SKILL.md"
ORIGIN, SOURCE, PINNED, ARCHIVED, PROJECT = "@origin", "@source", "@pinned", "@archived", "@project"
APPROVED = "@approved"
"""The facts a skill may hold beside its files. @pinned and @archived hold b"1" or are not there; @origin
holds the word of a SkillOrigin, @source where it was installed from, @approved the digest of its files as the
owner saw them then, @project the folder it was made for."""


class SkillOrigin(StrEnum):
    """Where a skill comes from."""

    BUNDLED = "bundled"
    """Comes with Hone, and lies in its package instead of the ledger."""
    INSTALLED = "installed"
    USER = "user"
    AGENT = "agent"


class SkillSummary(Struct, frozen=True):
    """What the front matter says, and the words of the body, for search."""

    name: str
    description: str
    body: str


class UsageCounts(Struct, frozen=True):
    """How often, and when for the last time. Looks of reviews and the curator are counted apart."""

    views: int = 0
    uses: int = 0
    patches: int = 0
    background_views: int = 0
    background_patches: int = 0
    last_use: date | None = None
    succeeded: int = 0
    corrected: int = 0


class ListedSkill(Struct, frozen=True):
    """A skill in a list. `digest` is that of its document."""

    name: str
    description: str
    digest: str
    origin: SkillOrigin = SkillOrigin.AGENT
    pinned: bool = False
    archived: bool = False
    project: str = ""
    counts: UsageCounts = UsageCounts()


class SkillResult(StrEnum):
    """How a conversation went in which a skill was used."""

    SUCCEEDED = "succeeded"
    """The last calls did not fail, and the user corrected nothing."""
    CORRECTED = "corrected"
    """A review says so, from the user's own words."""
    UNKNOWN = "unknown"


class SkillEvent(StrEnum):
    VIEW = "view"
    USE = "use"
    """Its text was given to a conversation; counted once a session."""
    PATCH = "patch"


class SkillCatalog(Protocol):
    """All skills of the ledger. Summaries are kept by the document's digest: a cache, not a truth."""

    async def unsummarized(self) -> Sequence[str]:
        """Return the digests of documents that are held and have no summary yet."""
        ...

    async def save_summaries(self, summaries: Mapping[str, SkillSummary]) -> None:
        """Keep summaries, by the digest of their documents."""
        ...

    async def listed(self, *, archived: bool = False) -> Sequence[ListedSkill]:
        """By name. Those without a summary are left out."""
        ...

    async def ranked(self, folder: str, today: date, limit: int) -> Sequence[ListedSkill]:
        """The first in rank that are not archived: pinned, of this folder, used last, used most, by name.
        Uses of today do not count yet, so that the answer is the same all day."""
        ...

    async def idle(self, before: str, folder: str, today: date) -> int:
        """How many stand before this name among those that nothing but their name ranks: active, neither
        pinned nor of this folder, and not used before today."""
        ...

    async def search(self, words: Collection[str], limit: int) -> Sequence[tuple[ListedSkill, float]]:
        """Best first, by BM25 over name, description and body with any of the words; archived ones left out.
        A higher score is better."""
        ...

    async def count(
        self, skill: str, event: SkillEvent, actor: Actor, session: SessionId, today: date
    ) -> None: ...

    async def used(self, session: SessionId) -> Sequence[str]:
        """The skills that were used in a session, by name."""
        ...

    async def rate(self, skill: str, session: SessionId, result: SkillResult) -> None:
        """How it went; what was said of the same session before counts no more. A use that was not counted
        is not rated."""
        ...

    async def names(self) -> Mapping[str, bool]:
        """Every skill that holds a document, and whether it is archived."""
        ...

    async def days(self) -> Mapping[str, frozenset[date]]:
        """The days on which each skill was used, as the clock said then."""
        ...

    async def usage_counts(self) -> Mapping[str, UsageCounts]:
        """Of bundled skills, too."""
        ...
