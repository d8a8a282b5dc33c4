"""Search in past conversations: the query, the passages it finds, and the Protocol of the search."""

import re
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from functools import lru_cache
from typing import Protocol
from unicodedata import combining, normalize

from msgspec import Struct

from hone.core.ids import SessionId
from hone.core.messages import Message, Role
from hone.core.ports import Header
from hone.core.regex import regex
from hone.core.trust import Trust
from hone.core.turn import Origin

LIMIT = 10


class Query(Struct, frozen=True):
    """A search. `words` is a whole question, or words, "phrases" and prefix*. `since` and `until` bound when
    it was said; "last week" is relative to `today`. Messages with a digest in `seen` are left out, since the
    asker has them at hand. So is what Hone says to itself, unless `asides` is set. `vector` is the meaning of
    the words, made by `embedder`, if there is one."""

    words: str
    limit: int = LIMIT
    since: datetime | None = None
    until: datetime | None = None
    today: date | None = None
    seen: frozenset[str] = frozenset()
    asides: bool = False
    embedder: str = ""
    vector: bytes = b""


class Passage(Struct, frozen=True):
    """A message by its number in its session. `text` is its full text."""

    number: int
    role: Role
    trust: Trust
    at: datetime
    text: str


class Hit(Struct, frozen=True):
    """A passage with its neighbors in the session where it was first said. `tree` is the conversation that
    this session is, or is a branch or fork of. `left`: the session has continued without this message, and
    notes stand for it. `opening` are the user's first words in the session."""

    header: Header
    tree: SessionId
    passage: Passage
    before: Passage | None = None
    after: Passage | None = None
    left: bool = False
    score: float = 0.0
    opening: str = ""

    @property
    def title(self) -> str:
        """The session's title, or else the user's first words."""
        return self.header.title or self.opening


class SearchResult(Struct, frozen=True):
    """Hits, best first. `tried` are the terms that were searched, `dropped` the ones too common to search.
    `waiting` counts older messages that cannot be found yet. `empty`: nothing is stored."""

    hits: tuple[Hit, ...] = ()
    tried: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    waiting: int = 0
    empty: bool = False

    @property
    def trees(self) -> list[list[Hit]]:
        """Return the hits by conversation, the conversation of the best hit first."""
        grouped: dict[SessionId, list[Hit]] = {}
        for hit in self.hits:
            grouped.setdefault(hit.tree, []).append(hit)
        return list(grouped.values())


class Recall(Protocol):
    """Search over all that is stored. Each message is found once in a conversation, however many branches,
    forks and earlier lines hold it."""

    async def search(self, query: Query) -> SearchResult: ...


NOTES = "(Notes on the conversation so far; the messages they stand for were taken out.)"
"""The first line of notes that replace older messages."""


def is_aside(header: Header, passage: Passage) -> bool:
    """Tell whether Hone speaks to itself: in a review or another fork, in notes, or in a question it asks."""
    notes = passage.role is Role.ASSISTANT and passage.text.startswith(NOTES)
    own = is_own_question(header, passage.number, passage.role, passage.trust)
    return header.origin is not Origin.USER or notes or own


def is_own_question(header: Header, number: int, role: Role, trust: Trust) -> bool:
    """Tell whether words under the user's name are Hone's: in a fork, anything after it began; elsewhere,
    words with the agent's label."""
    forked = header.origin is not Origin.USER and number > header.shared
    return role is Role.USER and (forked or trust is Trust.AGENT)


WIDTH, LEAD = 400, 100
"""Characters of an excerpt, and of the text before its first match."""
_WORD = regex(r"[^\W_]+")
_ENDING = regex(r"(?:ing|ed|es|s|e|ly)$")


