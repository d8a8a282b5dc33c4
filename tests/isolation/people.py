"""People who share one database. Each has a word that others may know and a secret beside it in every row."""

import hashlib
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from functools import cached_property

import psycopg
from msgspec import Struct

from hone.core.curation import CuratorRun, CuratorRunId
from hone.core.documents import KINDS
from hone.core.embedding import pack
from hone.core.ids import SessionId
from hone.core.jobs import Look, TopicCount
from hone.core.ledger import (
    MEMORY,
    USER,
    Actor,
    Author,
    Change,
    ChangeKind,
    ChangeState,
    Delta,
    Evidence,
    Target,
    skill,
)
from hone.core.machine_rows import RowConnection
from hone.core.messages import assistant, digest, user
from hone.core.model import Usage
from hone.core.ports import Header, Spending
from hone.core.prefix import Prefix
from hone.core.recall import Query
from hone.core.skill import DOCUMENT, ORIGIN, SkillEvent, SkillOrigin, SkillSummary
from hone.core.switchboard import Post
from hone.core.topics import NAMES
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from hone.core.turn import Origin
from hone.stores.home import Stores

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
EMBEDDER = "an embedder"
WITHOUT_TEXT = {
    "backlog": "how far the search index is",
    "chains": "digests and numbers",
    "checkpoint_rewinds": "numbers of turns",
    "chores": "what is to be done, by kind",
    "counts": "turns since the last review",
    "deltas": "paths and digests",
    "embedders": "the name of a model",
    "erasures": "written only by hone erase",
    "evidence": "digests of the words that a change rests on",
    "histories": "digests of conversations",
    "holdings": "paths and digests",
    "listeners": "channels of conversations",
    "meanings": "digests and vectors",
    "moves": "written only by hone move",
    "nodes": "digests and numbers",
    "published": "digests of files of a home",
    "spending": "models and numbers",
    "tallies": "counts by skill",
    "turns": "conversations that are answered at this moment",
    "uses": "days and results by skill",
    "vectors": "numbers",
}
"""Tables of owners in which nothing that was said can stand, or that only a command fills."""


CHANGED_FILE = """
INSERT INTO own_changes
    (session, turn, anchor, path, by, at, lost, open, expected, rewind, taken_back)
VALUES (?, 1, '', ?, 'write_file', 1, '', 0, '', 0, 0)
"""


class Person(Struct, frozen=True, dict=True):
    name: str

    @cached_property
    def word(self) -> str:
        """What others may know: it stands in ids, names and questions."""
        return f"known{self._half(0)}"

    @cached_property
    def secret(self) -> str:
        """What nobody else may see. It stands in no question, and ends so that no stemmer shortens it."""
        return f"secret{self._half(1)}7"

    @cached_property
    def session(self) -> SessionId:
        return SessionId(self._half(2))

    @cached_property
    def prefix(self) -> Prefix:
        return Prefix("stage/scripted", f"You help {self.secret}.")

    @cached_property
    def said(self) -> str:
        return f"My harbor {self.word} is {self.secret}, remember that."

    @cached_property
    def known(self) -> list[str]:
        """Ids and digests of this person's that somebody may have come to know."""
        body = user(self.said)
        digests = [self.prefix.digest, digest(body.text.encode()), digest(self.journal)]
        return [self.word, self.session, f"{self.word}-skill", *digests]

    @cached_property
    def journal(self) -> bytes:
        return f"- The harbor {self.word} is {self.secret}.\n".encode()

    def _half(self, part: int) -> str:
        return hashlib.sha256(f"{part} {self.name}".encode()).hexdigest()[:16]


async def settle(stores: Stores, person: Person) -> None:
    """Leave something of a person's in every store."""
    await _talk(stores, person)
    await _learn(stores, person)
    await _tend(stores, person)
    await _embed(stores, person)
    await _connect(stores, person)
    for kind in KINDS:
        if not kind.fixed:  # what the owner allows is said through the server
            body = f'{{"{person.word}": "{person.secret}"}}'.encode()
            stores.documents.write(kind, f"{person.word}/{person.word}.json", body)


async def _talk(stores: Stores, person: Person) -> None:
    talk = Transcript(person.prefix.digest).then(user(person.said), Trust.OWNER, NOW)
    title = f"About {person.word} {person.secret}"
    header = Header(person.session, NOW, title, folder=f"/home/{person.secret}")
    await stores.sessions.start(header, person.prefix, talk.nodes, Look(NOW, topics=NAMES))
    longer = talk.then(assistant(f"Noted: {person.word} is {person.secret}."), Trust.AGENT, NOW)
    spent = Spending(NOW, "stage/scripted", Origin.USER, Usage(1, 2, 3, 4, 0.5))
    due = [TopicCount(name, 1, 1, why=person.secret) for name in sorted(NAMES)]
    look = Look(NOW, person.secret, topics=NAMES)
    await stores.sessions.append(person.session, longer.nodes[1:], spent, due, look)
    await stores.histories.fill(person.session, longer.head, [(digest(person.said.encode()), 2)])
    further = Header(SessionId(f"{person.word}-2"), NOW, folder=f"/home/{person.secret}")
    await stores.sessions.start(further, person.prefix, talk.nodes, look)
    await stores.recall.search(Query(person.word))


