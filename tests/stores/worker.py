"""A process beside the tests: `python worker.py JOB PATH …`. It says "ready", waits for a line, then works.

Each message that the store has acknowledged is printed at once.
"""

import asyncio
import os
import resource
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from hone.core.errors import Conflict, StoreError
from hone.core.ids import SessionId
from hone.core.jobs import TopicCount
from hone.core.ledger import MEMORY, Actor, Author, Change, ChangeKind, Delta
from hone.core.loading import import_object
from hone.core.messages import assistant, digest, user
from hone.core.ports import Header
from hone.core.prefix import Prefix
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from hone.stores.database import READ_ONLY, Database
from hone.stores.jobs import SqliteJobs
from hone.stores.ledger import SqliteLedger
from hone.stores.sqlite import SqliteSessions

PREFIX = Prefix("scripted/one", "You help.")
NOW = datetime(2026, 3, 1, tzinfo=UTC)
NOBODY = 65534
EVERY = 3
"""Turns of a tree until a review is due."""


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


class OpenedSessions(SqliteSessions):
    """Sessions with a database of their own, which is closed with them."""

    @classmethod
    def open(cls, path: Path) -> Self:
        return cls(Database.open(path))

    async def close(self) -> None:
        await self._database.close()


async def begin(store: SqliteSessions, session: SessionId, words: str) -> Transcript:
    transcript = Transcript(PREFIX.digest).then(user(words), Trust.OWNER, NOW)
    await store.start(Header(session, NOW), PREFIX, transcript.nodes)
    return transcript


async def go_on(store: SqliteSessions, session: SessionId, name: str, count: int, size: int = 0) -> None:
    """Adds `count` messages; after a conflict it loads what the others wrote and tries again."""
    transcript = (await store.load(session)).transcript
    for number in range(count):
        words = f"{name} {number}"
        while True:
            longer = transcript.then(user(words, "x" * size), Trust.OWNER, NOW)
            try:
                await store.append(session, longer.nodes[len(transcript) :])
            except Conflict:
                say("conflict")
                transcript = (await store.load(session)).transcript
            else:
                transcript = longer
                break
        say(words)


async def learn(path: Path, name: str, count: int) -> None:
    """Adds `count` lines to one text; after a conflict it reads what the others wrote and tries again."""
    database = Database.open(path)
    ledger = SqliteLedger(database)
    for number in range(count):
        line = f"{name} {number}"
        while True:
            held = (await ledger.held(MEMORY)).get("MEMORY.md")
            text = (await ledger.contents([held]))[held] if held else b""
            longer = text + f"{line}\n".encode()
            delta = Delta("MEMORY.md", held, digest(longer))
            change = Change(MEMORY, ChangeKind.ADD, (delta,), Author(Actor.AGENT, reason=line))
            try:
                await ledger.record([change], {digest(longer): longer}, NOW)
            except Conflict:
                say("conflict")
            else:
                break
        say(line)
    await database.close()


async def take_turns(store: SqliteSessions, session: SessionId, count: int) -> None:
    """Each turn is a question, and an answer that is counted; says which review the answer set off."""
    transcript = (await store.load(session)).transcript
    for number in range(count):
        asked = transcript.then(user(f"question {number}"), Trust.OWNER, NOW)
        await store.append(session, asked.nodes[len(transcript) :])
        transcript = asked.then(assistant(f"answer {number}"), Trust.AGENT, NOW)
        job = await store.append(session, transcript.nodes[-1:], None, (TopicCount("memory", 1, EVERY),))
        say(f"{session} {number} {job.id if job else 0}")


async def finish(path: Path, session: SessionId, count: int) -> None:
    """Completes `count` reviews, each of which adds a line."""
    database = Database.open(path)
    jobs, ledger = SqliteJobs(database), SqliteLedger(database)
    for number in range(count):
        job = await jobs.enqueue(session, 1, frozenset({"memory"}), "by hand", NOW)
        held = (await ledger.held(MEMORY)).get("MEMORY.md")
        body = f"{session} {number} {held}".encode()
        change = Change(
            MEMORY, ChangeKind.ADD, (Delta("MEMORY.md", held, digest(body)),), Author(Actor.REVIEW)
        )
        await jobs.complete(job.id, [change], {digest(body): body}, None, NOW)
        say(str(job.id))
    await database.close()


async def work(job: str, path: Path, *arguments: str) -> None:
    if job == "open":
        for number in range(int(arguments[0])):
            OpenedSessions.open(path.with_name(f"fresh-{number}.db"))
        return
    if job == "learn":
        await learn(path, arguments[0], int(arguments[1]))
        return
    if job == "finish":
        await finish(path, SessionId(arguments[0]), int(arguments[1]))
        return
    if job == "nobody" and os.geteuid() == 0:
        import_object(READ_ONLY)  # what comes later may not be able to read our own code
        os.setuid(NOBODY)
    store = OpenedSessions.open(path)
    if job == "turns":
        await take_turns(store, SessionId(arguments[0]), int(arguments[1]))
        await store.close()
        return
    session, name, count = arguments
    if job == "full":
        resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, 500_000))
    if job == "own":
        await begin(store, SessionId(session), "first")
        say("first")
    await go_on(store, SessionId(session), name, int(count), 1000 if job == "full" else 0)
    await store.close()


def main() -> None:
    say("ready")
    sys.stdin.readline()
    try:
        asyncio.run(work(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:]))
    except StoreError as error:
        say(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
