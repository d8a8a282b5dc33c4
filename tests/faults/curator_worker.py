"""A process that applies, approves or undoes a curator's plan: `python curator_worker.py DEED HOME`.

It says `ready`, waits for a line, does its deed, and says `done …` and `over`.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from hone.core.clock import SystemClock
from hone.core.ids import SessionId
from hone.core.ledger import Actor, Author, Change, Entry, Evidence, skill
from hone.core.rounds import UNNUMBERED, Round, Rounds
from hone.core.skill import Birth
from hone.core.trust import Trust
from hone.knowledge.consolidation import moves, read
from hone.knowledge.disk import Disk
from hone.knowledge.drafts import Batch
from hone.knowledge.keeper import OWNER, Keeper, Rules
from hone.policy.admission import Mode
from hone.skills.document import written
from hone.skills.folder import Create, WriteFile
from hone.stores.database import Database
from hone.stores.ledger import SqliteLedger
from hone.stores.rounds import SqliteRounds

NAMES = ("trip-planning", "night-trains", "rail-journeys")
"""Two skills that become a third one."""
PLAN = """{"merge": [{"into": "rail-journeys", "sources": ["trip-planning", "night-trains"],
"description": "Plan journeys by rail.", "body": "# Steps\\nPack, then book.", "reason": "one task"}]}"""
RESTS = (Evidence(SessionId("c0de"), 2, Trust.AGENT, "0" * 64),)
CURATOR = Author(Actor.CURATOR, SessionId("c0de"), evidence=RESTS)
LIMITS = {"memory": 2_200, "user": 1_375, "project": 2_200}


@dataclass(frozen=True)
class House:
    keeper: Keeper
    rounds: Rounds

    async def apply(self) -> Sequence[Entry]:
        shelf = {name: await self.keeper.files(skill(name)) for name in NAMES[:2]}
        batch = Batch(moves(read(PLAN), shelf, (), {}), CURATOR)

        async def close(
            changes: Sequence[Change], contents: Mapping[str, bytes], refused: Sequence[str]
        ) -> Sequence[Entry]:
            assert not refused
            round = Round(SystemClock().now(), "by hand")
            return (await self.rounds.complete(round, UNNUMBERED, changes, contents))[1]

        return await self.keeper.arrange([batch], close)


@asynccontextmanager
async def house(home: Path, merges: Mode = Mode.AUTO) -> AsyncIterator[House]:
    database = Database.open(home / "hone.db")
    rules = Rules(LIMITS, {}, merges=merges)
    keeper = Keeper(SqliteLedger(database), Disk(home), SystemClock(), lambda _: None, rules)
    try:
        yield House(keeper, SqliteRounds(database))
    finally:
        keeper.close()
        await database.close()


async def furnished(home: Path, deed: str) -> None:
    async with house(home, Mode.ASK if deed == "approve" else Mode.AUTO) as it:
        for name in NAMES[:2]:
            text = written(name, f"About {name}.", f"# Steps\nOf {name}.")
            await it.keeper.shelve(name, Create(text, Birth.AGENT), OWNER)
            await it.keeper.shelve(name, WriteFile("references/more.md", name.encode()), OWNER)
        if deed != "apply":
            await it.apply()


def say(line: str) -> None:
    """With a system call that nothing else makes, so that the others can be counted."""
    os.writev(sys.stdout.fileno(), [f"{line}\n".encode()])


async def work(deed: str, home: Path) -> None:
    async with house(home) as it:
        first = next(iter(await it.keeper.ledger.entries(limit=1)))
        deeds: dict[str, Callable[[], Awaitable[object]]] = {
            "apply": it.apply,
            "approve": lambda: it.keeper.approve(first.id),
            "undo": lambda: it.keeper.undo(first.id),
        }
        say("ready")
        sys.stdin.readline()
        await deeds[deed]()
        say(f"done {deed}")
        say("over")


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1], Path(sys.argv[2])))
