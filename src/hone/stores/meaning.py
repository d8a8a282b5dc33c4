"""Combine the words of a question with its meaning: weigh what its words found, and add what they missed.

Scores by words and similarities each count as a share of the best one, and are added with weights. Similarity
counts from that of unrelated messages: with some models that is 0, with others 0.7. A message without a
vector yet counts by its words alone.
"""

import sys
from collections.abc import Collection, Mapping
from operator import mul
from statistics import fmean

from hone.core.embedding import SCALE
from hone.core.recall import Query
from hone.stores.context import first
from hone.stores.question import ParsedQuestion
from hone.stores.ranking import Ranked
from hone.stores.search_source import VectorSource, WordSource
from hone.stores.window import bounds, days

WORDS = 0.6
"""The share of the words in a score; the rest is the meaning's."""
WEIGHED = 200
"""How many messages found by words to check for similarity, best first."""
CODED, ADDED = 200, 30
"""How many messages with the nearest codes to fetch, and how many of those to add by their vectors."""

SAMPLE, ENOUGH = 50, 10
"""How many evenly spread messages to sample for the similarity of unrelated ones, and how many suffice."""


def combine(
    words: WordSource, vectors: VectorSource, ranked: Ranked, question: ParsedQuestion, query: Query
) -> Ranked:
    """Return what was found by words or by meaning. A question with a phrase or a prefix is for the messages
    that contain it, so their order stays."""
    embedder = vectors.number(query.embedder)
    if embedder is None or question.phrases or question.beginnings:
        return ranked
    worded = {id: ranked.scores[id] for id in first(ranked.scores, WEIGHED)}
    alike = similarities(vectors, embedder, worded, query.vector)
    near = vectors.nearest(embedder, query.vector, CODED)
    window = bounds(query) & days(question.spans)
    others = [id for id in words.sieve(near, window, CODED) if id not in worded]
    found = similarities(vectors, embedder, others, query.vector)
    added = {id: found[id] for id in first(found, ADDED)}
    floor = unrelated(vectors, embedder, query.vector)
    return Ranked(weigh(worded, alike | added, floor), ranked.tried, ranked.dropped)


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


def unrelated(vectors: VectorSource, embedder: int, vector: bytes) -> float:
    """Return the similarity of messages unrelated to a question; 0 if there are too few."""
    found = similarities(vectors, embedder, vectors.sample(embedder, SAMPLE), vector)
    return max(0.0, fmean(found.values())) if len(found) >= ENOUGH else 0.0


def similarities(
    vectors: VectorSource, embedder: int, contents: Collection[int], vector: bytes
) -> dict[int, float]:
    """Return the cosine of each content that has a vector of this embedder."""
    rows = vectors.vectors(embedder, contents, len(vector))
    if numpy := sys.modules.get("numpy"):  # faster, if it is already imported
        made = numpy.frombuffer(b"".join(each for _, each in rows), numpy.int8).reshape(-1, len(vector))
        wanted = numpy.frombuffer(vector, numpy.int8)
        dots = (made.astype(numpy.float32) @ wanted.astype(numpy.float32)).tolist()
    else:
        one = memoryview(vector).cast("b").tolist()
        dots = [sum(map(mul, one, memoryview(each).cast("b"))) for _, each in rows]
    return {id: dot / SCALE**2 for (id, _), dot in zip(rows, dots, strict=True)}
