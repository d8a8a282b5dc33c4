"""Convert text to a canonical form in which nothing is hidden. Prompts, stores, logs and screens use it.

Characters that could mislead a reader or hide from one become visible escapes. Joiners, selectors and tags
stay where a script or an emoji needs them, together with their neighbors. Canonical text stays unchanged.
"""

import os
import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path

from hone.core.regex import regex

_HARMLESS = regex(r"[\n\t\x20-\x7e]*")
_UNUSUAL = regex(r"[^\n\t\x20-\x7e]+")
# Printable by category, but they print nothing: fillers, inherent vowels, selectors, empty signs.
_BLANK = regex(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U00013441\U00013442\U00016fe4\U0001d159\U000e0100-\U000e01ef]"
)
_HIDDEN = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})
# Visible signs of Arabic, Syriac and Kaithi that count as format characters.
_SIGNS = frozenset("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd")
# Reserved for pictures and ideographs: a later Unicode than this Python's may have assigned them.
_RESERVED = regex("[\U0001f000-\U0001faff\U0001fc00-\U0001fffd\U00020000-\U0002fffd\U00030000-\U0003fffd]")
_PICTURE = regex(
    "[©®‼⁉™ℹ↔-↙↩↪⌚⌛⌨⎈⏏⏩-⏳⏸-⏺Ⓜ▪▫▶◀◻-◾☀-★☇-☒☔-⚅⚐-✅✈-✒✔✖✝✡✨✳✴❄❇❌❎❓-❕❗❣-❧➕-➗➡➰➿⤴⤵⬅-⬇⬛⬜⭐⭕〰〽㊗㊙"
    "\U0001f000-\U0001f0ff\U0001f10d-\U0001f1e5\U0001f201-\U0001f3fa\U0001f400-\U0001f64f\U0001f680-\U0001faff"
    "\U0001fc00-\U0001fffd]"
)
_DRESSED = regex("[\ufe0f\U0001f3fb-\U0001f3ff]")
_IDEOGRAPH = regex("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd]")
_BRAILLE = regex("[\u2801-\u28ff]")
_MONGOLIAN = regex("[\u1820-\u18aa]")
# Arabic to Mandaic, the scripts of India, Myanmar, Khmer, Mongolian, Balinese to Lepcha, Phags-pa to
# Javanese, the Arabic forms, and the older scripts of Asia beyond the first plane.
_JOINING = regex(
    "[\u0620-\u07ff\u0840-\u08ff\u0900-\u0dff\u1000-\u109f\u1780-\u17d3\u1820-\u18aa\u1a20-\u1aaf\u1b00-\u1c4f"
    "\ua840-\ua9df\uaa60-\uaaff\uabc0-\uabff\ufb50-\ufdff\ufe70-\ufefc\U00010a00-\U00010eff\U00010f00-\U000119ff]"
)
_NONJOINER, _JOINER = "\u200c", "\u200d"
_KEYCAP, _HEH = "\u20e3", "\u0647"
_BLACK_FLAG = "\U0001f3f4"
_REGIONS = tuple(
    _BLACK_FLAG + "".join(chr(0xE0000 + ord(letter)) for letter in region) + "\U000e007f"
    for region in ("gbeng", "gbsct", "gbwls")
)


_LIKE_BYTE, _BYTE = re.compile(rb"\\(?=x[0-9a-f]{2})"), re.compile(rb"\\x([0-9a-f]{2})")


def path_to_text(path: Path | str) -> str:
    r"""Return a path in a form that can be stored, hashed and shown, and that `text_to_path` takes back: a
    byte that is no UTF-8 becomes `\xe9`, and a backslash that would look like the beginning of one `\x5c`."""
    text = str(path)
    if text.isascii() and "\\x" not in text:
        return text
    return _LIKE_BYTE.sub(rb"\\x5c", os.fsencode(text)).decode("utf-8", "backslashreplace")


def text_to_path(text: str) -> Path:
    """Reverse `path_to_text`."""
    if "\\x" not in text:
        return Path(text)
    return Path(os.fsdecode(_BYTE.sub(lambda found: bytes([int(found[1], 16)]), os.fsencode(text))))


def visible(text: str) -> str:
    """Escape hidden characters. Line feeds and tabs stay; a carriage return before a line feed is dropped."""
    if _HARMLESS.fullmatch(text):
        return text
    kept, done = [], 0
    for at, shown in _escapes(text):
        kept += [text[done:at], shown]
        done = at + 1
    return "".join([*kept, text[done:]])


def bare(text: str) -> str:
    """Return the text without its hidden letters, as a reader sees it who cannot see them."""
    hidden = {at for at, shown in _escapes(text)}
    return "".join(letter for at, letter in enumerate(text) if at not in hidden) if hidden else text


def one_line(text: str, width: int) -> str:
    """Return the text's words on one line of at most `width` characters."""
    line = visible(" ".join(text[: 4 * width + 1_000].split()))
    if len(line) <= width:
        return line
    cut = line[: width - 1].rstrip()
    while visible(cut) != cut:  # not in the middle of an emoji
        cut = cut[:-1]
    return f"{cut}…"


