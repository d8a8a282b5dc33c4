"""PostgreSQL as one end of a move: the rows of one owner, read and written in one transaction.

Row security forbids COPY FROM, so rows are written as arrays, some thousand at a time. COPY TO is allowed: it
streams rows, whatever their size.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import psycopg
from msgspec import Struct
from psycopg import errors

from hone.core.documents import KINDS
from hone.core.errors import StoreError
from hone.stores.moving.fingerprints import OwnerRecord
from hone.stores.moving.tables import (
    COUNTERS,
    SEQUENCE_COLUMNS,
    SEQUENCES,
    TABLES,
    MovedTable,
    Row,
)
from hone.stores.postgres.database import PostgresPool, Rows
from hone.stores.postgres.faults import is_lost

OWN_KINDS = [kind.name for kind in KINDS if kind.machine]
"""Documents that are about the folders of one machine."""
FILED = [table.name for table in TABLES if table.files]
_MINE = " AND machine IN ('', %(machine)s)"
"""Other machines keep their own trusted folders."""
TOGETHER, BYTES = 2_000, 2_000_000
"""Rows and bytes of contents to send in one statement."""
MOST = 1 << 40
"""The largest possible number of a message: a sequence could not reach a larger one."""
COLUMNS = """
SELECT attname::text, format_type(CASE WHEN typbasetype <> 0 THEN typbasetype ELSE atttypid END, NULL)
FROM pg_attribute JOIN pg_type ON pg_type.oid = atttypid
WHERE attrelid = %(table)s::regclass AND attnum > 0 AND NOT attisdropped
"""
OWNED = """
SELECT relname::text FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
WHERE relnamespace = 'hone'::regnamespace AND relkind = 'r' AND attname = 'owner' AND attnum > 0
"""
KEPT = ("owners", "moves")
"""The move itself replaces rows of these."""
IDENTITY = f"SELECT {', '.join(COUNTERS)}, home, backend FROM owners WHERE owner = %(owner)s"
PUT_IDENTITY = """
INSERT INTO owners (owner, changes, jobs, rounds, home, backend)
VALUES (%(owner)s, %(changes)s, %(jobs)s, %(rounds)s, %(home)s, %(backend)s)
ON CONFLICT (owner) DO UPDATE SET changes = excluded.changes, jobs = excluded.jobs, rounds = excluded.rounds,
    home = excluded.home, backend = excluded.backend
"""
LAST = "SELECT coalesce(pg_sequence_last_value(%(sequence)s::regclass), 0)"
# Not setval: another owner could be given a number between reading and setting.
ADVANCE = "SELECT count(nextval(%(sequence)s::regclass)) FROM generate_series(1, %(steps)s)"
MOVE = "SELECT home, place, at, digest, away FROM moves WHERE owner = %(owner)s"
PUT_MOVE = """
INSERT INTO moves (owner, home, place, at, digest, away)
VALUES (%(owner)s, %(home)s, %(place)s, %(at)s, %(digest)s, %(away)s)
ON CONFLICT (owner) DO UPDATE SET home = excluded.home, place = excluded.place, at = excluded.at,
    digest = excluded.digest, away = excluded.away
"""
USED_FIRST = """
SELECT {columns} FROM {table} AS t LEFT JOIN (
    SELECT {column}, min({order}) AS first FROM {user} WHERE owner = %(owner)s GROUP BY {column}
) AS used ON used.{column} = t.digest
WHERE t.owner = %(owner)s ORDER BY first NULLS FIRST, t.digest
"""
HOLDERS = """
SELECT DISTINCT coalesce(nullif(application_name, ''), 'process ' || a.pid),
    coalesce(host(client_addr), 'this machine')
