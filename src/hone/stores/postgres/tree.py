"""The tree of messages in PostgreSQL: prefixes, contents by owner and digest, chains and their nodes."""

from collections.abc import Sequence
from typing import Any

from hone.core.messages import digest
from hone.core.prefix import Prefix
from hone.core.transcript import Node
from hone.stores.postgres.database import Rows
from hone.stores.postgres.text import array
from hone.stores.tree import SYMPTOMS, NodeRow, damaged, intact, make_node, stamp

# From a node up to its root. The depth must fall with each step, so that a damaged link cannot form a cycle.
LINE = """
WITH RECURSIVE line AS (
    SELECT id, parent, former, content, depth, trust, at, hash FROM nodes
    WHERE owner = %(owner)s AND id = %(head)s
    UNION ALL
    SELECT n.id, n.parent, n.former, n.content, n.depth, n.trust, n.at, n.hash
    FROM line JOIN nodes AS n ON n.owner = %(owner)s AND n.id = line.parent AND n.depth = line.depth - 1
)
"""
WHOLE = f"""{LINE}
SELECT depth, trust, at, hash, digest, body
FROM line LEFT JOIN contents AS c ON c.owner = %(owner)s AND c.digest = content ORDER BY depth
"""
# The messages of a window, and the hash before them, without walking further up.
WINDOW = f"""
{LINE.replace("= line.depth - 1", "= line.depth - 1 AND n.depth >= %(first)s - 1")}
SELECT depth, trust, at, hash, digest, CASE WHEN depth >= %(first)s THEN body END
FROM line LEFT JOIN contents AS c ON c.owner = %(owner)s AND c.digest = content
WHERE depth <= %(last)s ORDER BY depth
"""
DIGESTS = f"{LINE} SELECT id, content FROM line ORDER BY depth"
PLACE = f"{LINE} SELECT id, hash, at FROM line WHERE depth = %(depth)s"
# Former lines are older than later ones, so that a damaged link cannot form a cycle.
FORMER = f"""{LINE}
SELECT f.id, f.chain, f.depth, f.hash, f.at
FROM line JOIN nodes AS f ON f.owner = %(owner)s AND f.id = line.former AND f.id < line.id
ORDER BY line.depth DESC LIMIT 1
"""
ROOT = "SELECT prefix FROM chains WHERE owner = %(owner)s AND id = %(chain)s"
PREFIX = """
SELECT p.digest, p.body FROM chains AS c JOIN prefixes AS p ON p.owner = c.owner AND p.digest = c.prefix
WHERE c.owner = %(owner)s AND c.id = %(chain)s
"""
PUT_PREFIX = """
INSERT INTO prefixes (owner, digest, body) VALUES (%(owner)s, %(digest)s, %(body)s) ON CONFLICT DO NOTHING
"""
PUT_CHAIN = "INSERT INTO chains (owner, prefix) VALUES (%(owner)s, %(digest)s) RETURNING id"
NODES = """
%(digests)s::text[], %(bodies)b::bytea[], %(nodes)s::text[], %(hashes)s::text[], %(trusts)s::smallint[],
%(ats)s::bigint[]
"""
PUT_NODES = f"""
SELECT put_nodes(
    %(owner)s, %(chain)s::bigint, %(parent)s::bigint, %(depth)s::integer, {NODES}, %(formers)s::bigint[]
)
"""


def put_chain(rows: Rows, prefix: Prefix) -> NodeRow:
    rows.execute(PUT_PREFIX, digest=prefix.digest, body=prefix.encode())
    return NodeRow(None, rows.value(PUT_CHAIN, digest=prefix.digest), 0, prefix.digest, 0)


def list_nodes(nodes: Sequence[Node]) -> dict[str, Any]:
    """Return the columns of nodes, and their contents in the order of digests: two writers that insert the
    same ones in different orders would deadlock."""
    contents = sorted({node.digest: node.encoded for node in nodes}.items())
    return {
        "digests": array(name for name, _ in contents),
        "bodies": [body for _, body in contents],
        "nodes": array(node.digest for node in nodes),
        "hashes": array(node.hash for node in nodes),
        "trusts": array(int(node.trust) for node in nodes),
        "ats": array(stamp(node.at) for node in nodes),
    }


def put_nodes(
    rows: Rows, place: NodeRow, nodes: Sequence[Node], formers: Sequence[int | None] = ()
) -> NodeRow:
    """Add the nodes after a place. Return the place after them."""
    if not nodes:
        return place
    id = rows.value(
        PUT_NODES,
        chain=place.chain,
        parent=place.id,
        depth=place.depth,
        formers=array(formers),
        **list_nodes(nodes),
    )
    return NodeRow(id, place.chain, place.depth + len(nodes), nodes[-1].hash, stamp(nodes[-1].at))


def read_root(rows: Rows, chain: int) -> str:
    """Return the digest of the chain's prefix."""
    return str(rows.value(ROOT, chain=chain))


def read_prefix(rows: Rows, chain: int, whose: str) -> Prefix:
    with intact(damaged(whose, "its prefix")):
        written, body = rows.one(PREFIX, chain=chain) or ("", b"")
        if digest(body) != written:
            raise ValueError(written)
        return Prefix.decode(body)


def read_nodes(rows: Rows, head: NodeRow, root: str, whose: str) -> tuple[Node, ...]:
    """Return the line from the root to the head. Each content and each link is checked against its digest."""
    nodes: list[Node] = []
    parent = root
    try:
        for row in rows.execute(WHOLE, head=head.id):
            nodes.append(make_node(parent, len(nodes) + 1, row))
            parent = nodes[-1].hash
    except SYMPTOMS as error:
        raise damaged(whose, f"message {len(nodes) + 1}") from error
    if parent != head.hash:
        raise damaged(whose, "its last message")
    return tuple(nodes)


def read_window(rows: Rows, head: NodeRow, span: tuple[int, int], root: str, whose: str) -> tuple[Node, ...]:
    """Return the messages of a span of numbers. Each content and each link is checked against its digest."""
    first, last = span[0], min(span[1], head.depth)
    if first > head.depth:
        return ()
    found = rows.execute(WINDOW, head=head.id, first=first, last=last).fetchall()
    nodes: list[Node] = []
    with intact(damaged(whose, f"a message between {first} and {last}")):
        if len(found) != last - first + (2 if first > 1 else 1):
            raise ValueError(last)
        parent = str(found.pop(0)[3]) if first > 1 else root
        for number, row in enumerate(found, first):
            nodes.append(make_node(parent, number, row))
            parent = nodes[-1].hash
        if last == head.depth and parent != head.hash:
            raise ValueError(parent)
    return tuple(nodes)


def read_former(rows: Rows, head: NodeRow) -> NodeRow | None:
    """Return the end of the line that was abandoned for the one that ends in `head`."""
    row = rows.one(FORMER, head=head.id)
    return None if row is None else NodeRow(*row)


def read_digests(rows: Rows, head: NodeRow) -> list[tuple[int, str]]:
    """Return node ids and the digests of their contents, from the root to the head."""
    return [(id, content) for id, content in rows.execute(DIGESTS, head=head.id)]


def read_place(rows: Rows, head: NodeRow, depth: int, whose: str) -> NodeRow:
    """Return the place at this depth on the line that ends in `head`."""
    with intact(damaged(whose, f"message {depth}")):
        id, hash, at = rows.one(PLACE, head=head.id, depth=depth) or ()
    return NodeRow(id, head.chain, depth, hash, at)
