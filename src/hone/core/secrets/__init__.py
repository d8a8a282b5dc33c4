"""Recognize and redact secrets in a text. Not a security boundary: a secret without a known form is missed.

A token is recognized by its own shape, any other value by the text around it. Patterns are data in the
modules of this package. The work is linear in the length of the text.
"""

from collections.abc import Sequence

from hone.core.regex import regex
from hone.core.secrets.keys import without_keys
from hone.core.secrets.known import conceal, mask_password, passwords
from hone.core.secrets.marks import marked
from hone.core.secrets.places import find_in_files, find_values
from hone.core.secrets.prose import find_in_prose
from hone.core.secrets.seeds import find_seeds
from hone.core.secrets.tokens import without_tokens

__all__ = ["conceal", "mask_password", "passwords", "redact", "redact_lines", "redact_rows"]


_WITHOUT = regex(
    r"[\s\u3001-\u3003\u3005\u3008-\u3011\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
    r"\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f]*"
)
"""Han, kana, Hangul and the signs between them. Every recognized secret has a digit, an ASCII sign or a
letter of another script."""
AROUND = 2**20
"""Characters around a piece to search for secrets that it may be part of."""


def redact(text: str) -> str:
    """Return the text with `[redacted: KIND]` in place of each recognized secret. Never raises."""
    return _redacted(text, by_line=False)


def redact_lines(text: str) -> str:
    """Redact without changing the number of lines: a secret of several lines leaves a mark on each. Use it
    for text shown in pieces: redact the whole first, then cut."""
    return _redacted(text, by_line=True)


def redact_rows(lines: Sequence[str], start: int, end: int) -> Sequence[str]:
    """Return some lines of a text, redacted with the lines around them in view: those within AROUND
    characters, which covers most files."""
    first = _far(lines, range(start - 1, -1, -1), 0)
    last = _far(lines, range(end, len(lines)), len(lines) - 1)
    return redact_lines("\n".join(lines[first : last + 1])).split("\n")[start - first : end - first]


def _far(lines: Sequence[str], away: range, furthest: int) -> int:
    """Return the line that is AROUND characters away."""
    room = AROUND
    for at in away:
        room -= len(lines[at]) + 1
        if room < 0:
            return at
    return furthest


def _redacted(text: str, *, by_line: bool) -> str:
    # Of ASCII, the expression takes spaces only; to compile it for that would delay every first request.
    if not text.strip() or (not text.isascii() and _WITHOUT.fullmatch(text)):
        return text
    text = without_keys(text, by_line=by_line)
    text = marked(text, find_seeds(text), by_line=by_line)
    text = without_tokens(text)
    return marked(text, (*find_values(text), *find_in_files(text), *find_in_prose(text)), by_line=by_line)
