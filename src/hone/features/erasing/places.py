"""The erasers of the kernel's own files: history, spilled results, quarantine, provenance, damaged copies."""

import asyncio
import json
from collections.abc import Sequence

import apsw

from hone.app import Hone
from hone.core.documents import KINDS, QUEUED, SPILL
from hone.core.erasure import Erasure, Scrubber
from hone.core.errors import StoreError
from hone.core.fingerprints import fingerprint, runs
from hone.core.holding import Occurrence
from hone.files.erasing import DocumentEraser, FileEraser, change_file, remove, remove_whole, walk
from hone.stores.erasure_store import open_erasures
from hone.stores.home import FILE, MOVED
from hone.stores.purging import purge, search
from hone.stores.tainted import FILE as TAINTED
from hone.stores.tainted import SCRIPTS, TaintStore

COPIES = (
    *("hone-damaged-*", "hone.db.repairing*"),
    *("hone-moved-*", "hone-moved-files-*/", "hone.db.moving*", "hone.db.moving-files/"),
)
LEFT = (f"{FILE}*", *(place for kind in KINDS for place in kind.fixed or (f"{kind.folder}/",)))
"""What a home still has of data that has moved to a remote database."""


def spill(hone: Hone) -> DocumentEraser:
    """Remove words from results that were too long for a conversation."""
    return DocumentEraser(hone.home, hone.documents, SPILL)


def queued(hone: Hone) -> DocumentEraser:
    """Remove queued commands, and conversations of queued imports, that contain the words."""
    return DocumentEraser(hone.home, hone.documents, QUEUED, _without_lines)


def _without_lines(data: bytes, scrub: Scrubber) -> bytes | None:
    return b"".join(line for line in data.splitlines(keepends=True) if not scrub.tally(line)) or None


def quarantine(hone: Hone) -> FileEraser:
    """Remove planted files that contain the words."""
    return FileEraser(hone.home, "quarantine", ("quarantine/",), remove_whole)


def skill_files(hone: Hone) -> FileEraser:
    """Remove unpacked files of skills that contain the words. They are unpacked again in their new state."""
    return FileEraser(hone.home, "skill files", ("served/",), remove_whole)


class HistoryEraser:
    """Removes lines of the prompt's history. Lines that other processes add in the meantime stay."""

    def __init__(self, hone: Hone) -> None:
        self._path = hone.home / "history"

    async def find(self, what: Erasure) -> Sequence[Occurrence]:
        lines = await asyncio.to_thread(self._lines)
        count = len(lines) - len(_kept(lines, what))
        return (Occurrence("history", "history", count),) if count else ()

    async def erase(self, what: Erasure) -> Sequence[str]:
        def change(data: bytes) -> bytes:
            return b"".join(_kept(data.splitlines(keepends=True), what))

        await asyncio.to_thread(change_file, self._path, change)
        return ()

    def _lines(self) -> list[bytes]:
        try:
            return self._path.read_bytes().splitlines(keepends=True)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StoreError(f"{self._path} cannot be searched: {error.strerror}.") from error


def _kept(lines: Sequence[bytes], what: Erasure) -> list[bytes]:
    scrub = Scrubber(what.words)
    return [line for line in lines if not scrub.finds(line) and _typed(line) not in what.lines]


def _typed(line: bytes) -> str:
    try:
        return str(json.loads(line)).strip()
    except ValueError:
        return ""


class CopyEraser:
    """Removes the copies that a repair or a move left. Those of a repair are damaged, so no search of them is
    complete. That of a move is the database itself, if the data has moved."""

    def __init__(self, hone: Hone) -> None:
        self._home = hone.home
        self._names = (*COPIES, *LEFT) if (hone.home / MOVED).exists() else COPIES

    async def find(self, what: Erasure) -> Sequence[Occurrence]:
        found = walk(self._home, self._names)
        return [Occurrence("damaged copies", str(path.relative_to(self._home)), whole=True) for path in found]

    async def erase(self, what: Erasure) -> Sequence[str]:
        for path in walk(self._home, self._names):
            await asyncio.to_thread(remove, path)
        return ()


class ProvenanceEraser:
    """Removes fingerprints of the words, and rows about files whose names contain them. The remaining
    fingerprints of a foreign text still identify it as foreign."""

    def __init__(self, hone: Hone) -> None:
        self._home = hone.home
        self._store = open_erasures(hone.home, hone.settings.database)

    async def find(self, what: Erasure) -> Sequence[Occurrence]:
        count = await search(self._home / TAINTED, lambda connection: len(_named(connection, what.words)))
        count += await asyncio.to_thread(self._count, what, await self._units(what))
        return (Occurrence("provenance", TAINTED, count),) if count else ()

    async def erase(self, what: Erasure) -> Sequence[str]:
        if what.words and await self.find(what):
            await asyncio.to_thread(self._erase, what, await self._units(what))
        return () if what.sessions and not what.words else await purge(self._home / TAINTED, what)

    def _count(self, what: Erasure, units: frozenset[int]) -> int:
        store = TaintStore(self._home)
        try:
            return store.count_units(units) if store.exists and what.words else 0
        finally:
            store.close()

    def _erase(self, what: Erasure, units: frozenset[int]) -> None:
        store = TaintStore(self._home)
        try:
            store.erase(units, Scrubber(what.words).count)
        finally:
            store.close()

    async def _units(self, what: Erasure) -> frozenset[int]:
        """Return the fingerprints of the words, and of lines that contain them in a conversation."""
        scrub = Scrubber(what.words)
        found = [frozenset[int](), *(runs(each) | fingerprint(each) for each in what.words)]
        said = await self._store.texts(what.words) if what.words else []
        found += (fingerprint(each) - fingerprint(scrub.text(each)) for each in said)
        return frozenset().union(*found)


def _named(connection: apsw.Connection, words: Sequence[str]) -> list[str]:
    if not words or int(connection.pragma("user_version")) != len(SCRIPTS):
        return []
    scrub = Scrubber(tuple(words))
    tables = ("tainted", "folders", "trusted")
    found = (path for table in tables for (path,) in connection.execute(f"SELECT path FROM {table}"))
    return [path for path in found if scrub.count(path)]
