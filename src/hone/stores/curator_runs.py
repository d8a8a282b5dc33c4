"""Runs of the curator in SQLite, beside the ledger they write to."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import apsw

from hone.core.curation import CuratorRun, CuratorRunId
from hone.core.errors import Corrupt
from hone.core.ledger import Change, Entry
from hone.core.messages import canonical
from hone.core.value import replace
from hone.stores import checks
from hone.stores.database import Store, reads, writes
from hone.stores.record import record
from hone.stores.tree import SYMPTOMS, moment, stamp

COLUMNS = "at, why, session, library, error, report, changes"
ALL = f"SELECT id, {COLUMNS} FROM rounds WHERE ?2 IS NULL OR id = ?2 ORDER BY id DESC LIMIT ?1"
PUT = f"INSERT INTO rounds ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id"


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
    made = replace(checks.storable_run(run), changes=tuple(entry.id for entry in entries))
    words = (made.why, made.session, made.library, made.error, made.report)
    row = (stamp(made.at), *words, canonical(made.changes))
    return replace(made, at=moment(row[0]), id=CuratorRunId(connection.execute(PUT, row).get)), entries


def _runs(connection: apsw.Connection, limit: int | None = None) -> Sequence[CuratorRun]:
    return select(connection, -1 if limit is None else limit)


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


class SqliteCuratorRuns(Store):
    runs = reads(_runs)
    complete = writes(_complete)
