"""The word index of messages in PostgreSQL: filled before a search, not while a turn is stored.

A word is a stem with a short mark of its owner. Its positions are kept as far as PostgreSQL can: the first
16,383 words of a message, and 255 places of each word. Anything beyond is found by its words, not by phrases.
"""

from functools import partial
from hashlib import sha256
from struct import Struct, pack
from time import sleep
from zlib import crc32

import msgspec

from hone.core.messages import decode
from hone.core.recall import said
from hone.stores.passages import indexed
from hone.stores.postgres.database import PostgresDatabase, Rows
from hone.stores.postgres.text import WordVector
from hone.stores.search_source import Expression, Term
from hone.stores.stemming import split

BATCH, BATCHES, PIECE = 1_000, 20, 20
"""Nodes to check in one transaction, transactions before a search answers, and messages to send to the server
at once."""
SHORT, LONGEST, KEPT = 50, 200, 120
"""Letters of a word that is short in any script, and bytes of a word in the index. A longer word is stored as
its beginning and a digest."""
PLACES, LAST_PLACE = 255, 16_383
ROOM = 900_000
"""The most bytes of all words of one message; PostgreSQL refuses more than a megabyte."""

ONCE = Struct(">HH").pack
"""How often a word occurs, and where: most occur once."""

STATE = """
SELECT CASE WHEN EXISTS (SELECT 1 FROM passages WHERE owner = %(owner)s) THEN coalesce(b.upto, 0) ELSE 0 END,
    coalesce(b.seen, 0), coalesce(b.horizon, '0')::text::bigint,
    pg_snapshot_xmin(pg_current_snapshot())::text::bigint,
    pg_snapshot_xmax(pg_current_snapshot())::text::bigint,
    coalesce((SELECT max(id) FROM nodes WHERE owner = %(owner)s), 0)
FROM (SELECT 1) AS one LEFT JOIN backlog AS b ON b.owner = %(owner)s
"""
BEGIN = "INSERT INTO backlog (owner) VALUES (%(owner)s) ON CONFLICT DO NOTHING"
LOCK = "SELECT last FROM backlog WHERE owner = %(owner)s FOR UPDATE"
NODES = """
SELECT id, content FROM nodes WHERE owner = %(owner)s AND id > %(after)s ORDER BY id LIMIT %(limit)s
"""
KNOWN = "SELECT content, id FROM passages WHERE owner = %(owner)s AND content = ANY (%(digests)s::text[])"
BODIES = "SELECT digest, body FROM contents WHERE owner = %(owner)s AND digest = ANY (%(digests)s::text[])"
PUT = """
INSERT INTO passages (owner, id, content, words)
SELECT %(owner)s, given.id, given.content, given.words
FROM unnest(%(ids)s::bigint[], %(contents)s::text[], %(words)b::tsvector[]) AS given (id, content, words)
"""
ADVANCE = """
UPDATE backlog SET last = %(last)s, upto = greatest(upto, %(upto)s), seen = %(seen)s,
    horizon = %(horizon)s::text::xid8
WHERE owner = %(owner)s
"""
WAITING = """
SELECT count(DISTINCT content) FROM nodes AS n WHERE owner = %(owner)s AND id > %(after)s
    AND NOT EXISTS (SELECT 1 FROM passages AS p WHERE p.owner = n.owner AND p.content = n.content)
"""


class Backlog(msgspec.Struct, frozen=True):
    """How far the index goes. All nodes up to `safe` are in it. `newest` is the last one that is: others
    before it may still arrive until all transactions before `horizon` have ended."""

    upto: int
    safe: int
    newest: int
    horizon: int


def read_backlog(rows: Rows) -> Backlog:
    upto, seen, horizon, oldest, next, newest = rows.one(STATE) or (0,) * 6
    safe = newest if oldest >= next else seen if oldest >= horizon else upto
    return Backlog(upto, max(upto, safe), newest, next)