FROM pg_locks AS l JOIN pg_stat_activity AS a ON a.pid = l.pid
WHERE locktype = 'advisory' AND objsubid = 1 AND granted AND l.pid <> pg_backend_pid()
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND (classid::bigint << 32 | objid::bigint) = hashtextextended(%(owner)s, 1)
"""


class LastMove(Struct, frozen=True):
    """`home` is the name of the home that the data came from, or went to if it is `away`."""

    home: str
    place: str
    at: int
    digest: str
    away: bool


class PostgresEnd:
    """The data of an owner in PostgreSQL, inside a transaction. `checkout` names the folder that journal and
    skills are published to, `machine` the one whose folders are trusted."""

    def __init__(self, rows: Rows, checkout: str, machine: str) -> None:
        self._rows = rows
        self._checkout = checkout
        self._machine = machine

    def count(self, table: MovedTable) -> int:
        return int(
            self._rows.value(f"SELECT count(*) FROM {table.name} WHERE {_where(table)}", **self._fixed)
        )

    def rows(self, table: MovedTable, *, by_use: bool = False) -> Iterator[Row]:
        types = self._types[table.name]
        read = ", ".join(
            f"t.{each}::int" if types[each] == "boolean" else f"t.{each}" for each in table.columns
        )
        if by_use and table.used_in:
            user, column, order = table.used_in
            query = USED_FIRST.format(columns=read, table=table.name, column=column, order=order, user=user)
        else:
            order = ", ".join(f"t.{each}" for each in table.key)
            query = f"SELECT {read} FROM {table.name} AS t WHERE {_where(table)} ORDER BY {order}"
        kinds = ["int4" if types[each] == "boolean" else types[each] for each in table.columns]
        yield from self._rows.stream(query, kinds, **self._fixed)

    def put(self, table: MovedTable, rows: Iterable[Row]) -> None:
        types = self._types[table.name]
        kinds = [types[each] for each in table.columns]
        more, value = _fixed_column(table)
        names = ", ".join((*table.columns, *more))
        arrays = ", ".join(f"%(c{place})s::{kind}[]" for place, kind in enumerate(kinds))
        query = f"""
        INSERT INTO {table.name} (owner, {names})
        SELECT %(owner)s, * {value} FROM unnest({arrays}) AS given ({", ".join(table.columns)})
        """
        for batch in _gather(rows):
            columns: dict[str, list[Any]] = {
                f"c{place}": [None if row[place] is None else bool(row[place]) for row in batch]
                if kind == "boolean"
                else [row[place] for row in batch]
                for place, kind in enumerate(kinds)
            }
            self._rows.execute(query, **columns, **self._fixed)

    def read_identity(self) -> OwnerRecord:
        found = self._rows.one(IDENTITY)
        if found is None:
            self._rows.execute("SELECT lock_owner(%(owner)s)")
            found = self._rows.one(IDENTITY)
        assert found
        return OwnerRecord(*found)

    def put_identity(self, identity: OwnerRecord, nodes: int) -> None:
        given = {each: getattr(identity, each) for each in identity.__struct_fields__}
        self._rows.execute(PUT_IDENTITY, **given)
        for table, sequence in SEQUENCES.items():
            column = SEQUENCE_COLUMNS.get(table, "id")
            highest = self._rows.value(
                f"SELECT coalesce(max({column}), 0) FROM {table} WHERE owner = %(owner)s"
            )
            self._advance(sequence, max(highest, nodes) if table == "nodes" else highest)

    def read_nodes(self) -> int:
        return int(self._rows.value(LAST, sequence=SEQUENCES["nodes"]))

    def _advance(self, sequence: str, to: int) -> None:
        """Advance a sequence to a number that was given out elsewhere."""
        if to > MOST:
            raise StoreError(f"The number {to} is too high for PostgreSQL's {sequence}; nothing was moved.")
        while (last := int(self._rows.value(LAST, sequence=sequence))) < to:
            self._rows.execute(ADVANCE, sequence=sequence, steps=to - last)

    def is_empty(self) -> bool:
        """Tell whether this owner has no data here. A row that only names the owner does not count."""
        found = self._rows.one(IDENTITY)
        if found and any(found[: len(COUNTERS)]):
            return False
        return not any(
            self._rows.one(f"SELECT 1 FROM {table.name} WHERE owner = %(owner)s LIMIT 1") for table in TABLES
        )

    def clear(self) -> None:
        """Remove all rows of the owner, derived ones included. Called for a copy that nobody uses."""
        moved = [table.name for table in reversed(TABLES)]
        others = [name for (name,) in self._rows.execute(OWNED) if name not in (*moved, *KEPT)]
        for name in (*others, *moved):
            mine = _MINE if name in FILED else ""
            self._rows.execute(f"DELETE FROM {name} WHERE owner = %(owner)s{mine}", **self._fixed)

    def read_move(self) -> LastMove | None:
        found = self._rows.one(MOVE)
        return LastMove(*found) if found else None

    def forget_move(self) -> None:
        self._rows.execute("DELETE FROM moves WHERE owner = %(owner)s")

    def put_move(self, move: LastMove) -> None:
        self._rows.execute(PUT_MOVE, **{each: getattr(move, each) for each in move.__struct_fields__})

    @property
    def _fixed(self) -> dict[str, Any]:
        return {"checkout": self._checkout, "machine": self._machine, "own_kinds": OWN_KINDS}

    @cached_property
    def _types(self) -> Mapping[str, Mapping[str, str]]:
        return {table.name: dict(self._rows.pairs(COLUMNS, table=table.name)) for table in TABLES}


def _where(table: MovedTable) -> str:
    mine = " AND checkout = %(checkout)s" if table.checkout else _MINE if table.files else ""
    return f"owner = %(owner)s{mine}"


def _fixed_column(table: MovedTable) -> tuple[tuple[str, ...], str]:
    """Return a column that has the same value in all rows of a home, or that depends on the row's subject."""
    if table.checkout:
        return ("checkout",), ", %(checkout)s"
    if table.files:
        return ("machine",), ", CASE WHEN given.kind = ANY (%(own_kinds)s) THEN %(machine)s ELSE '' END"
    return (), ""


