"""Runs of the curator in SQLite, in the same database as the ledger they change."""

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
from hone.stores.tree import intact, moment, stamp

COLUMNS = "at, why, session, library, error, report, changes"
ALL = f"SELECT id, {COLUMNS} FROM rounds WHERE ?2 IS NULL OR id = ?2 ORDER BY id DESC LIMIT coalesce(?1, -1)"
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
    made = replace(checks.sound_words(run), changes=tuple(entry.id for entry in entries))
    words = (made.why, made.session, made.library, made.error, made.report)
    row = (stamp(made.at), *words, canonical(made.changes))
    return replace(made, at=moment(row[0]), id=CuratorRunId(connection.execute(PUT, row).get)), entries


def select(
    connection: apsw.Connection, limit: int | None = None, only: int | None = None
) -> tuple[CuratorRun, ...]:
    return tuple(make_run(row) for row in connection.execute(ALL, (limit, only)))


def make_run(row: Sequence[Any]) -> CuratorRun:
    id, at, why, session, library, error, report, changes = row
    damage = f"Round {id} of the curator is damaged: it is not what was written."
    with intact(Corrupt(f"{damage} Restore the database from a backup.")):
        made = tuple(json.loads(changes))
        return CuratorRun(moment(at), why, session, library, error, report, made, CuratorRunId(id))


class SqliteCuratorRuns(Store):
    runs = reads(select)
    complete = writes(_complete)
