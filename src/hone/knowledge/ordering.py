"""Decide whether an entry has the owner's words in an order that says the same.

Either the order is the same, or parts of the sentence have moved as wholes: clauses, phrases with their
preposition, and at most one word that may stand anywhere.
"""

from collections import Counter
from collections.abc import Container, Sequence

from hone.knowledge.alignment import LIGHT, Alignment
from hone.knowledge.language import Kind
from hone.knowledge.reading import HARD, PHRASE, SOFT

_LEAST = 2
"""The fewest words of a clause that may change places with another: the items of a list may be in their
order."""


def is_ordered(found: Alignment) -> bool:
    places = [place for at, place in enumerate(found.places) if place >= 0 and not _is_loose(found, at)]
    loose = {place for place in found.places if place not in places}
    runs = _runs(found, places, loose)
    if len(runs) <= 1:
        turned = any(written.passive and not said.passive for said, written in found.pairs)
        return not turned or any(each.wish for each in found.written)
    if not found.lexicon.language.moves or not _is_star(found) or not _are_apart(found):
        return False
    if _are_whole(found, runs, loose) or _is_inverted(found, runs):
        return True
    phrases = [run for run in runs if _is_phrase(found, run)]
    gone = loose.union(*phrases)
    rest = [place for place in places if place not in gone]
    return _are_whole(found, _runs(found, rest, gone), gone) or any(
        _is_without(found, rest, gone, run[0]) for run in _runs(found, rest, gone) if len(run) == 1
    )


def _is_inverted(found: Alignment, runs: Sequence[Sequence[int]]) -> bool:
    """Tell whether "my editor is Vim" became "Vim is the user's editor"."""
    predicates = [place for place, atom in enumerate(found.owner) if atom.predicate]
    mine = any(atom.owner is Kind.OWN for atom in found.owner)
    if not mine or len(runs) != 2 or len(predicates) != 1 or len(found.said) != 1:
        return False
    said, written = found.owner[predicates[0]], [atom for atom in found.entry if atom.predicate]
    return runs[0][0] == predicates[0] and said.kind is Kind.CONTENT and len(written) == 1


def _is_loose(found: Alignment, at: int) -> bool:
    """Tell whether an atom of the entry may stand anywhere."""
    place, atom = found.places[at], found.entry[at]
    if atom.kind is Kind.FILLER:
        return not found.is_negated(place)
    return atom.kind is Kind.HAVE or atom.subject is not None


def _runs(found: Alignment, places: Sequence[int], gone: Container[int]) -> list[list[int]]:
    """Return the stretches in which both have the same order."""
    runs: list[list[int]] = []
    for place in places:
        if runs and found.follows(runs[-1][-1], place, gone):
            runs[-1].append(place)
        else:
            runs.append([place])
    return runs


def _is_star(found: Alignment) -> bool:
    """Tell whether no two clauses have swapped their parts."""
    written, said = Counter(each for each, _ in found.links), Counter(each for _, each in found.links)
    return all(written[one] == 1 or said[other] == 1 for one, other in found.links)


def _are_whole(found: Alignment, runs: Sequence[Sequence[int]], gone: Container[int]) -> bool:
    """Tell whether each begins and ends where a part of the owner's sentence does."""
    if len(runs) <= 1:
        return True
    listed = any(_size(found, run) < _LEAST for run in runs)
    least = HARD if listed or _is_limited(found) else SOFT
    starts = {run[0] for run in runs} | {_next(run[-1] + 1, gone) for run in runs}
    return all(_bound(found, place, gone) >= least for place in starts)


def _size(found: Alignment, run: Sequence[int]) -> int:
    return sum(found.owner[place].kind is Kind.CONTENT for place in run)


def _is_limited(found: Alignment) -> bool:
    limits = found.lexicon.limits
    return any(clause.negated for clause in found.said) or any(atom.key in limits for atom in found.owner)


def _next(place: int, gone: Container[int]) -> int:
    while place in gone:
        place += 1
    return place


def _bound(found: Alignment, place: int, gone: Container[int]) -> int:
    """Return how strongly the owner separates that atom from those before it."""
    last = len(found.owner)
    bound = HARD if place in {0, last} else found.owner[place].bound
    while place > 0 and not bound and (place - 1 in gone or _is_left(found, place - 1)):
        place -= 1
        bound = HARD if place == 0 else found.owner[place].bound
    while place < last and not bound and _is_left(found, place):
        place += 1
        bound = HARD if place == last else found.owner[place].bound
    return bound


def _is_left(found: Alignment, place: int) -> bool:
    return found.owner[place].kind in LIGHT and place not in found.places


def _is_phrase(found: Alignment, run: Sequence[int]) -> bool:
    """Tell whether it begins with a preposition on both sides, and has its object."""
    said, written = found.owner[run[0]], found.entry[found.places.index(run[0])]
    whole = bool(said.role and said.kind is Kind.CONTENT) or len(run) > 1
    return said.bound == PHRASE and written.bound == PHRASE and whole


def _are_apart(found: Alignment) -> bool:
    """Tell whether no two phrases with the same preposition have swapped places: "Anna at 9, Bob at 10"."""
    by_role: dict[tuple[int, str], list[int]] = {}
    for place, atom in enumerate(found.owner):
        if atom.bound == PHRASE and place in found.places:
            role = atom.clause, atom.role or atom.key
            by_role.setdefault(role, []).append(found.places.index(place))
    return all(places == sorted(places) for places in by_role.values())


def _is_without(found: Alignment, rest: Sequence[int], gone: set[int], place: int) -> bool:
    """Tell whether the order is right except for one word that may stand elsewhere."""
    kept = [each for each in rest if each != place]
    return _may_move(found, place) and _are_whole(found, _runs(found, kept, {*gone, place}), {*gone, place})


def _may_move(found: Alignment, place: int) -> bool:
    """Tell whether an atom may move: an adverb, a verb that became passive, or an order that became an
    infinitive."""
    said, written = found.owner[place], found.entry[found.places.index(place)]
    if found.lexicon.adverb.fullmatch(said.key) and said.key not in found.lexicon.limits:
        return True
    if said.kind is not Kind.CONTENT or said.fixed:
        return False
    if written.passive and not said.passive:
        return True
    if _is_fronted(found, place):
        return True
    language = found.lexicon.language
    infinitive = said.key != written.key or (language.final and found.places[-1] == place)
    return infinitive and not language.bare and found.is_order(place, ours=True)


def _is_fronted(found: Alignment, place: int) -> bool:
    """Tell whether the owner puts before the verb what cannot be its subject: "Kaffee trinke ich schwarz"."""
    clause = found.owner[place].clause
    atoms = found.clause(clause)
    named = any(atom.subject and atom.kind is Kind.SELF for atom in found.entry)
    if len(atoms) == 1 and len(found.said) > clause + 1:
        return named and bool(found.clause(clause + 1)[0].subject)
    if found.lexicon.language.bare or len(atoms) < 3 or atoms[0] != found.owner[place]:
        return False
    changed = any(said is atoms[1] and said.key != written.key for said, written in found.pairs)
    first = changed and atoms[1].key.endswith(found.lexicon.first or ("\0",))
    return named and (bool(atoms[2].subject) or first)
