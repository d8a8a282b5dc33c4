"""Store changes of files in a SQLite file in the home, with the contents before them.

Contents are in the same file as the changes that need them. A change and its content are written in one
transaction, which is on disk when the method returns, so neither ever exists without the other.
"""

import os
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from hone.core.clock import Clock
from hone.core.errors import Corrupt, Missing, StoreError
from hone.core.ids import SessionId
from hone.core.machine_rows import MachineRows, RowConnection
from hone.core.messages import digest
from hone.features.checkpoints.rows import CHANGE, REWIND, cells, change_of, microseconds, rewind_of
from hone.features.checkpoints.values import (
    ChangeDraft,
    FileChange,
    PathState,
    Rewind,
    RewindPlan,
    TurnMark,
)
from hone.files.atomic import make_folder
from hone.stores.database import Database, connect, create, plainly

FOLDER, FILE, LOCK = "checkpoints", "checkpoints.db", ".lock"
SCHEMA = tuple(sorted(Path(__file__).with_name("schema").glob("*.sql")))
LEVEL = 1
"""The compression level. Text shrinks to a third; a tool would have to wait for more."""
PATIENCE = 10.0
"""Seconds to wait for another process."""
INCREMENTAL = 2
P = ParamSpec("P")
T = TypeVar("T")
Contents = Mapping[str, bytes]
"""Contents by digest."""

PUT_BLOB = "INSERT INTO blobs (digest, size, data) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
PUT = f"INSERT INTO changes ({CHANGE.removeprefix('id, ')}) VALUES (?{', ?' * 16}) RETURNING id"
NUMBER = "SELECT turn FROM changes WHERE session = ? AND anchor = ? AND rewind = 0 LIMIT 1"
HIGHEST = "SELECT coalesce(max(turn), 0) FROM changes WHERE session = ? AND rewind = 0"
UNMADE = (
    "DELETE FROM changes WHERE path = ? AND session = ? AND open = 1 AND rewind = 0"
    " AND before_kind IS NOT DISTINCT FROM ? AND before_mode IS NOT DISTINCT FROM ?"
    " AND before_digest IS NOT DISTINCT FROM ?"
)
FINISH = "UPDATE changes SET open = 0, after_kind = ?, after_mode = ?, after_digest = ? WHERE id = ?"
SAME = (
    "DELETE FROM changes WHERE id = ? AND before_kind IS NOT DISTINCT FROM after_kind"
    " AND before_mode IS NOT DISTINCT FROM after_mode AND before_digest IS NOT DISTINCT FROM after_digest"
)
KNOWN = (
    "SELECT EXISTS (SELECT 1 FROM changes WHERE path = ? AND id > ? AND"
    " (open = 1 OR (after_kind IS NOT DISTINCT FROM ? AND after_mode IS NOT DISTINCT FROM ?"
    " AND after_digest IS NOT DISTINCT FROM ?)))"
)
OF_SESSION = f"SELECT {CHANGE} FROM changes WHERE session = ? AND rewind = 0 ORDER BY id"
OF_REWIND = f"SELECT {CHANGE} FROM changes WHERE rewind = ? ORDER BY id"
LATER = f"SELECT {CHANGE} FROM changes WHERE path = ? ORDER BY id DESC LIMIT 1"
PUT_REWIND = "INSERT INTO rewinds (session, turn, at, finished, redoes) VALUES (?, ?, ?, 0, ?) RETURNING id"
UNFINISHED = f"SELECT {REWIND} FROM rewinds WHERE finished = 0 ORDER BY id"
AGAIN = "UPDATE changes SET taken_back = 0 WHERE taken_back = ? AND path = ?"
LAST_REWIND = (
    f"SELECT {REWIND} FROM rewinds AS r WHERE session = ? AND finished = 1 AND redoes = 0 AND EXISTS"
    " (SELECT 1 FROM changes WHERE rewind = r.id) ORDER BY id DESC LIMIT 1"
)


