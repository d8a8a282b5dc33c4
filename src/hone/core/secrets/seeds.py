"""Recognize the seed phrase of a wallet: 12, 15, 18, 21 or 24 words of BIP 39, with a checksum in the last.

Words from the list alone prove little, so either the checksum is right or a label says what they are.
`bip39.txt` is the English list of BIP 39 (MIT license, 13 KB), read when 12 such words are seen.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from string import ascii_lowercase, digits, whitespace

from hone.core.regex import regex
from hone.core.secrets.marks import Span
from hone.core.secrets.scan import one_byte_each, stretches, table_of

KIND = "seed phrase"
COUNTS = (24, 21, 18, 15, 12)
LONGEST = 30
"""The most words in a row that may hold a phrase and words around it; more are a list."""
VARIED = 8
"""The fewest different words in a phrase; those of test vectors repeat one."""
_NEXT = r"[\s,;\"']{1,6}(?:\d{1,2}[.):]?[^\S\n]{0,2})?[\"']?"
_LETTERS = table_of(ascii_lowercase + digits + whitespace + ",;\"'.):")
SHORTEST = 12 * 3 + 11
"""The fewest and most letters of a phrase."""
_SMALL = bytes(byte if chr(byte) in ascii_lowercase else 32 for byte in range(256))
_FITTING = b"\1" * COUNTS[-1]
_fits = range(3, 9).__contains__
_ROW = regex(rf"(?<![A-Za-z])[a-z]{{3,8}}(?:{_NEXT}[a-z]{{3,8}}(?![A-Za-z])){{11,}}")
_WORD = regex(r"[a-z]{3,8}")
_LABEL = regex(
    r"(?:(?:seed|recovery|backup|mnemonic|wallet)[ _-]?(?:phrase|words)|mnemonic|wiederherstellungsphrase"
    r"|phrase de récupération|frase semilla|frase di recupero|seedphrase)"
    r"[^\n\w]{0,3}(?:[^\S\n]{1,2}(?:is|ist|est|es|è|lautet))?[^\w]{1,6}(?:1[.):][^\S\n]?)?\Z",
    re.IGNORECASE,
)
_LABELLED = 60
"""Characters before a phrase to search for its label."""


def find_seeds(text: str) -> Iterator[Span]:
    if not _may_hold_row(text):
        return
    for start, end in stretches(text, _LETTERS, SHORTEST):
        for row in _ROW.finditer(text, start, end):
            words = [(word[0], *word.span()) for word in _WORD.finditer(text, *row.span())]
            yield from _phrases(text, words)


def _may_hold_row(text: str) -> bool:
    """Tell whether twelve words in a row have the right length. Most prose has a longer or shorter one before
    that."""
    words = one_byte_each(text).translate(_SMALL).split()
    return _FITTING in bytes(map(_fits, map(len, words)))


def _phrases(text: str, words: Sequence[tuple[str, int, int]]) -> Iterator[Span]:
    """Yield candidates in a row of words: all of it, its lines, or a part that is entirely in the list."""
    label = _LABEL.search(text[max(0, words[0][1] - _LABELLED) : words[0][1]])
    if label and len(words) in COUNTS:
        yield words[0][1], words[-1][2], KIND
        return
    for known in _known(words):
        for start, end in _windows(known, text):
            yield known[start][1], known[end - 1][2], KIND


def _known(words: Sequence[tuple[str, int, int]]) -> Iterator[Sequence[tuple[str, int, int]]]:
    """Yield the parts of a row whose words are all in the list."""
    first = 0
    for at in range(len(words) + 1):
        if at == len(words) or words[at][0] not in _numbers():
            if at - first >= COUNTS[-1]:
                yield words[first:at]
            first = at + 1


def _windows(words: Sequence[tuple[str, int, int]], text: str) -> Iterator[tuple[int, int]]:
    if len(words) > LONGEST:
        yield from _lines(words, text)
        return
    names = [word for word, _, _ in words]
    for count in COUNTS:
        for start in range(len(words) - count + 1):
            if is_phrase(names[start : start + count]):
                yield start, start + count
                return


def _lines(words: Sequence[tuple[str, int, int]], text: str) -> Iterator[tuple[int, int]]:
    """Yield several phrases, each on a line."""
    first = 0
    for at in range(1, len(words) + 1):
        if at == len(words) or "\n" in text[words[at - 1][2] : words[at][1]]:
            if is_phrase([word for word, _, _ in words[first:at]]):
                yield first, at
            first = at


def is_phrase(words: Sequence[str]) -> bool:
    """Tell whether the last bits of the words are the checksum of the others."""
    if len(words) not in COUNTS or len({*words}) < VARIED:
        return False
    value = 0
    for word in words:
        value = value << 11 | _numbers()[word]
    size = len(words) // 3
    entropy = (value >> size).to_bytes(size * 4, "big")
    return sha256(entropy).digest()[0] >> (8 - size) == value & ((1 << size) - 1)


@cache
def _numbers() -> Mapping[str, int]:
    path = Path(__file__).with_name("bip39.txt")
    return {word: number for number, word in enumerate(path.read_text("ascii").split())}
