"""Decide whether an entry says only what the owner said. If so it becomes active; in doubt the answer is no.

Every word of the entry stands in a sentence of the owner, and every word of that sentence stands in the entry.
Free are only the words that the language lists as glue, politeness and framing. Beyond that an entry may do three
things: name the owner ("I" becomes "the user"), inflect a word without changing its tense or mood, and move a part
of the sentence where the meaning does not depend on the order.
"""

import re
from collections import Counter
from collections.abc import Container, Iterator, Sequence

from hone.core.regex import regex
from hone.knowledge.language import Kind, Lexicon, detect
from hone.knowledge.reading import CONTENT, HARD, SOFT, Atom, Clause, Sentence, read

_MOST = 400
"""Atoms of a sentence that is looked at: what is longer is no sentence."""
_AHEAD = 4
_LIGHT = frozenset({Kind.SELF, Kind.YOU, Kind.FILLER, Kind.HAVE})
_PERSONS = frozenset({Kind.SELF, Kind.THIRD})
_PASTED = regex(r"^ {0,3}(```|~~~).*?(?:^ {0,3}\1|\Z)|^ {0,3}>.*?$", re.MULTILINE | re.DOTALL)


def quotes(entry: str, owner: Sequence[str]) -> bool:
    """Whether one text of the owner says all of the entry. What the owner has fenced or marked as quoted is
    somebody else's."""
    return any(_supports(_PASTED.sub("\n", text), entry) for text in owner)


def _supports(owner: str, entry: str) -> bool:
    lexicon = detect(f"{owner} {entry}")
    said = [each for each in read(owner, lexicon, entry=False) if not each.asks and len(each.atoms) <= _MOST]
    written = list(read(entry, lexicon, entry=True))
    if not written or any(each.asks or len(each.atoms) > _MOST for each in written):
        return False
    used: dict[int, list[tuple[Clause, list[Atom]]]] = {}
    for clause, atoms in _clauses(written):
        place = _source(said, atoms, lexicon, preferred=next(reversed(used), 0))
        if place is None:
            return False
        used.setdefault(place, []).append((clause, atoms))
    return all(_Match(said[place], clauses, lexicon).holds() for place, clauses in used.items())


def _clauses(sentences: Sequence[Sentence]) -> Iterator[tuple[Clause, list[Atom]]]:
    for sentence in sentences:
        for number, clause in enumerate(sentence.clauses):
            yield clause, [atom for atom in sentence.atoms if atom.clause == number]


def _source(said: Sequence[Sentence], atoms: Sequence[Atom], lexicon: Lexicon, *, preferred: int) -> int | None:
    """The sentence of the owner that has all content words of a clause."""
    content = [atom for atom in atoms if atom.kind == CONTENT]
    for place in sorted(range(len(said)), key=lambda each: each != preferred):
        if all(any(_same(other, atom, lexicon) for other in said[place].atoms) for atom in content):
            return place
    return None


def _same(said: Atom, written: Atom, lexicon: Lexicon) -> bool:
    """Whether an atom of the entry can stand for one of the owner's."""
    match written.kind:
        case Kind.SELF:
            return said.kind == Kind.SELF and _same_part(said, written)
        case Kind.THIRD:
            return said.kind == Kind.THIRD or (said.kind == Kind.SELF and _same_part(said, written))
        case Kind.NOT:
            return said.kind in {Kind.NOT, Kind.NEVER}
        case Kind.NEVER | Kind.HAVE | Kind.YOU:
            return said.kind == written.kind
        case _:
            return said.kind == written.kind and _same_word(said, written, lexicon)


def _same_part(said: Atom, written: Atom) -> bool:
    """Whether a person who is the subject stays the subject."""
    return written.subject is None or said.subject is written.subject


def _same_word(said: Atom, written: Atom, lexicon: Lexicon) -> bool:
    if written.passive and not said.passive:
        return not said.fixed and lexicon.passive(said.key, written.key)
    if said.key == written.key:
        return True
    return not (said.fixed or written.fixed or said.passive) and lexicon.inflected(said.key, written.key)


