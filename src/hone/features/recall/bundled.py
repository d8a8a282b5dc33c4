"""Read the bundled people: conversations and questions that search is measured with.

Each file below data/people is one person, written by hand, as text:

    name: Wren Halloran
    ack: go on || Done.               a user's words and the reply, used in turn
    chat: morning || Morning.         the same, for the first words of a session

    == 2025-01-14 07:52               a session and when it began
    +                                 the next chat
    > {nas} the nas died              the user; {nas} names the message for the questions
    < Which board?                    the assistant
    $ smartctl -a                     a tool; an indented line continues any message
    ~ 2                               two acknowledgements, the next two

    ? plain | nas | What died? | the nas      kind, evidence, question, and words that the evidence holds

After a user's message, the first acknowledgement is only the reply.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import cycle
from pathlib import Path

from msgspec import Struct

from hone.core.errors import HoneError

PEOPLE = Path(__file__).parent / "data" / "people"
KINDS = ("plain", "paraphrase", "date", "speaker", "changed", "language", "multi", "phrase")
ASKED = datetime(2026, 6, 30, 12, tzinfo=UTC)
"""The moment of every bundled question: "last May" is relative to it."""
PACE = timedelta(seconds=47)
ROLES = {">": "user", "<": "assistant", "$": "tool"}
_LINE = re.compile(r"([><$]) (?:\{([\w-]+)\} )?(.+)", re.DOTALL)
_ASKED = re.compile(r"\? ([a-z]+) \| ([\w,-]+) \| (.+) \| (.+)")


class BundledMessage(Struct, frozen=True):
    role: str
    text: str
    at: datetime
    key: str = ""


class BundledQuestion(Struct, frozen=True):
    """`evidence` names the messages that hold the answer: a session and a message in it, both from 0."""

    kind: str
    question: str
    answer: str
    evidence: tuple[tuple[int, int], ...]


class BundledPerson(Struct, frozen=True):
    name: str
    sessions: tuple[tuple[BundledMessage, ...], ...]
    questions: tuple[BundledQuestion, ...]
    asked: datetime = ASKED


@cache
def people() -> tuple[BundledPerson, ...]:
    return tuple(parse(path.read_text("utf-8"), path.name) for path in sorted(PEOPLE.glob("*.txt")))


def parse(text: str, source: str) -> BundledPerson:
    """Parse a file. Raises HoneError, with the line, for anything that violates the format above."""
    reader = _Reader(source)
    for number, line in _joined(text):
        reader.number = number
        reader.take(line)
    return reader.person()


def _joined(text: str) -> Iterator[tuple[int, str]]:
    """Yield each entry with the number of its first line: an indented line belongs to the one before it."""
    entry, start = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("  ") and entry:
            entry += "\n" + line[2:]
            continue
        if entry.strip():
            yield start, entry
        entry, start = line, number
    if entry.strip():
        yield start, entry


class _Reader:
    def __init__(self, source: str) -> None:
        self.source = source
        self.number = 0
        self.name = ""
        self.began = ASKED
        self.turns: dict[str, Iterator[tuple[str, str]]] = {}
        self.pairs: dict[str, list[tuple[str, str]]] = {"ack": [], "chat": []}
        self.sessions: list[list[BundledMessage]] = []
        self.places: dict[str, tuple[int, int]] = {}
        self.questions: list[BundledQuestion] = []

    def take(self, line: str) -> None:
        if head := re.fullmatch(r"(name|ack|chat): (.+)", line):
            self._head(head[1], head[2])
        elif began := re.fullmatch(r"== (\d{4}-\d\d-\d\d \d\d:\d\d)", line):
            self.began = datetime.fromisoformat(f"{began[1]}:00+00:00")
            self.sessions.append([])
        elif more := re.fullmatch(r"([~+])(?: (\d+))?", line):
            for _ in range(int(more[2] or 1)):
                self._pair("ack" if more[1] == "~" else "chat")
        elif said := _LINE.fullmatch(line):
            self._say(ROLES[said[1]], said[3], said[2] or "")
        elif asked := _ASKED.fullmatch(line):
            self._ask(asked)
        else:
            raise self._error("is no line of a conversation")

    def person(self) -> BundledPerson:
        sessions = tuple(tuple(session) for session in self.sessions)
        return BundledPerson(self.name, sessions, tuple(self.questions))

    def _head(self, name: str, value: str) -> None:
        if name == "name":
            self.name = value
            return
        user, _, reply = value.partition(" || ")
        self.pairs[name].append((user, reply))
        self.turns = {name: cycle(pairs) for name, pairs in self.pairs.items()}

    def _pair(self, kind: str) -> None:
        user, reply = next(self.turns[kind])
        if not self._last("user"):
            self._say("user", user)
        self._say("assistant", reply)

    def _last(self, role: str) -> bool:
        return bool(self.sessions[-1]) and self.sessions[-1][-1].role == role

    def _say(self, role: str, text: str, key: str = "") -> None:
        if not self.sessions or self._last(role):
            raise self._error("has no session, or the same one speaks twice")
        if key in self.places:
            raise self._error(f"uses the key {key} again")
        session = self.sessions[-1]
        if key:
            self.places[key] = (len(self.sessions) - 1, len(session))
        session.append(BundledMessage(role, text, self.began + len(session) * PACE, key))

    def _ask(self, asked: re.Match[str]) -> None:
        keys = asked[2].split(",")
        if asked[1] not in KINDS or not all(key in self.places for key in keys):
            raise self._error("names a kind or a message that does not exist")
        evidence = tuple(self.places[key] for key in keys)
        self.questions.append(BundledQuestion(asked[1], asked[3], asked[4], evidence))

    def _error(self, what: str) -> HoneError:
        return HoneError(f"{self.source}, line {self.number}: this {what}.")
