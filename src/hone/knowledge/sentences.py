"""Find the sentences of a text that can be quoted on their own.

A sentence stays together with everything that may change its meaning: the heading of its list, the source of
a quotation, a correction after it.
"""

import re
from bisect import bisect
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import pairwise

from hone.core.regex import regex
from hone.knowledge.lexicon import lexicons

_ABBREVIATED = "".join(
    rf"(?<!\b(?i:{word})\.)" for word in ("dr", "mr", "ms", "mrs", "prof", r"e\.g", r"i\.e", r"\d", r"\d\d")
)
_NO_ITEM = r"(?!\s*(?:[-*+•]|\d{1,3}[.)])\s)"
_BREAK = regex(
    rf"{_ABBREVIATED}(?<=[.!?…])[\"')\]”’»]*\s+{_NO_ITEM}|[。！？]+[」』”]?{_NO_ITEM}|(?<![:：])\n\s*\n{_NO_ITEM}"
)
_SEMICOLON = regex("[;；](?![-']?[)pd])", re.IGNORECASE)
_LIST = regex(r":(?:\s|$)|：")
_PARAGRAPH = regex(r"\n\s*\n")
_QUOTED = regex(
    r"“[^”]{,2000}”|\"[^\"\n]{,2000}\"|«[^»]{,2000}»|„[^“”]{,2000}[“”]|「[^」]{,2000}」|『[^』]{,2000}』"
    r"|(?<!\w)'[^'\n]{,2000}'(?!\w)|‘[^’\n]{,2000}’(?!\w)"
)
_WORD = regex(r"[ぁ-ヺ\u3400-\u9fff]{1,2}|[^\Wぁ-ヺ\u3400-\u9fff]+")
_LETTER = r"[^\Wぁ-ヺ\u3400-\u9fff]"
"""A letter of a script that separates its words."""
_FEW = 3
"""The fewest words of an independent sentence: fewer may belong to the one before it, as in "I smoke.
Rarely."."""
_GAP = 4
"""How many characters before the end of a sentence may be the blank line after it."""
_SHORT = 80
"""The most characters of a sentence that may only be a correction."""


@lru_cache(maxsize=64)  # what the owner said is asked about again and again
def sentences(text: str) -> tuple[tuple[int, int], ...]:
    """Return where each sentence begins and ends."""
    quoted = [found.span() for found in _QUOTED.finditer(text)]
    ends = [0, *(found.end() for found in _BREAK.finditer(text)), len(text)]
    for start, end in pairwise(tuple(ends)):
        if not _LIST.search(text, start, end):
            ends += [found.end() for found in _SEMICOLON.finditer(text, start, end)]
    spans = [each for each in pairwise(sorted(ends)) if text[slice(*each)].strip()]
    joined: list[tuple[int, int]] = []
    introduced = False
    for start, end in spans:
        new_paragraph = _PARAGRAPH.search(text, joined[-1][1] - _GAP, start) if joined else None
        introduced = introduced and not new_paragraph
        tied = joined and (introduced or _is_inside(start, quoted) or _belongs(text, start, end))
        if tied and not _is_small_talk(text[slice(*joined[-1])]):
            joined[-1] = joined[-1][0], end
        else:
            joined.append((start, end))
        if end < len(text):  # something may follow
            introduced = introduced or bool(_introduces().search(text, start, end))
    return tuple(joined)


def is_tied(text: str) -> bool:
    """Tell whether a sentence consists of several that belong together."""
    inner = text.strip().rstrip(".!?…。！？;；\"'”’»」』)")
    return bool(_BREAK.search(inner) or _SEMICOLON.search(inner))


def _is_inside(at: int, spans: Sequence[tuple[int, int]]) -> bool:
    place = bisect(spans, (at,)) - 1
    return place >= 0 and spans[place][0] < at < spans[place][1]


def _belongs(text: str, start: int, end: int) -> bool:
    """Tell whether a sentence takes back, corrects or limits the one before it."""
    if _takes_back().match(text, start, end) or _is_fragment(text[start:end]):
        return True
    return end - start < _SHORT and bool(_corrects().search(text, start, end))


def _is_fragment(text: str) -> bool:
    """Tell whether it is too short for a sentence, and may limit the one before it."""
    words = _WORD.findall(text.casefold())
    return len(words) < _FEW and any(
        each.limits_alone(word) for each in lexicons().values() for word in words
    )


def _is_small_talk(text: str) -> bool:
    """Tell whether it contains nothing that could be taken back: "Right. But …"."""
    words = _WORD.findall(text.casefold()[:_SHORT])
    return bool(words) and all(any(word in each.idle for each in lexicons().values()) for word in words)


@cache
def _takes_back() -> re.Pattern[str]:
    return _any(rf"[\W_]*(?:{_alternatives('retract')})(?!{_LETTER})")


@cache
def _corrects() -> re.Pattern[str]:
    return _any(rf"(?<!{_LETTER})(?:{_alternatives('correct')})(?!{_LETTER})")


@cache
def _introduces() -> re.Pattern[str]:
    return _any(rf"(?<!{_LETTER})(?:{_alternatives('introduce')})(?!{_LETTER})")


def _alternatives(name: str) -> str:
    found = [getattr(each.language, name) for each in lexicons().values()]
    return "|".join(filter(None, found)) or "(?!)"


def _any(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)