def find(text: str, shown: str) -> list[tuple[int, int]]:
    """Return where a text that was shown in canonical form begins and ends in the original. Matches may
    overlap."""
    if not shown:
        return []
    if exact := [(at, at + len(shown)) for at in _places(text, shown)]:
        return exact
    chart = Chart(text)
    for form in dict.fromkeys((shown.replace("\r\n", "\n"), visible(shown))):
        spans = [chart.span(at, at + len(form)) for at in _places(chart.text, form)]
        if whole := [span for span in spans if span]:
            return whole
    return []


def amend(part: str, replacement: str) -> str:
    """Return the replacement with the hidden letters of `part` in place of their escapes: an escape that was
    shown and written again means the letter."""
    hidden = {shown: part[at] for at, shown in _escapes(part) if shown and shown not in part}
    for shown, letter in hidden.items():
        replacement = replacement.replace(shown, letter)
    return replacement


class Chart:
    """The canonical form of a text, and the position of each place in the original."""

    def __init__(self, original: str) -> None:
        self.text = visible(original)
        self._starts: list[int] = []
        self._ends, self._origins = [0], [0]
        moved = 0
        for at, shown in _escapes(original):
            self._starts.append(at + moved)
            self._ends.append(at + moved + len(shown))
            self._origins.append(at + 1)
            moved += len(shown) - 1

    def span(self, start: int, end: int) -> tuple[int, int] | None:
        first, last = self._origin(start), self._origin(end)
        return None if first is None or last is None else (first, last)

    def _origin(self, at: int) -> int | None:
        """Return the first place in the original that is shown at `at`; None inside an escape."""
        escapes = bisect_left(self._starts, at)
        if at < self._ends[escapes]:
            return None
        return self._origins[escapes] + at - self._ends[escapes]


def _places(text: str, part: str) -> Iterator[int]:
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + 1)


def _escapes(text: str) -> Iterator[tuple[int, str]]:
    """Yield each letter that cannot stay, with what to show instead."""
    for run in _UNUSUAL.finditer(text):
        if run[0].isprintable() and not _BLANK.search(run[0]):
            continue
        for at in range(*run.span()):
            letter = text[at]
            if (letter.isprintable() and not _BLANK.match(letter)) or _belongs(text, at):
                continue
            gone = letter == "\r" and text[at + 1 : at + 2] == "\n"
            yield at, "" if gone else _escape(letter)


def _escape(letter: str) -> str:
    """Return the escape of a letter. A byte of a file's name that is not UTF-8 is shown as that byte."""
    is_byte = "\udc80" <= letter <= "\udcff"
    return path_to_text(letter) if is_byte else letter.encode("unicode_escape").decode()


def _belongs(text: str, at: int) -> bool:
    """Tell whether a letter may stay: it is visible after all, a space, or needed there by a script or an
    emoji."""
    letter = text[at]
    if letter in (_NONJOINER, _JOINER):
        return _joins(text, at)
    if _BLANK.match(letter):
        return _selects(text, at)
    if "\U000e0000" <= letter <= "\U000e0fff":
        start = text.rfind(_BLACK_FLAG, max(0, at - 6), at)
        return start >= 0 and text.startswith(_REGIONS, start)
    if letter == "\u180e":
        return _fits(_MONGOLIAN, text, at - 1) and _fits(_MONGOLIAN, text, at + 1)
    category = unicodedata.category(letter)
    return category not in _HIDDEN or letter in _SIGNS or (category == "Cn" and bool(_RESERVED.match(letter)))


def _joins(text: str, at: int) -> bool:
    if _is_letter(text, at - 1):
        before = text[at - 1]
        if unicodedata.combining(before) == 9 or (before == _HEH and text[at] == _JOINER):
            return text[at + 1 : at + 2] not in (_NONJOINER, _JOINER)
        return _is_letter(text, at + 1)
    painted = _fits(_PICTURE, text, at - 1) or (
        _fits(_DRESSED, text, at - 1) and _fits(_PICTURE, text, at - 2)
    )
    return text[at] == _JOINER and painted and _fits(_PICTURE, text, at + 1)


def _is_letter(text: str, at: int) -> bool:
    return _fits(_JOINING, text, at) and unicodedata.category(text[at])[0] in "LM"


def _selects(text: str, at: int) -> bool:
    """Tell whether a selector, or a Braille blank, follows a character that accepts it."""
    letter = text[at]
    if letter in "\ufe0e\ufe0f":
        keycap = text[at + 1 : at + 2] == _KEYCAP and at > 0 and text[at - 1] in "#*0123456789"
        return keycap or _fits(_PICTURE, text, at - 1)
    if letter in "\ufe00\ufe01\ufe02" or "\U000e0100" <= letter <= "\U000e011f":
        return _fits(_IDEOGRAPH, text, at - 1)
    if "\u180b" <= letter <= "\u180f":
        return _fits(_MONGOLIAN, text, at - 1)
    return letter == "\u2800" and (_fits(_BRAILLE, text, at - 1) or _fits(_BRAILLE, text, at + 1))


def _fits(letters: re.Pattern[str], text: str, at: int) -> bool:
    return 0 <= at < len(text) and letters.match(text, at) is not None
