"""Store which text on disk came from elsewhere: its digests and fingerprints, when commands ran, and what the
owner trusts.

This is a separate database. Labels are needed immediately and from any thread, and thousands of fingerprints
written together must not delay a conversation. Several processes may use it.
"""

import os
import sys
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any, Literal

import apsw
from msgspec import Struct

from hone.stores.database import LOG, MEMORY, PATIENCE, connect, create, migrate, plainly

FILE = "provenance.db"
SCRIPTS = tuple(sorted(Path(__file__).with_name("provenance").glob("*.sql")))
Kind = Literal["file", "text", "object", "same"]


class TaintedText(Struct, frozen=True):
    """What a file held, a conversation wrote into a command, or Git received; or that a file was the same
    after a tainted command as before. `blob` is its name in Git. `units` are its fingerprints; unless
    `complete`, there were too many."""

    path: str
    kind: Kind
    digest: str
    blob: str
    units: frozenset[int]
    session: str
    at: int
    complete: bool = True


class CommandWindow(Struct, frozen=True):
    """When a command ran in a folder, or a tool wrote a file, in nanoseconds. `ended` is 0 until it has."""

    id: int
    place: str
    process: str
    session: str
    tainted: bool
    started: int
    ended: int


class TrustedContent(Struct, frozen=True):
    """A content that the owner trusts, with its fingerprints. They are clean everywhere below `root`."""

    digest: str
    path: str
    why: Literal["named", "committed", "clean"]
    root: str
    units: frozenset[int] = frozenset()


_TRUSTED = "SELECT digest, path FROM trusted"


