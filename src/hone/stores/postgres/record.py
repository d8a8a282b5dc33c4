"""Write changes to PostgreSQL inside the caller's transaction.

The owner's row is locked first: ids have no gaps, and a reader who has seen one has seen all before it.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from hone.core.ledger import SKILL, Change, ChangeId, ChangeState, Delta, Entry, Target
from hone.core.messages import canonical, sound
from hone.core.skill import ARCHIVED, DOCUMENT, ORIGIN, PINNED, PROJECT
from hone.stores import checks
from hone.stores.postgres.database import Rows
from hone.stores.record import reachable, settled
from hone.stores.tree import moment, stamp

LOCK = "SELECT lock_owner(%(owner)s)"
NEXT = "UPDATE owners SET changes = changes + 1 WHERE owner = %(owner)s RETURNING changes"
PUT_CONTENT = """
INSERT INTO knowledge (owner, digest, body) VALUES (%(owner)s, %(digest)s, %(body)s) ON CONFLICT DO NOTHING
"""
HAVE_CONTENT = "SELECT 1 FROM knowledge WHERE owner = %(owner)s AND digest = %(digest)s"
PUT_CHANGE = """
INSERT INTO changes (owner, id, at, target, deed, standing, confirmed, cause, about, sources, actor, session,
    parent, tool, call, reason, ground, quotes, batch, platform)
VALUES (%(owner)s, %(id)s, %(at)s, %(target)s, %(deed)s, %(standing)s, %(confirmed)s, %(cause)s, %(about)s,
    %(sources)s, %(actor)s, %(session)s, %(parent)s, %(tool)s, %(call)s, %(reason)s, %(ground)s, %(quotes)s,
    %(batch)s, %(platform)s)
"""
PUT_DELTA = """
INSERT INTO deltas (owner, change, position, path, before, after)
VALUES (%(owner)s, %(change)s, %(position)s, %(path)s, %(before)s, %(after)s)
"""
PUT_EVIDENCE = """
INSERT INTO evidence (owner, change, position, session, message, trust, digest)
VALUES (%(owner)s, %(change)s, %(position)s, %(session)s, %(message)s, %(trust)s, %(digest)s)
"""
PUT_LETTER = "INSERT INTO outbox (owner, change) VALUES (%(owner)s, %(change)s)"
SETTLED = """(
    SELECT max(id) FROM changes AS later
    WHERE later.owner = c.owner AND later.about = c.id AND later.standing = 'active'
)"""
"""A pending change settles nothing."""
ABOUT = f"SELECT standing, {SETTLED} FROM changes AS c WHERE owner = %(owner)s AND id = %(id)s"
HELD = "SELECT digest FROM holdings WHERE owner = %(owner)s AND target = %(target)s AND path = %(path)s"
HOLD = """
INSERT INTO holdings (owner, target, path, digest) VALUES (%(owner)s, %(target)s, %(path)s, %(digest)s)
ON CONFLICT (owner, target, path) DO UPDATE SET digest = excluded.digest
"""
DROP = "DELETE FROM holdings WHERE owner = %(owner)s AND target = %(target)s AND path = %(path)s"
FACTS = """
SELECT path, h.digest, CASE WHEN path = ANY (%(texts)s) THEN body END
FROM holdings AS h LEFT JOIN knowledge AS k ON k.owner = h.owner AND k.digest = h.digest
WHERE h.owner = %(owner)s AND target = %(target)s AND path = ANY (%(facts)s)
"""
SHELVE = """
INSERT INTO skills (owner, name, document, birth, pinned, archived, project)
VALUES (%(owner)s, %(name)s, %(document)s, %(birth)s, %(pinned)s, %(archived)s, %(project)s)
ON CONFLICT (owner, name) DO UPDATE SET document = excluded.document, birth = excluded.birth,
    pinned = excluded.pinned, archived = excluded.archived, project = excluded.project
