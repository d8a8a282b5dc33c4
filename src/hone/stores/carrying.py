"""Carry erasures from a home's database to an older copy of it.

Restoring a backup calls this, so that the backup does not restore what was erased after it was made. The
records hold no text: the remains of each row come from the newer database.
"""

import secrets
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import apsw

from hone.core.holding import ERASED
from hone.core.ids import SessionId
from hone.core.ledger import COPY, ITEM, SECTION, SKILL, Actor, Author, Change, ChangeKind, Delta, Target
from hone.core.messages import Message, decode
from hone.core.prefix import Prefix
from hone.core.value import replace
from hone.stores.erasing import (
    KEYS,
    RECORDS,
    TEXTS,
    Erased,
    decode_record,
    forget_session,
    index_anew,
    note,
    rename_path,
    rename_target,
)
from hone.stores.record import record
from hone.stores.redacting import (
    blank_message,
    fetch,
    rehash,
    replace_contents,
    replace_knowledge,
    replace_prefixes,
)
from hone.stores.tree import EPOCH

SAME = """
SELECT n.content, c.body FROM nodes AS n JOIN contents AS c ON c.id = n.content WHERE n.id = ?
"""
CHAIN = "SELECT prefix FROM nodes JOIN chains ON chains.id = chain WHERE nodes.id = ?"
SEQUENCES = "SELECT name, seq FROM sqlite_sequence"
PATH = "SELECT path FROM deltas WHERE change = ? AND position = ?"
BLANK = f"{ERASED}\n".encode()


def carry_erasures(source: apsw.Connection, target: apsw.Connection) -> Sequence[Erased]:
    """Erase in `target`, an older database of the same home, what was erased in `source` since. Return those
    erasures. Call this in a transaction of the target. If it returns any, rewrite the file afterwards with
    `hone.stores.purging.purge(path, Erasure())`. Notes about published files stay, so that files of the
    backup that hold erased text count as stale and are published again."""
    known = {name for name, *_ in fetch(target, RECORDS)}
    fresh = [
        (name, at, decode_record(what)) for name, at, what in fetch(source, RECORDS) if name not in known
    ]
    for name, at, erased in fresh:
        _apply(source, target, erased)
        note(target, erased, at, name)
    if fresh:
        index_anew(target)
    # No number of a message or a change is ever reused, or a record would refer to another one.
    for table, last in fetch(source, SEQUENCES):
        target.execute("UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = ?", (last, table))
    return [erased for _, _, erased in fresh]


def _apply(source: apsw.Connection, target: apsw.Connection, erased: Erased) -> None:
    """Copy the remains of each row from the source. If the row is gone there, remove it."""
    made: dict[int, Message] = {}
    for node in erased.nodes:
        mine: Any = target.execute(SAME, (node,)).fetchone()
        theirs: Any = source.execute(SAME, (node,)).fetchone()
        if mine is not None:
            made[mine[0]] = decode(theirs[1]) if theirs else blank_message(decode(mine[1]))
    chains = replace_contents(target, made)[1]
    chains |= replace_prefixes(target, dict(_prefixes(source, target, erased.roots)))
    for session in erased.sessions:
        forget_session(target, SessionId(session), Erased())
    rehash(target, chains)
    for table, id, column in erased.rows:
        _copy_text(source, target, table, id, column)
    for change, position in erased.evidence:
        target.execute(
            "UPDATE evidence SET digest = ? WHERE change = ? AND position = ?",
            (secrets.token_hex(32), change, position),
        )
    replace_knowledge(target, dict(_contents(source, target, erased.deltas)))
    for change, name in erased.renamed:
        for (old,) in fetch(target, "SELECT target FROM changes WHERE id = ?", change):
            rename_target(target, old, name)
            _take_away(target, Target(name))
    for change, position, name in erased.paths:
        for (old,) in fetch(target, PATH, change, position):
            rename_path(target, old, name)


def _take_away(connection: apsw.Connection, name: Target) -> None:
    """Remove a skill or an item that has lost its name, as the erasure did before."""
    held = fetch(connection, "SELECT path, digest FROM holdings WHERE target = ?", name)
    if held and name.startswith((SKILL, ITEM, COPY, SECTION)):
        deltas = tuple(Delta(path, digest, None) for path, digest in held)
        change = Change(name, ChangeKind.REMOVE, deltas, Author(Actor.OWNER), confirmed=True)
        record(connection, [change], {}, EPOCH)


def _prefixes(
    source: apsw.Connection, target: apsw.Connection, roots: Iterable[int]
) -> Iterator[tuple[int, Prefix]]:
    body = "SELECT body FROM prefixes WHERE id = ?"
    for root in roots:
        mine, theirs = (each.execute(CHAIN, (root,)).get for each in (target, source))
        if mine is not None:
            old = Prefix.decode(target.execute(body, (mine,)).get)
            left = None if theirs is None else Prefix.decode(source.execute(body, (theirs,)).get)
            yield mine, left or replace(old, system=ERASED)


def _copy_text(source: apsw.Connection, target: apsw.Connection, table: str, id: str, column: str) -> None:
    if column not in TEXTS.get(table, ()):  # written by a newer Hone
        return
    key = KEYS[table]
    left = source.execute(f"SELECT {column} FROM {table} WHERE CAST({key} AS TEXT) = ?", (id,)).get
    empty = "[]" if column in ("quotes", "sources") else ""
    row = (empty if left is None else left, id)
    target.execute(f"UPDATE {table} SET {column} = ? WHERE CAST({key} AS TEXT) = ?", row)


def _contents(
    source: apsw.Connection, target: apsw.Connection, deltas: Iterable[tuple[int, int]]
) -> Iterator[tuple[str, bytes]]:
    names = "SELECT before, after FROM deltas WHERE change = ? AND position = ?"
    body = "SELECT body FROM knowledge WHERE digest = ?"
    for place in deltas:
        mine: Any = target.execute(names, place).fetchone()
        theirs: Any = source.execute(names, place).fetchone() or (None, None)
        for old, new in zip(mine or (), theirs, strict=False):
            if old is not None:
                yield old, BLANK if new is None else source.execute(body, (new,)).get or BLANK
