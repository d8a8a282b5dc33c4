"""A large home: synthetic conversations, skills, changes and model calls of a year of heavy use."""

import asyncio
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

from apsw import Connection
from msgspec import Struct

from benchmarks.recall import Language
from benchmarks.skills import furnish
from hone import Hone
from hone.core.ids import SessionId
from hone.core.ledger import MEMORY, Actor, Author, Change, ChangeKind, Delta, Evidence
from hone.core.messages import assistant, digest, user
from hone.core.ports import Header
from hone.core.prefix import Prefix
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from hone.core.turn import Origin
from hone.stores.database import Database
from hone.stores.ledger import SqliteLedger
from hone.stores.sqlite import SPEND, SqliteSessions
from hone.stores.tree import stamp

LONG = "long-conversation"
ALIKE = "alike-{:04}"
OPENING = "Good morning. Please look at the open tickets of the team and tell me which one is next."
"""The start of every tenth conversation."""
TOGETHER = 20
YEAR = 365
PREFIX = Prefix("openai/scripted", "You are a benchmark.")


class HomeSize(Struct, frozen=True):
    """How much of everything. `long` is the length of the longest conversation, `session` that of the
    others."""

    messages: int = 100_000
    skills: int = 5_000
    changes: int = 2_000
    calls: int = 300_000
    long: int = 5_000
    session: int = 95


SMALL = HomeSize(600, 20, 30, 300, 200, 40)


def build(home: Path, size: HomeSize) -> None:
    home.mkdir(mode=0o700, parents=True)
    asyncio.run(_build(home, size))


async def _build(home: Path, size: HomeSize) -> None:
    await furnish(home, size.skills)
    database = Database.open(home / "hone.db")
    now = datetime.now(UTC)
    sessions = await _talk(SqliteSessions(database), size, now)
    await _learn(SqliteLedger(database), size.changes, sessions, now)
    await database.write(lambda connection: _spend(connection, size.calls, sessions, now))
    await database.close()
    async with Hone(home=home, folder=home, learning="queue") as hone:
        await hone.library.listed(archived=True)  # summaries of all skills, as in an old home


async def _talk(store: SqliteSessions, size: HomeSize, now: datetime) -> list[SessionId]:
    """Return the conversations. A tenth begins with the same words and continues with others."""
    made = list(_conversations(size, now))
    for begin in range(0, len(made), TOGETHER):
        batch = made[begin : begin + TOGETHER]
        await asyncio.gather(*(store.start(header, PREFIX, chain.nodes) for header, chain in batch))
    return [header.id for header, _ in made]


def _conversations(size: HomeSize, now: datetime) -> Iterator[tuple[Header, Transcript]]:
    language = Language(7)
    count = (size.messages - size.long) // size.session
    begun = now - timedelta(days=YEAR)
    for number in range(count):
        alike = number % 10 == 0
        name = ALIKE.format(number) if alike else f"talk-{number:05}"
        texts = [language.message() for _ in range(size.session // 2 * 2)]
        texts = [OPENING, *texts[1:]] if alike else texts
        yield _conversation(name, texts, begun + timedelta(hours=9 * number))
    yield _conversation(LONG, [language.message() for _ in range(size.long)], now - timedelta(days=5))


def _conversation(name: str, texts: Sequence[str], at: datetime) -> tuple[Header, Transcript]:
    chain = Transcript(PREFIX.digest)
    for place, text in enumerate(texts):
        message, trust = (assistant(text), Trust.AGENT) if place % 2 else (user(text), Trust.OWNER)
        chain = chain.then(message, trust, at + timedelta(minutes=place))
    return Header(SessionId(name), at, folder="/work/project"), chain


async def _learn(ledger: SqliteLedger, count: int, sessions: Sequence[SessionId], now: datetime) -> None:
    before, contents, changes = None, {}, []
    for number in range(count):
        kept = [f"Fact {each} of the project is known." for each in range(max(0, number - 19), number + 1)]
        data = "\n§\n".join(kept).encode()
        contents[digest(data)] = data
        session = sessions[number % len(sessions)]
        evidence = (Evidence(session, 1, Trust.OWNER, digest(data)),)
        author = Author(Actor.REVIEW, session, evidence=evidence)
        delta = Delta("MEMORY.md", before, digest(data))
        changes.append(Change(MEMORY, ChangeKind.ADD, (delta,), author, confirmed=True))
        before = digest(data)
    await ledger.record(changes, contents, now - timedelta(days=1))


def _spend(connection: Connection, count: int, sessions: Sequence[SessionId], now: datetime) -> None:
    """Add spending. A tenth of the calls belongs to the long conversation, a fifth to learning, a few have no
    price."""
    random, begun = Random(5), stamp(now - timedelta(days=YEAR))
    step = YEAR * 86_400_000_000 // count

    def row(number: int) -> tuple[object, ...]:
        session = LONG if number % 10 == 0 else sessions[number * len(sessions) // count]
        origin = Origin.REVIEW if number % 5 == 0 else Origin.USER
        tokens = random.randint(1_000, 60_000)
        cost = None if number % 50 == 0 else tokens * 3e-6
        return (session, begun + number * step, PREFIX.model, origin, tokens, tokens * 4 // 5, 200, 300, cost)

    connection.executemany(SPEND, (row(number) for number in range(count)))
