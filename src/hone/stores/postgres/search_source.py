"""Answer the questions of a search in PostgreSQL, each with one statement."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from hone.stores.postgres.database import Rows
from hone.stores.postgres.passages import exactly, mark_of, write_query
from hone.stores.search_source import Candidate, Expression, Spot, Term
from hone.stores.window import ALWAYS, ANY, Window

NEIGHBORS, FOLLOWING = 3, 9
"""Nodes after one to check for their score, and to show."""
SPOKEN = 2_000
"""How many messages to check for words with one prefix, newest first."""

SIZE = "SELECT coalesce(max(id), 0) FROM passages WHERE owner = %(owner)s"
COUNT = "SELECT count_passages(%(queries)s::text[], %(limits)s::integer[])"
FIND = """
SELECT place, ids FROM find_passages(
    %(queries)s::text[], %(limit)s::integer, %(newest)s::boolean, %(firsts)s::bigint[], %(lasts)s::bigint[]
)
"""
WORDS = "SELECT * FROM find_words(%(beginning)s, %(asked)s, %(messages)s::integer, %(limit)s::integer)"

SPANS = "unnest(%(firsts)s::bigint[], %(lasts)s::bigint[]) AS span (first, last)"
GIVEN = """
unnest(%(ids)s::bigint[]) WITH ORDINALITY AS given (id, place)
JOIN passages AS p ON p.owner = %(owner)s AND p.id = given.id
"""
"""Contents in the order in which they were stored."""
SIEVE = f"""
SELECT p.id FROM {GIVEN} WHERE EXISTS (
    SELECT 1 FROM nodes AS n JOIN {SPANS} ON n.at BETWEEN span.first AND span.last
    WHERE n.owner = %(owner)s AND n.content = p.content
) ORDER BY given.place LIMIT %(count)s
"""
LATEST = """
SELECT p.id FROM (
    SELECT content FROM nodes WHERE owner = %(owner)s AND at BETWEEN %(first)s AND %(last)s
    ORDER BY at DESC, id DESC LIMIT %(limit)s
) AS n JOIN passages AS p ON p.owner = %(owner)s AND p.content = n.content
"""

STANDING = f"""
SELECT p.id, n.chain, n.depth FROM {GIVEN} CROSS JOIN LATERAL (
    SELECT chain, depth FROM nodes WHERE owner = %(owner)s AND content = p.content
    ORDER BY id DESC LIMIT %(limit)s
) AS n
"""
LENGTHS = f"""
SELECT p.id, length(c.body) FROM {GIVEN} JOIN contents AS c ON c.owner = %(owner)s AND c.digest = p.content
WHERE length(c.body) > %(above)s
"""
# Of each content the latest two nodes: those before, and those after.
AROUND = f"""
WITH best AS (
    SELECT p.id AS content, n.id AS node, n.parent, n.chain FROM {GIVEN} CROSS JOIN LATERAL (
        SELECT id, parent, chain FROM nodes WHERE owner = %(owner)s AND content = p.content
        ORDER BY id DESC LIMIT 2
    ) AS n
), beside AS (
    SELECT best.content, best.chain, p.content AS near, pp.content AS far FROM best
    JOIN nodes AS p ON p.owner = %(owner)s AND p.id = best.parent
    LEFT JOIN nodes AS pp ON pp.owner = %(owner)s AND pp.id = p.parent
    UNION ALL
    SELECT best.content, best.chain, c.content, cc.content FROM best CROSS JOIN LATERAL (
        SELECT id, content FROM nodes WHERE owner = %(owner)s AND parent = best.node LIMIT {NEIGHBORS}
    ) AS c LEFT JOIN nodes AS cc ON cc.owner = %(owner)s AND cc.parent = c.id
)
SELECT beside.content, beside.chain, near.id, far.id FROM beside
JOIN passages AS near ON near.owner = %(owner)s AND near.content = beside.near
LEFT JOIN passages AS far ON far.owner = %(owner)s AND far.content = beside.far
"""
FREQUENT = f"""
SELECT p.id FROM {GIVEN} WHERE (
    SELECT count(*) FROM (
        SELECT 1 FROM nodes WHERE owner = %(owner)s AND content = p.content LIMIT %(above)s + 1
    ) AS counted
) > %(above)s
"""
SPOTS = f"""
SELECT p.id, n.id, n.chain, n.depth, n.parent, n.trust, n.at FROM {GIVEN} CROSS JOIN LATERAL (
    SELECT id, chain, depth, parent, trust, at FROM nodes
    WHERE owner = %(owner)s AND content = p.content AND EXISTS (
        SELECT 1 FROM {SPANS} WHERE at BETWEEN span.first AND span.last
    ) ORDER BY id DESC LIMIT %(limit)s
) AS n ORDER BY n.id DESC
"""
BODIES = f"""
SELECT p.id, c.digest, c.body FROM {GIVEN} JOIN contents AS c ON c.owner = %(owner)s AND c.digest = p.content
"""
# An unbranched conversation holds all nodes of its chain.
SESSIONS = """
SELECT chain, id, tree, head, shared, messages, origin, (
    SELECT count(*) = 1 FROM (
        SELECT 1 FROM sessions AS other WHERE other.owner = %(owner)s AND other.tree = s.tree LIMIT 2
    ) AS counted
) FROM sessions AS s WHERE owner = %(owner)s AND chain = ANY (%(chains)s::bigint[])
ORDER BY shared, created, id
"""
HEADERS = """
SELECT id, created, title, origin, folder, parent, shared, opening FROM sessions
WHERE owner = %(owner)s AND id = ANY (%(sessions)s::text[])
"""
LINES = """
WITH RECURSIVE line AS (
    SELECT given.head, given.least, n.id, n.parent, n.depth
    FROM unnest(%(heads)s::bigint[], %(least)s::integer[]) AS given (head, least)
    JOIN nodes AS n ON n.owner = %(owner)s AND n.id = given.head
    UNION ALL
    SELECT head, least, n.id, n.parent, n.depth
    FROM line JOIN nodes AS n ON n.owner = %(owner)s AND n.id = line.parent AND n.depth = line.depth - 1
    WHERE line.depth > least
)
SELECT head, array_agg(id) FROM line GROUP BY head
"""
SPOT = "p.id, n.id, n.chain, n.depth, n.parent, n.trust, n.at"
LATER = f"""
WITH RECURSIVE below AS (
    SELECT %(node)s::bigint AS id
    UNION SELECT n.id FROM below JOIN nodes AS n ON n.owner = %(owner)s AND n.parent = below.id
)
SELECT {SPOT} FROM below JOIN nodes AS n ON n.owner = %(owner)s AND n.former = below.id
JOIN passages AS p ON p.owner = %(owner)s AND p.content = n.content ORDER BY n.id LIMIT 1
"""
BESIDE = f"""
SELECT here.id, {SPOT} FROM nodes AS here
CROSS JOIN LATERAL (
    SELECT * FROM nodes AS n WHERE n.owner = %(owner)s AND n.id = here.parent
    UNION ALL (
        SELECT * FROM nodes AS n WHERE n.owner = %(owner)s AND n.parent = here.id
        ORDER BY id LIMIT {FOLLOWING}
    )
) AS n JOIN passages AS p ON p.owner = %(owner)s AND p.content = n.content
WHERE here.owner = %(owner)s AND here.id = ANY (%(nodes)s::bigint[]) ORDER BY n.id
"""
SOME = "SELECT 1 FROM sessions WHERE owner = %(owner)s LIMIT 1"


class PostgresSource:
    """Searches one view of the data, during one search."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._mark = mark_of(rows.owner)

    def size(self) -> int:
        return int(self._rows.value(SIZE))

    def count(self, limits: Mapping[Term, int]) -> dict[Term, int]:
        queries = [write_query(self._mark, ((term,),)) for term in limits]
        counts = self._rows.value(COUNT, queries=queries, limits=list(limits.values()))
        return dict(zip(limits, counts, strict=True))

    def find(
        self, expressions: Sequence[Expression], limit: int, only: Window = ANY, *, newest: bool = False
    ) -> dict[Expression, list[int]]:
        queries = [write_query(self._mark, each) for each in expressions]
        return dict(zip(expressions, self._find(queries, limit, only, newest=newest), strict=True))

    def words(self, beginning: str, limit: int) -> list[str]:
        first = f"{self._mark}{beginning}"
        values = {"beginning": first, "asked": f"'{first}':*", "messages": SPOKEN, "limit": limit}
        return [word.removeprefix(self._mark) for (word,) in self._rows.execute(WORDS, **values)]

    def holding(self, words: Collection[str], each: int, only: Window) -> set[int]:
        queries = [exactly(self._mark, word) for word in words]
        return {id for ids in self._find(queries, each, only, newest=True) for id in ids}

    def sieve(self, contents: Sequence[int], window: Window, count: int) -> list[int]:
        if not window.spans:
            return list(contents[:count])
        return self._numbers(SIEVE, ids=list(contents), count=count, **_spans(window))

    def latest(self, window: Window, limit: int) -> list[int]:
        found: dict[int, None] = {}
        for first, last in sorted(window.spans, reverse=True):
            found.update(dict.fromkeys(self._numbers(LATEST, first=first, last=last, limit=limit)))
        return list(found)[:limit]

    def standing(self, contents: Collection[int], limit: int) -> list[tuple[int, int, int]]:
        return self._ask(STANDING, ids=sorted(contents), limit=limit)

    def lengths(self, contents: Collection[int], above: int) -> dict[int, int]:
        return dict(self._ask(LENGTHS, ids=list(contents), above=above))

    def around(self, contents: Collection[int]) -> list[tuple[int, int, int, int | None]]:
        return self._ask(AROUND, ids=list(contents))

    def frequent(self, contents: Collection[int], above: int) -> set[int]:
        return set(self._numbers(FREQUENT, ids=list(contents), above=above))

    def spots(self, contents: Sequence[int], window: Window, limit: int) -> Iterator[Spot]:
        spans = _spans(window if window.spans else Window((ALWAYS,)))
        return (Spot(*row) for row in self._ask(SPOTS, ids=list(contents), limit=limit, **spans))

    def bodies(self, contents: Collection[int]) -> Iterable[tuple[int, str, bytes]]:
        return self._ask(BODIES, ids=list(contents))

    def sessions(self, chains: Collection[int]) -> Iterator[tuple[int, Candidate]]:
        return ((chain, Candidate(*row)) for chain, *row in self._ask(SESSIONS, chains=list(chains)))

    def headers(self, sessions: Collection[str]) -> Iterable[tuple[Any, ...]]:
        return self._ask(HEADERS, sessions=list(sessions))

    def lines(self, heads: Mapping[int, int]) -> Iterable[tuple[int, Sequence[int]]]:
        return self._ask(LINES, heads=list(heads), least=list(heads.values()))

    def later(self, node: int) -> Spot | None:
        row = self._rows.one(LATER, node=node)
        return None if row is None else Spot(*row)

    def beside(self, nodes: Collection[int]) -> Iterator[tuple[int, Spot]]:
        return ((node, Spot(*row)) for node, *row in self._ask(BESIDE, nodes=list(nodes)))

    def is_empty(self) -> bool:
        return self._rows.one(SOME) is None

    def _find(self, queries: list[str], limit: int, only: Window, *, newest: bool) -> list[list[int]]:
        rows = self._ask(FIND, queries=queries, limit=limit, newest=newest, **_spans(only))
        return [ids for _, ids in sorted(rows)]

    def _ask(self, query: str, **values: Any) -> list[Any]:
        return self._rows.execute(query, **values).fetchall()

    def _numbers(self, query: str, **values: Any) -> list[int]:
        return [id for (id,) in self._ask(query, **values)]


def _spans(window: Window) -> dict[str, list[int]]:
    return {"firsts": [first for first, _ in window.spans], "lasts": [last for _, last in window.spans]}
