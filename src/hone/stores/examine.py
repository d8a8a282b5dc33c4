"""Examine a database and describe each difference from what was written, with its kind.

Rows are compared with their indexes, contents with their digests, conversations with their hash chains, and
holdings with the changes they come from. Everything is read, and nothing is changed.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

import apsw
from msgspec import Struct

from hone.core.errors import StoreError
from hone.core.messages import Message, decode, digest
from hone.core.prefix import Prefix
from hone.core.transcript import chained
from hone.core.trust import Trust
from hone.core.turn import Origin
from hone.stores import curator_runs as rounds
from hone.stores import jobs, ledger, looks, lookup, passages, record, rules
from hone.stores import skill_catalog as shelf
from hone.stores.damage import (
    CARDS,
    FULL_TEXT,
    HOLDINGS,
    HOURS,
    NUMBERS,
    VECTORS,
    WORDS,
    Damage,
    DamageKind,
    classify,
    place,
    read_trees,
)
from hone.stores.database import MIGRATIONS, PATIENCE, connect, plainly, read_script
from hone.stores.tree import LINE, SYMPTOMS, moment
from hone.stores.vector_codes import are_sound
from hone.stores.writer import FOREIGN

MOST = 100
"""The most findings of one kind to report; with more, the rest says nothing new."""
LINES = 1_000_000
"""The most lines of SQLite's check to read: a later one may be about another table."""

# FTS5 moves its version from 4 to 5 when it first deletes in place.
CONFIG = "SELECT k, CASE k WHEN 'version' THEN v IN (4, 5) ELSE v END FROM {}_config"
SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name"
NODES = """
SELECT n.id, n.depth, n.trust, n.at, n.hash, c.digest, n.parent IS NULL, p.hash, p.depth, p.chain = n.chain,
    (SELECT digest FROM chains JOIN prefixes AS f ON f.id = prefix WHERE chains.id = n.chain)
FROM nodes AS n LEFT JOIN contents AS c ON c.id = n.content LEFT JOIN nodes AS p ON p.id = n.parent
"""
SESSIONS = """
SELECT s.id, s.origin, s.created, s.updated, s.hash = n.hash AND s.messages = n.depth AND s.chain = n.chain,
    s.shared <= s.messages AND s.updated = n.at, f.body, s.model, s.head, s.opened, s.opening
FROM sessions AS s LEFT JOIN nodes AS n ON n.id = head LEFT JOIN chains ON chains.id = s.chain
LEFT JOIN prefixes AS f ON f.id = prefix
"""
BODIES = f"{LINE} SELECT depth, body FROM line JOIN contents AS c ON c.id = content"
TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table'"
NUMBERED = "SELECT name, seq FROM sqlite_sequence"
SPENDING = "SELECT id, at, origin, input, cached, written, output FROM spending"
ALIKE = """
SELECT count(*) = (SELECT count(*) FROM spending_hours) AND count(*) = (SELECT count(*) FROM spending_by_hour)
FROM spending_hours AS h JOIN spending_by_hour AS s USING (hour, origin)
WHERE (h.calls, h.unpriced, h.input, h.cached, h.written, h.output, h.low, h.high)
    = (s.calls, s.unpriced, s.input, s.cached, s.written, s.output, s.low, s.high)
    AND abs(h.cost - s.cost) <= 1e-6 * (1 + abs(s.cost))
"""
PARTIAL = "SELECT name, tbl_name, sql FROM sqlite_schema WHERE type = 'index' AND sql LIKE '% WHERE %'"
MIRROR = "SELECT length(home) = 16 AND home NOT GLOB '*[^0-9a-f]*' FROM mirror"
MISTAKEN = """
SELECT name FROM skills LEFT JOIN cards ON cards.id = card WHERE card IS NOT NULL AND digest IS NOT document
"""
TEXTS = """
SELECT words, stems, w.rowid, name, w.description, body
FROM card_words AS w LEFT JOIN cards ON cards.id = w.rowid
"""
STRAY = "SELECT EXISTS (SELECT 1 FROM vectors WHERE content NOT IN (SELECT id FROM contents))"
GAPS = """
SELECT EXISTS (
    SELECT 1 FROM (
        SELECT min(content) AS low, max(content) AS high, count(*) AS made FROM vectors GROUP BY embedder
    ) WHERE made <> (SELECT count(*) FROM contents WHERE id BETWEEN low AND high)
)
"""
CARD = "INSERT INTO card_words (rowid, name, description, body) VALUES (?, ?, ?, ?)"
PASSAGE = "INSERT INTO passage_words (rowid, text) VALUES (?, ?)"

Check = Callable[[apsw.Connection], Iterable[str | Damage]]


class _Question(Struct, frozen=True):
    """`name` is what is read, and `part` what can be rebuilt if it is wrong; empty if nothing can."""

    name: str
    check: Check
    part: str = ""


