"""What a home keeps, opened: SQLite in the home, or the memory of this process."""

import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from hone.core.jobs import Jobs
from hone.core.ledger import Ledger
from hone.core.outbox import Outbox
from hone.core.ports import Sessions
from hone.core.recall import Recall
from hone.core.rounds import Rounds
from hone.core.skill import Shelf


@dataclass(frozen=True, slots=True)
class Stores:
    """What a home keeps. `closed` says why it keeps nothing, if so."""

    sessions: Sessions
    ledger: Ledger
    shelf: Shelf
    jobs: Jobs
    recall: Recall
    rounds: Rounds
    outbox: Outbox
    close: Callable[[], Awaitable[None]]
    closed: str = ""


def open_stores(home: Path, say: Callable[[str], None]) -> Stores:
    """In the home; where it cannot be written, in memory, which is said."""
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        writable = os.access(home, os.W_OK)
    except OSError:
        writable = False
    if writable:
        from hone.stores.database import Database
        from hone.stores.jobs import SqliteJobs
        from hone.stores.ledger import SqliteLedger
        from hone.stores.outbox import SqliteOutbox
        from hone.stores.recall import SqliteRecall
        from hone.stores.rounds import SqliteRounds
        from hone.stores.shelf import SqliteShelf
        from hone.stores.sqlite import SqliteSessions

        database = Database.open(home / "hone.db")
        return Stores(
            SqliteSessions(database),
            SqliteLedger(database),
            SqliteShelf(database),
            SqliteJobs(database),
            SqliteRecall(database),
            SqliteRounds(database),
            SqliteOutbox(database),
            database.close,
        )
    from hone.stores.inmemory import InMemoryJobs, InMemoryOutbox, InMemorySessions
    from hone.stores.recalled import InMemoryRecall
    from hone.stores.reference import InMemoryLedger, InMemoryRounds, InMemoryShelf

    closed = f"{home} cannot be written: this conversation is not kept, and nothing is learned."
    say(closed)
    sessions, kept = InMemorySessions(), InMemoryLedger()
    jobs = InMemoryJobs(kept, sessions)
    recall, rounds, outbox = InMemoryRecall(sessions), InMemoryRounds(kept), InMemoryOutbox(kept)
    shelf = InMemoryShelf(kept)
    return Stores(sessions, kept, shelf, jobs, recall, rounds, outbox, sessions.close, closed)
