"""Read and write from when and until when an entry holds: plain text at its end.

`The staging server is down (until 2026-12-31)`. The dates do not count towards the limit, and an edit by hand
may change them. What is not a date is the entry's own words.
"""

from collections.abc import Iterable
from datetime import date, timedelta

from msgspec import Struct

from hone.core.regex import regex

DEFAULT_DAYS = 30
"""How long the owner's word that something does not work holds."""
_DATE = r"\d{4}-\d\d-\d\d"
_SUFFIX = regex(rf"\s+\((?:from ({_DATE}))?(?:(?:(?<=\d) )?until ({_DATE}))?\)$")


class Validity(Struct, frozen=True):
    """An entry without its dates, and the dates; both days are included."""

    wording: str
    since: date | None = None
    until: date | None = None

    def holds(self, today: date) -> bool:
        return (self.since is None or self.since <= today) and (self.until is None or today <= self.until)


def read(entry: str) -> Validity:
    """Split an entry into its words and its dates."""
    found = _SUFFIX.search(entry)
    if found is None or not (found[1] or found[2]) or not entry[: found.start()].strip():
        return Validity(entry)
    try:
        since, until = (date.fromisoformat(each) if each else None for each in found.groups())
    except ValueError:
        return Validity(entry)
    return Validity(entry[: found.start()], since, until)


def limit(entry: str, today: date, days: int = DEFAULT_DAYS) -> str:
    """Give an entry an end, unless it has one."""
    known = read(entry)
    if known.until is not None:
        return entry
    start = f"from {known.since} " if known.since else ""
    return f"{known.wording} ({start}until {today + timedelta(days)})"


def renew(entry: str, until: date | None) -> str:
    """Give an entry another end, or none."""
    known = read(entry)
    dates = " ".join(f"{word} {day}" for word, day in (("from", known.since), ("until", until)) if day)
    return f"{known.wording} ({dates})" if dates else known.wording


def valid(entries: Iterable[str], today: date) -> tuple[str, ...]:
    """Return the entries that hold today."""
    return tuple(entry for entry in entries if read(entry).holds(today))


def past(entries: Iterable[str], today: date) -> tuple[str, ...]:
    """Return the entries whose last day is over: the owner is asked about them again."""
    found = ((entry, read(entry).until) for entry in entries)
    return tuple(entry for entry, until in found if until is not None and until < today)
