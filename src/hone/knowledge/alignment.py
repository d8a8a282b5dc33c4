"""Align an entry with the owner's sentence that it rests on, word by word."""

from collections.abc import Container, Iterator, Sequence
from functools import cached_property

from hone.knowledge.language import Kind
from hone.knowledge.lexicon import Lexicon
from hone.knowledge.reading import (
    COMMENT,
    CONSEQUENCE,
    DENIALS,
    GENERIC,
    OTHERS,
    PHRASE,
    SOFT,
    Atom,
    Clause,
    Sentence,
)

_AHEAD = 4
"""The most atoms to compare when choosing between two places."""
_LEAST = 3
"""The fewest words of a remark about somebody else: "my doctor insists" has fewer."""
LIGHT = frozenset({Kind.SELF, Kind.YOU, Kind.FILLER, Kind.HAVE})
"""What may be missing in the middle of a part that stays whole."""


def same(said: Atom, written: Atom, lexicon: Lexicon) -> bool:
    """Tell whether an atom of the entry can stand for one of the owner's."""
    match written.kind:
        case Kind.SELF:
            return said.kind is Kind.SELF and _same_part(said, written)
        case Kind.THIRD:
            return said.kind is Kind.THIRD or (said.kind is Kind.SELF and _same_part(said, written))
        case Kind.NOT:
            return said.kind in DENIALS
        case Kind.NEVER | Kind.HAVE | Kind.YOU:
            return said.kind is written.kind
        case _:
            return said.kind is written.kind and _same_word(said, written, lexicon)


def _same_part(said: Atom, written: Atom) -> bool:
    """Tell whether a person who is the subject stays the subject."""
    return written.subject is None or said.subject is written.subject


def _same_word(said: Atom, written: Atom, lexicon: Lexicon) -> bool:
    if written.passive and not said.passive:
        return not said.fixed and lexicon.passive(said.key, written.key)
    if said.key == written.key:
        return True
    return not (said.fixed or written.fixed or said.passive) and lexicon.inflected(said.key, written.key)


