"""Erase file versions that contain words to erase, and the versions of an erased conversation."""

import secrets
from collections.abc import Iterator, Sequence
from typing import Any

from hone.app import Hone
from hone.core.erasure import Erasure, Scrubber
from hone.core.errors import Corrupt, HoneError
from hone.core.holding import Occurrence
from hone.core.ids import SessionId
from hone.core.machine_rows import RowConnection
from hone.features.checkpoints import pruning
from hone.features.checkpoints.decisions import anchor_of, find_turns
from hone.features.checkpoints.store import FILE, FOLDER, CheckpointStore, unpack
from hone.stores.purging import purge

LOST = "it was erased"
FORGET_BEFORE = "UPDATE changes SET lost = ?, before_digest = ? WHERE before_digest = ?"
FORGET_AFTER = "UPDATE changes SET lost = ?, after_digest = ? WHERE after_digest = ?"
TURNS = "SELECT DISTINCT session, anchor FROM changes"
MOVE = "UPDATE changes SET anchor = ? WHERE session = ? AND anchor = ?"


class CheckpointEraser:
    """Deletes versions that contain the words; their files can no longer be rewound to them. Turns of erased
    messages get new names, by their time."""

    def __init__(self, hone: Hone) -> None:
        self._hone = hone

    async def find(self, what: Erasure) -> Sequence[Occurrence]:
        count = 0
        for store in self._open():
            try:
                count += await store.run(lambda connection: len(_holding(connection, what)))
            finally:
                await store.close()
        return (Occurrence("checkpoints", f"{FOLDER}/{FILE}", count),) if count else ()

    async def erase(self, what: Erasure) -> Sequence[str]:
        for store in self._open():
            try:
                await store.run(_erase, what)
                await self._name_turns(store)
            finally:
                await store.close()
        file = self._hone.home / FOLDER / FILE
        return await purge(file, what) if file.exists() else ()

    def _open(self) -> list[CheckpointStore]:
        """Return the file of this home, and the rows of all machines: words are erased wherever they were
        written. A home whose data has moved still has its file."""
        home, clock, rows = self._hone.home, self._hone.clock, self._hone.stores.machine_rows
        stores = [CheckpointStore(home, clock)]
        if rows:
            stores.append(CheckpointStore(home, clock, rows(everywhere=True)))
        return [store for store in stores if store.exists]

    async def _name_turns(self, store: CheckpointStore) -> None:
        turns: list[Any] = await store.run(lambda connection: connection.execute(TURNS).fetchall())
        known: dict[str, dict[str, str] | None] = {}
        for session, anchor in turns:
            if session not in known:
                known[session] = await self._anchors(SessionId(session))
            anchors = known[session]
            at = anchor.partition("@")[2]
            new = f"{secrets.token_hex(16)}@{at}" if anchors is None else anchors.get(at, anchor)
            if new != anchor:
                await store.run(lambda connection, row: connection.execute(MOVE, row), (new, session, anchor))

    async def _anchors(self, session: SessionId) -> dict[str, str] | None:
        """Return the anchors of a conversation by their times; None if it is gone."""
        sessions = self._hone.sessions
        try:
            lines = (*await sessions.earlier(session), await sessions.load(session))
        except HoneError:
            return None
        nodes = (node for line in lines for node in find_turns(line.transcript))
        return {anchor.partition("@")[2]: anchor for anchor in map(anchor_of, nodes)}


def _erase(connection: RowConnection, what: Erasure) -> None:
    for session in what.sessions:
        pruning.forget(connection, session)
    scrub = Scrubber(what.words)
    rows: list[Any] = connection.execute("SELECT id, path FROM changes").fetchall()
    for id, path in rows:
        if scrub.finds(path):
            connection.execute("DELETE FROM changes WHERE id = ?", (id,))
    for name in list(_blobs(connection, scrub)):
        row = (LOST, secrets.token_hex(32), name)
        connection.execute(FORGET_BEFORE, row)
        connection.execute(FORGET_AFTER, row)
        connection.execute("DELETE FROM blobs WHERE digest = ?", (name,))
    pruning.sweep(connection)
    connection.execute("PRAGMA incremental_vacuum").fetchall()


def _holding(connection: RowConnection, what: Erasure) -> list[str]:
    scrub = Scrubber(what.words)
    sessions = [each for each in what.sessions for _ in range(pruning.count_of(connection, each))]
    rows: list[Any] = connection.execute("SELECT path FROM changes").fetchall()
    paths = [str(path) for (path,) in rows if scrub.finds(path)]
    return [*_blobs(connection, scrub), *paths, *sessions]


def _blobs(connection: RowConnection, scrub: Scrubber) -> Iterator[str]:
    """Yield the contents that hold the words. An unreadable one may hold them."""
    rows: list[Any] = connection.execute("SELECT digest FROM blobs").fetchall()
    for (name,) in rows:
        data = connection.execute("SELECT data FROM blobs WHERE digest = ?", (name,)).get
        try:
            if scrub.finds(unpack(name, data)):
                yield name
        except Corrupt:
            yield name
