"""Let the messages of one conversation support each other: neighboring messages, and the words around them.

A message that answers often repeats nothing of the question, but its neighbors do. A conversation that covers
everything in the question is a better match than one that shares a single word with it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import log

from hone.stores.search_source import PlaceSource

NEAR, NEXT_BUT_ONE = 0.45, 0.3
"""How much of a neighbor's score counts for a message."""
AROUND_IT = 0.1
"""How much a word counts that is in the same conversation but not in the message."""
PLACES = 3
"""A message in more places than this gets nothing from its neighbors: "go on" is said everywhere."""
SPREADING = 40
"""How many messages pass a share on to neighbors without any of the words."""
LOOKED, LONG, FALL = 100, 1_000, 0.3
"""How many messages to check for length, the bytes from which a score falls, and its loss for each factor of
e."""

Standing = dict[int, list[tuple[int, int]]]
"""By content: the chain and number of each of its latest places."""
Cover = dict[int, dict[str, float]]
"""By chain: the searched words found there, with the highest score that a message gets for each."""
Values = Mapping[str, Mapping[int, float]]


def first(scores: Mapping[int, float], count: int) -> list[int]:
    """Return the best ones, so many; among equals the latest."""
    values = sorted(scores.values(), reverse=True)[:count]
    able = [(score, id) for id, score in scores.items() if score >= values[-1]] if values else []
    return [id for _, id in sorted(able, reverse=True)[:count]]


def settled(source: PlaceSource, scores: Mapping[int, float]) -> dict[int, float]:
    """Lower the scores of long messages: they hold more words, so each word means less. A single one has no
    rival."""
    if len(scores) < 2:
        return dict(scores)
    long = source.lengths(scores, LONG)
    return {
        id: score / (1 + FALL * log(long[id] / LONG)) if id in long else score for id, score in scores.items()
    }


def spread(source: PlaceSource, pool: Mapping[int, float], values: Values) -> dict[int, float]:
    """Raise the score of a message whose neighbors match, too. Neighbors alone can make it a match."""
    best = sorted(pool, key=pool.__getitem__, reverse=True)[:LOOKED]
    own = dict(pool) | settled(source, {id: pool[id] for id in best})
    standing = _standing(source, own)
    among = Counter(chain for places in standing.values() for chain, _ in places)
    company = {id: places for id, places in standing.items() if any(among[chain] > 1 for chain, _ in places)}
    cover = _cover(company, values)
    around = {chain: AROUND_IT * sum(words.values()) for chain, words in cover.items()}
    said = {place: id for id in sorted(company, key=own.__getitem__) for place in company[id]}
    whole = dict(own)
    for id, places in company.items():
        if len(places) <= PLACES:
            held = [term for term, of in values.items() if id in of]
            whole[id] += max(
                [
                    _beside(place, id, said, own)
                    + around.get(place[0], 0.0)
                    - AROUND_IT * sum([cover[place[0]][term] for term in held])
                    for place in places
                ]
            )
    return whole | _found_beside(source, own, _words_around(standing, values, best))


def _words_around(standing: Standing, values: Values, best: Sequence[int]) -> dict[int, float]:
    """Return, by chain, what a message gets for words of other messages if it has none of them."""
    chains = {chain for id in best[:SPREADING] for chain, _ in standing.get(id, ())}
    kept = {
        id: near
        for id, places in standing.items()
        if (near := [place for place in places if place[0] in chains])
    }
    return {chain: AROUND_IT * sum(words.values()) for chain, words in _cover(kept, values).items()}


def _standing(source: PlaceSource, own: Mapping[int, float]) -> Standing:
    found: Standing = {id: [] for id in own}
    for content, chain, depth in source.standing(own, PLACES + 1):
        found[content].append((chain, depth))
    return {id: places for id, places in found.items() if places}


def _cover(standing: Standing, values: Values) -> Cover:
    cover: Cover = defaultdict(dict)
    for term, of in values.items():
        for id in of.keys() & standing.keys():
            value = of[id]
            for chain, _ in standing[id]:
                words = cover[chain]
                if value > words.get(term, 0.0):
                    words[term] = value
    return cover


def _beside(
    place: tuple[int, int], id: int, said: Mapping[tuple[int, int], int], own: Mapping[int, float]
) -> float:
    chain, depth = place
    gain = 0.0
    for away, weight in ((-2, NEXT_BUT_ONE), (-1, NEAR), (1, NEAR), (2, NEXT_BUT_ONE)):
        neighbor = said.get((chain, depth + away))
        if neighbor is not None and neighbor != id:
            gain += weight * own[neighbor]
    return gain


def _found_beside(
    source: PlaceSource, own: Mapping[int, float], around: Mapping[int, float]
) -> dict[int, float]:
    """Return neighbors of the best messages that contain none of the words."""
    best = first(own, SPREADING)
    shares = {
        (content, chain, neighbor): weight
        for content, chain, neighbor, weight in _neighbors(source, best)
        if neighbor not in own
    }
    frequent = source.frequent({neighbor for _, _, neighbor in shares}, PLACES)
    gained: dict[tuple[int, int], float] = defaultdict(float)
    for (content, chain, neighbor), weight in shares.items():
        if neighbor not in frequent:
            gained[neighbor, chain] += weight * own[content]
    found: dict[int, float] = {}
    for (neighbor, chain), gain in gained.items():
        found[neighbor] = max(gain + around.get(chain, 0.0), found.get(neighbor, 0.0))
    return found


def _neighbors(source: PlaceSource, best: Sequence[int]) -> Iterator[tuple[int, int, int, float]]:
    """Yield neighbors, the nearest last, so that it counts if a message is a neighbor twice."""
    rows = source.around(best)
    for place, weight in ((3, NEXT_BUT_ONE), (2, NEAR)):
        for row in rows:
            neighbor = row[place]
            if neighbor is not None and neighbor != row[0]:
                yield row[0], row[1], neighbor, weight