def examine(connection: apsw.Connection) -> list[Damage]:
    """Return what is damaged in a home's database; empty if all is well."""
    found = examine_pages(connection)
    # If SQLite can walk every table, only an index can keep one from being read.
    sound = all(damage.kind is not DamageKind.TEXT for damage in found)
    own = not connection.in_transaction
    try:
        for question in QUESTIONS:
            if not connection.in_transaction:  # one view for all questions, whatever others write
                connection.execute("BEGIN")
            answers, error = _asked(connection, question, sound=sound)
            found += answers
            if own and error:  # after an error not even memory is writable
                connection.execute("ROLLBACK")
    finally:
        if own and connection.in_transaction:
            connection.execute("ROLLBACK")
    return found


def examine_file(path: Path, work: Callable[[apsw.Connection], list[Damage]] = examine) -> list[Damage]:
    """Examine a database through a new connection, which has nothing cached."""
    try:
        with plainly(path), closing(connect(path, PATIENCE)) as connection:
            return work(connection)
    except StoreError as error:
        return [Damage(DamageKind.TEXT, str(error))]


def examine_pages(connection: apsw.Connection) -> list[Damage]:
    """Return the result of SQLite's own check: of each page, each index and its rows, each full-text
    index."""
    try:
        lines, error = _check(connection, LINES)
        if error:  # it stops at the first tree that it cannot walk
            tables: list[Any] = connection.execute(TABLES).fetchall()
            lines += [line for (table,) in tables for line in _check_table(connection, table)]
            lines = lines or [str(error)]
        placed = dict.fromkeys(place(connection, line) for line in lines)
        return list(classify(placed, read_trees(connection))) if placed else []
    except FOREIGN as error:
        return [Damage(DamageKind.TEXT, f"SQLite cannot check its pages: {error}.")]


def _check_table(connection: apsw.Connection, table: str) -> list[str]:
    lines, error = _check(connection, f'"{table}"')
    return [f'{error} in table "{table}"'] if error and not lines else lines


def _check(connection: apsw.Connection, what: object) -> tuple[list[str], Exception | None]:
    """Return the lines of SQLite's check, and the error that stopped it.

    The check and FTS5's cache of its indexes need one view: a commit between the two looks like damage. The
    view ends here, because a check that stops at damage leaves an unusable transaction.
    """
    lines: list[str] = []
    own = not connection.in_transaction
    try:
        if own:
            connection.execute("BEGIN")
        lookup.update(connection)
        for (said,) in connection.execute(f"PRAGMA integrity_check({what})"):
            lines += [line for line in str(said).splitlines() if line != "ok" and not line.startswith("***")]
    except FOREIGN as error:
        return lines, error
    finally:
        if own and connection.in_transaction:
            connection.execute("ROLLBACK")
    return lines, None


def _asked(
    connection: apsw.Connection, question: _Question, *, sound: bool
) -> tuple[list[Damage], Exception | None]:
    """Return the findings, and the error that stopped the check, which is a finding, too."""
    kind = DamageKind.INDEX if question.part else DamageKind.TEXT
    found: list[Damage] = []
    try:
        found.extend(
            Damage(kind, each, question.part) if isinstance(each, str) else each
            for each in islice(question.check(connection), MOST)
        )
    except (*FOREIGN, *SYMPTOMS, IndexError, StoreError) as error:
        if sound and isinstance(error, apsw.CorruptError):
            kind = DamageKind.INDEX
        found.append(Damage(kind, f"{question.name} cannot be read completely: {error}.", question.part))
        return found, error
    return found, None


def _schema(connection: apsw.Connection) -> Iterator[str | Damage]:
    with closing(apsw.Connection(":memory:")) as fresh:
        for script in MIGRATIONS[: int(connection.pragma("user_version"))]:
            fresh.execute(read_script(script))
        if connection.execute(SCHEMA).fetchall() != fresh.execute(SCHEMA).fetchall():
            yield "Its tables are not those that this version of Hone makes."
            return
        for index, part in FULL_TEXT.items():
            if _settings(connection, index) != _settings(fresh, index):
                yield Damage(DamageKind.INDEX, f"The settings of {index} are not what was written.", part)


def _settings(connection: apsw.Connection, index: str) -> list[Any] | None:
    try:
        return connection.execute(CONFIG.format(index)).fetchall()
    except FOREIGN:
        return None


def _references(connection: apsw.Connection) -> Iterator[str]:
    for table, row, other, _ in connection.execute("PRAGMA foreign_key_check"):
        yield f"Row {row} of {table} refers to something that is not in {other}."


def _partial(connection: apsw.Connection) -> Iterator[Damage]:
    """Check partial indexes: SQLite does not look for extra entries in an index over some of the rows."""
    rows: list[Any] = connection.execute(PARTIAL).fetchall()
    for index, table, sql in rows:
        counted = f"SELECT count(*) FROM {table} {{}} WHERE {sql.partition(' WHERE ')[2]}"
        with_it, without = counted.format(f"INDEXED BY {index}"), counted.format("NOT INDEXED")
        if connection.execute(with_it).get != connection.execute(without).get:
            yield Damage(DamageKind.INDEX, f"The index {index} has entries that belong to no row.", index)


