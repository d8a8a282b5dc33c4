"""Move the data of a home to PostgreSQL, and back.

A move can be interrupted at any moment. The target gets all rows or none, the source is only marked at the
end, and the command can be run again: it continues where it stopped.
"""

import asyncio
import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import apsw

from hone.core.errors import Refused, StoreError
from hone.core.visible import path_to_text, visible
from hone.features.moving.values import Copied, Forecast, MovePlan, MoveProgress
from hone.files.atomic import make_folder, settle
from hone.files.locks import acquire, release
from hone.runtime.alone import alone_in
from hone.stores.database import PATIENCE, Database, connect, plainly
from hone.stores.home import FILE, MOVED
from hone.stores.moving.copying import copy, count_rows, fingerprint
from hone.stores.moving.documents import put_in_place
from hone.stores.moving.fingerprints import Fingerprints, combine
from hone.stores.moving.marker import mark, moved_away, read_marker, unmark
from hone.stores.moving.sqlite import SqliteEnd, new_file, put_aside
from hone.stores.postgres.database import PostgresPool
from hone.stores.postgres.home import name_checkout
from hone.stores.postgres.machine import CHECKOUT, name_machine
from hone.stores.postgres.moving import LastMove, PostgresEnd, alone_with, probe
from hone.stores.tree import stamp

DRAFT = "hone.db.moving"
LOCK = "move.lock"


def forecast(move: MovePlan) -> Forecast:
    """Count what would move, and check the target. This changes nothing. Raises StoreError."""
    names = _names(move.home) if (move.home / CHECKOUT).exists() else ("", "")
    found = probe(move.url, move.owner, *names)
    path = move.home / FILE
    if move.to_sqlite:
        return Forecast(found.counts, found.where)
    if not path.exists():
        raise _nothing_in(move.home)
    with plainly(path), closing(connect(path, PATIENCE)) as connection:
        counts = count_rows(SqliteEnd(connection, move.home))
    taken = f"{found.where} has conversations or lessons already." if any(found.counts.values()) else ""
    return Forecast(counts, found.where, taken)


def move_data(move: MovePlan, report: MoveProgress) -> Copied:
    """Move the data. Raises Refused or StoreError; then the source is unchanged, and the target has
    everything or nothing."""
    return _move_to_sqlite(move, report) if move.to_sqlite else _move_to_postgres(move, report)


def _move_to_postgres(move: MovePlan, report: MoveProgress) -> Copied:
    with _one_move(move.home), _open_file(move.home) as connection, _open_pool(move.url) as pool:
        source = SqliteEnd(connection, move.home)
        known = fingerprint(source, "reading", report)
        with alone_with(pool, move.owner, *_names(move.home)) as target:
            made = _fill(target, source, known, pool.where, report)
            target.put_move(_note(move, source.read_identity().home, combine(known), away=False))
        if not move.keep:
            mark(move.home, pool.where, move.now)
        return Copied(known, made, pool.where)


def _fill(
    target: PostgresEnd, source: SqliteEnd, known: Fingerprints, where: str, report: MoveProgress
) -> bool:
    """Copy everything, unless it is there already. A copy of this very home that nobody has used is replaced.
    Raises Refused if anything else is there."""
    if not target.is_empty():
        found = fingerprint(target, "comparing", report)
        if found == known:
            return False
        last = target.read_move()
        is_ours = last is not None and last.home == source.read_identity().home
        if not last or not is_ours or not (last.away or last.digest == combine(found)):
            raise Refused(
                f"{where} has conversations or lessons already; nothing was moved. "
                "Move to an empty database, or bring those home first: hone move --to sqlite"
            )
        target.clear()
    copy(source, target, known, report)
    return True


def _move_to_sqlite(move: MovePlan, report: MoveProgress) -> Copied:
    with _one_move(move.home), _open_pool(move.url) as pool:
        with (
            alone_in(move.home) as former,
            alone_with(pool, move.owner, *_names(move.home)) as source,
        ):
            last = source.read_move()
            if last is not None and last.away:
                copied = _finish(move.home, former, last, pool.where, report)
            else:
                copied = _fetch(move, source, former, pool.where, report)
        unmark(move.home)
    return copied


