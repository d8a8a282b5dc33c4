"""Text from elsewhere made fit for a terminal: what could steer it or hide in it becomes a visible escape."""

import re
import unicodedata

_HARMLESS = re.compile(r"[\n\t\x20-\x7e]*")
_UNUSUAL = re.compile(r"[^\n\t\x20-\x7e]+")
_STEERING = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
# Emoji and several scripts are written with the joiners; the Arabic and Syriac signs are ink on the page.
_JOINERS = "\u200c\u200d"
_SIGNS = "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
_KEPT = frozenset(_JOINERS + _SIGNS)


def visible(text: str) -> str:
    """Line feeds and tabs stay, a carriage return before a line feed goes."""
    if _HARMLESS.fullmatch(text):
        return text
    return _UNUSUAL.sub(_escape, text.replace("\r\n", "\n"))


def one_line(text: str, width: int) -> str:
    """The text's words on one line of at most `width` characters."""
    line = visible(" ".join(text[: 4 * width + 1_000].split()))
    return line if len(line) <= width else f"{line[: width - 1].rstrip()}…"


def _escape(found: re.Match[str]) -> str:
    return "".join(map(_shown, found.group()))


def _shown(letter: str) -> str:
    if unicodedata.category(letter) not in _STEERING or letter in _KEPT:
        return letter
    return letter.encode("unicode_escape").decode()
