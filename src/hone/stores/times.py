"""Parse the times that a question mentions: days, months, seasons, years, and how long ago.

Some words of time are also other words. In doubt they are no time: a wrong one would mislead.
"""

import re
from collections.abc import Iterator
from datetime import date, timedelta

from hone.core.regex import regex

YEARS = 6
"""How many years back a month without a year may lie."""
LONG_AGO = 200
"""Years before which nothing was said."""

_MONTHS = """
january jan|february feb|march|april apr|may|june jun|july jul|august aug|september sep sept|
october oct|november nov|december dec"""
MONTHS = {name: number for number, names in enumerate(_MONTHS.split("|"), 1) for name in names.split()}
SEASONS = {
    "spring": (3, 4, 5),
    "summer": (6, 7, 8),
    "autumn": (9, 10, 11),
    "fall": (9, 10, 11),
    "winter": (12, 1, 2),
}
PARTS = {"early": (1, 10), "beginning": (1, 10), "start": (1, 10), "mid": (10, 21), "middle": (10, 21)}
PARTS |= {"late": (20, 31), "end": (20, 31)}
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_COUNTS = "one two three four five six seven eight nine ten eleven twelve"
COUNTS = {word: number for number, word in enumerate(_COUNTS.split(), 1)}
COUNTS |= {"a": 1, "an": 1, "couple": 2, "a couple of": 2, "few": 3, "a few": 3, "several": 4}
SIZES = {"day": 1, "week": 7, "month": 30, "year": 365}

ALSO_WORDS = frozenset(["may", "march", "jan", "jun", "dec", "sep", "apr"])
"""Names of months that usually mean something else: they need a number or a word of time next to them."""
ALSO_NAMES = frozenset(["april", "june", "august"])
"""Names of months that are also names of people."""
_NAMES = "|".join(MONTHS)
_NUMBER = "|".join(sorted(COUNTS, key=len, reverse=True))
ISO = regex(r"\b(\d{4})-(\d{1,2})(?:-(\d{1,2}))?\b")
DATED = regex(
    rf"(?:\b(?P<part>{'|'.join(PARTS)})(?P<of>[\s-]+of\s+|[\s-]+))?"
    rf"(?:\b(?P<before>\d{{1,2}})(?P<th>(?:st|nd|rd|th)?\s+of\s+|(?:st|nd|rd|th)\s+|\s+))?"
    rf"\b(?P<month>{_NAMES})\b\.?(?:\s+(?:the\s+)?(?P<after>\d{{1,2}})(?:st|nd|rd|th)?\b(?!\d))?"
    rf"(?:,?\s+(?:of\s+|in\s+)?(?P<year>(?:19|20)\d{{2}})\b)?"
)
RELATIVE = regex(
    r"\b(today|tonight|this (?:morning|afternoon|evening)|yesterday|last night|day before yesterday"
    r"|(?:last|this|past|previous) (?:week(?:end)?|month|year))\b"
)
AGO = regex(rf"\b(\d{{1,3}}|{_NUMBER}) (day|week|month|year)s? (?:ago|earlier|back)\b")
WITHIN = regex(rf"\b(?:last|past|previous) (\d{{1,3}}|{_NUMBER}) (day|week|month|year)s\b")
WEEKDAY = regex(rf"\b(?:last|past|previous|on) ({'|'.join(DAYS)})\b")
SEASON = regex(rf"\b(?:in|last|this|that|of|over|during) (?:the )?({'|'.join(SEASONS)})\b")
YEAR = regex(r"\b(?:in|of|during|since|from|back in|throughout) ((?:19|20)\d{2})\b(?!-)")
WORDS_OF_TIME = regex(r"\b(?:in|of|since|until|around|during|from|by|last|past|previous)\s+$")
BEFORE_A_DAY = regex(r"\b(?:on|since|until|around|from|by|the|before|after)\s+$")
LAST = regex(r"\b(?:last|past|previous)\s+$")
OF_A_PERSON = regex(r"\b(?:did|does|do|is|was|has|had|with|for|and|or|tell|told|ask|asked|met|meet|by)\s+$")

Span = tuple[date, date]


