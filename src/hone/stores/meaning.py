"""Combine the words of a question with its meaning: weigh what its words found, and add what they did not.

Scores by words and similarities each count as a share of the best one, and are added with weights. Similarity
counts from what unrelated messages have: with some models that is 0, with others 0.7. A message without a
vector yet counts by its words alone.
"""

import json
import sys
from collections.abc import Collection, Mapping
from operator import mul
from statistics import fmean
from typing import Any

import apsw

from hone.core.embedding import SCALE
from hone.core.recall import Query
from hone.stores.question import ParsedQuestion
from hone.stores.ranking import Ranked, first
from hone.stores.vector_codes import CodeCache
from hone.stores.vectors import number
from hone.stores.window import bounds, days

WORDS = 0.6
"""The share of the words in a score; the rest is the meaning's."""
WEIGHED = 200
"""Messages found by words whose similarity is looked at, the best first."""
CODED, ADDED = 200, 30
"""Messages whose codes are nearest, and those of them that are added because their vectors are."""

SAMPLE, ENOUGH = 50, 10
"""Messages, evenly spread, that show how similar unrelated ones are, and how many are enough to tell."""

RUN = """
SELECT (SELECT min(content) FROM vectors WHERE embedder = ?1),
    (SELECT max(content) FROM vectors WHERE embedder = ?1)
"""
SPREAD = """
SELECT DISTINCT (
    SELECT content FROM vectors WHERE embedder = ?1 AND content >= value ORDER BY content LIMIT 1
) FROM json_each(?2)
"""
# From the few contents to their vectors, never the other way round.
VECTORS = """
SELECT content, vector FROM json_each(?) CROSS JOIN vectors ON content = value
WHERE +embedder = ? AND length(vector) = ?
"""


class Combine:
    """Keeps the codes of vectors in memory between two searches."""

    def __init__(self) -> None:
        self._codes = CodeCache()

    def __call__(
        self, connection: apsw.Connection, ranked: Ranked, question: ParsedQuestion, query: Query
    ) -> Ranked:
        """Return what was found by words or by meaning. A question with a phrase or a beginning
        is for the messages that hold it: their order stays."""
        embedder = number(connection, query.embedder)
        if embedder is None or question.phrases or question.beginnings:
            return ranked
        words = {id: ranked.scores[id] for id in first(ranked.scores, WEIGHED)}
        alike = similarities(connection, embedder, words, query.vector)
        near = self._codes.nearest(connection, embedder, query.vector, CODED)
        window = bounds(query) & days(question.spans)
        others = [id for id in window.sieve(connection, near, CODED) if id not in words]
        found = similarities(connection, embedder, others, query.vector)
        added = {id: found[id] for id in first(found, ADDED)}
        floor = unrelated(connection, embedder, query.vector)
        return Ranked(weigh(words, alike | added, floor), ranked.tried, ranked.dropped)


def weigh(words: Mapping[int, float], alike: Mapping[int, float], floor: float = 0.0) -> dict[int, float]:
    """Return scores between 0 and 1."""
    most, nearest = max(words.values(), default=0.0) or 1.0, max(alike.values(), default=0.0)
    scores = {id: score / most for id, score in words.items()}
    if nearest <= floor:
        return scores
    for id, similarity in alike.items():
        meaning = max(0.0, similarity - floor) / (nearest - floor)
        scores[id] = WORDS * scores.get(id, 0.0) + (1 - WORDS) * meaning
    return scores


def unrelated(connection: apsw.Connection, embedder: int, vector: bytes) -> float:
    """Return how similar messages are that have nothing to do with a question; 0 if there are too few."""
    low, high = connection.execute(RUN, (embedder,)).get
    if low is None:
        return 0.0
    places = [low + (high - low) * each // SAMPLE for each in range(SAMPLE)]
    rows: list[Any] = connection.execute(SPREAD, (embedder, json.dumps(places))).fetchall()
    found = similarities(connection, embedder, [id for (id,) in rows], vector)
    return max(0.0, fmean(found.values())) if len(found) >= ENOUGH else 0.0


def similarities(
    connection: apsw.Connection, embedder: int, contents: Collection[int], vector: bytes
) -> dict[int, float]:
    """Return the cosine of each content that has a vector of this embedder."""
    rows: list[Any] = connection.execute(
        VECTORS, (json.dumps(list(contents)), embedder, len(vector))
    ).fetchall()
    if numpy := sys.modules.get("numpy"):  # faster, if it was loaded for something else
        made = numpy.frombuffer(b"".join(each for _, each in rows), numpy.int8).reshape(-1, len(vector))
        wanted = numpy.frombuffer(vector, numpy.int8)
        dots = (made.astype(numpy.float32) @ wanted.astype(numpy.float32)).tolist()
    else:
        one = memoryview(vector).cast("b").tolist()
        dots = [sum(map(mul, one, memoryview(each).cast("b"))) for _, each in rows]
    return {id: dot / SCALE**2 for (id, _), dot in zip(rows, dots, strict=True)}