def _gather(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Yield the rows in batches: small ones if their contents are large."""
    batch: list[Row] = []
    size = 0
    for row in rows:
        batch.append(row)
        size += sum(len(each) for each in row if isinstance(each, (bytes, str)))
        if len(batch) == TOGETHER or size > BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


@contextmanager
def alone_with(pool: PostgresPool, owner: str, checkout: str, machine: str) -> Iterator[PostgresEnd]:
    """Keep everybody else from writing this owner's rows, wherever they run, and commit at the end. Raises
    StoreError that says who holds them."""
    lane = pool.lane(owner)
    with pool.plainly():
        try:
            with pool.connection(lane, owner) as rows, rows.transaction():
                _pass_gate(pool, rows)
                yield PostgresEnd(rows, checkout, machine)
        except psycopg.OperationalError as error:
            if not is_lost(error):
                raise
            raise StoreError(
                f"The connection to {pool.where} broke. Run the command again: it finds out how far it came."
            ) from error


def _pass_gate(pool: PostgresPool, rows: Rows) -> None:
    try:
        with rows.transaction():
            rows.execute("SELECT pass_gate(%(owner)s, true)")
    except errors.LockNotAvailable as error:
        who = ", ".join(f"{name} on {place}" for name, place in rows.pairs(HOLDERS))
        raise StoreError(
            f"Another process is writing to {pool.where}{f' ({who})' if who else ''}; nothing was moved. "
            "Try again when it has finished."
        ) from error


class DatabaseProbe(Struct, frozen=True):
    """What was found at an address: the number of rows in each table; none if nobody has used it yet."""

    where: str
    counts: Mapping[str, int]


def probe(url: str, owner: str, checkout: str, machine: str) -> DatabaseProbe:
    """Look at a database without changing it. Raises StoreError if it cannot be used."""
    pool = PostgresPool(url, lanes=1, readers=1, migrating=False)
    try:
        with pool.plainly(), pool.connection(pool.readers, owner) as rows, rows.transaction():
            return _probe(rows, pool.where, checkout, machine)
    finally:
        pool.forget()


def _probe(rows: Rows, where: str, checkout: str, machine: str) -> DatabaseProbe:
    if not rows.value("SELECT to_regclass('hone.documents') IS NOT NULL"):
        return DatabaseProbe(where, {table.name: 0 for table in TABLES})
    end = PostgresEnd(rows, checkout, machine)
    return DatabaseProbe(where, {table.name: end.count(table) for table in TABLES})
