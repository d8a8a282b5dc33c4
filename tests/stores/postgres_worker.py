"""A process that works on PostgreSQL while a test does the same, or that kills itself in the middle."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from hone.core.errors import Conflict
from hone.core.ids import SessionId
from hone.core.jobs import JobId, Look, TopicCount
from hone.core.ledger import MEMORY, Actor, Author, Change, ChangeKind, Delta, Target
from hone.core.messages import assistant, digest, user
from hone.core.ports import Header
from hone.core.prefix import Prefix
from hone.core.topics import NAMES
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from hone.stores.home import Stores
from hone.stores.postgres.database import Rows
from hone.stores.postgres.home import open_stores

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
PREFIX, OTHER = Prefix("scripted/one", "You help."), Prefix("scripted/two", "You help, too.")
A, B = SessionId("a"), SessionId("b")
LOOK = Look(NOW, "a cue", topics=NAMES)


def said(*words: str, on: Transcript | None = None, prefix: Prefix = PREFIX) -> Transcript:
    transcript = on or Transcript(prefix.digest)
    for text in words:
        transcript = transcript.then(user(text), Trust.OWNER, NOW)
    return transcript


def note(before: str | None, text: bytes, target: Target = MEMORY) -> tuple[list[Change], dict[str, bytes]]:
    change = Change(
        target, ChangeKind.EDIT, (Delta("MEMORY.md", before, digest(text)),), Author(Actor.REVIEW)
    )
    return [change], {digest(text): text}


async def add_lines(stores: Stores, name: str, count: int) -> None:
    """Add lines to one session together with others who do the same, and say what was acknowledged."""
    for number in range(count):
        while True:
            before = (await stores.sessions.load(A)).transcript
            after = before.then(assistant(f"{name} {number}"), Trust.AGENT, NOW)
            try:
                await stores.sessions.append(A, after.nodes[-1:])
            except Conflict:
                print("conflict", flush=True)
            else:
                break
        print(f"{name} {number}", flush=True)


async def prepare(stores: Stores) -> None:
    """What there is before anything is killed."""
    await stores.sessions.start(Header(A, NOW), PREFIX, said("one", "two", "three").nodes, LOOK)
    await stores.jobs.enqueue(A, 1, NAMES, "by hand", NOW)
    await stores.jobs.enqueue(A, 2, NAMES, "by hand", NOW)


async def complete(stores: Stores) -> None:
    changes, contents = note(None, b"text")
    await stores.jobs.complete(JobId(1), changes, contents, 0.5, NOW, [JobId(2)])


async def append(stores: Stores) -> None:
    longer = said("one", "two", "three", "four", "five")
    await stores.sessions.append(A, longer.nodes[3:], None, [TopicCount("memory", 1, 1)], LOOK)


DEEDS: dict[str, Callable[[Stores], Coroutine[Any, Any, object]]] = {
    "start": lambda stores: stores.sessions.start(Header(B, NOW), PREFIX, said("x", "y").nodes, LOOK),
    "append": append,
    "move": lambda stores: stores.sessions.move(A, OTHER, said("one", "two", "three", prefix=OTHER)),
    "shorten": lambda stores: stores.sessions.shorten(
        A, said("one", "two", "three").head, said("notes"), NAMES
    ),
    "delete": lambda stores: stores.sessions.delete(A),
    "complete": complete,
    "promote": lambda stores: stores.jobs.promote(NOW, NAMES),
}


async def die(url: str, owner: str, deed: str, statements: int) -> None:
    """Do the deed and end by SIGKILL before so many more statements were sent."""
    stores = open_stores(url, "a folder", owner)
    await prepare(stores)
    send, transact, left = Rows.execute, Rows.transaction, statements

    def tick() -> None:
        nonlocal left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1

    def execute(rows: Rows, query: str, **values: Any) -> Any:
        tick()
        return send(rows, query, **values)

    @contextmanager
    def transaction(rows: Rows) -> Iterator[None]:
        with transact(rows):
            yield
            tick()  # before it is committed

    patch = pytest.MonkeyPatch()
    patch.setattr(Rows, "execute", execute)
    patch.setattr(Rows, "transaction", transaction)
    await DEEDS[deed](stores)
    await stores.close()


def die_everywhere(url: str, deed: str) -> None:
    """Die before each statement of a deed in turn, each time as another owner, until it comes to its end."""
    statements = 0
    while True:
        owner = f"{deed}-{os.urandom(4).hex()}"
        child = os.fork()
        if not child:
            asyncio.run(die(url, owner, deed, statements))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print(owner, "killed" if os.WIFSIGNALED(status) else "ended", flush=True)
        if not os.WIFSIGNALED(status):
            return
        statements += 1


async def work(job: str, url: str, owner: str, *arguments: str) -> None:
    stores = open_stores(url, "a folder", owner)
    await add_lines(stores, arguments[0], int(arguments[1]))
    await stores.close()


if __name__ == "__main__":
    if sys.argv[1] == "die":
        die_everywhere(*sys.argv[2:])
    else:
        asyncio.run(work(*sys.argv[1:]))
