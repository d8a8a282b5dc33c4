"""Replace stored contents in PostgreSQL, and update everything that names them.

It does what `hone.stores.redacting` does for SQLite. All functions run in the caller's exclusive transaction.
"""

from collections.abc import Collection, Mapping

from hone.core.ledger import SKILL, Target
from hone.core.messages import Message, decode, digest, encode
from hone.core.prefix import Prefix
from hone.core.transcript import chained
from hone.stores import rules
from hone.stores.postgres.database import Rows
from hone.stores.postgres.record import PUT_CONTENT as PUT_KNOWLEDGE
from hone.stores.postgres.record import shelve
from hone.stores.postgres.tree import LINE, PUT_PREFIX

PUT_CONTENT = """
INSERT INTO contents (owner, digest, body) VALUES (%(owner)s, %(new)s, %(body)s) ON CONFLICT DO NOTHING
"""
MOVE_NODES = """
UPDATE nodes SET content = %(new)s WHERE owner = %(owner)s AND content = %(old)s RETURNING id, chain
"""
MOVE_EVIDENCE = "UPDATE evidence SET digest = %(new)s WHERE owner = %(owner)s AND digest = %(old)s"
DROP_CONTENT = "DELETE FROM contents WHERE owner = %(owner)s AND digest = %(old)s"
# The next search indexes new text under an old node.
INDEX_AGAIN = """
UPDATE backlog SET upto = least(upto, %(first)s - 1), seen = least(seen, %(first)s - 1)
WHERE owner = %(owner)s
"""
MOVE_CHAINS = "UPDATE chains SET prefix = %(new)s WHERE owner = %(owner)s AND prefix = %(old)s RETURNING id"
DROP_PREFIX = "DELETE FROM prefixes WHERE owner = %(owner)s AND digest = %(old)s"
NODES = """
SELECT id, chain, parent, hash, content FROM nodes
WHERE owner = %(owner)s AND chain = ANY (%(chains)s::bigint[]) ORDER BY id
"""
ROOTS = "SELECT id, prefix FROM chains WHERE owner = %(owner)s AND id = ANY (%(chains)s::bigint[])"
REHASH = """
UPDATE nodes AS n SET hash = given.hash
FROM unnest(%(ids)s::bigint[], %(hashes)s::text[]) AS given (id, hash)
WHERE n.owner = %(owner)s AND n.id = given.id
"""
ENDS = "SELECT id, head FROM sessions WHERE owner = %(owner)s AND chain = ANY (%(chains)s::bigint[])"
BODIES = f"""{LINE}
SELECT body FROM line JOIN contents AS c ON c.owner = %(owner)s AND c.digest = content ORDER BY depth
"""
CLOSE = """
UPDATE sessions SET opened = %(opened)s, opening = %(opening)s, hash = (
    SELECT n.hash FROM nodes AS n WHERE n.owner = %(owner)s AND n.id = sessions.head
) WHERE owner = %(owner)s AND id = %(session)s
"""
HOLDERS = """
SELECT DISTINCT target, path FROM deltas AS d JOIN changes AS c ON c.owner = d.owner AND c.id = d.change
WHERE d.owner = %(owner)s AND (before = %(digest)s OR after = %(digest)s) ORDER BY 1, 2
"""
RENAME_KNOWLEDGE = (
    "UPDATE deltas SET before = %(new)s WHERE owner = %(owner)s AND before = %(old)s",
    "UPDATE deltas SET after = %(new)s WHERE owner = %(owner)s AND after = %(old)s",
    "UPDATE holdings SET digest = %(new)s WHERE owner = %(owner)s AND digest = %(old)s",
    # Summaries of skills are rebuilt when they are next listed.
    "DELETE FROM cards WHERE owner = %(owner)s AND digest = %(old)s",
    "DELETE FROM knowledge WHERE owner = %(owner)s AND digest = %(old)s",
)
LATEST = """
INSERT INTO outbox (owner, change)
SELECT %(owner)s, max(change) FROM deltas AS d JOIN changes AS c ON c.owner = d.owner AND c.id = d.change
WHERE d.owner = %(owner)s AND target = %(target)s AND standing = 'active' HAVING max(change) IS NOT NULL
ON CONFLICT DO NOTHING
"""


def replace_contents(rows: Rows, made: Mapping[str, Message]) -> tuple[list[int], set[int]]:
    """Replace contents by digest. Return the nodes and the chains that hold them."""
    nodes: list[int] = []
    chains: set[int] = set()
    for old, message in made.items():
        encoded = encode(message)
        new = digest(encoded)
        if new == old:
            continue
        rows.execute(PUT_CONTENT, new=new, body=encoded)
        for node, chain in rows.pairs(MOVE_NODES, new=new, old=old):
            nodes.append(node)
            chains.add(chain)
        rows.execute(MOVE_EVIDENCE, new=new, old=old)
        rows.execute(DROP_CONTENT, old=old)
    if nodes:
        rows.execute(INDEX_AGAIN, first=min(nodes))
    return nodes, chains


def replace_prefixes(rows: Rows, made: Mapping[str, Prefix]) -> set[int]:
    """Replace prefixes by digest. Return the chains that begin with them."""
    chains: set[int] = set()
    for old, prefix in made.items():
        if prefix.digest == old:
            continue
        rows.execute(PUT_PREFIX, digest=prefix.digest, body=prefix.encode())
        chains |= {chain for (chain,) in rows.execute(MOVE_CHAINS, new=prefix.digest, old=old)}
        rows.execute(DROP_PREFIX, old=old)
    return chains


def rehash(rows: Rows, chains: Collection[int]) -> None:
    """Rehash these chains, and update the sessions on them."""
    if not chains:
        return
    roots = dict(rows.pairs(ROOTS, chains=list(chains)))
    hashes: dict[int, str] = {}
    changed: dict[int, str] = {}
    for id, chain, parent, hash, content in rows.execute(NODES, chains=list(chains)):
        hashes[id] = chained(roots[chain] if parent is None else hashes[parent], content)
        if hashes[id] != hash:
            changed[id] = hashes[id]
    rows.execute(REHASH, ids=list(changed), hashes=list(changed.values()))
    for session, head in rows.execute(ENDS, chains=list(chains)).fetchall():
        bodies = rows.execute(BODIES, head=head).fetchall()
        opened, opening = rules.opening(decode(body) for (body,) in bodies)
        rows.execute(CLOSE, session=session, opened=opened, opening=opening)


def replace_knowledge(rows: Rows, made: Mapping[str, bytes]) -> None:
    """Replace contents of the ledger by digest. Published files keep their old digest, so that they count as
    stale and are published again."""
    targets: dict[Target, None] = {}
    for old, body in made.items():
        new = digest(body)
        if new == old:
            continue
        targets |= dict.fromkeys(Target(target) for target, _ in rows.pairs(HOLDERS, digest=old))
        rows.execute(PUT_KNOWLEDGE, digest=new, body=body)
        for statement in RENAME_KNOWLEDGE:
            rows.execute(statement, new=new, old=old)
    shelve(rows, [each for each in targets if each.startswith(SKILL)])
    for target in targets:
        rows.execute(LATEST, target=target)