class CheckpointStore:
    """The changes of all sessions of a home: in a file, which is created with the first change, or among this
    machine's `rows` in a remote database. `exists` creates nothing."""

    def __init__(self, home: Path, clock: Clock, rows: MachineRows | None = None) -> None:
        self.folder = home / FOLDER
        self._clock = clock
        self._elsewhere = rows
        self._opened: Database | None = None

    @property
    def exists(self) -> bool:
        return bool(self._elsewhere or self._opened) or (self.folder / FILE).exists()

    async def begin(
        self, mark: TurnMark, drafts: Sequence[ChangeDraft], contents: Contents, expected: Sequence[str]
    ) -> list[int]:
        """Store changes that are about to be made; return their ids. On disk when this returns."""
        return await self._write(_begin, mark, drafts, _packed(contents), expected, self._now())

    async def finish(self, states: Mapping[int, PathState | None]) -> None:
        """Record the state afterwards."""
        await self._write(_finish, states)

    async def record(
        self, mark: TurnMark, drafts: Sequence[ChangeDraft], contents: Contents, since: int
    ) -> int:
        """Store changes that were made. Leave out what another process has stored as its own after the change
        `since`; return how many are left."""
        return await self._write(_record, mark, drafts, _packed(contents), since, self._now())

    async def latest(self) -> int:
        """Return the id of the last change."""
        return await self._read(_latest) if self.exists else 0

    async def changes(self, session: SessionId) -> list[FileChange]:
        """Return what tools and commands of a session changed, in order, including what was undone."""
        return await self._read(_changes, session) if self.exists else []

    async def last_change(self, path: Path) -> FileChange | None:
        """Return the last change of a path, by any session."""
        found = await self._read(_rows, LATER, (os.fsencode(path),))
        return found[0] if found else None

    async def content(self, wanted: str) -> bytes:
        """Return a content. Raises Missing, or Corrupt for one that is not what was stored."""
        return await self._read(_content, wanted)

    async def begin_rewind(self, plan: RewindPlan, drafts: Sequence[ChangeDraft], contents: Contents) -> int:
        """Store what a rewind is about to do; return its id. On disk when this returns."""
        return await self._write(_begin_rewind, plan, drafts, _packed(contents), self._now())

    async def finish_rewind(self, rewind: int, done: Collection[Path]) -> None:
        """Record the paths that a rewind restored. The rest of it never happened."""
        await self._write(_finish_rewind, rewind, done)

    async def unfinished(self) -> list[tuple[Rewind, list[FileChange]]]:
        """Return rewinds whose process ended in the middle, with what they were about to do."""
        return await self._read(_unfinished) if self.exists else []

    async def last_rewind(self, session: SessionId) -> tuple[Rewind, list[FileChange]] | None:
        """Return the last rewind that was not undone, with what it did."""
        return await self._read(_last_rewind, session) if self.exists else None

    async def close(self) -> None:
        if self._opened:
            await self._opened.close()

    async def run(
        self, work: Callable[Concatenate[RowConnection, P], T], *args: P.args, **named: P.kwargs
    ) -> T:
        """Do other work on the file, in one transaction."""
        return await self._write(work, *args, **named)

    async def _write(
        self, work: Callable[Concatenate[RowConnection, P], T], *args: P.args, **named: P.kwargs
    ) -> T:
        return await self._database.write(lambda connection: work(connection, *args, **named))

    async def _read(
        self, work: Callable[Concatenate[RowConnection, P], T], *args: P.args, **named: P.kwargs
    ) -> T:
        return await self._database.read(lambda connection: work(connection, *args, **named))

    @property
    def _database(self) -> MachineRows:
        if self._elsewhere:
            return self._elsewhere
        if self._opened is None:
            try:
                make_folder(self.folder)
            except OSError as error:
                raise StoreError(f"{self.folder} cannot be made: {error.strerror}.") from error
            path = self.folder / FILE
            _prepare(path)
            self._opened = Database.open(path, PATIENCE, SCHEMA)
        return self._opened

    def _now(self) -> int:
        return microseconds(self._clock.now())


def _prepare(path: Path) -> None:
    """Let a new file release the space of deleted data. That must be set before its first page."""
    with plainly(path):
        create(path)
        if path.stat().st_size:
            return
        connection = connect(path, PATIENCE)
        try:
            connection.pragma("auto_vacuum", INCREMENTAL)
            connection.pragma("journal_mode", "wal")
        finally:
            connection.close()


def _packed(contents: Contents) -> list[tuple[str, int, bytes]]:
    return [(name, len(data), zlib.compress(data, LEVEL)) for name, data in contents.items()]


def number_turn(connection: RowConnection, mark: TurnMark) -> int:
    """Return the number of a turn: that of the user's message, unless older messages were summarized; then it
    continues from the last known turn."""
    known = connection.execute(NUMBER, (mark.session, mark.anchor)).get
    if known is not None:
        return int(known)
    return max(mark.number, int(connection.execute(HIGHEST, (mark.session,)).get) + 1)


def _begin(
    connection: RowConnection,
    mark: TurnMark,
    drafts: Sequence[ChangeDraft],
    blobs: Iterable[tuple[str, int, bytes]],
    expected: Sequence[str],
    at: int,
) -> list[int]:
    connection.executemany(PUT_BLOB, blobs)
    for draft in drafts:
        # A change was not made if the file is still as before.
        connection.execute(UNMADE, (os.fsencode(draft.path), mark.session, *cells(draft.before)))
    number = number_turn(connection, mark)
    words = " ".join(expected)
    return [_put(connection, draft, (mark.session, number, mark.anchor), at, words, 1) for draft in drafts]