"""
UNSHELVE = "DELETE FROM skills WHERE owner = %(owner)s AND name = %(name)s"


def record(
    rows: Rows, changes: Sequence[Change], contents: Mapping[str, bytes], at: datetime
) -> Sequence[Entry]:
    """Do what Ledger.record promises. Call it in a transaction that is rolled back if this raises."""
    checks.genuine(contents)
    rows.execute(LOCK)
    rows.many(PUT_CONTENT, [{"digest": name, "body": body} for name, body in sorted(contents.items())])
    made = [_add(rows, checks.storable(change), contents, stamp(at)) for change in changes]
    shelve(rows, dict.fromkeys(entry.change.target for entry in made))
    return settled(made)


def _add(rows: Rows, change: Change, contents: Mapping[str, bytes], at: int) -> Entry:
    if change.about is not None:
        standing, by = rows.one(ABOUT, id=reachable(change.about)) or (None, None)
        checks.settle(change.about, None if standing is None else ChangeState(standing), by)
    for name in checks.digests(change):
        if name not in contents and not rows.one(HAVE_CONTENT, digest=sound(name)):
            raise checks.unknown(name)
    is_active = change.standing is ChangeState.ACTIVE
    if is_active:
        _apply(rows, change.target, change.deltas)
    id = ChangeId(rows.value(NEXT))
    rows.execute(PUT_CHANGE, id=id, at=at, **_list_change(change))
    _put_parts(rows, id, change)
    if is_active and change.deltas:
        rows.execute(PUT_LETTER, change=id)
    return Entry(id, moment(at), change)


def _put_parts(rows: Rows, id: ChangeId, change: Change) -> None:
    rows.many(
        PUT_DELTA,
        [
            {"change": id, "position": place, "path": each.path, "before": each.before, "after": each.after}
            for place, each in enumerate(change.deltas)
        ],
    )
    rows.many(
        PUT_EVIDENCE,
        [
            {
                "change": id,
                "position": place,
                "session": each.session,
                "message": each.message,
                "trust": int(each.trust),
                "digest": each.digest,
            }
            for place, each in enumerate(change.author.evidence)
        ],
    )


def _list_change(change: Change) -> dict[str, Any]:
    author = change.author
    return {
        "target": change.target,
        "deed": change.kind,
        "standing": change.standing,
        "confirmed": change.confirmed,
        "cause": change.cause,
        "about": change.about,
        "sources": canonical(change.sources),
        "actor": author.actor,
        "session": author.session,
        "parent": author.parent,
        "tool": author.tool,
        "call": author.call,
        "reason": author.reason,
        "ground": int(author.trust_floor),
        "quotes": canonical(author.quotes),
        "batch": change.group,
        "platform": author.platform,
    }


def _apply(rows: Rows, target: Target, deltas: Iterable[Delta]) -> None:
    """Raise Conflict unless each delta begins with what is held."""
    for delta in deltas:
        checks.follow(target, delta, rows.value(HELD, target=target, path=delta.path))
        if delta.after is None:
            rows.execute(DROP, target=target, path=delta.path)
        else:
            rows.execute(HOLD, target=target, path=delta.path, digest=delta.after)


def shelve(rows: Rows, targets: Iterable[Target]) -> None:
    """Update the rows of those skills."""
    for target in targets:
        if target.startswith(SKILL):
            line = _line(rows, target)
            name = target.removeprefix(SKILL)
            rows.execute(SHELVE, name=name, **line) if line else rows.execute(UNSHELVE, name=name)


def _line(rows: Rows, target: str) -> dict[str, Any] | None:
    texts = [ORIGIN, PROJECT]
    wanted = [DOCUMENT, PINNED, ARCHIVED, *texts]
    found = rows.execute(FACTS, target=target, facts=wanted, texts=texts)
    facts = {path: (name, body or b"") for path, name, body in found}
    if DOCUMENT not in facts:
        return None
    return {
        "document": facts[DOCUMENT][0],
        "birth": checks.birth(facts[ORIGIN][1] if ORIGIN in facts else None),
        "pinned": PINNED in facts,
        "archived": ARCHIVED in facts,
        "project": facts[PROJECT][1].decode("utf-8", "replace") if PROJECT in facts else "",
    }