def times(low: str, today: date | None) -> tuple[Span, ...]:
    """Return the times in a lowercase text. Their words stay terms: a message may mention a day, or be from
    that day."""
    spans: list[Span] = []
    for match in ISO.finditer(low):
        spans += _days(int(match[1]), int(match[2]), int(match[3]) if match[3] else None)
    for match in DATED.finditer(low):
        if _means_time(match, low):
            spans += _months(match, today, last=bool(LAST.search(low[: match.start()])))
    if not spans:
        spans += [(date(int(year), 1, 1), date(int(year), 12, 31)) for year in YEAR.findall(low)]
    if today:
        spans += _from_today(low, today)
    for match in SEASON.finditer(low):
        numbers = SEASONS[match[1]]
        spans += [span for year in _years(today) for number in numbers for span in _days(year, number, None)]
    return tuple(spans)


def _from_today(low: str, today: date) -> Iterator[Span]:
    for match in RELATIVE.finditer(low):
        yield _relative(match[1], today)
    for match in AGO.finditer(low):
        yield _around(_counted(match[1]), match[2], today)
    for match in WITHIN.finditer(low):
        yield _back(today, _counted(match[1]) * SIZES[match[2]]), today
    for match in WEEKDAY.finditer(low):
        then = _back(today, (today.weekday() - DAYS.index(match[1]) - 1) % 7 + 1)
        yield then, then


def _means_time(match: re.Match[str], text: str) -> bool:
    month, before = match["month"], text[: match.start()]
    if match["year"] or match["after"]:
        return True
    if month in ALSO_NAMES and not match["part"] and not match["before"]:
        return not OF_A_PERSON.search(before)
    if month not in ALSO_WORDS:
        return True
    if match["before"]:  # "point 2 may fail"
        return match["th"].strip() != "" or bool(BEFORE_A_DAY.search(before))
    if match["part"]:  # "the end may be near"
        return match["part"] in ("early", "mid", "late") or "of" in match["of"]
    return bool(WORDS_OF_TIME.search(before))


def _months(match: re.Match[str], today: date | None, *, last: bool) -> list[Span]:
    month = MONTHS[match["month"]]
    years = [int(match["year"])] if match["year"] else _years(today)
    if last and today and not match["year"]:
        years = [today.year - (month >= today.month)]
    day = match["before"] or match["after"]
    spans: list[Span] = []
    for year in years:
        if match["part"] and not day:
            first, final = PARTS[match["part"]]
            whole = _days(year, month, None)
            spans += [(one.replace(day=first), one.replace(day=min(final, two.day))) for one, two in whole]
        else:
            spans += _days(year, month, int(day) if day else None)
    return spans


def _years(today: date | None) -> list[int]:
    return [today.year - back for back in range(YEARS)] if today else []


def _days(year: int, month: int, day: int | None) -> list[Span]:
    try:
        if day:
            return [(date(year, month, day), date(year, month, day))]
        following = date(year + month // 12, month % 12 + 1, 1)
        return [(date(year, month, 1), following - timedelta(days=1))]
    except ValueError:
        return []


def _relative(words: str, today: date) -> Span:
    match words.split():
        case ["yesterday"]:
            return _back(today, 1), _back(today, 1)
        case ["last", "night"]:
            return _back(today, 1), today
        case ["day", "before", "yesterday"]:
            return _back(today, 2), _back(today, 2)
        case [_, "weekend"]:
            sunday = _back(today, today.weekday() + 1)
            return _back(sunday, 1), sunday
        case [_, "week"]:
            return _back(today, today.weekday() + 7), today
        case [_, "month"]:
            return _back(today.replace(day=1), 1).replace(day=1), today
        case [_, "year"]:
            return date(max(1, today.year - 1), 1, 1), today
    return today, today


def _around(count: int, unit: str, today: date) -> Span:
    """Return a span around a time, since people round."""
    then, slack = _back(today, count * SIZES[unit]), {"day": 1, "week": 4, "month": 16, "year": 183}[unit]
    return _back(then, slack), min(today, then + timedelta(days=slack))


def _back(day: date, count: int) -> date:
    return day - timedelta(days=min(count, LONG_AGO * 365, day.toordinal() - 1))


def _counted(word: str) -> int:
    return int(word) if word.isdigit() else COUNTS[word]
