"""Get exclusive access to a home's database, and say who else uses it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import apsw

from hone.core.errors import StoreError
from hone.core.visible import one_line, visible
from hone.runtime.claims import find_worker
from hone.stores.home import FILE

PROCESSES = Path("/proc")
SHOWN = 3
"""The most processes that an error names."""


@contextmanager
def alone_in(home: Path) -> Iterator[apsw.Connection | None]:
    """Keep other processes from opening the home's database, and return it; None if there is none. Raises
    StoreError if another process has it open."""
    path = home / FILE
    if find_worker(home) is not None:
        raise StoreError(
            f"A worker still learns in {visible(str(home))}; nothing was changed. Stop it and try again: "
            "hone worker stop"
        )
    if not path.exists():
        yield None
        return
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        _seize(connection, home)
        yield connection
    finally:
        connection.close()


def _seize(connection: apsw.Connection, home: Path) -> None:
    try:
        connection.pragma("locking_mode", "exclusive")
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    except apsw.BusyError as error:
        users = f" ({', '.join(found)})" if (found := find_users(home / FILE)) else ""
        raise StoreError(
            f"Another process uses {visible(str(home))}{users}; nothing was changed. "
            "End every hone that runs, such as a chat or a server, and try again."
        ) from error
    except apsw.Error:
        return  # the database is damaged; its next reader will notice


def find_users(path: Path) -> list[str]:
    """Name some of the other processes that have a file open, on systems that tell: Linux does."""
    found: list[str] = []
    with suppress(OSError):
        wanted = os.stat(path)
        for process in sorted(PROCESSES.iterdir(), key=lambda each: each.name):
            is_other = process.name.isdigit() and int(process.name) != os.getpid()
            if is_other and len(found) < SHOWN and _has_open(process, wanted):
                found.append(f"process {process.name}: {_describe(process)}")
    return found


def _has_open(process: Path, wanted: os.stat_result) -> bool:
    with suppress(OSError):  # another user's process, or it has just ended
        for handle in (process / "fd").iterdir():
            with suppress(OSError):
                if os.path.samestat(handle.stat(), wanted):
                    return True
    return False


def _describe(process: Path) -> str:
    with suppress(OSError):
        words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
        return one_line(" ".join(words).strip(), 60)
    return "it has just ended"