def _fetch(
    move: MovePlan, source: PostgresEnd, former: apsw.Connection | None, where: str, report: MoveProgress
) -> Copied:
    """Create the file, replace the former one with it, and mark the source."""
    if source.is_empty():
        raise Refused(f"{where} has no conversations and no lessons of yours, so there is nothing to move.")
    path = move.home / FILE
    _check_former(move.home, former)
    known = fingerprint(source, "reading", report)
    draft, staged = move.home / DRAFT, move.home / f"{DRAFT}-files"
    shutil.rmtree(staged, ignore_errors=True)
    with new_file(draft, staged) as target:
        copy(source, target, known, report)
        target.index(report)
        target.check(draft)
    mark(move.home, where, move.now)  # until the source is marked, nobody uses the new file
    at = f"{move.now:%Y%m%d-%H%M%S}"
    with plainly(path):
        if former:
            former.close()
            put_aside(path, f"hone-moved-{at}.db")
        put_in_place(staged, move.home, move.home / f"hone-moved-files-{at}")
        os.rename(draft, path)
    settle(path)
    if not move.keep:
        source.put_move(_note(move, source.read_identity().home, combine(known), away=True))
    return Copied(known, made=True, where=where)


def _check_former(home: Path, former: apsw.Connection | None) -> None:
    """Raise Refused if the home's file holds data that is nowhere else."""
    if former is None or read_marker(home) or SqliteEnd(former, home).is_empty():
        return
    raise Refused(
        f"{visible(str(home / FILE))} has conversations or lessons already; nothing was moved. "
        "Move to an empty home: hone --home FOLDER move --to sqlite --from postgresql://…"
    )


def _finish(
    home: Path, former: apsw.Connection | None, last: LastMove, where: str, report: MoveProgress
) -> Copied:
    """Finish a move that was interrupted at its end. Raises Refused if the data went elsewhere."""
    if former is not None:
        end = SqliteEnd(former, home)
        found = fingerprint(end, "comparing", report)
        if end.read_identity().home == last.home and combine(found) == last.digest:
            return Copied(found, made=False, where=where)
    raise Refused(f"The data in {where} has moved to {visible(last.place)} already.")


def _names(home: Path) -> tuple[str, str]:
    """Return PostgreSQL's names for the folder of a home, and for its machine."""
    return name_checkout(home), name_machine(home)


def _note(move: MovePlan, home: str, digest: str, *, away: bool) -> LastMove:
    place = f"{path_to_text(move.home.resolve())} on {socket.gethostname()}"
    return LastMove(home, place, stamp(move.now), digest, away)


@contextmanager
def _open_file(home: Path) -> Iterator[apsw.Connection]:
    """Open the home's database for this move alone, in the newest format."""
    if (home / MOVED).exists():
        raise moved_away(home)
    path = home / FILE
    if not path.exists():
        raise _nothing_in(home)
    asyncio.run(_migrate(path))
    with plainly(path), alone_in(home) as connection:
        assert connection
        yield connection


def _nothing_in(home: Path) -> Refused:
    return Refused(f"There is no {FILE} in {visible(str(home))}, so there is nothing to move.")


async def _migrate(path: Path) -> None:
    database = Database.open(path)
    await database.close()
    if database.readonly:
        raise StoreError(f"{visible(str(path))} is read-only, so that nobody can mark it as moved.")


@contextmanager
def _open_pool(url: str) -> Iterator[PostgresPool]:
    pool = PostgresPool(url, lanes=1, readers=1)
    try:
        yield pool
    finally:
        asyncio.run(pool.close())


@contextmanager
def _one_move(home: Path) -> Iterator[None]:
    """Allow one move of a home at a time."""
    try:
        make_folder(home)
        handle = acquire(home / LOCK, wait=False)
    except BlockingIOError as error:
        raise Refused(f"Another hone move of {visible(str(home))} is running.") from error
    except OSError as error:
        raise StoreError(f"{visible(str(home))} cannot be used: {error.strerror}.") from error
    try:
        yield
    finally:
        release(handle)
