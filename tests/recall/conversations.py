"""Ten long conversations and 300 questions about them, built from the JSON files beside this module.

Each person is a home of their own: a question is asked of that person's sessions only. The scenes that
matter are written out by hand in people/; between them goes small talk, filled with the person's own names.
It knows nothing about how anything is searched.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
QUESTIONS = HERE / "questions.json"
KINDS = ("direct", "rare", "paraphrased", "date", "speaker", "multi-hop", "common")
SLOTS = ("person", "place", "thing", "task", "food")
PACE = timedelta(seconds=47)


@dataclass(frozen=True, slots=True)
class Said:
    """One message; `role` is user, assistant or tool."""

    role: str
    text: str
    at: datetime
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Where a message stands: both numbers count from 1, messages anew in each session."""

    session: int
    message: int


@dataclass(frozen=True, slots=True)
class Question:
    """`evidence` is all that is needed for the answer; `draft` is the question before it was reworded."""

    person: str
    kind: str
    question: str
    draft: str
    answer: str
    evidence: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class Conversation:
    person: str
    sessions: tuple[tuple[Said, ...], ...]
    questions: tuple[Question, ...]

    def at(self, place: Place) -> Said:
        return self.sessions[place.session - 1][place.message - 1]

    def places(self) -> Iterator[Place]:
        for session, messages in enumerate(self.sessions, 1):
            for message in range(1, len(messages) + 1):
                yield Place(session, message)


@cache
def conversations() -> tuple[Conversation, ...]:
    """The whole set, the same on every machine and every Python."""
    paths = sorted((HERE / "people").glob("*.json"))
    return tuple(build(json.loads(path.read_text("utf-8"))) for path in paths)


def build(person: dict[str, Any]) -> Conversation:
    talk = _smalltalk(person)
    sessions = tuple(tuple(_session(session, talk)) for session in person["sessions"])
    places = {
        said.key: Place(number, message)
        for number, messages in enumerate(sessions, 1)
        for message, said in enumerate(messages, 1)
        if said.key
    }
    questions = tuple(
        Question(
            person["name"],
            **{name: asked[name] for name in ("kind", "question", "draft", "answer")},
            evidence=tuple(places[key] for key in asked["evidence"]),
        )
        for asked in person["questions"]
    )
    return Conversation(person["name"], sessions, questions)


def _session(session: dict[str, Any], talk: Iterator[list[dict[str, str]]]) -> Iterator[Said]:
    """The scenes of a session with two or three bits of small talk before each, and one at the end."""
    at = datetime.fromisoformat(session["start"])
    exchanges: list[list[dict[str, str]]] = []
    for number, context in enumerate(session["scenes"]):
        exchanges += [next(talk) for _ in range(2 + _pick(f"{at}{number}", 2))]
        exchanges.append(context)
    exchanges.append(next(talk))
    lines = _alternating([line for exchange in exchanges for line in exchange], str(at))
    for number, line in enumerate(lines):
        yield Said(line["role"], line["text"], at + number * PACE, line.get("key"))


def _alternating(lines: list[dict[str, str]], seed: str) -> Iterator[dict[str, str]]:
    """The user begins, and nobody speaks twice in a row: a word of the other one goes between."""
    before = ""
    for number, line in enumerate(lines):
        role = line["role"]
        if role == before or (not before and role != "user"):
            other = "assistant" if role == "user" else "user"
            yield {"role": other, "text": _choose(_general()["bridges"][other], f"{seed}/{number}")}
        yield line
        before = role


@cache
def _general() -> dict[str, Any]:
    general: dict[str, Any] = json.loads((HERE / "smalltalk.json").read_text("utf-8"))
    return general


def _smalltalk(person: dict[str, Any]) -> Iterator[list[dict[str, str]]]:
    """Without end: the person's own chatter in the first deck, then the rest again in other orders."""
    turn = 0
    while True:
        deck = [*_general()["exchanges"], *(person["chatter"] if turn == 0 else ())]
        seed = f"{person['name']}/{turn}"
        for number in sorted(range(len(deck)), key=lambda number: _pick(f"{seed}/{number}", 2**64)):
            words = {slot: _choose(person["words"][slot], f"{seed}/{number}/{slot}") for slot in SLOTS}
            yield [line | {"text": _filled(line["text"], words)} for line in deck[number]]
        turn += 1


def _filled(text: str, words: dict[str, str]) -> str:
    for slot, word in words.items():
        text = text.replace("{" + slot + "}", word)
    return text[:1].upper() + text[1:]


def _choose(words: list[str], seed: str) -> str:
    return words[_pick(seed, len(words))]


def _pick(seed: str, below: int) -> int:
    # Not random.Random: what it draws from a seed has changed between Python versions.
    return int.from_bytes(sha256(seed.encode()).digest()[:8], "big") % below


def printed() -> str:
    """questions.json: every question with its evidence by number, one a line."""
    questions = [asdict(asked) for conversation in conversations() for asked in conversation.questions]
    lines = ",\n".join(json.dumps(asked, ensure_ascii=False) for asked in questions)
    return f"[\n{lines}\n]\n"


if __name__ == "__main__":
    QUESTIONS.write_text(printed(), "utf-8")