class Alignment:
    """One sentence of the owner, the clauses of an entry that rest on it, and which atom corresponds to
    which."""

    def __init__(
        self, said: Sentence, clauses: Sequence[tuple[Clause, Sequence[Atom]]], lexicon: Lexicon
    ) -> None:
        self.lexicon = lexicon
        self.owner, self.said, self.tied = said.atoms, said.clauses, said.tied
        self.written = [clause for clause, _ in clauses]
        self.entry = [atom for _, atoms in clauses for atom in atoms]
        self.numbers = [number for number, (_, atoms) in enumerate(clauses) for _ in atoms]
        """The clause of each atom of the entry."""
        self.places: list[int] = []
        """The owner's position of each atom of the entry; -1 if it has none."""
        for at in range(len(self.entry)):
            self.places.append(self._place(at))

    @cached_property
    def pairs(self) -> list[tuple[Atom, Atom]]:
        """Return each atom of the owner with the corresponding one of the entry."""
        return [(self.owner[place], atom) for place, atom in self.placed() if place >= 0]

    @cached_property
    def links(self) -> frozenset[tuple[int, int]]:
        """Return each clause of the entry with each clause of the owner that it takes words from."""
        return frozenset(
            (self.numbers[at], self.owner[place].clause)
            for at, place in enumerate(self.places)
            if place >= 0 and self.owner[place].kind not in LIGHT | {Kind.THIRD}
        )

    def clause(self, number: int) -> list[Atom]:
        return [atom for atom in self.owner if atom.clause == number]

    def placed(self) -> Iterator[tuple[int, Atom]]:
        return zip(self.places, self.entry, strict=True)

    def follows(self, last: int, place: int, gone: Container[int] = ()) -> bool:
        """Tell whether nothing relevant stands between two places."""
        return place > last and all(
            each in gone or self.owner[each].kind in LIGHT or self.is_optional(each)
            for each in range(last + 1, place)
        )

    def _place(self, at: int) -> int:
        last = next((place for place in reversed(self.places) if place >= 0), -1)
        free = [
            (self._adjoins(last, place), self._alike(at, place), -place)
            for place, other in enumerate(self.owner)
            if same(other, self.entry[at], self.lexicon) and place not in self.places
        ]
        return -max(free)[2] if free else -1

    def _adjoins(self, last: int, place: int) -> bool:
        between = self.owner[last + 1 : place]
        return place > last and all(atom.kind in LIGHT or atom.key in self.lexicon.use for atom in between)

    def _alike(self, at: int, place: int) -> int:
        """Return how many atoms from there on are the same."""
        pairs = zip(self.entry[at : at + _AHEAD], self.owner[place:], strict=False)
        alike = [same(other, atom, self.lexicon) for atom, other in pairs]
        return alike.index(False) if False in alike else len(alike)

    def is_complete(self) -> bool:
        """Tell whether nothing was added, and nothing relevant was left out."""
        added = [self._is_added(at) for at, place in enumerate(self.places) if place < 0]
        left = set(range(len(self.owner))).difference(self.places)
        return not any(added) and all(self.is_optional(place) for place in left)

    def _is_added(self, at: int) -> bool:
        """Tell whether an atom was added. Persons are checked elsewhere; "wants you to" and "use" only frame
        what was said."""
        atom, clause = self.entry[at], self.written[self.numbers[at]]
        wanted = atom.kind is Kind.YOU and clause.wish
        used = (
            atom.key in self.lexicon.use
            and atom.leads
            and not clause.wish
            and self._is_asked(self.numbers[at])
        )
        return atom.kind not in {Kind.SELF, Kind.THIRD} and not wanted and not used

    def _is_asked(self, number: int) -> bool:
        """Tell whether the source of an entry's clause is neither a fact nor about a person."""
        sources = {said for written, said in self.links if written == number}
        facts = any(self.said[each].be or self.said[each].wish for each in sources)
        return not facts and not any(
            atom.clause in sources and (atom.kind in {Kind.SELF, Kind.THIRD} or atom.key in self.lexicon.use)
            for atom in self.owner
        )

    def is_optional(self, place: int) -> bool:
        """Tell whether the entry may leave that atom of the owner out."""
        atom = self.owner[place]
        return self._is_light(place) or self._is_reason(place) or atom.clause in self.remarks

    @cached_property
    def remarks(self) -> frozenset[int]:
        return frozenset(number for number in range(len(self.said)) if is_remark(self, number))

    def _is_light(self, place: int) -> bool:
        """Tell whether the atom adds no meaning there."""
        atom = self.owner[place]
        match atom.kind:
            case Kind.SELF:
                return True
            case Kind.FILLER:
                return not self.is_negated(place)
            case Kind.YOU:
                return not atom.leads
            case Kind.THIRD:
                return self._is_merged(place)
            case Kind.HAVE:
                return not self.is_order(place) or self._is_bare(atom.clause)
        if atom.key in self.lexicon.use and self.is_order(place):
            return self._is_bare(atom.clause)
        if atom.key in self.lexicon.should and self._is_wanted(atom.clause):
            return True
        return atom.passive and atom.key in self.lexicon.naming

    def _is_wanted(self, clause: int) -> bool:
        """Tell whether a "should" became what the user wants."""
        persons = any(atom.kind in {Kind.SELF, Kind.THIRD, Kind.YOU} for atom in self.clause(clause))
        return not persons and any(self.written[each].wish for each, other in self.links if other == clause)

    def _is_merged(self, place: int) -> bool:
        """Tell whether a "she" is not needed, since the entry continues directly after the clause that names
        her."""
        clause = self.owner[place].clause
        at = next(
            (at for at, each in enumerate(self.places) if each > place and self.owner[each].clause == clause),
            0,
        )
        before = self.places[at - 1] if at else -1
        return self.owner[place].leads and before >= 0 and self.owner[before].clause == clause - 1

    def is_negated(self, place: int) -> bool:
        """Tell whether a "not" stands before it in its clause: "not always" is not "not"."""
        clause = self.owner[place].clause
        return any(atom.kind in DENIALS and atom.clause == clause for atom in self.owner[:place])

    def is_order(self, place: int, *, ours: bool = False) -> bool:
        """Tell whether the clause begins with that verb and names nobody who does it, or with `ours` only
        "we"."""
        clause = self.owner[place].clause
        before = [atom for atom in self.owner[:place] if atom.clause == clause]
        we = self.lexicon.we if ours else frozenset[str]()
        return all(atom.kind in DENIALS or atom.kind is Kind.FILLER or atom.key in we for atom in before)

    def _is_bare(self, clause: int) -> bool:
        """Tell whether the entry names what to use and states no fact: "Have Bob call" is not "Bob calls"."""
        about = [self.written[each] for each, other in self.links if other == clause]
        if any(each.wish for each in about):
            return True
        pairs = [(said, written) for said, written in self.pairs if said.clause == clause]
        changed = any(said.key != written.key for said, written in pairs[1:])
        return not changed and not any(each.be for each in about)

    def _is_reason(self, place: int) -> bool:
        """Tell whether it gives the reason for something that is not denied: "because" itself, or everything
        after it."""
        because = self.lexicon.because
        at = next((at for at in range(place, -1, -1) if self.owner[at].key in because), 0)
        if not at or any(clause.negated for clause in self.said[: self.owner[at].clause]):
            return False
        turns = any(self.lexicon.turns(atom.key) for atom in self.owner[at:])
        return place == at or (max(self.places) < at and not turns and not _passes(self, self.owner[at:]))


