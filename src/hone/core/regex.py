"""Compile regular expressions at first use, and find what a text must contain to match one.

Startup defines more than a hundred expressions, and only about ten are used before the first request.
"""

import re
from collections.abc import Sequence
from importlib import import_module
from itertools import groupby
from typing import Any, AnyStr, cast


class LazyPattern:
    """Compiles the expression when one of its methods is first used, then keeps that method."""

    def __init__(self, text: Any, flags: int) -> None:
        self._defined = text, flags

    def __getattr__(self, name: str) -> Any:
        found = getattr(re.compile(*self._defined), name)
        setattr(self, name, found)
        return found


def regex(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Define an expression at module level. Its errors appear when it is first used."""
    return cast("re.Pattern[AnyStr]", LazyPattern(text, flags))


def find_needles(pattern: str, flags: int = 0) -> Sequence[str]:
    """Return strings of which every match contains at least one; none if there are no such strings. They are
    much faster to look for than a match. For a case-insensitive pattern, fold the text first."""
    found = _needles(import_module("re._parser").parse(pattern, flags))
    if flags & re.IGNORECASE:
        found = set(map(fold, found))
    return sorted(each for each in found if not any(other in each for other in found - {each}))


def has_any(text: str, needles: Sequence[str]) -> bool:
    """Tell whether a text can have a match, by its needles."""
    for needle in needles:
        if needle in text:
            return True
    return not needles


def fold(text: str) -> str:
    """Return a text with letters merged that case-insensitive expressions treat as equal."""
    if text.isascii():
        return text.lower()
    return text.casefold().replace("\u0131", "i").replace("i\u0307", "i")  # Turkish


def _needles(items: Any) -> set[str]:
    """Return the needles of the part with the longest ones, among the parts that every match contains."""
    found = [needles for needles in _all_needles(items) if needles]
    return max(found, key=lambda needles: min(map(len, needles)), default=set())


def _all_needles(items: Any) -> list[set[str]]:
    found = []
    for is_letter, part in groupby(items, lambda item: str(item[0]) == "LITERAL"):
        if is_letter:
            found.append({"".join(chr(letter) for _, letter in part)})
            continue
        for name, value in part:
            match str(name):
                case "SUBPATTERN" if not value[1]:  # without inline flags
                    found.append(_needles(value[3]))
                case "BRANCH":
                    each = [_needles(branch) for branch in value[1]]
                    found.append({needle for needles in each for needle in needles} if all(each) else set())
                case "MAX_REPEAT" | "MIN_REPEAT" if value[0] > 0:
                    found.append(_needles(value[2]))
    return found