def excerpt(text: str, terms: Sequence[str], width: int = WIDTH) -> str:
    """Return the part of a text with most of the terms, in one line."""
    line = " ".join(text.split())
    if len(line) <= width:
        return line
    wanted = _wanted(tuple(terms))
    places = sorted({start for start, _ in wanted.find(line)})
    found = max(
        places, key=lambda start: sum(start <= each < start + width - LEAD for each in places), default=0
    )
    begin = 0 if found <= LEAD else _beginning(line, found - LEAD // 2)
    end = begin + width
    return ("… " if begin else "") + line[begin:end].rstrip() + (" …" if end < len(line) else "")


def _beginning(line: str, before: int) -> int:
    """Return where the word at a position begins; in a script without spaces, the letter."""
    space = line.rfind(" ", 0, before) + 1
    return space if before - space < LEAD else before


def pieces(text: str, terms: Sequence[str]) -> list[tuple[str, bool]]:
    """Return the text in pieces, and for each whether it is a searched word, in any of its forms."""
    wanted = _wanted(tuple(terms))
    marks = bytearray(len(text))
    for start, end in wanted.find(text):
        marks[start:end] = b"\1" * (end - start)
    found, at = list[tuple[str, bool]](), 0
    while at < len(text):
        end = marks.find(not marks[at], at)
        end = end if end >= 0 else len(text)
        found.append((text[at:end], bool(marks[at])))
        at = end
    return found


class _Wanted(Struct, frozen=True):
    """Recognizes terms by stems, beginnings of words, and parts of a script without spaces."""

    stems: frozenset[str]
    begun: tuple[str, ...]
    parts: tuple[str, ...]

    def find(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield where each match begins and ends. A match may appear twice."""
        plain = text.replace("…", " ")  # an excerpt has it at its ends
        for match in self._likely(plain) if plain.isascii() else _WORD.finditer(text):
            low = match[0].lower()
            if stem(low) in self.stems or (self.begun and low.startswith(self.begun)):
                yield match.span()
        for part in self.parts:
            for start in _places(text, part):
                yield start, start + len(part)

    def _likely(self, text: str) -> Iterator[re.Match[str]]:
        """Yield the words that start with a stem, as every ASCII form of it does."""
        low = text.lower()
        for first in (*self.stems, *self.begun):
            for at in _places(low, first) if first else ():
                if not (at and low[at - 1].isalnum()) and (match := _WORD.match(text, at)):
                    yield match


@lru_cache(maxsize=8)  # the same for each line of an answer
def _wanted(terms: tuple[str, ...]) -> _Wanted:
    return _Wanted(
        frozenset(stem(word) for term in terms for word in _WORD.findall(term.lower())),
        tuple(term[:-1].lower() for term in terms if term.endswith("*")),
        tuple(part for term in terms if not term.isascii() for part in term.rstrip("*").split()),
    )


def _places(text: str, part: str) -> Iterator[int]:
    start = text.find(part)
    while start >= 0:
        yield start
        start = text.find(part, start + 1)


@lru_cache(maxsize=8_192)  # a search shows hundreds of words, and most of them repeat
def stem(word: str) -> str:
    """Return a stem good enough to tell that two words are forms of one."""
    plain = word
    if not word.isascii():
        plain = normalize("NFKD", word)
        if not plain.isalnum():  # accents are not alphanumeric
            plain = "".join(each for each in plain if not combining(each))
    return _ENDING.sub("", plain) if len(plain) > 4 else plain.removesuffix("s")


RESULT, CALL, SPEECH = 4_000, 1_000, 100_000
"""The most characters of a tool's result, of a call and of speech that a search covers."""


def said(message: Message) -> str:
    """Return the searchable text of a message: the speaker's words, the calls, and the start of a result. An
    example from a template has none, since it was never said there."""
    if message.template:
        return ""
    pieces = [message.text[:SPEECH]]
    pieces += [f"{call.name} {call.arguments}"[:CALL] for call in message.calls]
    if message.result:
        pieces.append(message.result.text[:RESULT])
    return "\n".join(piece for piece in pieces if piece)