def _mirror(connection: apsw.Connection) -> Iterator[str]:
    if connection.execute(MIRROR).fetchall() != [(1,)]:
        yield "What this home is known by to a memory backend is not what was written."


def _hours(connection: apsw.Connection) -> Iterator[str]:
    if not connection.execute(ALIKE).get:
        yield "The sums of what was spent are not those of the calls."


def _numbers(connection: apsw.Connection) -> Iterator[str]:
    for table, last in connection.execute(NUMBERED).fetchall():
        if connection.execute(f'SELECT max(id) > ? FROM "{table}"', (last,)).get:
            yield f"A number of {table} could be given twice."


def _contents(connection: apsw.Connection, table: str, read: Callable[[bytes], object]) -> Iterator[str]:
    for id, name, body in connection.execute(f"SELECT id, digest, body FROM {table}"):
        if digest(body) != name:
            yield f"Row {id} of {table} is not what was written."
        else:
            read(body)


def _words(connection: apsw.Connection) -> Iterator[str]:
    if not lookup.is_complete(connection, "passage_words", PASSAGE, passages.expected(connection)):
        yield "Search does not find everything that was said."


def _cards(connection: apsw.Connection) -> Iterator[str]:
    rows: list[Any] = connection.execute(TEXTS).fetchall()
    same = lookup.is_complete(connection, "card_words", CARD, [row[2:] for row in rows])
    if not same or any(
        words and shelf.together((*texts, stems)) != words for words, stems, _, *texts in rows
    ):
        yield "Search does not find every skill."


def _vectors(connection: apsw.Connection) -> Iterator[str]:
    if connection.execute(STRAY).get or connection.execute(GAPS).get:
        yield "The vectors of messages are not those of the messages that are there."
    elif not are_sound(connection):
        yield "The codes of vectors are not those of the vectors."


def _nodes(connection: apsw.Connection) -> Iterator[str]:
    for id, depth, trust, at, hash, content, first, parent, above, same, root in connection.execute(NODES):
        before = root if first else parent
        sound = depth == 1 if first else (above == depth - 1 and same)
        if not sound or content is None or before is None or chained(before, content) != hash:
            yield f"Message {id} is not where it was written."
        Trust(trust)
        moment(at)


def _sessions(connection: apsw.Connection) -> Iterator[str]:
    for id, origin, created, updated, ends, shares, body, model, head, *opening in connection.execute(
        SESSIONS
    ):
        Origin(origin)
        moment(created)
        moment(updated)
        whole = ends and shares and body is not None and Prefix.decode(body).model == model
        if not whole or tuple(opening) != rules.opening(_line(connection, head)):
            yield f"Session {id} is not what was written."


def _line(connection: apsw.Connection, head: int) -> Iterator[Message]:
    """Read a conversation as far as the caller asks. Damage inside a message is reported elsewhere."""
    bodies: list[Any] = connection.execute(BODIES, (head,)).fetchall()
    return (decode(body) for _, body in sorted(bodies))


def _shelved(connection: apsw.Connection) -> Iterator[str]:
    for (name,) in connection.execute(MISTAKEN):
        yield f"The card of the skill {name} is another's."


def _spending(connection: apsw.Connection) -> Iterator[str]:
    for id, at, origin, *tokens in connection.execute(SPENDING):
        Origin(origin)
        moment(at)
        if min(tokens) < 0:
            yield f"What was spent, number {id}, is not what was written."


def _read(_: object) -> Iterator[str]:
    """Read a table. Reading is the check: it raises Corrupt."""
    return iter(())


QUESTIONS = (
    _Question("The index of messages", _words, WORDS),
    _Question("The index of skills", _cards, CARDS),
    _Question("Vectors", _vectors, VECTORS),
    _Question("The schema", _schema),
    _Question("References between tables", _references),
    _Question("Partial indexes", _partial),
    _Question("The last row numbers", _numbers, NUMBERS),
    _Question("The prefixes of conversations", lambda each: _contents(each, "prefixes", Prefix.decode)),
    _Question("Messages", lambda each: _contents(each, "contents", decode)),
    _Question("Conversations", _nodes),
    _Question("Sessions", _sessions),
    _Question("The contents of journal and skills", record.broken),
    _Question("The holdings of journal and skills", record.astray, HOLDINGS),
    _Question("Changes", lambda each: _read(ledger.every(each))),
    _Question("Reviews", lambda each: _read(jobs.select(each, jobs.ALL, -1))),
    _Question("Conversations to look back over", lambda each: _read(looks.select(each))),
    _Question("Runs of the curator", lambda each: _read(rounds.select(each))),
    _Question("Summaries of skills", _shelved, CARDS),
    _Question("Spending", _spending),
    _Question("Sums of what was spent", _hours, HOURS),
    _Question("The id of this home", _mirror),
)