def _put(
    connection: RowConnection,
    draft: ChangeDraft,
    turn: tuple[str, int, str],
    at: int,
    expected: str = "",
    is_open: int = 0,
    rewind: int = 0,
) -> int:
    row = (
        *turn,
        os.fsencode(draft.path),
        *cells(draft.before),
        *cells(draft.after),
        draft.by,
        at,
        draft.lost,
        is_open,
        expected,
        rewind,
        0,
    )
    return int(connection.execute(PUT, row).get)


def _finish(connection: RowConnection, states: Mapping[int, PathState | None]) -> None:
    connection.executemany(FINISH, [(*cells(state), id) for id, state in states.items()])
    connection.executemany(SAME, [(id,) for id in states])


def _record(
    connection: RowConnection,
    mark: TurnMark,
    drafts: Sequence[ChangeDraft],
    blobs: Sequence[tuple[str, int, bytes]],
    since: int,
    at: int,
) -> int:
    own = [draft for draft in drafts if not _is_known(connection, draft, since)]
    needed = {draft.before.digest for draft in own if draft.before}
    connection.executemany(PUT_BLOB, [blob for blob in blobs if blob[0] in needed])
    number = number_turn(connection, mark)
    for draft in own:
        _put(connection, draft, (mark.session, number, mark.anchor), at)
    return len(own)


def _is_known(connection: RowConnection, draft: ChangeDraft, since: int) -> bool:
    return bool(connection.execute(KNOWN, (os.fsencode(draft.path), since, *cells(draft.after))).get)


def _latest(connection: RowConnection) -> int:
    return int(connection.execute("SELECT coalesce(max(id), 0) FROM changes").get)


def _changes(connection: RowConnection, session: SessionId) -> list[FileChange]:
    return _rows(connection, OF_SESSION, (session,))


def _rows(connection: RowConnection, query: str, values: tuple[Any, ...]) -> list[FileChange]:
    return [change_of(row) for row in connection.execute(query, values)]


def _content(connection: RowConnection, wanted: str) -> bytes:
    packed = connection.execute("SELECT data FROM blobs WHERE digest = ?", (wanted,)).get
    if packed is None:
        raise Missing(f"The content {wanted[:12]} is no longer kept.")
    return unpack(wanted, packed)


def unpack(wanted: str, packed: bytes) -> bytes:
    """Raise Corrupt for a content that is not what was stored."""
    try:
        data = zlib.decompress(packed)
    except zlib.error:
        data = None
    if data is None or digest(data) != wanted:
        raise Corrupt(f"The content {wanted[:12]} in the checkpoints is damaged; the file is left as it is.")
    return data


def _begin_rewind(
    connection: RowConnection,
    plan: RewindPlan,
    drafts: Sequence[ChangeDraft],
    blobs: Iterable[tuple[str, int, bytes]],
    at: int,
) -> int:
    connection.executemany(PUT_BLOB, blobs)
    rewind = int(connection.execute(PUT_REWIND, (plan.session, plan.turn, at, plan.redoes)).get)
    for draft in drafts:
        _put(connection, draft, (plan.session, plan.turn, ""), at, "", 1, rewind)
    marks = [(rewind, id) for step in plan.steps for id in step.undoes]
    connection.executemany("UPDATE changes SET taken_back = ? WHERE id = ?", marks)
    return rewind


def _finish_rewind(connection: RowConnection, rewind: int, done: Collection[Path]) -> None:
    redoes = int(connection.execute("SELECT redoes FROM rewinds WHERE id = ?", (rewind,)).get)
    rows = connection.execute("SELECT id, path FROM changes WHERE rewind = ?", (rewind,)).fetchall()
    names = {os.fsencode(path) for path in done}
    for id, path in rows:
        if path in names:
            connection.execute("UPDATE changes SET open = 0 WHERE id = ?", (id,))
        else:
            connection.execute("DELETE FROM changes WHERE id = ?", (id,))
        # What a rewind undid counts again if it is redone, or if it failed.
        again = redoes if path in names else rewind
        if again:
            connection.execute(AGAIN, (again, path))
    connection.execute("UPDATE rewinds SET finished = 1 WHERE id = ?", (rewind,))
    connection.execute("UPDATE rewinds SET finished = 2 WHERE id = ?", (redoes,))


def _unfinished(connection: RowConnection) -> list[tuple[Rewind, list[FileChange]]]:
    found = [rewind_of(row) for row in connection.execute(UNFINISHED).fetchall()]
    return [(each, _rows(connection, OF_REWIND, (each.id,))) for each in found]


def _last_rewind(connection: RowConnection, session: SessionId) -> tuple[Rewind, list[FileChange]] | None:
    row = connection.execute(LAST_REWIND, (session,)).fetchone()
    if row is None:
        return None
    rewind = rewind_of(row)
    return rewind, _rows(connection, OF_REWIND, (rewind.id,))
