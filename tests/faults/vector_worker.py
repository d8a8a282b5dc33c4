"""A process to be killed: `python vector_worker.py HOME EMBEDDER`.

It makes the vectors of a home, a few at a time, and says so before and after each step.
"""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from hone.core.clock import ManualClock
from hone.core.embedding import Unembedded
from hone.features.recall.making import VectorMaker
from hone.stores.claims import FileClaims
from hone.stores.database import Database
from hone.stores.home import FILE
from hone.stores.vectors import SqliteVectors
from tests.doubles.embedder import WordEmbedder

FEW = 2


class Telling(SqliteVectors):
    async def missing(self, embedder: str, limit: int) -> Sequence[Unembedded]:  # type: ignore[override]
        found: Sequence[Unembedded] = await super().missing(embedder, min(limit, FEW))
        sys.stdout.write(f"{len(found)}\n")
        sys.stdout.flush()
        return found


async def make(home: str, embedder: str) -> None:
    async def find() -> WordEmbedder:
        return WordEmbedder(embedder)

    database = Database.open(Path(home) / FILE)
    await VectorMaker(Telling(database), find, FileClaims(Path(home)), ManualClock(), print).fill()
    await database.close()


if __name__ == "__main__":
    asyncio.run(make(*sys.argv[1:]))
