"""Read the owner's questions about their own conversations: a file of JSON lines.

    {"question": "What was the plumber called?", "session": "3f2a", "message": 12}

`session` is an id or its beginning, `message` the number that `hone sessions show` prints, or a list of
numbers if all of them are needed. `kind` is optional: figures are told by kind.
"""

from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from hone.core.errors import HoneError, Missing, Refused
from hone.core.ids import SessionId
from hone.core.ports import Header, Sessions
from hone.features.recall.evaluation import Place, Probe

Number = Annotated[int, Meta(ge=1)]
Filled = Annotated[str, Meta(min_length=1)]
LARGEST = 10_000_000
"""The most bytes of a file of questions."""


class OwnQuestion(Struct, frozen=True, forbid_unknown_fields=True):
    question: Filled
    session: Filled
    message: Number | Annotated[tuple[Number, ...], Meta(min_length=1)]
    kind: Filled = "own"

    @property
    def numbers(self) -> tuple[int, ...]:
        return (self.message,) if isinstance(self.message, int) else self.message


def read_questions(path: Path) -> list[tuple[int, OwnQuestion]]:
    """Return the questions with their lines. Raises Refused, with the line, for an invalid one."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise Refused(f"{path} cannot be read: {error.strerror}.") from error
    if len(data) > LARGEST:
        raise Refused(f"{path} is larger than {LARGEST:,} bytes. Split it.")
    read = list(_read(data, path))
    if not read:
        raise Refused(f"{path} has no question in it.")
    return read


def _read(data: bytes, path: Path) -> Iterator[tuple[int, OwnQuestion]]:
    decode = msgspec.json.Decoder(OwnQuestion).decode
    for number, line in enumerate(data.splitlines(), 1):
        if not line.strip():
            continue
        try:
            yield number, decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Refused(f"{path}, line {number}: this is no question: {error}.") from error


async def find_evidence(
    sessions: Sessions, questions: Sequence[tuple[int, OwnQuestion]], path: Path, today: date
) -> list[Probe]:
    """Find the messages that the questions name. Raises Refused, with the line, if there is none."""
    probes, known = [], {}
    for line, asked in questions:
        try:
            if asked.session not in known:
                known[asked.session] = await _lineage(sessions, asked.session)
            evidence = tuple(_places(known[asked.session], number) for number in asked.numbers)
        except HoneError as error:
            raise Refused(f"{path}, line {line}: {error}") from error
        probes.append(Probe(asked.question, asked.kind, evidence, today))
    return probes


async def _lineage(sessions: Sessions, beginning: str) -> tuple[int, list[Header]]:
    """Return the number of a session's messages, and its header followed by those of its ancestors."""
    stored = await sessions.load(await sessions.find(beginning))
    headers = [stored.header]
    while (parent := headers[-1].parent) is not None:
        try:
            headers.append((await sessions.load(parent)).header)
        except Missing:
            break
    return len(stored.transcript), headers


def _places(lineage: tuple[int, list[Header]], number: int) -> frozenset[Place]:
    """Return the places where a message counts as found: a shared beginning belongs to the ancestors, too."""
    count, headers = lineage
    if number > count:
        raise Refused(f"session {headers[0].id} has {count} messages, and none with the number {number}.")
    places: set[tuple[SessionId, int]] = set()
    for header in headers:
        places.add((header.id, number))
        if number > header.shared:
            break
    return frozenset(places)
