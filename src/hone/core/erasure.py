"""What is to be erased, and how to find it in text and take it out.

Words match in any case, across any white space, and as JSON escapes them. What is left of a text never
depends on the words that were in it.
"""

import json
import re
from typing import Any
from unicodedata import normalize

from msgspec import Struct

from hone.core.holding import ERASED
from hone.core.ids import SessionId
from hone.core.ledger import ChangeId
from hone.core.messages import canonical, sound

SHORTEST = 4
"""The fewest characters of words to search for: fewer would match everywhere."""
_GAP = r"(?:\s|\\+[nrt])+"
_QUOTES = "\"'/"
_REST = re.compile(r"[^\W_]")


class Erasure(Struct, frozen=True):
    """What is to be erased: words wherever they are, and what goes as a whole.

    words:    texts that are searched for everywhere
    sessions: conversations, with everything that only they have
    changes:  changes whose reasons and quotes go
    contents: digests of what changes wrote that is emptied, whatever it says
    keys:     memory items of a backend, by key
    lines:    lines of the prompt's history that go as they are
    files:    files below the home that go, such as results of a conversation that were too long for it
    probes:   sentences of a conversation, for the proof
    """

    words: tuple[str, ...] = ()
    sessions: tuple[SessionId, ...] = ()
    changes: tuple[ChangeId, ...] = ()
    contents: frozenset[str] = frozenset()
    keys: tuple[str, ...] = ()
    lines: frozenset[str] = frozenset()
    files: tuple[str, ...] = ()
    probes: tuple[str, ...] = ()


class Scrubber:
    """Finds words in texts and files, and takes them out."""

    def __init__(self, words: tuple[str, ...]) -> None:
        forms = {form for each in words for form in (normalize("NFC", sound(each)), normalize("NFD", each))}
        longest = sorted(filter(str.strip, forms), key=len, reverse=True)
        text = "|".join(_pattern(each.split()) for each in longest) or "(?!)"
        self.reach = 8 * max(map(len, longest), default=0) + 64
        """The most bytes a match may have, for code that reads a file in pieces."""
        self._text = re.compile(text, re.IGNORECASE)
        self._bytes = re.compile(text.encode(), re.IGNORECASE)

    def count(self, text: str) -> int:
        """Return how often the words are in a text."""
        return sum(1 for _ in self._text.finditer(text))

    def finds(self, data: bytes) -> bool:
        """Tell whether the words are in these bytes."""
        return self._bytes.search(data) is not None

    def tally(self, data: bytes) -> int:
        """Return how often the words are in these bytes."""
        return sum(1 for _ in self._bytes.finditer(data))

    def text(self, text: str) -> str:
        """Return a text without the words."""
        return self._text.sub(ERASED, text)

    def data(self, data: bytes) -> bytes:
        """Return the content of a file without the words."""
        try:
            return self.text(data.decode()).encode()
        except UnicodeDecodeError:
            return self._bytes.sub(ERASED.encode(), data)

    def value(self, value: Any) -> Any:
        """Return a value of JSON without the words, in keys, numbers and nested JSON, too."""
        match value:
            case dict():
                return {self.text(key): self.value(each) for key, each in value.items()}
            case list():
                return [self.value(each) for each in value]
            case str():
                return self.json_text(value)
            case int() | float() if not isinstance(value, bool) and self.count(str(value)):
                return ERASED
        return value

    def json_text(self, text: str) -> str:
        """Return a text without the words. If it is JSON, it still is."""
        if not self.count(text):
            return text
        if text.lstrip()[:1] in ("{", "["):
            try:
                return canonical(self.value(json.loads(text)))
            except (ValueError, RecursionError):
                pass
        return self.text(text)


def is_blank(text: str) -> bool:
    """Tell whether nothing is left of a text."""
    return not _REST.search(text.replace(ERASED, ""))


def _pattern(tokens: list[str]) -> str:
    return _GAP.join("".join(map(_character, token)) for token in tokens)


def _character(character: str) -> str:
    """Match a character as it is, and as JSON or a program may have escaped it."""
    if character == "\\":
        return r"\\+"
    if character in _QUOTES:
        return rf"\\*{re.escape(character)}"
    if character.isascii():
        return re.escape(character)
    forms = dict.fromkeys((character, character.lower(), character.upper()))
    return f"(?:{'|'.join((*forms, *(_escaped(form) for form in forms)))})"


def _escaped(text: str) -> str:
    units = text.encode("utf-16-be")
    return "".join(rf"\\+u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
