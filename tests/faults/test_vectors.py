"""F2: kills while vectors are made: none is missing in the end, none is doubled or wrong."""

import asyncio
import sys
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import apsw

from hone.core.messages import decode
from hone.core.recall import said
from hone.stores.database import Database
from hone.stores.home import FILE, Stores, over
from tests.conftest import Figures, Tier
from tests.contract.test_vectors import say
from tests.doubles.embedder import WordEmbedder

WORKER = [sys.executable, "-m", "tests.faults.vector_worker"]
CODES = "SELECT c.body, v.vector, e.name FROM contents AS c LEFT JOIN vectors AS v ON v.content = c.id"
ALL = f"{CODES} LEFT JOIN embedders AS e ON e.id = v.embedder"


async def kill(home: Path, embedder: str, steps: int) -> int:
    """Kill the process after some steps, and return how many it began."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*WORKER, str(home), embedder, stdout=pipe)
    assert process.stdout is not None
    begun = 0
    while begun < steps and await process.stdout.readline():
        begun += 1
    if process.returncode is None and begun == steps:
        process.kill()
    await process.wait()
    return begun


async def finish(home: Path, embedder: str) -> None:
    process = await asyncio.create_subprocess_exec(
        *WORKER, str(home), embedder, stdout=asyncio.subprocess.DEVNULL
    )
    assert await process.wait() == 0


async def count_wrong(home: Path, name: str) -> tuple[int, int]:
    """Return how many contents have no vector, and how many a wrong one."""
    with closing(apsw.Connection(str(home / FILE))) as connection:
        rows: list[Any] = connection.execute(ALL).fetchall()
        extra = connection.execute("SELECT count(*) FROM vectors").get - len(rows)
    wanted = await WordEmbedder(name).embed([said(decode(body)) for body, _, _ in rows], "passage")
    missing = sum(vector is None for _, vector, _ in rows)
    wrong = sum(
        vector is not None and (vector, by) != (right, name)
        for (_, vector, by), right in zip(rows, wanted, strict=True)
    )
    return missing, wrong + max(0, extra)


async def test_kills_while_vectors_are_made_leave_none_missing_and_none_doubled(
    tmp_path: Path, tier: Tier, figures: Figures
) -> None:
    kills, random = tier.size(short=4, full=200), tier.random()
    stores: Stores = over(tmp_path, Database.open(tmp_path / FILE))
    killed, embedder = 0, "one"
    for turn in count():
        if killed == kills:
            break
        texts = (f"Message {turn} {number}." for number in range(random.randint(4, 30)))
        await say(stores, f"s{turn}", *texts)
        killed += await kill(tmp_path, embedder, steps := random.randint(1, 6)) == steps
        if random.random() < 0.3:  # another model, in the middle of it
            embedder = "two" if embedder == "one" else "one"
        if random.random() < 0.3:
            await stores.sessions.delete((await stores.sessions.list(1))[0].header.id)
    await stores.close()
    await finish(tmp_path, embedder)
    missing, wrong = await count_wrong(tmp_path, embedder)
    figures.tally(kills, got_in=wrong, lost=missing)
    assert missing + wrong == 0
