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
"""Facts that a skill may hold with its files. @pinned and @archived hold b"1" or are absent; @origin holds a
SkillOrigin, @source where it was installed from, @approved the digest of its files as the owner saw them,
@project the folder it was made for, @failed why its checks switched it off."""
CHECKS = "checks/"
"""The folder of the commands that check a skill."""

HEAD = 2_000
"""The characters of a body that count as its beginning."""
SEPARATE = (
    r"\u3005\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    r"\uac00-\ud7af\uf900-\ufaff\uff66-\uff9d\U00020000-\U0003ffff"
)
"""Letters of scripts that do not separate words, or that attach endings to them: Han, kana, Hangul."""
_RUN = regex(f"[{SEPARATE}]+|[^{SEPARATE}]+")
_LETTER = regex(f"[{SEPARATE}]")
_WORD = regex(r"[^\W_]+")
_ENDINGS = ("ations", "ation", "ings", "ing", "ers", "ed", "es", "er", "ly", "s", "e")
_PLAIN = bytes(
    code if code > 127 else ord(chr(code).lower()) if chr(code).isalnum() else 32 for code in range(256)
)
"""Maps each byte of UTF-8 to a lowercase letter, a blank, or a part of a non-ASCII letter."""
LONGEST = 64
"""The most characters of a word that search can find."""


def to_stems(text: str) -> Sequence[str]:
    """Return the stems of a text, each once. Search finds skills by these."""
    plain = text.encode("utf-8", "replace").translate(_PLAIN).decode()
    words = dict.fromkeys(plain.split())
    if not plain.isascii():
        words = dict.fromkeys(
            part for word in words for part in (_split(word) if not word.isascii() else (word,))
        )
    return list(dict.fromkeys(map(to_stem, words)))


def _split(text: str) -> Iterator[str]:
    """Yield words without accents. For scripts without spaces, yield each letter and each pair of letters."""
    bare = "".join(each for each in normalize("NFD", text.lower()) if not combining(each))
    for word in _WORD.findall(normalize("NFC", bare)):
        for run in _RUN.findall(word):
            yield from (*run, *map("".join, pairwise(run))) if _LETTER.match(run) else (run,)


@lru_cache(maxsize=65_536)
def to_stem(word: str) -> str:
    """Return a stem good enough for English; words of other languages lose little."""
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
    """Comes with Hone. It is part of the package and not of the ledger."""
    INSTALLED = "installed"
    USER = "user"
    AGENT = "agent"


class SkillSummary(Struct, frozen=True):
    """The front matter of a skill, and the words of its body for search."""

    name: str
    description: str
    body: str


class SkillHits(Struct, frozen=True):
    """The stems of a task that a skill has, by where they appear. `name` has all stems of the name."""

    name: frozenset[str]
    description: frozenset[str]
    head: frozenset[str]

    @property
    def all(self) -> frozenset[str]:
        return self.name | self.description | self.head


class SkillWords(Struct, frozen=True):
    """The stems of a skill as stored: those of its name, its description, and the beginning of its body, each
    listed once, where it appears first."""

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
    """How often a skill was used, and when last. Uses by reviews and by the curator are counted
    separately."""

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
    """The results of a search, best first, out of `total`. `counts` says how many skills hold each searched
    word, up to a bound."""

    found: tuple[tuple[ListedSkill, SkillWords, float], ...]
    counts: Mapping[str, int]
    total: int


class SkillResult(StrEnum):
    """How a conversation that used a skill turned out."""

    SUCCEEDED = "succeeded"
    """The last calls did not fail, and the user corrected nothing."""
    CORRECTED = "corrected"
    """A review says so, based on the user's own words."""
    UNKNOWN = "unknown"


class SkillEvent(StrEnum):
    VIEW = "view"
    USE = "use"
    """A conversation received its text; counted once per session."""
    PATCH = "patch"


class SkillCatalog(Protocol):
    """All skills of the ledger. Summaries are cached by the document's digest; the ledger is the truth."""

    async def unsummarized(self) -> Sequence[str]:
        """Return the digests of current documents without a summary."""
        ...

    async def unsummarized_first(self, folder: str, today: date, limit: int) -> Sequence[str]:
        """Return those of them that are among the top-ranked skills."""
        ...

    async def save_summaries(self, summaries: Mapping[str, SkillSummary]) -> None:
        """Keep summaries, by the digest of their documents."""
        ...

    async def listed(self, *, archived: bool = False) -> Sequence[ListedSkill]:
        """Return skills by name. Those without a summary are left out."""
        ...

    async def named(self, names: Sequence[str]) -> Sequence[ListedSkill]:
        """Return the skills with these names, archived or not, by name. Those without a summary are left
        out."""
        ...

    async def ranked(self, folder: str, today: date, limit: int) -> Sequence[ListedSkill]:
        """Return the top-ranked skills that are not archived. The order: pinned, of this folder, last use,
        number of uses, name. Uses of today do not count yet, so the answer is the same all day."""
        ...

    async def idle(self, before: str, folder: str, today: date) -> int:
        """Count the skills before this name among those ranked by name alone: active, neither pinned nor of
        this folder, and not used before today."""
        ...

    async def search(self, words: Collection[str], limit: int) -> SkillMatches:
        """Return the skills with any of the words, best first: rare words, and words in the name and
        description, count more. Archived skills are left out."""
        ...

    async def count(
        self, skill: str, event: SkillEvent, actor: Actor, session: SessionId, today: date
    ) -> None: ...

    async def used(self, session: SessionId) -> Sequence[str]:
        """Return the skills that a session used, by name."""
        ...

    async def rate(self, skill: str, session: SessionId, result: SkillResult) -> None:
        """Record how a conversation went, replacing an earlier rating of the same session. A use that was not
        counted is not rated."""
        ...

    async def names(self) -> Mapping[str, bool]:
        """Return every skill that holds a document, and whether it is archived."""
        ...

    async def with_checks(self) -> Sequence[str]:
        """Return every skill that holds files below checks/, archived or not, by name."""
        ...

    async def days(self) -> Mapping[str, frozenset[date]]:
        """Return the days on which each skill was used, by the clock of that time."""
        ...

    async def usage_counts(self) -> Mapping[str, UsageCounts]:
        """Return usage counts, bundled skills included."""
        ...
