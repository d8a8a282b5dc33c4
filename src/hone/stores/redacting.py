"""Replace stored contents, and update everything that names their digests.

A conversation is rehashed from the first message that changed, so its chain stays sound and no hash of the
old text is left. All functions run in the caller's transaction.
"""

import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import apsw

from hone.core.erasure import Scrubber, is_blank
from hone.core.holding import ERASED
from hone.core.ledger import SKILL, Target
from hone.core.messages import (
    Attachment,
    Message,
    Part,
    Reminder,
    SystemNote,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    decode,
    digest,
    encode,
)
from hone.core.prefix import Prefix
from hone.core.transcript import chained
from hone.core.value import replace
from hone.stores import passages, rules
from hone.stores.record import shelve
from hone.stores.tree import LINE, SYMPTOMS

PUT_CONTENT = "INSERT INTO contents (digest, body) VALUES (?, ?) ON CONFLICT DO NOTHING"
MOVE_NODES = "UPDATE nodes SET content = ? WHERE content = ? RETURNING id, chain"
MOVE_CHAINS = "UPDATE chains SET prefix = ? WHERE prefix = ? RETURNING id"
PUT_PREFIX = "INSERT INTO prefixes (digest, body) VALUES (?, ?) ON CONFLICT DO NOTHING"
PUT_KNOWLEDGE = "INSERT INTO knowledge (digest, body) VALUES (?, ?) ON CONFLICT DO NOTHING"
NODES = """
SELECT n.id, n.chain, n.parent, n.hash, c.digest FROM nodes AS n JOIN contents AS c ON c.id = content
ORDER BY n.id
"""
ROOTS = "SELECT chains.id, digest FROM chains JOIN prefixes AS p ON p.id = prefix"
ENDS = "SELECT id, chain, head FROM sessions"
CLOSE = """
UPDATE sessions SET hash = (SELECT hash FROM nodes WHERE id = head), opened = ?, opening = ? WHERE id = ?
"""
BODIES = f"{LINE} SELECT depth, body FROM line JOIN contents AS c ON c.id = content"
HOLDERS = """
SELECT DISTINCT target, path FROM deltas JOIN changes ON id = change WHERE before = ?1 OR after = ?1
"""
LATEST = """
INSERT OR IGNORE INTO outbox (change) SELECT max(change) FROM deltas JOIN changes ON id = change
WHERE target = ? AND standing = 'active' HAVING max(change) IS NOT NULL
"""
CARDS = "SELECT id FROM cards WHERE digest = ?"

Rewrite = Callable[[str, str, bytes, bool], bytes]
"""Returns a content of the ledger without the words, by target and path; True: none of it may stay."""


def fetch(connection: apsw.Connection, statement: str, *values: Any) -> list[Any]:
    """Return all rows at once, so that they can be changed."""
    return connection.execute(statement, values).fetchall()


def scan(connection: apsw.Connection, statement: str) -> Iterator[Any]:
    """Yield rows one by one: contents may exceed memory."""
    yield from connection.execute(statement)


def scrub_message(message: Message, scrub: Scrubber) -> Message:
    """Return a message without the words. If nothing else is left, it gets a random text: its digest must
    differ from that of any other message."""
    parts = tuple(_scrub_part(part, scrub) for part in message.parts)
    left = replace(message, parts=parts, template=scrub.text(message.template))
    if left == message:
        return message
    said = [part for part in parts if not isinstance(part, ToolCall | ToolResult)]
    if said == list(parts) and parts and all(is_blank(getattr(part, "text", "x")) for part in parts):
        return blank_message(left)
    return left


def blank_message(message: Message) -> Message:
    """Return a message of the same shape that says nothing."""
    return replace(message, parts=tuple(map(_blank_part, message.parts)))


def _scrub_part(part: Part, scrub: Scrubber) -> Part:
    match part:
        case ToolCall():
            arguments = scrub.json_text(part.arguments)
            changed = arguments != part.arguments or scrub.count(part.opaque)
            return replace(part, arguments=arguments, opaque="", origin="") if changed else part
        case Text() | Thinking():
            if not scrub.count(part.text) and not scrub.count(part.opaque):
                return part
            # What a provider signed no longer fits.
            return type(part)(scrub.text(part.text))
        case ToolResult() | SystemNote() | Reminder() | Attachment():
            return replace(part, text=scrub.text(part.text))
    return part


def _blank_part(part: Part) -> Part:
    match part:
        case ToolCall():
            return replace(part, arguments="{}", opaque="", origin="")
        case ToolResult() | Attachment():
            return replace(part, text=_random())
        case SystemNote() | Reminder():
            return replace(part, text="")
    return Text(_random())


