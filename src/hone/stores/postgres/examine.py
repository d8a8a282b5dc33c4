"""Examine an owner's data in PostgreSQL: the server, row security, and each difference from what was written.

Contents are compared with their digests, conversations with their hash chains, holdings with the changes they
come from, and the words of messages with the messages. Everything is read, and nothing is changed.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

import psycopg
from psycopg import errors

from hone.core.errors import HoneError
from hone.core.messages import decode, digest
from hone.core.prefix import Prefix
from hone.core.transcript import chained
from hone.core.trust import Trust
from hone.core.turn import Origin
from hone.stores import rules
from hone.stores.damage import Damage, DamageKind
from hone.stores.postgres.curator_runs import PostgresCuratorRuns
from hone.stores.postgres.database import PostgresDatabase, PostgresPool, Rows
from hone.stores.postgres.erasing import scan
from hone.stores.postgres.home import LOCAL
from hone.stores.postgres.jobs import PostgresJobs
from hone.stores.postgres.ledger import PostgresLedger
from hone.stores.postgres.migrating import MIGRATIONS, ROLE
from hone.stores.postgres.passages import index_text, mark_of, write_words
from hone.stores.postgres.redacting import BODIES
from hone.stores.tree import SYMPTOMS, moment

MOST = 100
"""The most findings of one kind to report; with more, the rest says nothing new."""
BATCH = 500
Finding = tuple[bool, str]

SERVER = """
SELECT current_setting('server_version'), (SELECT max(number) FROM migrations), current_user::text,
    rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user
"""
OPEN = """
SELECT relname::text FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
WHERE relnamespace = 'hone'::regnamespace AND relkind = 'r' AND attname = 'owner' AND NOT attisdropped
    AND NOT row_security_active(pg_class.oid) AND NOT (relname = 'passages' AND current_user <> %(role)s)
ORDER BY 1
"""
NODES = """
SELECT n.id, n.depth, n.trust, n.at, n.hash, c.digest, n.parent IS NULL, p.hash, p.depth, p.chain = n.chain,
    f.digest
FROM nodes AS n LEFT JOIN contents AS c ON c.owner = n.owner AND c.digest = n.content
LEFT JOIN nodes AS p ON p.owner = n.owner AND p.id = n.parent
LEFT JOIN chains AS h ON h.owner = n.owner AND h.id = n.chain
LEFT JOIN prefixes AS f ON f.owner = h.owner AND f.digest = h.prefix
WHERE n.owner = %(owner)s
"""
SESSIONS = """
SELECT s.id, s.origin, s.created, s.updated, s.hash = n.hash AND s.messages = n.depth AND s.chain = n.chain
    AND s.shared <= s.messages AND s.updated = n.at, f.body, s.model, s.head, s.opened, s.opening
FROM sessions AS s LEFT JOIN nodes AS n ON n.owner = s.owner AND n.id = s.head
LEFT JOIN chains AS h ON h.owner = s.owner AND h.id = s.chain
LEFT JOIN prefixes AS f ON f.owner = h.owner AND f.digest = h.prefix
WHERE s.owner = %(owner)s
"""
ORPHANS = {
    "contents": "EXISTS (SELECT 1 FROM nodes AS n WHERE n.owner = t.owner AND n.content = t.digest)",
    "chains": "EXISTS (SELECT 1 FROM nodes AS n WHERE n.owner = t.owner AND n.chain = t.id)",
    "prefixes": "EXISTS (SELECT 1 FROM chains AS c WHERE c.owner = t.owner AND c.prefix = t.digest)",
}
"""Rows that something must refer to."""
ORPHAN = "SELECT count(*) FROM {} AS t WHERE owner = %(owner)s AND NOT {}"
NAMED = """
SELECT DISTINCT named FROM (
    SELECT before AS named FROM deltas WHERE owner = %(owner)s
    UNION ALL SELECT after FROM deltas WHERE owner = %(owner)s
    UNION ALL SELECT digest FROM holdings WHERE owner = %(owner)s
) AS given WHERE named IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM knowledge AS k WHERE k.owner = %(owner)s AND k.digest = named
)
"""
ACTIVE = """
SELECT change, target, path, before, after FROM changes AS c JOIN deltas AS d
ON d.owner = c.owner AND d.change = c.id
WHERE c.owner = %(owner)s AND standing = 'active' ORDER BY change, position
"""
HELD = "SELECT target, path, digest FROM holdings WHERE owner = %(owner)s"
COUNTERS = ("changes", "jobs", "rounds")
COUNTED = """
SELECT coalesce((SELECT max(id) FROM {0} WHERE owner = %(owner)s), 0)
    <= coalesce((SELECT {0} FROM owners WHERE owner = %(owner)s), 0)
"""
NUMBERED = {"nodes": "node_ids", "chains": "chain_ids", "spending": "spending_ids"}
GIVEN = """
SELECT coalesce((SELECT max(id) FROM {} WHERE owner = %(owner)s), 0)
    <= coalesce(pg_sequence_last_value(%(sequence)s::regclass), 0)
