"""Runs of the curator in PostgreSQL, in the same database as the ledger they change."""

from collections.abc import Mapping, Sequence

from hone.core.curation import CuratorRun, CuratorRunId
from hone.core.ledger import Change, Entry
from hone.core.messages import canonical
from hone.core.value import replace
from hone.stores import checks
from hone.stores.curator_runs import make_run
from hone.stores.postgres.database import PostgresStore, Rows, reads, writes
from hone.stores.postgres.record import LOCK, record
from hone.stores.tree import moment, stamp

COLUMNS = "at, why, session, library, error, report, changes"
ALL = f"SELECT id, {COLUMNS} FROM rounds WHERE owner = %(owner)s ORDER BY id DESC LIMIT %(limit)s"
LAST = "SELECT rounds FROM owners WHERE owner = %(owner)s"
NEXT = "UPDATE owners SET rounds = rounds + 1 WHERE owner = %(owner)s RETURNING rounds"
PUT = f"""
INSERT INTO rounds (owner, id, {COLUMNS})
VALUES (%(owner)s, %(id)s, %(at)s, %(why)s, %(session)s, %(library)s, %(error)s, %(report)s, %(changes)s)
"""


def _complete(
    rows: Rows,
    run: CuratorRun,
    after: CuratorRunId,
    changes: Sequence[Change],
    contents: Mapping[str, bytes],
) -> tuple[CuratorRun, Sequence[Entry]]:
    rows.execute(LOCK)
    if rows.value(LAST) != after:
        raise checks.overtaken()
    entries = record(rows, changes, contents, run.at)
    made = replace(checks.sound_words(run), changes=tuple(entry.id for entry in entries))
    words = {name: getattr(made, name) for name in ("why", "session", "library", "error", "report")}
    id, at = rows.value(NEXT), stamp(made.at)
    rows.execute(PUT, id=id, at=at, changes=canonical(made.changes), **words)
    return replace(made, at=moment(at), id=CuratorRunId(id)), entries


def _all(rows: Rows, limit: int | None = None) -> tuple[CuratorRun, ...]:
    return tuple(make_run(row) for row in rows.execute(ALL, limit=limit))


class PostgresCuratorRuns(PostgresStore):
    runs = reads(_all)
    complete = writes(_complete)
