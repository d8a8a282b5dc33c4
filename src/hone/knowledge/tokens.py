"""Split a text into words, in languages with spaces and without."""

from collections.abc import Iterator

from hone.core.regex import regex
from hone.knowledge.lexicon import Lexicon

_CJK = "々〇\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_WORD = regex(
    r"(?<!\S)[-−+]\d(?:[\w.,:]*\w)?|[%€$£¥<>≤≥=≠~→]+"
    r"|\w+(?:'[^\W\d]+)?(?:[-./:@+#~=&%?\\]+\w+)*(?:\+\+|#|%|°)?"
)
_PIECE = regex(f"[{_CJK}]|[ァ-ヺー]+|[ぁ-ゖ]+|[^ぁ-ヺー{_CJK}]+")
_IDEOGRAPHIC = regex(f"[ぁ-ヺー{_CJK}]")
_SIGN = regex(r"\d|[^\w-]")
_HIRAGANA = regex("[ぁ-ゖ]")
_ENDING = 2
"""Hiragana that may be an ending of the ideograph before them."""


def words(part: str, lexicon: Lexicon) -> Iterator[str]:
    for found in _WORD.findall(part):
        if found.isascii() and found.isalpha():
            yield found
        elif _IDEOGRAPHIC.search(found):
            yield from _pieces(found, lexicon)
        elif _SIGN.search(found) or "_" in found:
            yield found
        else:
            yield from filter(None, found.split("-"))


def _pieces(text: str, lexicon: Lexicon) -> Iterator[str]:
    """Yield the longest words that the language lists; of the rest, single ideographs and runs of kana.
    Possible endings are left out."""
    at, before = 0, ""
    while at < len(text):
        listed = lexicon.longest(text, at)
        word = listed or _unlisted(text, at, lexicon)
        ends = not listed and _HIRAGANA.match(word) and len(word) <= _ENDING
        if not ends or _HIRAGANA.match(before[-1:]):
            yield word
        at, before = at + len(word), word


def _unlisted(text: str, at: int, lexicon: Lexicon) -> str:
    found = _PIECE.match(text, at)
    word = found[0] if found else text[at]
    if not _HIRAGANA.match(word):
        return word
    end = next((end for end in range(at + 1, at + len(word)) if lexicon.longest(text, end)), at + len(word))
    return text[at:end]
