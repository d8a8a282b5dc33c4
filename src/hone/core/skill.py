"""Summaries of skills, the stems they are found by, and the Protocol of the catalog that lists, ranks,
searches and counts them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import date
from enum import StrEnum
from functools import lru_cache
from itertools import pairwise
from typing import Protocol
from unicodedata import combining, normalize

from msgspec import Struct

from hone.core.ids import SessionId
from hone.core.ledger import Actor
from hone.core.regex import regex

DOCUMENT = "SKILL.md"
ORIGIN, SOURCE, PINNED, ARCHIVED, PROJECT = "@origin", "@source", "@pinned", "@archived", "@project"
APPROVED, FAILED = "@approved", "@failed"
"""The facts a skill may hold beside its files. @pinned and @archived hold b"1" or are not there; @origin
holds the word of a SkillOrigin, @source where it was installed from, @approved the digest of its files as the
owner saw them then, @project the folder it was made for, @failed why its checks switched it off."""
CHECKS = "checks/"
"""Where the commands lie that check a skill."""

HEAD = 2_000
"""Characters of a body that say what it is about."""
SEPARATE = (
    r"\u3005\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    r"\uac00-\ud7af\uf900-\ufaff\uff66-\uff9d\U00020000-\U0003ffff"
)
"""Letters of scripts that do not part their words, or hang endings on them: Han, kana, Hangul."""
_RUN = regex(f"[{SEPARATE}]+|[^{SEPARATE}]+")
_LETTER = regex(f"[{SEPARATE}]")
_WORD = regex(r"[^\W_]+")
_ENDINGS = ("ations", "ation", "ings", "ing", "ers", "ed", "es", "er", "ly", "s", "e")
_PLAIN = bytes(
    code if code > 127 else ord(chr(code).lower()) if chr(code).isalnum() else 32 for code in range(256)
)
"""From each byte of UTF-8 to a small letter, a blank, or a part of a letter that is no ASCII."""
LONGEST = 64
"""Characters of a word that can be found."""


def to_stems(text: str) -> Sequence[str]:
    """Return the stems of a text, each once: that is what skills are found by."""
    plain = text.encode("utf-8", "replace").translate(_PLAIN).decode()
    words = dict.fromkeys(plain.split())
    if not plain.isascii():
        words = dict.fromkeys(
            part for word in words for part in (_split(word) if not word.isascii() else (word,))
        )
    return list(dict.fromkeys(map(to_stem, words)))


def _split(text: str) -> Iterator[str]:
    """Yield words without accents, and of scripts without blanks each letter and each pair of letters."""
    bare = "".join(each for each in normalize("NFD", text.lower()) if not combining(each))
    for word in _WORD.findall(normalize("NFC", bare)):
        for run in _RUN.findall(word):
            yield from (*run, *map("".join, pairwise(run))) if _LETTER.match(run) else (run,)


@lru_cache(maxsize=65_536)
def to_stem(word: str) -> str:
    """Near enough for English; other words lose little."""
    if len(word) > LONGEST:
        return word[:LONGEST]
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            word = word[: -len(ending)]
            break
    doubled = len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiouls"
    return word[:-1] if doubled else word


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


class SkillHits(Struct, frozen=True):
    """Which stems of a task a skill has, by where they stand. `name` has all stems of the name."""

    name: frozenset[str]
    description: frozenset[str]
    head: frozenset[str]

    @property
    def all(self) -> frozenset[str]:
        return self.name | self.description | self.head


class SkillWords(Struct, frozen=True):
    """The stems of a skill, as they are stored: of its name, its description, and the beginning of its body,
    each once and in the first of these places."""

    name: str
    description: str
    head: str

    @classmethod
    def of(cls, summary: SkillSummary, head: int = HEAD) -> "SkillWords":
        """`head` is how many characters of the body count as its beginning."""
        name, description = to_stems(summary.name), to_stems(summary.description)
        seen, body = {*name, *description}, to_stems(summary.body[:head])
        further = [stem for stem in description if stem not in name]
        return cls(*map(" ".join, (name, further, [stem for stem in body if stem not in seen])))

    def find(self, stems: frozenset[str]) -> SkillHits:
        found = (stems.intersection(text.split()) for text in (self.description, self.head))
        return SkillHits(frozenset(self.name.split()), *found)


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


class SkillMatches(Struct, frozen=True):
    """What a search found, best first, out of `total`. `counts` says how many skills hold each word that was
    looked for, up to a bound."""

    found: tuple[tuple[ListedSkill, SkillWords, float], ...]
    counts: Mapping[str, int]
    total: int


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

    async def unsummarized_first(self, folder: str, today: date, limit: int) -> Sequence[str]:
        """Return those of them that are among the first in rank."""
        ...

    async def save_summaries(self, summaries: Mapping[str, SkillSummary]) -> None:
        """Keep summaries, by the digest of their documents."""
        ...

    async def listed(self, *, archived: bool = False) -> Sequence[ListedSkill]:
        """By name. Those without a summary are left out."""
        ...

    async def named(self, names: Sequence[str]) -> Sequence[ListedSkill]:
        """Return those with these names, archived or not, by name. Those without a summary are left out."""
        ...

    async def ranked(self, folder: str, today: date, limit: int) -> Sequence[ListedSkill]:
        """The first in rank that are not archived: pinned, of this folder, used last, used most, by name.
        Uses of today do not count yet, so that the answer is the same all day."""
        ...

    async def idle(self, before: str, folder: str, today: date) -> int:
        """How many stand before this name among those that nothing but their name ranks: active, neither
        pinned nor of this folder, and not used before today."""
        ...

    async def search(self, words: Collection[str], limit: int) -> SkillMatches:
        """Those with any of the words, best first: the rarer a word, and the more of them stand in name and
        description, the better. Archived ones are left out."""
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

    async def with_checks(self) -> Sequence[str]:
        """Every skill that holds files below checks/, archived or not, by name."""
        ...

    async def days(self) -> Mapping[str, frozenset[date]]:
        """The days on which each skill was used, as the clock said then."""
        ...

    async def usage_counts(self) -> Mapping[str, UsageCounts]:
        """Of bundled skills, too."""
        ...