"""
SPENDING = "SELECT id, at, origin, input, cached, written, output FROM spending WHERE owner = %(owner)s"
PASSAGES = """
SELECT p.id, c.body FROM passages AS p JOIN contents AS c ON c.owner = p.owner AND c.digest = p.content
WHERE p.owner = %(owner)s AND p.id > %(after)s ORDER BY p.id LIMIT %(limit)s
"""
DIFFERENT = """
SELECT p.id FROM unnest(%(ids)s::bigint[], %(words)b::tsvector[]) AS given (id, words)
JOIN passages AS p ON p.owner = %(owner)s AND p.id = given.id WHERE p.words <> given.words
"""
CHECKER = """
SELECT n.nspname::text FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = extnamespace
WHERE extname = 'amcheck'
"""
INDEXES = """
SELECT c.oid::regclass::text FROM pg_class AS c JOIN pg_am AS a ON a.oid = c.relam
WHERE c.relnamespace = 'hone'::regnamespace AND c.relkind = 'i' AND amname = 'btree' ORDER BY 1
"""
HEAPS = """
SELECT c.oid::regclass::text FROM pg_class AS c
WHERE c.relnamespace = 'hone'::regnamespace AND c.relkind = 'r' ORDER BY 1
"""
ADVICE = {
    DamageKind.TEXT: "What can be read is still served. Restore the rest from a backup: hone restore FILE "
    "--replace, or a backup of the server.",
    DamageKind.INDEX: "No text is lost. The next search makes the index again after: DELETE FROM "
    "hone.passages WHERE owner = '{owner}';",
    DamageKind.COSMETIC: "Nothing is lost and nothing has to be done.",
}


async def describe_server(url: str, owner: str = LOCAL) -> list[Finding]:
    """Describe the server, and whether row security is in force. Raises StoreError."""
    pool = PostgresPool(url, lanes=1, readers=1)
    try:
        return await PostgresDatabase(pool, owner).read(lambda rows: _describe(rows, pool.where))
    finally:
        await pool.close()


def _describe(rows: Rows, where: str) -> list[Finding]:
    version, schema, user, passes = rows.one(SERVER) or ("", 0, "", True)
    latest = len(MIGRATIONS)
    found = [
        (schema == latest, f"database: {where} answers (PostgreSQL {version}, format {schema} of {latest})")
    ]
    unguarded = [name for (name,) in rows.execute(OPEN, role=ROLE)]
    if passes or unguarded:
        found.append(
            (
                False,
                f"database: row security does not hold back {user}"
                f"{'' if passes else ' in ' + ', '.join(unguarded)}. "
                f"Let the owner of the tables run: GRANT {ROLE} TO the user of the address",
            )
        )
    else:
        found.append((True, f"database: row security is in force for {user}"))
    return found


async def examine_database(url: str, owner: str = LOCAL) -> list[Damage]:
    """Return what is damaged; empty if all is well. Raises StoreError if the server does not answer."""
    pool = PostgresPool(url, lanes=1, readers=1)
    try:
        database = PostgresDatabase(pool, owner)
        found = [damage for name, check, kind in CHECKS for damage in await _ask(database, name, check, kind)]
        found += await _read(database)
        return [*found, *_check_files(pool)]
    finally:
        await pool.close()


def advise(found: Iterable[Damage], owner: str = LOCAL) -> str:
    """Return what to do about the worst damage."""
    kinds = {damage.kind for damage in found}
    return next(advice for kind, advice in ADVICE.items() if kind in kinds).format(owner=owner)


async def _ask(
    database: PostgresDatabase, name: str, check: Callable[[Rows], Iterable[str]], kind: DamageKind
) -> list[Damage]:
    try:
        texts = await database.read(lambda rows: list(islice(check(rows), MOST)))
    except (HoneError, *SYMPTOMS) as error:
        return [Damage(DamageKind.TEXT, f"{name} cannot be read completely: {error}.")]
    return [Damage(kind, text) for text in texts]


async def _read(database: PostgresDatabase) -> list[Damage]:
    """Read what only its store can verify."""
    jobs = PostgresJobs(database)
    found: list[Damage] = []
    for name, read in (
        ("Changes", PostgresLedger(database, "").entries),
        ("Reviews", jobs.jobs),
        ("Conversations to look back over", jobs.looks),
        ("Runs of the curator", PostgresCuratorRuns(database).runs),
    ):
        try:
            await read()
        except HoneError as error:
            found.append(Damage(DamageKind.TEXT, f"{name} cannot be read completely: {error}"))
    return found


def _contents(rows: Rows, table: str, read: Callable[[bytes], object]) -> Iterator[str]:
    for name, body in scan(rows, table):
        if digest(body) != name:
            yield f"A row of {table} is not what was written ({name})."
        else:
            read(body)


def _nodes(rows: Rows) -> Iterator[str]:
    for id, depth, trust, at, hash, content, first, parent, above, same, root in rows.execute(NODES):
        before = root if first else parent
        sound = depth == 1 if first else (above == depth - 1 and same)
        if not sound or content is None or before is None or chained(before, content) != hash:
            yield f"Message {id} is not where it was written."
        Trust(trust)
        moment(at)


def _sessions(rows: Rows) -> Iterator[str]:
    for id, origin, created, updated, ends, body, model, head, *opening in rows.execute(SESSIONS).fetchall():
        Origin(origin)
        moment(created)
        moment(updated)
        whole = ends and body is not None and Prefix.decode(body).model == model
        bodies = rows.execute(BODIES, head=head).fetchall()
        if not whole or tuple(opening) != rules.opening(decode(each) for (each,) in bodies):
            yield f"Session {id} is not what was written."


def _orphans(rows: Rows) -> Iterator[str]:
    for table, needed in ORPHANS.items():
        if count := rows.value(ORPHAN.format(table, needed)):
            yield f"{count:,} rows of {table} belong to nothing."


def _changes(rows: Rows) -> Iterator[str]:
    for (name,) in rows.execute(NAMED):
        yield f"What a change wrote is gone ({name})."
    fold: dict[tuple[str, str], str] = {}
    for change, target, path, before, after in rows.execute(ACTIVE):
        if fold.pop((target, path), None) != before:
            yield f"Change {change} does not begin with what {target} held at {path}."
        if after is not None:
            fold[target, path] = after
    held = {(target, path): name for target, path, name in rows.execute(HELD)}
    for target, path in sorted(fold.keys() | held.keys()):
        if fold.get((target, path)) != held.get((target, path)):
            yield f"{target} holds something else at {path} than its changes say."


def _counters(rows: Rows) -> Iterator[str]:
    for table in COUNTERS:
        if not rows.value(COUNTED.format(table)):
            yield f"A number of {table} could be given twice."
    for table, sequence in NUMBERED.items():
        if not rows.value(GIVEN.format(table), sequence=f"hone.{sequence}"):
            yield f"A number of {table} could be given twice."


def _spending(rows: Rows) -> Iterator[str]:
    for id, at, origin, *tokens in rows.execute(SPENDING):
        Origin(origin)
        moment(at)
        if min(tokens) < 0:
            yield f"What was spent, number {id}, is not what was written."


def _words(rows: Rows) -> Iterator[str]:
    mark, after = mark_of(rows.owner), 0
    while found := rows.execute(PASSAGES, after=after, limit=BATCH).fetchall():
        words = [write_words(mark, index_text(body)) for _, body in found]
        for (id,) in rows.execute(DIFFERENT, ids=[id for id, _ in found], words=words).fetchall():
            yield f"Search does not find everything that was said in message {id}."
        after = found[-1][0]


CHECKS: tuple[tuple[str, Callable[[Rows], Iterable[str]], DamageKind], ...] = (
    (
        "The prefixes of conversations",
        lambda rows: _contents(rows, "prefixes", Prefix.decode),
        DamageKind.TEXT,
    ),
    ("Messages", lambda rows: _contents(rows, "contents", decode), DamageKind.TEXT),
    ("Conversations", _nodes, DamageKind.TEXT),
    ("Sessions", _sessions, DamageKind.TEXT),
    ("What belongs to nothing", _orphans, DamageKind.COSMETIC),
    ("Journal and skills", lambda rows: _contents(rows, "knowledge", bytes), DamageKind.TEXT),
    ("Changes of journal and skills", _changes, DamageKind.TEXT),
    ("Numbers", _counters, DamageKind.TEXT),
    ("Spending", _spending, DamageKind.TEXT),
    ("The words of messages", _words, DamageKind.INDEX),
)


def _check_files(pool: PostgresPool) -> list[Damage]:
    """Let PostgreSQL check tables and indexes, if its extension amcheck is installed and may be used."""
    found: list[Damage] = []
    with pool.plainly(), pool.dial() as connection:
        row = connection.execute(CHECKER).fetchone()
        if row is None:
            return []
        try:
            for (name,) in connection.execute(INDEXES).fetchall():
                _check_one(connection, f'"{row[0]}".bt_index_check(%s::regclass, true)', name, found)
            for (name,) in connection.execute(HEAPS).fetchall():
                query = f'SELECT count(*) FROM "{row[0]}".verify_heapam(%s::regclass)'
                wrong = connection.execute(query, (name,)).fetchone()
                if wrong and wrong[0]:
                    found.append(
                        Damage(DamageKind.TEXT, f"The table {name} is damaged on the server's disk.")
                    )
        except errors.InsufficientPrivilege:
            return found  # only what this user may access
    return found


def _check_one(
    connection: psycopg.Connection[tuple[object, ...]], check: str, name: str, found: list[Damage]
) -> None:
    try:
        connection.execute(f"SELECT {check}", (name,))
    except (errors.IndexCorrupted, errors.DataCorrupted) as error:
        why = f"The index {name} is damaged ({error.diag.message_primary})"
        found.append(Damage(DamageKind.TEXT, f"{why}. Have the operator run: REINDEX INDEX {name};"))