def _random() -> str:
    return f"{ERASED[:-1]} {secrets.token_hex(4)})"


def replace_contents(connection: apsw.Connection, made: Mapping[int, Message]) -> tuple[list[int], set[int]]:
    """Replace contents by id. Return the nodes and the chains that hold them."""
    nodes: list[int] = []
    chains: set[int] = set()
    for id, message in made.items():
        [(old, body)] = fetch(connection, "SELECT digest, body FROM contents WHERE id = ?", id)
        encoded = encode(message)
        name = digest(encoded)
        if name == old:
            continue
        connection.execute(PUT_CONTENT, (name, encoded))
        new = connection.execute("SELECT id FROM contents WHERE digest = ?", (name,)).get
        moved = fetch(connection, MOVE_NODES, new, id)
        nodes += (node for node, _ in moved)
        chains |= {chain for _, chain in moved}
        connection.execute("UPDATE evidence SET digest = ? WHERE digest = ?", (name, old))
        connection.execute("DELETE FROM contents WHERE id = ?", (id,))
        passages.drop(connection, [(id, body)])
    return nodes, chains


def replace_prefixes(connection: apsw.Connection, made: Mapping[int, Prefix]) -> set[int]:
    """Replace prefixes by id. Return the chains that begin with them."""
    chains: set[int] = set()
    for id, prefix in made.items():
        connection.execute(PUT_PREFIX, (prefix.digest, prefix.encode()))
        new = connection.execute("SELECT id FROM prefixes WHERE digest = ?", (prefix.digest,)).get
        if new == id:
            continue
        chains |= {chain for (chain,) in fetch(connection, MOVE_CHAINS, new, id)}
        connection.execute("DELETE FROM prefixes WHERE id = ?", (id,))
    return chains


def rehash(connection: apsw.Connection, chains: Collection[int]) -> None:
    """Rehash these chains, and update the sessions on them."""
    if not chains:
        return
    roots: dict[Any, Any] = dict(fetch(connection, ROOTS))
    hashes: dict[int, str] = {}
    changed: list[tuple[str, int]] = []
    for id, chain, parent, hash, content in fetch(connection, NODES):
        if chain in chains:
            hashes[id] = chained(roots[chain] if parent is None else hashes[parent], content)
            if hashes[id] != hash:
                changed.append((hashes[id], id))
    connection.executemany("UPDATE nodes SET hash = ? WHERE id = ?", changed)
    for id, chain, head in fetch(connection, ENDS):
        if chain in chains:
            bodies = sorted(fetch(connection, BODIES, head))
            opening = rules.opening(decode(body) for _, body in bodies)
            connection.execute(CLOSE, (*opening, id))


def replace_knowledge(connection: apsw.Connection, made: Mapping[str, bytes]) -> list[Target]:
    """Replace contents of the ledger by digest. Return the targets they belong to. Published files keep their
    old digest, so that they count as stale and are published again."""
    targets: dict[Target, None] = {}
    for old, body in made.items():
        name = digest(body)
        if name == old:
            continue
        targets |= dict.fromkeys(Target(target) for target, _ in fetch(connection, HOLDERS, old))
        connection.execute(PUT_KNOWLEDGE, (name, body))
        for statement in (
            "UPDATE deltas SET before = ?1 WHERE before = ?2",
            "UPDATE deltas SET after = ?1 WHERE after = ?2",
            "UPDATE holdings SET digest = ?1 WHERE digest = ?2",
        ):
            connection.execute(statement, (name, old))
        _drop_cards(connection, fetch(connection, CARDS, old))
        connection.execute("DELETE FROM knowledge WHERE digest = ?", (old,))
    shelve(connection, [each for each in targets if each.startswith(SKILL)])
    # This index deletes only logically, even text that was replaced long ago.
    if connection.execute("SELECT length(block) FROM card_words_data WHERE id = 1").get:
        connection.execute("INSERT INTO card_words (card_words) VALUES ('rebuild')")
    for target in targets:
        connection.execute(LATEST, (target,))
    return list(targets)


def _drop_cards(connection: apsw.Connection, cards: Sequence[Any]) -> None:
    """Delete cards. They are rebuilt when skills are next listed."""
    for row in cards:
        connection.execute("DELETE FROM card_words WHERE rowid = ?", row)
        connection.execute("DELETE FROM cards WHERE id = ?", row)
        connection.execute("UPDATE skills SET card = NULL WHERE card = ?", row)


def readable(rows: Iterable[tuple[Any, bytes]]) -> Iterable[tuple[Any, Message]]:
    """Yield the messages among contents, by what names them; skip damaged ones."""
    for name, body in rows:
        try:
            yield name, decode(body)
        except SYMPTOMS:
            continue