def _passes(found: Alignment, reason: Sequence[Atom]) -> bool:
    """Tell whether an order has a reason that is temporary: "because I'm in a hurry"."""
    lexicon = found.lexicon
    times = any(atom.key in lexicon.times or atom.key in lexicon.limits for atom in reason)
    return times and _is_order(found)


def is_remark(found: Alignment, number: int) -> bool:
    """Tell whether the clause belongs to a final remark that the entry leaves out as a whole."""
    last = max((found.owner[place].clause for place in found.places if place >= 0), default=-1)
    if number <= last or last < 0 or found.tied:
        return False
    atoms = [atom for atom in found.owner if atom.clause > last]
    tail = found.said[last + 1 :]
    if tail[0].remark == CONSEQUENCE:
        reason = atoms[0].key in found.lexicon.because  # `_is_reason` decides about these.
        return not reason and not any(found.lexicon.is_doubt(atom.key) for atom in atoms)
    starts = {atom.clause: atom for atom in reversed(atoms)}
    if any(found.lexicon.turns(atom.key) for atom in atoms) or any(
        atom.bound == PHRASE and not found.said[number].remark for number, atom in starts.items()
    ):
        return False
    negated = any(clause.negated for clause in tail)
    if not tail[0].remark:
        return (not negated and _repeats(found, atoms)) or _stands_alone(found, atoms)
    short = tail[0].remark == COMMENT or (tail[0].remark == GENERIC and not _is_order(found))
    least = _LEAST - 1 if short else _LEAST
    if len(atoms) + tail[0].be < least or (negated and not _is_new(found, atoms)):
        return False
    return not (_is_order(found) and _may_pass(found, tail, atoms))


def _stands_alone(found: Alignment, atoms: Sequence[Atom]) -> bool:
    """Tell whether it stands beside a statement as a remark or as an order, and nothing in it may limit
    both."""
    lexicon = found.lexicon
    words = [atom for atom in atoms if atom.kind is Kind.CONTENT]
    if lexicon.drops_subjects or atoms[0].bound != SOFT or len(words) < _LEAST - 1:
        return False
    if any(atom.key in lexicon.times or atom.key[:1].isdigit() for atom in atoms):
        return False
    if _is_order(found):
        return (
            lexicon.language.bare
            and len(words) >= _LEAST
            and atoms[0] in words
            and not _has_state(found, atoms)
        )
    denied = [atom for atom in atoms if atom.kind in DENIALS]
    return not denied or (atoms[0] in denied and not atoms[0].leads and len(denied) == 1)


def _has_state(found: Alignment, atoms: Sequence[Atom]) -> bool:
    clauses = {atom.clause for atom in atoms}
    denied = any(atom.kind in DENIALS or atom.kind is Kind.HAVE for atom in atoms)
    return denied or any(found.said[each].be for each in clauses)


def _repeats(found: Alignment, atoms: Sequence[Atom]) -> bool:
    """Tell whether it has no word that was not there before."""
    before = {atom.key for atom in found.owner if atom.clause < atoms[0].clause}
    return all(atom.kind is Kind.FILLER or atom.key in before for atom in atoms)


def _is_new(found: Alignment, atoms: Sequence[Atom]) -> bool:
    """Tell whether it has no content word that was there before, so that it cannot deny a part of it."""
    before = [atom for atom in found.owner if atom.clause < atoms[0].clause and atom.kind is Kind.CONTENT]
    words = [atom for atom in atoms if atom.kind is Kind.CONTENT]
    return len(words) > 1 and not any(same(one, other, found.lexicon) for one in before for other in words)


def _is_order(found: Alignment) -> bool:
    """Tell whether the sentence begins with a verb without a subject, or asks for something."""
    atoms, clause = found.clause(0), found.said[0]
    if clause.be or any(atom.kind is Kind.SELF for atom in atoms):
        return clause.polite
    verb = next((atom for atom in atoms if atom.kind not in DENIALS), atoms[0])
    named = verb is atoms[0] or any(atom.kind is Kind.SELF for atom in found.entry)
    mine = named and bool(found.lexicon.first) and verb.key.endswith(found.lexicon.first)
    return clause.polite or (atoms[0].leads and not mine)


def _may_pass(found: Alignment, tail: Sequence[Clause], atoms: Sequence[Atom]) -> bool:
    """Tell whether an order may hold only as long as this does: "Skip the tests, I'm in a hurry"."""
    persons = any(atom.kind is Kind.SELF for atom in atoms)
    state = found.lexicon.drops_subjects or any(atom.predicate or atom.kind is Kind.HAVE for atom in atoms)
    if any(atom.key in found.lexicon.times for atom in atoms):
        return True
    if tail[0].remark == OTHERS:
        return state or not found.lexicon.language.bare
    return state and (persons or tail[0].remark == GENERIC)
