"""Examine a database and describe each difference from what was written, in one sentence.

Rows are compared with their indexes, contents with their digests, conversations with their hash chains, and
holdings with the changes they come from. Everything is read, and nothing is changed.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from typing import Any

import apsw

from hone.core.errors import StoreError
from hone.core.messages import Message, decode, digest
from hone.core.prefix import Prefix
from hone.core.transcript import chained
from hone.core.trust import Trust
from hone.core.turn import Origin
from hone.stores import curator_runs as rounds
from hone.stores import jobs, ledger, looks, lookup, passages, record, rules
from hone.stores import skill_catalog as shelf
from hone.stores.database import MIGRATIONS, read_script
from hone.stores.tree import LINE, SYMPTOMS, moment
from hone.stores.writer import FOREIGN

MOST = 100
"""Findings of one kind that are told; where there are so many, the rest says nothing new."""

# FTS5 moves its version from 4 to 5 when it first deletes in place.
CONFIG = "SELECT k, CASE k WHEN 'version' THEN v IN (4, 5) ELSE v END FROM {}_config"
SCHEMA = (
    "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name",
    CONFIG.format("card_words"),
    CONFIG.format("passage_words"),
)
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
NUMBERED = "SELECT name, seq FROM sqlite_sequence"
SPENDING = "SELECT id, at, origin, input, cached, written, output FROM spending"
PARTIAL = "SELECT name, tbl_name, sql FROM sqlite_schema WHERE type = 'index' AND sql LIKE '% WHERE %'"
MIRROR = "SELECT length(home) = 16 AND home NOT GLOB '*[^0-9a-f]*' FROM mirror"
MISTAKEN = """
SELECT name FROM skills LEFT JOIN cards ON cards.id = card WHERE card IS NOT NULL AND digest IS NOT document
"""
TEXTS = """
SELECT words, w.rowid, name, w.description, body FROM card_words AS w LEFT JOIN cards ON cards.id = w.rowid
"""
CARD = "INSERT INTO card_words (rowid, name, description, body) VALUES (?, ?, ?, ?)"
PASSAGE = "INSERT INTO passage_words (rowid, text) VALUES (?, ?)"

Check = Callable[[apsw.Connection], Iterable[str]]


def examine(connection: apsw.Connection) -> list[str]:
    """What is damaged in a home's database; empty if all is well."""
    checks: tuple[tuple[str, Check], ...] = (
        ("its pages", pages),
        ("its tables", _schema),
        ("references between its tables", _references),
        ("indexes over some rows", _partial),
        ("the numbers given last", _numbers),
        ("the beginnings of conversations", lambda each: _contents(each, "prefixes", Prefix.decode)),
        ("messages", lambda each: _contents(each, "contents", decode)),
        ("the index of messages", _words),
        ("conversations", _nodes),
        ("sessions", _sessions),
        ("what is known", record.unsound),
        ("the index of skills", _cards),
        ("changes", lambda each: _read(ledger.every(each))),
        ("reviews", lambda each: _read(jobs.select(each, jobs.ALL, -1))),
        ("what is to be looked back over", lambda each: _read(looks.select(each))),
        ("rounds of the curator", lambda each: _read(rounds.select(each))),
        ("cards of skills", _shelved),
        ("what was spent", _spending),
        ("the name of this home", _mirror),
    )
    return [line for name, check in checks for line in _gathered(connection, name, check)]


def pages(connection: apsw.Connection) -> Iterator[str]:
    """Each page by its place, each index by its rows, and so each row by its indexes."""
    lookup.update(connection)
    for (line,) in connection.execute(f"PRAGMA integrity_check({MOST})"):
        if line != "ok":
            yield from (f"SQLite: {part}" for part in line.splitlines() if not part.startswith("***"))


def _gathered(connection: apsw.Connection, name: str, check: Check) -> list[str]:
    """Where something cannot be read at all, that is what was found."""
    found: list[str] = []
    try:
        for line in check(connection):
            found.append(line)
            if len(found) == MOST:
                break
    except (*FOREIGN, *SYMPTOMS, IndexError, StoreError) as error:
        found.append(f"Of {name} not all can be read: {error}.")
    return found


def _schema(connection: apsw.Connection) -> Iterator[str]:
    with closing(apsw.Connection(":memory:")) as fresh:
        for script in MIGRATIONS[: int(connection.pragma("user_version"))]:
            fresh.execute(read_script(script))
        if any(connection.execute(each).fetchall() != fresh.execute(each).fetchall() for each in SCHEMA):
            yield "Its tables are not those that this version of Hone makes."


def _references(connection: apsw.Connection) -> Iterator[str]:
    for table, row, other, _ in connection.execute("PRAGMA foreign_key_check"):
        yield f"Row {row} of {table} refers to something that is not in {other}."


def _partial(connection: apsw.Connection) -> Iterator[str]:
    """SQLite does not look for entries that an index over some of the rows has too many."""
    rows: list[Any] = connection.execute(PARTIAL).fetchall()
    for index, table, sql in rows:
        counted = f"SELECT count(*) FROM {table} {{}} WHERE {sql.partition(' WHERE ')[2]}"
        with_it, without = counted.format(f"INDEXED BY {index}"), counted.format("NOT INDEXED")
        if connection.execute(with_it).get != connection.execute(without).get:
            yield f"The index {index} has entries that are not its own."


def _mirror(connection: apsw.Connection) -> Iterator[str]:
    if connection.execute(MIRROR).fetchall() != [(1,)]:
        yield "What this home is known by to a memory backend is not what was written."


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
    same = lookup.is_complete(connection, "card_words", CARD, [row[1:] for row in rows])
    if not same or any(words and shelf.together(texts) != words for words, _, *texts in rows):
        yield "Search does not find every skill."


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
    """Its messages as far as somebody asks; what is wrong with one of them is found elsewhere."""
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
    """Where reading is the check: it raises Corrupt."""
    return iter(())
