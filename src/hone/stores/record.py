"""Write changes to SQLite inside the caller's transaction.

The result of the active changes is stored with them: the holdings of each target, and a row per skill.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

import apsw

from hone.core.ledger import SKILL, Change, ChangeId, ChangeState, Delta, Entry, Target
from hone.core.messages import canonical, digest, sound
from hone.core.skill import ARCHIVED, DOCUMENT, ORIGIN, PINNED, PROJECT
from hone.core.value import replace
from hone.stores import checks
from hone.stores.tree import moment, stamp

PUT_CONTENT = "INSERT INTO knowledge (digest, body) VALUES (?, ?) ON CONFLICT DO NOTHING"
HAVE_CONTENT = "SELECT 1 FROM knowledge WHERE digest = ?"
PUT_CHANGE = """
INSERT INTO changes (at, target, deed, standing, confirmed, cause, about, sources,
    actor, session, parent, tool, call, reason, ground, quotes, batch, platform)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id
"""
PUT_DELTA = "INSERT INTO deltas (change, position, path, before, after) VALUES (?, ?, ?, ?, ?)"
PUT_EVIDENCE = """
INSERT INTO evidence (change, position, session, message, trust, digest) VALUES (?, ?, ?, ?, ?, ?)
"""
PUT_LETTER = "INSERT INTO outbox (change) VALUES (?)"
SETTLED = "(SELECT max(id) FROM changes AS later WHERE later.about = c.id AND later.standing = 'active')"
"""A pending change settles nothing."""
HELD = "SELECT digest FROM holdings WHERE target = ? AND path = ?"
HOLD = "INSERT OR REPLACE INTO holdings (target, path, digest) VALUES (?, ?, ?)"
DROP = "DELETE FROM holdings WHERE target = ? AND path = ?"
FACTS = f"""
SELECT path, h.digest, CASE WHEN path IN ('{ORIGIN}', '{PROJECT}') THEN body END
FROM holdings AS h LEFT JOIN knowledge AS k ON k.digest = h.digest
WHERE target = ? AND path IN ('{DOCUMENT}', '{ORIGIN}', '{PROJECT}', '{PINNED}', '{ARCHIVED}')
"""
SHELVE = """
INSERT OR REPLACE INTO skills (name, document, card, birth, pinned, archived, project)
VALUES (?1, ?2, (SELECT id FROM cards WHERE digest = ?2), ?3, ?4, ?5, ?6)
"""
ACTIVE = """
SELECT change, target, path, before, after FROM changes JOIN deltas ON change = id
WHERE standing = 'active' ORDER BY change, position
"""
LINES = "SELECT name, document, birth, pinned, archived, project FROM skills"
# Read from the tables themselves: if an index has lost an entry, the content is still there.
NAMED = """
SELECT before FROM deltas INDEXED BY sqlite_autoindex_deltas_1 WHERE before IS NOT NULL
UNION SELECT after FROM deltas INDEXED BY sqlite_autoindex_deltas_1 WHERE after IS NOT NULL
EXCEPT SELECT digest FROM knowledge NOT INDEXED
"""
ABOUT = f"SELECT standing, {SETTLED} FROM changes AS c WHERE id = ?"


Line = tuple[str, str, str, int, int, str]


def record(
    connection: apsw.Connection, changes: Sequence[Change], contents: Mapping[str, bytes], at: datetime
) -> Sequence[Entry]:
    """Do what Ledger.record promises. Call it in a transaction that is rolled back if this raises."""
    checks.genuine(contents)
    connection.executemany(PUT_CONTENT, contents.items())
    made = [_add(connection, checks.storable(change), contents, stamp(at)) for change in changes]
    shelve(connection, dict.fromkeys(entry.change.target for entry in made))
    return settled(made)


def settled(made: Sequence[Entry]) -> tuple[Entry, ...]:
    """Return new entries, some of which may settle others of them."""
    later = {entry.change.about: entry.id for entry in made if entry.change.standing is ChangeState.ACTIVE}
    return tuple(replace(entry, settled=later.get(entry.id)) for entry in made)


def reachable(id: int) -> int:
    """Return a valid id for SQLite: no change has a negative one, or one beyond its numbers."""
    return max(-1, min(id, (1 << 63) - 1))


def _add(connection: apsw.Connection, change: Change, contents: Mapping[str, bytes], at: int) -> Entry:
    if change.about is not None:
        state, by = _about(connection, change.about)
        checks.settle(change.about, state, by)
    for name in checks.digests(change):
        if name not in contents and not connection.execute(HAVE_CONTENT, (sound(name),)).get:
            raise checks.unknown(name)
    if change.standing is ChangeState.ACTIVE:
        apply(connection, change.target, change.deltas)
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
        author.platform,
    )


def apply(connection: apsw.Connection, target: Target, deltas: Iterable[Delta]) -> None:
    """Raise Conflict unless each delta begins with what is held."""
    for delta in deltas:
        key = (target, delta.path)
        checks.follow(target, delta, connection.execute(HELD, key).get)
        if delta.after is None:
            connection.execute(DROP, key)
        else:
            connection.execute(HOLD, (*key, delta.after))


def shelve(connection: apsw.Connection, targets: Iterable[Target]) -> None:
    """Update the rows of those skills."""
    for target in targets:
        if not target.startswith(SKILL):
            continue
        line = _line(connection, target)
        if line is None:
            connection.execute("DELETE FROM skills WHERE name = ?", (target.removeprefix(SKILL),))
        else:
            connection.execute(SHELVE, line)


def unsound(connection: apsw.Connection) -> Sequence[str]:
    """Return where the tables contradict the changes, a sentence each."""
    return [*broken(connection), *astray(connection)]


def broken(connection: apsw.Connection) -> Iterator[str]:
    """Yield what is wrong with the changes themselves, and with the contents they name."""
    yield from _folded(connection)[1]
    yield from _contents_lost(connection)


def astray(connection: apsw.Connection) -> Iterator[str]:
    """Yield where holdings and the list of skills contradict the changes that they are made from."""
    fold = fold_changes(connection)
    held = {(target, path): name for target, path, name in connection.execute("SELECT * FROM holdings")}
    for target, path in sorted(fold.keys() | held.keys()):
        if fold.get((target, path)) != held.get((target, path)):
            yield f"{target} holds something else at {path} than its changes say."
    yield from _lines_astray(connection)


def fold_changes(connection: apsw.Connection) -> Mapping[tuple[str, str], str]:
    """Return what the active changes make of each target, by target and path."""
    return _folded(connection)[0]


def _folded(connection: apsw.Connection) -> tuple[dict[tuple[str, str], str], list[str]]:
    fold: dict[tuple[str, str], str] = {}
    gaps: list[str] = []
    for change, target, path, before, after in connection.execute(ACTIVE):
        if fold.pop((target, path), None) != before:
            gaps.append(f"Change {change} does not begin with what {target} held at {path}.")
        if after is not None:
            fold[target, path] = after
    return fold, gaps


def _line(connection: apsw.Connection, target: str) -> Line | None:
    facts = {path: (name, body or b"") for path, name, body in connection.execute(FACTS, (target,))}
    if DOCUMENT not in facts:
        return None
    birth = checks.birth(facts[ORIGIN][1] if ORIGIN in facts else None)
    project = facts[PROJECT][1].decode("utf-8", "replace") if PROJECT in facts else ""
    flags = (int(PINNED in facts), int(ARCHIVED in facts))
    return (target.removeprefix(SKILL), facts[DOCUMENT][0], birth, *flags, project)


def _lines_astray(connection: apsw.Connection) -> Iterator[str]:
    lines = {line[0]: line for line in connection.execute(LINES)}
    holders = f"SELECT DISTINCT target FROM holdings WHERE target >= '{SKILL}' AND target < 'skill;'"
    names = {target.removeprefix(SKILL) for (target,) in connection.execute(holders)}
    for name in sorted(names | lines.keys()):
        if lines.get(name) != _line(connection, SKILL + name):
            yield f"The list of skills says something else of {name} than it holds."


def _contents_lost(connection: apsw.Connection) -> Iterator[str]:
    for (name,) in connection.execute(NAMED):
        yield f"The content {name[:12]} is not there."
    for name, body in connection.execute("SELECT digest, body FROM knowledge"):
        if digest(body) != name:
            yield f"The content {name[:12]} is not what was written."
