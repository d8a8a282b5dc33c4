"""Answer the questions of a search in SQLite, each with one statement."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import apsw

from hone.stores.search_source import Candidate, Expression, Spot, Term
from hone.stores.stemming import stem
from hone.stores.window import ALWAYS, ANY, Window

FEW, PIECE = 20_000, 200
"""The most messages of a time to list. For a longer time, contents are checked in batches of this size."""
NEIGHBORS, FOLLOWING = 3, 9
"""Nodes after one to check for their score, and to show."""

SIZE = "SELECT coalesce(max(id), 0) FROM contents"
COUNTS = """
SELECT value, (SELECT count(*) FROM (
    SELECT 1 FROM passage_words WHERE passage_words MATCH value LIMIT ?
)) FROM json_each(?)
"""
FOUND = """
SELECT value, (SELECT json_group_array(rowid) FROM (
    SELECT rowid FROM passage_words WHERE passage_words MATCH value{} ORDER BY rowid {} LIMIT ?
)) FROM json_each(?)
"""
VOCABULARY = (
    "CREATE VIRTUAL TABLE IF NOT EXISTS temp.vocabulary USING fts5vocab (main, passage_words, instance)"
)
# From word to word, without reading the messages of each. No word precedes itself with a zero appended.
ALIKE_WORDS = """
WITH RECURSIVE alike (word, number) AS (
    SELECT (SELECT term FROM temp.vocabulary WHERE term >= ?1 AND term < ?2 LIMIT 1), 1
    UNION ALL
    SELECT (SELECT term FROM temp.vocabulary WHERE term >= word || char(0) AND term < ?2 LIMIT 1), number + 1
    FROM alike WHERE word IS NOT NULL AND number < ?3
)
SELECT word FROM alike WHERE word IS NOT NULL
"""
HOLDING_WORDS = """
SELECT value, (SELECT json_group_array(doc) FROM (
    SELECT doc FROM temp.vocabulary WHERE term = value LIMIT ?
)) FROM json_each(?)
"""

COUNT = f"SELECT count(*) FROM (SELECT 1 FROM nodes WHERE at BETWEEN ? AND ? LIMIT {FEW})"
LISTED = "SELECT content FROM nodes WHERE at BETWEEN ? AND ?"
ASKED = "EXISTS (SELECT 1 FROM nodes WHERE content = passage_words.rowid AND at BETWEEN ? AND ?)"
AMONG = """
SELECT value FROM json_each(?)
WHERE EXISTS (SELECT 1 FROM nodes WHERE content = value AND at BETWEEN ? AND ?)
"""
LATEST = "SELECT content FROM nodes WHERE at BETWEEN ? AND ? ORDER BY at DESC, id DESC LIMIT ?"

STANDING = """
SELECT n.content, n.chain, n.depth FROM json_each(?) CROSS JOIN nodes AS n
ON n.id IN (SELECT id FROM nodes WHERE content = value ORDER BY id DESC LIMIT ?)
"""
LENGTHS = """
SELECT c.id, length(c.body) AS size FROM json_each(?) CROSS JOIN contents AS c ON c.id = value WHERE size > ?
"""
# Of each content the latest two nodes: those before, and those after.
AROUND = f"""
WITH best (content, node, parent, chain) AS (
    SELECT n.content, n.id, n.parent, n.chain FROM json_each(?) CROSS JOIN nodes AS n
    ON n.id IN (SELECT id FROM nodes WHERE content = value ORDER BY id DESC LIMIT 2)
)
SELECT best.content, best.chain, p.content, pp.content FROM best
JOIN nodes AS p ON p.id = best.parent LEFT JOIN nodes AS pp ON pp.id = p.parent
UNION ALL
SELECT best.content, best.chain, c.content, cc.content FROM best
JOIN nodes AS c ON c.id IN (SELECT id FROM nodes WHERE parent = best.node LIMIT {NEIGHBORS})
LEFT JOIN nodes AS cc ON cc.parent = c.id
"""
FREQUENT = """
SELECT value FROM json_each(?1)
WHERE (SELECT count(*) FROM (SELECT 1 FROM nodes WHERE content = value LIMIT ?2 + 1)) > ?2
"""
SPOTS = """
SELECT n.content, n.id, n.chain, n.depth, n.parent, n.trust, n.at FROM json_each(?) CROSS JOIN nodes AS n
ON n.id IN (SELECT id FROM nodes WHERE content = value AND ({}) ORDER BY id DESC LIMIT ?)
ORDER BY n.id DESC
"""
CONTENTS = "SELECT id, digest, body FROM contents WHERE id IN (SELECT value FROM json_each(?))"
# An unbranched conversation holds all nodes of its chain.
SESSIONS = """
SELECT chain, id, tree, head, shared, messages, origin, (
    SELECT count(*) = 1 FROM (SELECT 1 FROM sessions AS other WHERE other.tree = s.tree LIMIT 2)
) FROM sessions AS s WHERE chain IN (SELECT value FROM json_each(?)) ORDER BY shared, created, id
"""
HEADERS = """
SELECT id, created, title, origin, folder, parent, shared, opening FROM sessions
WHERE id IN (SELECT value FROM json_each(?))
"""
LINES = """
WITH RECURSIVE line (head, least, id, parent, depth) AS (
    SELECT value ->> 0, value ->> 1, n.id, n.parent, n.depth FROM json_each(?) JOIN nodes AS n
    ON n.id = value ->> 0
    UNION ALL
    SELECT head, least, n.id, n.parent, n.depth
    FROM line JOIN nodes AS n ON n.id = line.parent AND n.depth = line.depth - 1
    WHERE line.depth > least
)
SELECT head, json_group_array(id) FROM line GROUP BY head
"""
LATER = """
WITH RECURSIVE below (id) AS (
    SELECT ?1 UNION SELECT n.id FROM below JOIN nodes AS n ON n.parent = below.id
)
SELECT f.content, f.id, f.chain, f.depth, f.parent, f.trust, f.at
FROM below JOIN nodes AS f ON f.former = below.id ORDER BY f.id LIMIT 1
"""
BESIDE = f"""
SELECT value, n.content, n.id, n.chain, n.depth, n.parent, n.trust, n.at FROM json_each(?1)
JOIN nodes AS here ON here.id = value JOIN nodes AS n ON n.id = here.parent
UNION ALL
SELECT value, n.content, n.id, n.chain, n.depth, n.parent, n.trust, n.at FROM json_each(?1)
JOIN nodes AS n ON n.id IN (SELECT id FROM nodes WHERE parent = value ORDER BY id LIMIT {FOLLOWING})
"""
SOME = "SELECT 1 FROM sessions LIMIT 1"


class SqliteSource:
    """Searches one connection, during one search."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def size(self) -> int:
        return int(self._connection.execute(SIZE).get)

    def count(self, limits: Mapping[Term, int]) -> dict[Term, int]:
        asked: dict[int, list[Term]] = {}
        for term, limit in limits.items():
            asked.setdefault(limit, []).append(term)
        values = [value for limit, terms in asked.items() for value in (limit, json.dumps(terms))]
        return dict(self._rows(" UNION ALL ".join([COUNTS] * len(asked)), *values) if asked else ())

    def find(
        self, expressions: Sequence[Expression], limit: int, only: Window = ANY, *, newest: bool = False
    ) -> dict[Expression, list[int]]:
        condition, values = self._condition(only)
        written = {write(each): each for each in expressions}
        statement = FOUND.format(condition, "DESC" if newest else "ASC")
        rows = self._rows(statement, *values, limit, json.dumps(list(written)))
        return {written[each]: json.loads(found) for each, found in rows}

    def words(self, beginning: str, limit: int) -> list[str]:
        """Return words with a prefix. FTS5's own prefix query would first combine all messages of all such
        words."""
        self._connection.execute(VOCABULARY)
        after = beginning[:-1] + chr(ord(beginning[-1]) + 1)
        return [word for (word,) in self._rows(ALIKE_WORDS, beginning, after, limit)]

    def holding(self, words: Collection[str], each: int, only: Window) -> set[int]:
        """Return contents with these words. A word whose stem is another word cannot be searched; its
        messages are read from the list of words, the first ones first."""
        self._connection.execute(VOCABULARY)
        known = {word for word in words if stem(word) == word}
        asked = [((f'"{word}"',),) for word in words if word in known]
        found = list(self.find(asked, each, only, newest=True).values())
        others = json.dumps([word for word in words if word not in known])
        found += [json.loads(ids) for _, ids in self._rows(HOLDING_WORDS, each, others)]
        return {id for ids in found for id in ids}

    def sieve(self, contents: Sequence[int], window: Window, count: int) -> list[int]:
        if not window.spans:
            return list(contents[:count])
        if self._are_few(window):
            listed = {id for span in window.spans for (id,) in self._rows(LISTED, *span)}
            return [id for id in contents if id in listed][:count]
        found: list[int] = []
        for start in range(0, len(contents), PIECE):
            if len(found) >= count:
                break
            piece = contents[start : start + PIECE]
            held = {id for span in window.spans for (id,) in self._rows(AMONG, json.dumps(piece), *span)}
            found += [id for id in piece if id in held]
        return found[:count]

    def latest(self, window: Window, limit: int) -> list[int]:
        found: dict[int, None] = {}
        for span in sorted(window.spans, reverse=True):
            found.update((id, None) for (id,) in self._rows(LATEST, *span, limit))
        return list(found)[:limit]

    def standing(self, contents: Collection[int], limit: int) -> list[tuple[int, int, int]]:
        return self._rows(STANDING, json.dumps(sorted(contents)), limit)

    def lengths(self, contents: Collection[int], above: int) -> dict[int, int]:
        return dict(self._rows(LENGTHS, json.dumps(list(contents)), above))

    def around(self, contents: Collection[int]) -> list[tuple[int, int, int, int | None]]:
        return self._rows(AROUND, json.dumps(list(contents)))

    def frequent(self, contents: Collection[int], above: int) -> set[int]:
        return {id for (id,) in self._rows(FREQUENT, json.dumps(list(contents)), above)}

    def spots(self, contents: Sequence[int], window: Window, limit: int) -> Iterator[Spot]:
        spans = window.spans or (ALWAYS,)
        statement = SPOTS.format(" OR ".join(["at BETWEEN ? AND ?"] * len(spans)))
        bounds = [bound for span in spans for bound in span]
        return (Spot(*row) for row in self._rows(statement, json.dumps(contents), *bounds, limit))

    def bodies(self, contents: Collection[int]) -> Iterable[tuple[int, str, bytes]]:
        return self._rows(CONTENTS, json.dumps(list(contents)))

    def sessions(self, chains: Collection[int]) -> Iterator[tuple[int, Candidate]]:
        rows = self._rows(SESSIONS, json.dumps(list(chains)))
        return ((chain, Candidate(*row)) for chain, *row in rows)

    def headers(self, sessions: Collection[str]) -> Iterable[tuple[Any, ...]]:
        return self._rows(HEADERS, json.dumps(list(sessions)))

    def lines(self, heads: Mapping[int, int]) -> Iterator[tuple[int, Sequence[int]]]:
        rows = self._rows(LINES, json.dumps(list(heads.items())))
        return ((head, json.loads(ids)) for head, ids in rows)

    def later(self, node: int) -> Spot | None:
        row = self._connection.execute(LATER, (node,)).fetchone()
        return None if row is None else Spot(*row)

    def beside(self, nodes: Collection[int]) -> Iterator[tuple[int, Spot]]:
        return ((node, Spot(*row)) for node, *row in self._rows(BESIDE, json.dumps(list(nodes))))

    def is_empty(self) -> bool:
        return self._connection.execute(SOME).get is None

    def _condition(self, window: Window) -> tuple[str, tuple[int, ...]]:
        """Return a condition for a search in `passage_words`, with its values."""
        if not window.spans:
            return "", ()
        values = tuple(bound for span in window.spans for bound in span)
        if self._are_few(window):
            # Without the plus SQLite would repeat the search for each of them.
            return f" AND +rowid IN ({' UNION ALL '.join([LISTED] * len(window.spans))})", values
        return f" AND ({' OR '.join([ASKED] * len(window.spans))})", values

    def _are_few(self, window: Window) -> bool:
        return sum(int(self._connection.execute(COUNT, span).get) for span in window.spans) < FEW

    def _rows(self, statement: str, *values: Any) -> list[Any]:
        return self._connection.execute(statement, values).fetchall()


def write(expression: Expression) -> str:
    """Write an expression for FTS5."""
    groups = (" OR ".join(group) for group in expression)
    return " AND ".join(f"({each})" if len(expression) > 1 else each for each in groups)