async def catch_up(database: PostgresDatabase, batches: int = BATCHES) -> int:
    """Add what was stored since the last search. Return how many messages are left for the next one."""
    backlog = await database.read(read_backlog)
    after = backlog.upto
    for _ in range(batches):
        if after >= backlog.newest:
            return 0
        after = await database.write_aside(partial(_fill, backlog=backlog, after=after))
    return await database.read(lambda rows: int(rows.value(WAITING, after=after)))


def _fill(rows: Rows, backlog: Backlog, after: int) -> int:
    """Add the contents of the next nodes; return the last of these nodes."""
    rows.execute(BEGIN)
    last = int(rows.value(LOCK))
    nodes = rows.execute(NODES, after=after, limit=BATCH).fetchall()
    order = dict.fromkeys(content for _, content in nodes)
    known = dict(rows.pairs(KNOWN, digests=list(order)))
    bodies = dict(rows.pairs(BODIES, digests=[each for each in order if each not in known]))
    new = [digest for digest in order if digest in bodies]
    mark = mark_of(rows.owner)
    with rows.pipeline():  # the server adds some while this code writes the words of the next
        for begin in range(0, len(new), PIECE):
            piece = new[begin : begin + PIECE]
            ids = [last + begin + place for place, _ in enumerate(piece, 1)]
            words = [_write_kindly(mark, bodies[digest]) for digest in piece]
            rows.execute(PUT, ids=ids, contents=piece, words=words)
    reached = nodes[-1][0] if len(nodes) == BATCH else max(backlog.newest, after)
    rows.execute(
        ADVANCE,
        last=last + len(new),
        upto=min(reached, backlog.safe),
        seen=backlog.newest,
        horizon=str(backlog.horizon),
    )
    return int(reached)


def _write_kindly(mark: str, body: bytes) -> WordVector:
    """Yield to other threads of the process after each message: they answer people."""
    sleep(0)
    return write_words(mark, index_text(body))


def index_text(body: bytes) -> str:
    """Return the text to index; empty for a damaged message, which opening its session will report."""
    try:
        return indexed(said(decode(body)))
    except (KeyError, TypeError, ValueError):
        return ""


def mark_of(owner: str) -> str:
    """Return an owner's mark. Two owners may have the same mark: it only narrows the rows down, and the owner
    decides."""
    return f"{crc32(owner.encode('utf-8', 'surrogatepass')):x}/"


def write_words(mark: str, text: str) -> WordVector:
    """Write the words of a text and their places, both in the server's format."""
    places: dict[str, list[int]] = {}
    for place, stem in enumerate(split(text), 1):
        word = stem if len(stem) < SHORT else shorten(stem)
        if word in places:
            places[word].append(place)
        else:
            places[word] = [place]
    written: list[bytes] = []
    room = ROOM
    for word, all in places.items():
        at = all if all[-1] <= PLACES else [place for place in all if place <= LAST_PLACE][:PLACES]
        data = f"{mark}{word}\0".encode()
        room -= len(data) + 2 * len(at) + 7
        if room < 0:
            break
        written.append(data + (ONCE(1, at[0]) if len(at) == 1 else pack(f">{len(at) + 1}H", len(at), *at)))
    return WordVector(pack(">I", len(written)) + b"".join(written))


def shorten(stem: str) -> str:
    data = stem.encode("utf-8", "replace")
    if len(data) <= LONGEST:
        return data.decode()
    return data[:KEPT].decode(errors="ignore") + sha256(data).hexdigest()[:16]


def write_query(mark: str, expression: Expression) -> str:
    """Write an expression as a tsquery. A term without a word matches nothing."""
    groups = (" | ".join(_write_term(mark, term) for term in group) for group in expression)
    return " & ".join(f"({each})" for each in groups)


def _write_term(mark: str, term: Term) -> str:
    stems = split(term)
    if not stems:
        return f"'{mark}'"
    words = " <-> ".join(f"'{mark}{shorten(stem)}'" for stem in stems)
    return f"({words}:*)" if term.endswith("*") else f"({words})"


def exactly(mark: str, word: str) -> str:
    """Write a word of the index as a tsquery, unchanged."""
    return f"'{mark}{shorten(word)}'" if word.isalnum() else f"'{mark}'"
