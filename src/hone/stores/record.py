"""Changes into SQLite, as one piece of work inside whatever transaction it is called in."""

from collections.abc import Mapping, Sequence
from datetime import datetime

import apsw

from hone.core.ledger import Change, ChangeId, ChangeState, Entry
from hone.core.messages import canonical, sound
from hone.core.value import replace
from hone.stores import checks, fold
from hone.stores.tree import moment, stamp

PUT_CONTENT = "INSERT INTO knowledge (digest, body) VALUES (?, ?) ON CONFLICT DO NOTHING"
HAVE_CONTENT = "SELECT 1 FROM knowledge WHERE digest = ?"
PUT_CHANGE = """
INSERT INTO changes (at, target, deed, standing, confirmed, cause, about, sources,
    actor, session, parent, tool, call, reason, ground, quotes, batch)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id
"""
PUT_DELTA = "INSERT INTO deltas (change, position, path, before, after) VALUES (?, ?, ?, ?, ?)"
PUT_EVIDENCE = """
INSERT INTO evidence (change, position, session, message, trust, digest) VALUES (?, ?, ?, ?, ?, ?)
"""
PUT_LETTER = "INSERT INTO outbox (change) VALUES (?)"
SETTLED = "(SELECT max(id) FROM changes AS later WHERE later.about = c.id AND later.standing = 'active')"
"""What waits itself settles nothing."""
ABOUT = f"SELECT standing, {SETTLED} FROM changes AS c WHERE id = ?"


def record(
    connection: apsw.Connection, changes: Sequence[Change], contents: Mapping[str, bytes], at: datetime
) -> Sequence[Entry]:
    """What Ledger.record promises. Must be called in a transaction that is undone if this raises."""
    checks.genuine(contents)
    connection.executemany(PUT_CONTENT, contents.items())
    made = [_add(connection, checks.storable(change), contents, stamp(at)) for change in changes]
    fold.shelve(connection, dict.fromkeys(entry.change.target for entry in made))
    return settled(made)


def settled(made: Sequence[Entry]) -> tuple[Entry, ...]:
    """New entries, some of which may be about others of them."""
    later = {entry.change.about: entry.id for entry in made if entry.change.standing is ChangeState.ACTIVE}
    return tuple(replace(entry, settled=later.get(entry.id)) for entry in made)


def reachable(id: int) -> int:
    """An id that SQLite can be asked for; no change has a negative one, or one past its numbers."""
    return max(-1, min(id, (1 << 63) - 1))


def _add(connection: apsw.Connection, change: Change, contents: Mapping[str, bytes], at: int) -> Entry:
    if change.about is not None:
        standing, by = _about(connection, change.about)
        checks.settle(change.about, standing, by)
    for name in checks.digests(change):
        if name not in contents and not connection.execute(HAVE_CONTENT, (sound(name),)).get:
            raise checks.unknown(name)
    if change.standing is ChangeState.ACTIVE:
        fold.apply(connection, change.target, change.deltas)
    id = ChangeId(connection.execute(PUT_CHANGE, _row(change, at)).get)
    for position, delta in enumerate(change.deltas):
        connection.execute(PUT_DELTA, (id, position, delta.path, delta.before, delta.after))
    for position, each in enumerate(change.author.evidence):
        row = (id, position, each.session, each.message, int(each.trust), each.digest)
        connection.execute(PUT_EVIDENCE, row)
    if change.standing is ChangeState.ACTIVE and change.deltas:
        connection.execute(PUT_LETTER, (id,))
    return Entry(id, moment(at), change)


def _about(connection: apsw.Connection, about: ChangeId) -> tuple[ChangeState | None, ChangeId | None]:
    row = connection.execute(ABOUT, (reachable(about),)).fetchone()
    return (None, None) if row is None else (ChangeState(row[0]), row[1])


def _row(change: Change, at: int) -> tuple[str | int | None, ...]:
    author = change.author
    return (
        at,
        change.target,
        change.kind,
        change.standing,
        int(change.confirmed),
        change.cause,
        change.about,
        canonical(change.sources),
        author.actor,
        author.session,
        author.parent,
        author.tool,
        author.call,
        author.reason,
        int(author.trust_floor),
        canonical(author.quotes),
        change.group,
    )
