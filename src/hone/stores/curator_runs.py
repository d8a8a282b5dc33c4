"""Runs of the curator in SQLite, beside the ledger they write to."""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import apsw

from hone.core.curation import CuratorRun, CuratorRunId
from hone.core.errors import Corrupt
from hone.core.ledger import Change, Entry
from hone.core.messages import canonical
from hone.core.value import replace
from hone.stores import checks
from hone.stores.database import Database
from hone.stores.record import record
from hone.stores.tree import SYMPTOMS, moment, stamp

COLUMNS = "at, why, session, library, error, report, changes"
ALL = f"SELECT id, {COLUMNS} FROM rounds WHERE ?2 IS NULL OR id = ?2 ORDER BY id DESC LIMIT ?1"
PUT = f"INSERT INTO rounds ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id"


class SqliteCuratorRuns:
    """The database belongs to whoever opened it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def runs(self, limit: int | None = None) -> Sequence[CuratorRun]:
        return await self._database.read(partial(select, limit=-1 if limit is None else limit))

    async def complete(
        self, run: CuratorRun, after: CuratorRunId, changes: Sequence[Change], contents: Mapping[str, bytes]
    ) -> tuple[CuratorRun, Sequence[Entry]]:
        work = partial(
            _complete,
            run=checks.storable_run(run),
            after=after,
            changes=tuple(changes),
            contents=dict(contents),
        )
        return await self._database.write(work)


def _complete(
    connection: apsw.Connection,
    run: CuratorRun,
    after: CuratorRunId,
    changes: Sequence[Change],
    contents: Mapping[str, bytes],
) -> tuple[CuratorRun, Sequence[Entry]]:
    if connection.execute("SELECT coalesce(max(id), 0) FROM rounds").get != after:
        raise checks.overtaken()
    entries = record(connection, changes, contents, run.at)
    made = replace(run, changes=tuple(entry.id for entry in entries))
    words = (made.why, made.session, made.library, made.error, made.report)
    row = (stamp(made.at), *words, canonical(made.changes))
    return replace(made, at=moment(row[0]), id=CuratorRunId(connection.execute(PUT, row).get)), entries


def select(connection: apsw.Connection, limit: int = -1, only: int | None = None) -> tuple[CuratorRun, ...]:
    return tuple(_round(row) for row in connection.execute(ALL, (limit, only)))


def _round(row: Sequence[Any]) -> CuratorRun:
    id, at, why, session, library, error, report, changes = row
    try:
        made = tuple(json.loads(changes))
        return CuratorRun(moment(at), why, session, library, error, report, made, CuratorRunId(id))
    except SYMPTOMS as symptom:
        raise Corrupt(
            f"Round {id} of the curator is damaged: it is not what was written. Restore the database from a "
            "backup."
        ) from symptom
