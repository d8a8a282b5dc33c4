"""Measure how much text a home holds, without reading it."""

from pathlib import Path

import apsw
from msgspec import Struct

from hone.stores.database import Database
from hone.stores.home import FILE

MEASURE = "SELECT count(*), coalesce(sum(min(length(body), ?)), 0) FROM contents"


class Extent(Struct, frozen=True):
    """How many different messages there are, and their bytes."""

    messages: int = 0
    size: int = 0


async def measure_messages(home: Path, most: int) -> Extent:
    """Measure the messages of a home. Each counts for at most `most` bytes."""

    def work(connection: apsw.Connection) -> Extent:
        return Extent(*connection.execute(MEASURE, (most,)).get)

    if not (home / FILE).exists():
        return Extent()
    database = Database.open(home / FILE, overlay=True)
    try:
        return await database.read(work)
    finally:
        await database.close()
