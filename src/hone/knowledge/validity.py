"""Read and write what an entry says about itself, as plain text at its end: from when until when it holds,
and whether the owner has pinned it.

`The staging server is down (until 2026-12-31)`, `Deploys happen on Tuesdays (pinned)`. These marks do not
count toward the limit, and a manual edit may change them. Everything else is the entry's own words.
"""

from collections.abc import Iterable
from datetime import date, timedelta
from functools import lru_cache

from msgspec import Struct

from hone.core.regex import regex
from hone.core.value import replace

DEFAULT_DAYS = 30
"""How long the owner's statement that something does not work holds."""
_DATE = r"\d{4}-\d\d-\d\d"
_SUFFIX = regex(
    rf"\s+\((?:(pinned)(?:, (?=[fu])|(?=\))))?(?:from ({_DATE}))?(?:(?:(?<=\d) )?until ({_DATE}))?\)$"
)


class Validity(Struct, frozen=True):
    """An entry without its marks, and the marks. Both days are inclusive."""

    wording: str
    since: date | None = None
    until: date | None = None
    pinned: bool = False

    def holds(self, today: date) -> bool:
        return (self.since is None or self.since <= today) and (self.until is None or today <= self.until)


@lru_cache(maxsize=4_096)
def read(entry: str) -> Validity:
    """Split an entry into its words and its marks."""
    found = _SUFFIX.search(entry)
    if found is None or not any(found.groups()) or not entry[: found.start()].strip():
        return Validity(entry)
    try:
        since, until = (date.fromisoformat(each) if each else None for each in found.groups()[1:])
    except ValueError:
        return Validity(entry)
    return Validity(entry[: found.start()], since, until, bool(found[1]))


def write(known: Validity) -> str:
    """Return an entry with its marks."""
    dates = " ".join(f"{word} {day}" for word, day in (("from", known.since), ("until", known.until)) if day)
    marks = ", ".join(filter(None, ("pinned" if known.pinned else "", dates)))
    return f"{known.wording} ({marks})" if marks else known.wording


def pin(entry: str, *, on: bool = True) -> str:
    """Mark an entry as pinned by the owner, or remove the mark."""
    return write(replace(read(entry), pinned=on))


def limit(entry: str, today: date, days: int = DEFAULT_DAYS) -> str:
    """Give an entry an end, unless it has one."""
    known = read(entry)
    return entry if known.until is not None else write(replace(known, until=today + timedelta(days)))


def renew(entry: str, until: date | None) -> str:
    """Give an entry another end, or none."""
    return write(replace(read(entry), until=until))


def valid(entries: Iterable[str], today: date) -> tuple[str, ...]:
    """Return the entries that hold today."""
    return tuple(entry for entry in entries if read(entry).holds(today))


def past(entries: Iterable[str], today: date) -> tuple[str, ...]:
    """Return the entries whose last day is over. The owner is asked about them again."""
    found = ((entry, read(entry).until) for entry in entries)
    return tuple(entry for entry, until in found if until is not None and until < today)
