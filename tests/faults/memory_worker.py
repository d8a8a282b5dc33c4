"""A process to be killed: `python memory_worker.py store sqlite|postgres|honcho PLACE` or `… mirror HOME`.

`store` keeps memos for ever and says the key of each as soon as it is acknowledged. `mirror` notes entries in
the journal, says each, and then delivers them to the home's sqlite backend. Each loads what it needs alone.
"""

import asyncio
import sys
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from hone.core.clock import SystemClock
from hone.memory.backends.guarded import Guarded
from hone.memory.backends.wording import Wording
from hone.stores import words

if TYPE_CHECKING:
    from hone.settings import Settings

VALUE = "the value of {}" + 40 * " and more of it"
ENTRIES = 20


def settings() -> "Settings":
    from hone.settings import Memory, Settings

    return Settings(memory=Memory(backend="sqlite", owner="ann", user=100_000))


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def store(kind: str, place: str) -> None:
    clock, wording = SystemClock(), Wording(words.spaced, words.terms)
    match kind:
        case "postgres":
            from hone.memory.backends.postgres import PostgresBackend

            backend = Guarded(PostgresBackend(place, wording, clock, is_cloud=False))
        case "honcho":
            from hone.memory.backends.honcho import HonchoBackend
            from tests.doubles.honcho import KEY

            backend = Guarded(HonchoBackend(place, KEY, clock, is_cloud=True))
        case _:
            from hone.memory.backends.sqlite import SCHEMA, SqliteBackend
            from hone.stores.database import Database

            def opened(path: Path) -> Database:
                return Database.open(path, scripts=SCHEMA)

            backend = Guarded(SqliteBackend(Path(place), opened, wording, clock))
    for number in count():
        key = f"key-{number}"
        await backend.store("ann", key, VALUE.format(key))
        say(key)


async def mirror(home: str) -> None:
    from hone import Hone
    from hone.core.ledger import USER
    from hone.knowledge.keeper import OWNER
    from hone.memory import journal
    from hone.models.scripted import Scripted, rounds

    async with Hone(home=home, settings=settings(), model=Scripted(rounds("Yes."))) as hone:
        keeper = hone.library.keeper
        known = len(journal.entries(await keeper.text(USER)))
        for number in range(known, known + ENTRIES):
            await keeper.note([(USER, journal.Add(f"Fact number {number}."))], OWNER)
            say(f"noted {number}")
        await hone.courier.drain()
        say("done")


if __name__ == "__main__":
    mode, *arguments = sys.argv[1:]
    asyncio.run(mirror(*arguments) if mode == "mirror" else store(*arguments))
