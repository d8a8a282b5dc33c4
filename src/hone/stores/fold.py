"""What the active changes have made of each target, kept beside them: holdings, and a line per skill."""

from collections.abc import Iterable, Iterator, Sequence

import apsw

from hone.core.ledger import SKILL, Delta, Target
from hone.core.messages import digest
from hone.core.skill import ARCHIVED, DOCUMENT, ORIGIN, PINNED, PROJECT
from hone.stores import checks

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
NAMED = """
SELECT before FROM deltas WHERE before IS NOT NULL UNION SELECT after FROM deltas WHERE after IS NOT NULL
EXCEPT SELECT digest FROM knowledge
"""

Line = tuple[str, str, str, int, int, str]


def apply(connection: apsw.Connection, target: Target, deltas: Iterable[Delta]) -> None:
    """Raises Conflict unless each delta begins with what is held."""
    for delta in deltas:
        key = (target, delta.path)
        checks.follow(target, delta, connection.execute(HELD, key).get)
        if delta.after is None:
            connection.execute(DROP, key)
        else:
            connection.execute(HOLD, (*key, delta.after))


def shelve(connection: apsw.Connection, targets: Iterable[Target]) -> None:
    """Brings the lines of those skills along."""
    for target in targets:
        if not target.startswith(SKILL):
            continue
        line = _line(connection, target)
        if line is None:
            connection.execute("DELETE FROM skills WHERE name = ?", (target.removeprefix(SKILL),))
        else:
            connection.execute(SHELVE, line)


def unsound(connection: apsw.Connection) -> Sequence[str]:
    """What is not as the changes say, a sentence each."""
    fold: dict[tuple[str, str], str] = {}
    found: list[str] = []
    for change, target, path, before, after in connection.execute(ACTIVE):
        if fold.pop((target, path), None) != before:
            found.append(f"Change {change} does not begin with what {target} held at {path}.")
        if after is not None:
            fold[target, path] = after
    held = {(target, path): name for target, path, name in connection.execute("SELECT * FROM holdings")}
    found += [
        f"{target} holds something else at {path} than its changes say."
        for target, path in sorted(fold.keys() | held.keys())
        if fold.get((target, path)) != held.get((target, path))
    ]
    return [*found, *_lines_astray(connection), *_contents_lost(connection)]


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