class TaintStore:
    """Every method is one transaction and may be called from any thread. Raises StoreError."""

    def __init__(self, home: Path) -> None:
        self._path = home.absolute() / FILE
        self._lock = RLock()
        self._opened: apsw.Connection | None = None

    @property
    def exists(self) -> bool:
        """Tell whether anything was ever recorded."""
        return self._opened is not None or self._path.exists()

    def close(self) -> None:
        with self._lock:
            if self._opened:
                self._opened.close()
            self._opened = None

    # Tainted text

    def add(self, texts: Iterable[TaintedText]) -> None:
        rows = [
            (
                *(each.path, each.kind, each.digest, each.blob),
                *(_packed(each.units), each.complete, each.session, each.at),
            )
            for each in texts
        ]
        with self._write() as connection:
            connection.executemany(
                "INSERT INTO tainted (path, kind, digest, blob, units, complete, session, at)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                rows,
            )

    def texts(self, root: str, after: int = 0) -> list[tuple[int, TaintedText]]:
        """Return what was tainted below a folder, by increasing numbers above `after`."""
        with self._read() as connection:
            found = connection.execute(
                "SELECT id, path, kind, digest, blob, units, complete, session, at FROM tainted"
                " WHERE id > ? AND (path = ? OR path >= ? AND path < ?) ORDER BY id",
                (after, root, *_below(root)),
            )
            return [
                (id, TaintedText(path, kind, digest, blob, _unpacked(units), session, at, bool(complete)))
                for id, path, kind, digest, blob, units, complete, session, at in found
            ]

    def taint_folders(self, paths: Iterable[str]) -> None:
        with self._write() as connection:
            connection.executemany(
                "INSERT INTO folders (path) VALUES (?) ON CONFLICT DO NOTHING", [(path,) for path in paths]
            )
            _revise(connection)

    def folders(self) -> frozenset[str]:
        """Return the folders that are tainted as a whole."""
        with self._read() as connection:
            return frozenset(path for (path,) in connection.execute("SELECT path FROM folders"))

    # What the owner trusts

    def trust(self, contents: Sequence[TrustedContent]) -> None:
        """Remember contents as trusted, and forget their lines."""
        with self._write() as connection:
            for each in contents:
                connection.execute(
                    "INSERT INTO trusted (digest, path, why) VALUES (?, ?, ?)"
                    " ON CONFLICT (digest) DO UPDATE SET path = excluded.path, why = excluded.why",
                    (each.digest, each.path, each.why),
                )
                connection.execute("DELETE FROM tainted WHERE digest = ? AND kind = 'file'", (each.digest,))
            for root in {each.root for each in contents}:
                clean = frozenset().union(*(each.units for each in contents if each.root == root))
                _clean(connection, root, clean)
            _revise(connection)

    def trust_folder(self, folder: str) -> None:
        """Forget that a folder is tainted as a whole."""
        with self._write() as connection:
            connection.execute("DELETE FROM folders WHERE path = ?", (folder,))
            _revise(connection)

    def trusted(self) -> dict[str, str]:
        """Return digests of contents that the owner trusts, each with its path if it had one."""
        with self._read() as connection:
            return {str(digest): str(path) for digest, path in connection.execute(_TRUSTED)}

    # What only waits for the owner's trust

    def withhold(self, key: str, folder: str) -> None:
        """Remember why a result is foreign."""
        with self._write() as connection:
            connection.execute("INSERT OR REPLACE INTO withheld (key, folder) VALUES (?, ?)", (key, folder))

    def withheld(self, key: str) -> str | None:
        """Return the folder that a result is withheld for, empty if the words are Hone's own; None if it is
        not withheld."""
        with self._read() as connection:
            found = connection.execute("SELECT folder FROM withheld WHERE key = ?", (key,)).get
        return found if found is None else str(found)

    def find_sessions(self, root: str) -> frozenset[str]:
        """Return the sessions that have tainted something below a folder."""
        with self._read() as connection:
            found = connection.execute(
                "SELECT DISTINCT session FROM tainted WHERE path = ? OR path >= ? AND path < ?",
                (root, *_below(root)),
            )
            return frozenset(str(session) for (session,) in found)

    def clear(self, sessions: Iterable[str]) -> None:
        """Forget what these sessions have tainted, except for paths that another session has tainted, too."""
        own = tuple(sessions)
        marks = ", ".join("?" * len(own))
        with self._write() as connection:
            connection.execute(
                f"DELETE FROM tainted WHERE session IN ({marks}) AND (kind != 'file' OR path NOT IN"
                f" (SELECT path FROM tainted WHERE kind = 'file' AND session NOT IN ({marks})))",
                (*own, *own),
            )
            connection.execute(f"DELETE FROM windows WHERE session IN ({marks}) AND ended IS NOT NULL", own)
            _revise(connection)

    # Commands

    def begin(self, place: str, process: str, session: str, started: int, *, tainted: bool) -> int:
        """Record that a command starts. Only tainted windows must survive a power failure."""
        with self._write(durable=tainted) as connection:
            connection.execute(
                "INSERT INTO windows (place, process, session, tainted, started) VALUES (?, ?, ?, ?, ?)",
                (place, process, session, tainted, started),
            )
            return connection.last_insert_rowid()

    def taint(self, windows: Sequence[int]) -> None:
        """Mark open windows as tainted."""
        with self._write() as connection:
            connection.executemany("UPDATE windows SET tainted = 1 WHERE id = ?", [(id,) for id in windows])

    def end(self, windows: Sequence[int], ended: int) -> None:
        """Record that commands have ended. Windows that were not tainted are dropped."""
        with self._write(durable=False) as connection:
            for id in windows:
                connection.execute("DELETE FROM windows WHERE id = ? AND NOT tainted", (id,))
                connection.execute("UPDATE windows SET ended = ? WHERE id = ?", (ended, id))

    def windows(self) -> list[CommandWindow]:
        """Return open windows, and tainted ones that are not forgotten yet."""
        with self._read() as connection:
            found = connection.execute(
                "SELECT id, place, process, session, tainted, started, coalesce(ended, 0) FROM windows"
                " ORDER BY id"
            )
            return [
                CommandWindow(id, place, process, session, bool(tainted), started, ended)
                for id, place, process, session, tainted, started, ended in found
            ]

    def forget(self, windows: Iterable[CommandWindow]) -> None:
        """Remove windows whose changes are all recorded, and the notes on unchanged files."""
        with self._write() as connection:
            for each in windows:
                connection.execute("DELETE FROM windows WHERE id = ?", (each.id,))
                if not connection.execute("SELECT 1 FROM windows WHERE place = ?", (each.place,)).get:
                    connection.execute(
                        "DELETE FROM tainted WHERE kind = 'same' AND (path = ? OR path >= ? AND path < ?)",
                        (each.place, *_below(each.place)),
                    )

    # Repositories

    def head(self, repository: str) -> str | None:
        with self._read() as connection:
            found = connection.execute("SELECT head FROM heads WHERE repository = ?", (repository,)).get
        return found if found is None else str(found)

    def set_head(self, repository: str, head: str, commits: Iterable[str] = ()) -> None:
        """Remember a repository's position, and `commits` that Hone's own commands made."""
        with self._write() as connection:
            connection.execute(
                "INSERT INTO heads (repository, head) VALUES (?, ?)"
                " ON CONFLICT (repository) DO UPDATE SET head = excluded.head",
                (repository, head),
            )
            connection.executemany(
                "INSERT INTO commits (repository, id) VALUES (?, ?) ON CONFLICT DO NOTHING",
                [(repository, id) for id in commits],
            )

    def own_commits(self, repository: str) -> frozenset[str]:
        with self._read() as connection:
            found = connection.execute("SELECT id FROM commits WHERE repository = ?", (repository,))
            return frozenset(id for (id,) in found)

    # Erasing

    def count_units(self, units: frozenset[int]) -> int:
        """Return in how many texts these fingerprints are."""
        with self._read() as connection:
            rows = connection.execute("SELECT units FROM tainted")
            return sum(not units.isdisjoint(_unpacked(data)) for (data,) in rows)

    def erase(self, units: frozenset[int], is_named: Callable[[str], object]) -> None:
        """Remove fingerprints everywhere, and every row about a path that `is_named`."""
        with self._write() as connection:
            _clean(connection, "", units)
            for table in ("tainted", "folders", "trusted"):
                for (path,) in connection.execute(f"SELECT DISTINCT path FROM {table}").fetchall():
                    if is_named(str(path)):
                        connection.execute(f"DELETE FROM {table} WHERE path = ?", (path,))
            for (place,) in connection.execute("SELECT DISTINCT place FROM windows").fetchall():
                if is_named(str(place)):
                    connection.execute("DELETE FROM windows WHERE place = ?", (place,))
            for (folder,) in connection.execute("SELECT DISTINCT folder FROM withheld").fetchall():
                if folder and is_named(str(folder)):
                    connection.execute("DELETE FROM withheld WHERE folder = ?", (folder,))
            for (place,) in connection.execute("SELECT DISTINCT repository FROM heads").fetchall():
                if is_named(str(place)):
                    connection.execute("DELETE FROM heads WHERE repository = ?", (place,))
                    connection.execute("DELETE FROM commits WHERE repository = ?", (place,))
            _revise(connection)

    # For copies in memory

    def version(self) -> tuple[int, int]:
        """Return two numbers: one changes when others write, one when something is removed."""
        with self._read() as connection:
            revision = connection.execute("SELECT number FROM revision").get
            return int(connection.pragma("data_version")), int(revision)

    def _connection(self) -> apsw.Connection:
        """Open the database, or one in memory if the home cannot be written."""
        if self._opened is None:
            if not os.access(self._path.parent, os.W_OK):
                self._path = MEMORY
            if self._path is not MEMORY:
                create(self._path)
            connection = connect(self._path, PATIENCE)
            migrate(connection, self._path, PATIENCE, SCRIPTS)
            connection.pragma("secure_delete", True)
            connection.pragma("journal_size_limit", LOG)
            self._opened = connection
        return self._opened

    @contextmanager
    def _read(self) -> Iterator[apsw.Connection]:
        with self._lock, plainly(self._path):
            yield self._connection()

    @contextmanager
    def _write(self, *, durable: bool = True) -> Iterator[apsw.Connection]:
        with self._lock, plainly(self._path):
            connection = self._connection()
            connection.pragma("synchronous", "FULL" if durable else "NORMAL")
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")


def _clean(connection: apsw.Connection, root: str, units: frozenset[int]) -> None:
    """Remove fingerprints from everything that is tainted below a folder."""
    found = connection.execute(
        "SELECT id, units FROM tainted WHERE path = ? OR path >= ? AND path < ?", (root, *_below(root))
    ).fetchall()
    for id, data in found:
        before = _unpacked(data)
        if not before.isdisjoint(units):
            connection.execute("UPDATE tainted SET units = ? WHERE id = ?", (_packed(before - units), id))


def _revise(connection: apsw.Connection) -> None:
    connection.execute("UPDATE revision SET number = number + 1")


def _below(root: str) -> tuple[str, str]:
    """Return the range of names of all paths below a folder. The character after a slash is a zero."""
    folder = root.rstrip("/")
    return f"{folder}/", f"{folder}0"


def _packed(units: Iterable[int]) -> bytes:
    numbers = array("Q", sorted(units))
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()


def _unpacked(data: Any) -> frozenset[int]:
    numbers = array("Q")
    numbers.frombytes(data)
    if sys.byteorder == "big":
        numbers.byteswap()
    return frozenset(numbers)