async def _learn(stores: Stores, person: Person) -> None:
    origin, name, about = SkillOrigin.AGENT.encode(), f"{person.word}-skill", f"Reach {person.secret}."
    document = f"---\nname: {name}\ndescription: {about}\n---\nSail to {person.secret}.\n".encode()
    waiting = person.journal + b"- It waits.\n"
    await _record(stores, person, MEMORY, {"MEMORY.md": person.journal})
    await _record(stores, person, USER, {"USER.md": person.journal + b"- Me.\n"})
    await _record(stores, person, skill(name), {DOCUMENT: document, ORIGIN: origin})
    await _record(stores, person, skill(person.secret), {DOCUMENT: document, ORIGIN: origin})
    await _record(stores, person, skill(f"{person.word}-later"), {DOCUMENT: waiting}, ChangeState.PENDING)
    summary = SkillSummary(skill(name), about, f"sail {person.secret}")
    await stores.catalog.save_summaries({digest(document): summary})
    await stores.catalog.count(name, SkillEvent.USE, Actor.AGENT, person.session, NOW.date())


async def _record(
    stores: Stores,
    person: Person,
    target: Target,
    files: dict[str, bytes],
    state: ChangeState = ChangeState.ACTIVE,
) -> None:
    evidence = Evidence(person.session, 1, Trust.OWNER, digest(person.said.encode()))
    author = Author(Actor.AGENT, person.session, evidence=(evidence,), reason=f"Because of {person.secret}.")
    deltas = tuple(Delta(path, None, digest(data)) for path, data in files.items())
    change = Change(target, ChangeKind.ADD, deltas, author, standing=state)
    await stores.ledger.record([change], {digest(data): data for data in files.values()}, NOW)


async def _tend(stores: Stores, person: Person) -> None:
    run = CuratorRun(NOW, "weekly", person.session, "library", report=f"Merged {person.secret}.")
    await stores.curator_runs.complete(run, CuratorRunId(0), [], {})
    await stores.outbox.address(f"backend of {person.secret}")
    for item in await stores.outbox.letters(1):
        await stores.outbox.failed(item.change, f"no place for {person.secret}")


async def _embed(stores: Stores, person: Person) -> None:
    vectors = stores.vectors
    await vectors.adopt(EMBEDDER)
    made = [(each, pack([1.0, 2.0])) for each in await vectors.missing(EMBEDDER, 10)]
    await vectors.put(EMBEDDER, made)
    await vectors.cache(EMBEDDER, {person.secret: pack([2.0, 1.0])})


async def _connect(stores: Stores, person: Person) -> None:
    """What servers leave for each other, and what tools did to files."""
    assert stores.open_switchboard
    assert stores.open_values
    assert stores.machine_rows
    board = stores.open_switchboard(person.word)
    await board.begin(person.session)
    await board.listen([person.session])
    await board.ask(person.session, person.secret)
    await board.send([Post(person.word, person.session, "text", f'"{person.secret}"')])
    await board.close()
    stores.open_values().change(f"note-{person.word}", lambda _: person.secret.encode())
    data = person.secret.encode()

    def change_file(rows: RowConnection) -> None:
        rows.execute(
            "INSERT INTO own_blobs (digest, size, data) VALUES (?, ?, ?)", (digest(data), len(data), data)
        )
        rows.execute(CHANGED_FILE, (person.session, data))

    await stores.machine_rows().write(change_file)


def find_gaps(url: str, people: Sequence[Person], only: Collection[str] = ()) -> Iterator[str]:
    """Say which tables, or which of these, lack somebody's secret."""
    with psycopg.connect(url, autocommit=True) as connection:
        tables = connection.execute(
            "SELECT table_name FROM information_schema.columns WHERE table_schema = 'hone' "
            "AND column_name = 'owner' AND table_name IN "
            "(SELECT tablename FROM pg_tables WHERE schemaname = 'hone') ORDER BY 1"
        ).fetchall()
        for (table,) in tables:
            if table in WITHOUT_TEXT or (only and table not in only):
                continue
            for person in people:
                rows = connection.execute(
                    f"SELECT t::text FROM hone.{table} AS t WHERE owner = %s", (person.name,)
                )
                held = rows.fetchall()
                secret = (person.secret, person.secret.encode().hex())
                if not any(word in row[0] for row in held for word in secret):
                    yield f"{table}: nothing of {person.name}'s secret in {len(held)} rows"