class _Match:
    """One sentence of the owner beside the clauses of an entry that rest on it."""

    def __init__(self, said: Sentence, clauses: Sequence[tuple[Clause, list[Atom]]], lexicon: Lexicon) -> None:
        self.lexicon, self.owner, self.said = lexicon, said.atoms, said.clauses
        self.entry = [atom for _, atoms in clauses for atom in atoms]
        self.written = [clause for clause, _ in clauses]
        self.numbers = [number for number, (_, atoms) in enumerate(clauses) for _ in atoms]
        """The clause of each atom of the entry."""
        self.places: list[int] = []
        self.places = self._locate()
        """Where the owner has each atom of the entry; -1 for one that is nowhere."""
        self.pairs = [
            (self.owner[place], atom) for place, atom in zip(self.places, self.entry, strict=True) if place >= 0
        ]

    def holds(self) -> bool:
        return (
            self._is_complete()
            and self._is_ordered()
            and self._keeps_persons()
            and self._keeps_roles()
            and self._keeps_owners()
            and self._keeps_wishes()
        )

    def _locate(self) -> list[int]:
        found: list[int] = []
        for at, atom in enumerate(self.entry):
            last = next((place for place in reversed(found) if place >= 0), -1)
            free = [
                (self._follows(last, place), self._alike(at, place), -place)
                for place, other in enumerate(self.owner)
                if _same(other, atom, self.lexicon) and place not in found
            ]
            found.append(-max(free)[2] if free else -1)
        return found

    def _alike(self, at: int, place: int) -> int:
        """How many atoms from there on are the same."""
        pairs = zip(self.entry[at : at + _AHEAD], self.owner[place:], strict=False)
        alike = [_same(other, atom, self.lexicon) for atom, other in pairs]
        return alike.index(False) if False in alike else len(alike)

    def _follows(self, last: int, place: int, gone: Container[int] = ()) -> bool:
        return place > last and all(
            each in gone or self.owner[each].kind in _LIGHT or self._is_optional(each)
            for each in range(last + 1, place)
        )

    def _is_complete(self) -> bool:
        """Nothing was added, and nothing was left out."""
        added = [
            atom
            for at, (place, atom) in enumerate(zip(self.places, self.entry, strict=True))
            if place < 0
            and atom.kind not in _PERSONS
            and not (atom.kind == Kind.YOU and self.written[self.numbers[at]].wish)
        ]
        left = set(range(len(self.owner))).difference(self.places)
        return not added and all(self._is_optional(place) for place in left)

    def _is_optional(self, place: int) -> bool:
        atom = self.owner[place]
        if atom.kind == Kind.FILLER:
            return not self._is_negated(place)
        if atom.kind == Kind.YOU:
            return not atom.leads
        if atom.key in self.lexicon.use and self._is_order(place):
            return True
        if atom.passive and atom.key in self.lexicon.naming:
            return True
        return atom.kind in {Kind.SELF, Kind.HAVE} or self._is_reason(place)

    def _is_reason(self, place: int) -> bool:
        """Whether it gives the reason for something that is not denied: "because" itself, or all after it."""
        at = next((at for at in range(place, -1, -1) if self.owner[at].key in self.lexicon.because), 0)
        if not at or any(clause.negated for clause in self.said[: self.owner[at].clause]):
            return False
        return place == at or not any(each > at for each in self.places)

    def _is_negated(self, place: int) -> bool:
        """Whether a "not" stands before it in its clause: "not always" is not "not"."""
        clause = self.owner[place].clause
        return any(atom.kind in {Kind.NOT, Kind.NEVER} and atom.clause == clause for atom in self.owner[:place])

    def _is_order(self, place: int, *, plural: bool = False) -> bool:
        """Whether the clause begins with that verb and names nobody who does it. `plural`: or "we" do it."""
        clause = self.owner[place].clause
        before = [atom for atom in self.owner[:place] if atom.clause == clause]
        if plural:
            before = [atom for atom in before if atom.key not in self.lexicon.we]
        return all(atom.kind in {Kind.NOT, Kind.NEVER, Kind.FILLER} for atom in before)

    def _is_ordered(self) -> bool:
        """The same order; or parts of the sentence have moved as wholes, and at most one word alone."""
        places = [
            place
            for place, atom in zip(self.places, self.entry, strict=True)
            if place >= 0 and not atom.subject and not self._is_loose(place)
        ]
        loose = {place for place in self.places if place not in places}
        runs = self._runs(places, loose)
        turned = [said for said, written in self.pairs if written.passive and not said.passive]
        if len(runs) == 1:
            return not turned or any(each.wish for each in self.written)
        if not self._is_star() or not self.lexicon.language.moves:
            return False
        whole = [run for run in runs if self._is_phrase(run)]
        gone = loose.union(*whole)
        rest = [place for place in places if place not in gone]
        if self._are_whole(runs, loose) or self._are_whole(self._runs(rest, gone), gone):
            return True
        return any(
            self._are_whole(self._runs([each for each in rest if each != run[0]], {*gone, run[0]}), {*gone, run[0]})
            for run in self._runs(rest, gone)
            if len(run) == 1 and self._may_move(run[0])
        )

    def _is_loose(self, place: int) -> bool:
        """It may stand anywhere."""
        atom = self.owner[place]
        return atom.kind == Kind.HAVE or (atom.kind == Kind.FILLER and not self._is_negated(place))

    def _runs(self, places: Sequence[int], gone: Container[int] = ()) -> list[list[int]]:
        runs: list[list[int]] = []
        for place in places:
            if runs and self._follows(runs[-1][-1], place, gone):
                runs[-1].append(place)
            else:
                runs.append([place])
        return runs

    def _is_phrase(self, run: Sequence[int]) -> bool:
        """It begins with a preposition on both sides, and has its object."""
        said, written = self.owner[run[0]], self.entry[self.places.index(run[0])]
        whole = bool(said.role) or len(run) > 1
        return said.kind == CONTENT and said.bound == HARD and written.bound == HARD and whole

    def _are_whole(self, runs: Sequence[Sequence[int]], gone: Container[int]) -> bool:
        if len(runs) <= 1:
            return True
        least = HARD if self._is_limited() else SOFT
        starts = {run[0] for run in runs} | {self._next(run[-1] + 1, gone) for run in runs}
        return all(self._bound(place, gone) >= least for place in starts)

    def _next(self, place: int, gone: Container[int]) -> int:
        while place < len(self.owner) and place in gone:
            place += 1
        return place

    def _bound(self, place: int, gone: Container[int] = ()) -> int:
        """How strongly the owner separates that atom from those before it."""
        bound = HARD if place in {0, len(self.owner)} else self.owner[place].bound
        while place > 0 and not bound and (place - 1 in gone or self._is_left(place - 1)):
            place -= 1
            bound = HARD if place == 0 else self.owner[place].bound
        while place < len(self.owner) and not bound and self._is_left(place):
            place += 1
            bound = HARD if place == len(self.owner) else self.owner[place].bound
        return bound

    def _is_left(self, place: int) -> bool:
        return self.owner[place].kind in _LIGHT and place not in self.places

    def _is_limited(self) -> bool:
        return any(clause.negated for clause in self.said) or any(
            atom.key in self.lexicon.limits for atom in self.owner
        )

    def _may_move(self, place: int) -> bool:
        """An adverb may; so may a verb that became passive, and an order that became an infinitive."""
        said, written = self.owner[place], self.entry[self.places.index(place)]
        if said.kind != CONTENT or said.fixed:
            return False
        if written.passive and not said.passive:
            return True
        to_the_end = self.lexicon.language.final and self.places[-1] == place
        is_order = self._is_order(place, plural=True) and not self.lexicon.language.bare
        return (is_order and (to_the_end or said.key != written.key)) or bool(self.lexicon.adverb.fullmatch(said.key))

    def _is_star(self) -> bool:
        """No two clauses have exchanged their parts."""
        links = {
            (self.numbers[at], self.owner[place].clause)
            for at, place in enumerate(self.places)
            if place >= 0 and self.owner[place].kind not in _LIGHT | _PERSONS
        }
        written, said = Counter(each for each, _ in links), Counter(each for _, each in links)
        return all(written[one] == 1 or said[other] == 1 for one, other in links)

    def _keeps_persons(self) -> bool:
        """The user of the entry is the "I" of the owner."""
        added = [
            atom for place, atom in zip(self.places, self.entry, strict=True) if place < 0 and atom.kind in _PERSONS
        ]
        if self.lexicon.first == ("*",):
            others = {Kind.YOU, Kind.THIRD, Kind.SELF}
            left = [atom for place, atom in enumerate(self.owner) if place not in self.places]
            owners = not any(atom.kind in others for atom in left)
        else:
            owners = any(
                (said.key != written.key and said.key.endswith(self.lexicon.first))
                or (said.key == written.key and not said.fixed and said.key.endswith(self.lexicon.either))
                for said, written in self.pairs
            )
        third = any(atom.kind == Kind.SELF for atom in self.owner)
        return not self._orders() and all(
            (owners and atom.subject is not False) or (atom.kind == Kind.THIRD and third) for atom in added
        )

    def _orders(self) -> bool:
        """Whether what the owner does became what the agent should do: "I clear the cache", "Clear the cache"."""
        if not self.lexicon.language.bare:
            return False
        for number, clause in enumerate(self.written):
            atoms = [(place, atom) for at, (place, atom) in enumerate(zip(self.places, self.entry, strict=True)) if self.numbers[at] == number]
            place, atom = next(((p, a) for p, a in atoms if a.kind not in {Kind.NOT, Kind.NEVER, Kind.FILLER}), (-1, None))
            if atom is None or clause.wish or atom.kind != CONTENT or atom.fixed or atom.key.endswith(("ed", "ing", "s")):
                continue
            if atom.key in self.lexicon.use or self.lexicon.adverb.fullmatch(atom.key):
                continue
            before = next((self.owner[each] for each in range(place - 1, -1, -1) if self.owner[each].kind not in {Kind.NOT, Kind.NEVER, Kind.FILLER}), None)
            if before and before.key == "i" and before.clause == self.owner[place].clause and self.owner[place].key == atom.key and not self.said[before.clause].be:
                return True
        return False

    def _keeps_roles(self) -> bool:
        """A preposition was left out or added, but none was exchanged."""
        changed = [(said.role, written.role) for said, written in self.pairs if said.role != written.role]
        return not any(said and written for said, written in changed) and not (
            any(said for said, _ in changed) and any(written for _, written in changed)
        )

    def _keeps_owners(self) -> bool:
        """What is mine is the user's, what is yours is not."""
        kinds = {atom.owner for atom in self.owner}
        free = not kinds & {Kind.OWN, Kind.YOUR, Kind.THEIRS}
        for said, written in self.pairs:
            if said.owner == written.owner:
                continue
            allowed = {
                0: said.owner in {0, Kind.OWN, Kind.YOUR},
                Kind.OWN: said.owner == 0 and free,
                Kind.THEIRS: said.owner == Kind.OWN or (said.owner == 0 and free),
            }
            if not allowed.get(written.owner, False):
                return False
        return not any(clause.your for clause in self.said) or any(atom.owner == Kind.YOUR for atom in self.entry)

    def _keeps_wishes(self) -> bool:
        return all(self._keeps_wish(number, clause) for number, clause in enumerate(self.written)) and all(
            self._drops_wish(number, clause) for number, clause in enumerate(self.said)
        )

    def _keeps_wish(self, number: int, clause: Clause) -> bool:
        """An entry adds "prefers" to an order only."""
        sources = {self.owner[place].clause for at, place in enumerate(self.places) if place >= 0 and self.numbers[at] == number}
        if not clause.wish or any(self.said[each].wish for each in sources):
            return True
        persons = {atom.clause for atom in self.owner if atom.kind in {Kind.SELF, Kind.THIRD} and atom.key in self.lexicon.subjects | self.lexicon.thirds}
        return all(each not in persons and (self.said[each].polite or not self.said[each].be) for each in sources)

    def _drops_wish(self, number: int, clause: Clause) -> bool:
        """What the owner wants to have is not what the owner has."""
        linked = {self.numbers[at] for at, place in enumerate(self.places) if place >= 0 and self.owner[place].clause == number}
        about = [self.written[each] for each in linked]
        have = any(atom.kind == Kind.HAVE and atom.clause == number for atom in self.owner)
        had = any(atom.kind == Kind.HAVE and self.numbers[at] in linked for at, atom in enumerate(self.entry))
        if have and not had and not clause.be and any(each.be for each in about):
            return False
        if not clause.wish or any(each.wish for each in about):
            return True
        named = any(atom.kind == Kind.SELF and self.numbers[at] in linked for at, atom in enumerate(self.entry))
        if clause.wish == Kind.PREFER:
            return not named
        return any(atom.kind == Kind.YOU and atom.clause in {number, number + 1} for atom in self.owner)
