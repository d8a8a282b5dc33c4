"""Decide whether an entry preserves who does what, whose things are whose, and what is a wish or a fact."""

from hone.knowledge.alignment import Alignment
from hone.knowledge.language import Kind
from hone.knowledge.reading import DENIALS, PERSONS, Atom, Clause

_OTHERS = frozenset({Kind.YOUR, Kind.THEIRS})


def keeps_meaning(found: Alignment) -> bool:
    return (
        _keeps_persons(found)
        and _keeps_roles(found)
        and _keeps_owners(found)
        and all(_keeps_wish(found, number, clause) for number, clause in enumerate(found.written))
        and all(_keeps_fact(found, number, clause) for number, clause in enumerate(found.said))
    )


def _keeps_persons(found: Alignment) -> bool:
    """Tell whether the user of the entry is the "I" of the owner."""
    added = [atom for place, atom in found.placed() if place < 0 and atom.kind in PERSONS]
    named = any(atom.kind is Kind.SELF for atom in found.owner)
    shown = _shows_first_person(found)
    return not any(_is_ordered_now(found, number) for number in range(len(found.written))) and all(
        (shown and atom.subject is not False) or (atom.kind is Kind.THIRD and named) for atom in added
    )


def _shows_first_person(found: Alignment) -> bool:
    """Tell whether the owner speaks of themselves without a pronoun."""
    lexicon = found.lexicon
    if lexicon.drops_subjects:
        left = [atom for place, atom in enumerate(found.owner) if place not in found.places]
        return not any(atom.kind in PERSONS or atom.kind is Kind.YOU for atom in left)
    return any(
        said.key.endswith(lexicon.either if said.key == written.key else lexicon.first)
        for said, written in found.pairs
        if said.kind is Kind.CONTENT
    )


def _is_ordered_now(found: Alignment, number: int) -> bool:
    """Tell whether what the owner does became what the agent should do: "I clear the cache", "Clear the
    cache"."""
    lexicon = found.lexicon
    atoms = [
        at for at, other in enumerate(found.numbers) if other == number and not _is_light(found.entry[at])
    ]
    if not lexicon.language.bare or not atoms or found.written[number].wish:
        return False
    verb, place = found.entry[atoms[0]], found.places[atoms[0]]
    if verb.kind is not Kind.CONTENT or place < 0 or verb.fixed or verb.key != found.owner[place].key:
        return False
    if verb.key in lexicon.use | lexicon.modals or lexicon.adverb.fullmatch(verb.key):
        return False
    if verb.key.endswith(("ed", "ing", "s")):
        return False
    before = next((atom for atom in reversed(found.owner[:place]) if not _is_light(atom)), verb)
    clause = found.owner[place].clause
    return before.key in lexicon.language.i.split() and before.clause == clause and not found.said[clause].be


def _is_light(atom: Atom) -> bool:
    return atom.kind in DENIALS or atom.kind is Kind.FILLER


def _keeps_roles(found: Alignment) -> bool:
    """Tell whether prepositions were only left out or only added, and none was exchanged."""
    changed = [(said.role, written.role) for said, written in found.pairs if said.role != written.role]
    exchanged = any(said and written for said, written in changed)
    return not exchanged and not (any(said for said, _ in changed) and any(role for _, role in changed))


def _keeps_owners(found: Alignment) -> bool:
    """Tell whether what is mine is the user's, and what is yours or theirs is not."""
    free = not any(atom.owner in _OTHERS for atom in found.owner)
    yours = any(clause.your for clause in found.said)
    if yours and not any(atom.owner is Kind.YOUR for atom in found.entry):
        return False
    return all(_same_owner(said.owner, written.owner, free=free) for said, written in found.pairs)


def _same_owner(said: Kind, written: Kind, *, free: bool) -> bool:
    match written:
        case Kind.OWN:
            return said is Kind.OWN or (free and said is Kind.GLUE)
        case Kind.THEIRS:
            return said in {Kind.OWN, Kind.THEIRS} or (free and said is Kind.GLUE)
        case Kind.YOUR:
            return said is Kind.YOUR
        case _:
            return said is not Kind.THEIRS


def _keeps_wish(found: Alignment, number: int, clause: Clause) -> bool:
    """Tell whether "the user wants" stands before a wish or an order, and not before a fact."""
    sources = {said for written, said in found.links if written == number}
    if not clause.wish or any(found.said[each].wish for each in sources):
        return True
    persons = {atom.clause for atom in found.owner if atom.kind in PERSONS and atom.subject is not False}
    asked = {atom.clause for atom in found.owner if atom.key in found.lexicon.should}
    facts = any(found.said[each].be and not found.said[each].polite and each not in asked for each in sources)
    return not facts and not persons & sources and not (found.lexicon.language.bare and _is_told(found))


def _is_told(found: Alignment) -> bool:
    """Tell whether a verb lost the ending of a fact: "Bob deploys" became "wants Bob to deploy"."""
    return any(
        said.key.endswith("s")
        and said.key.removesuffix("s").removesuffix("e") == written.key.removesuffix("e")
        for said, written in found.pairs
        if said.key != written.key
    )


def _keeps_fact(found: Alignment, number: int, clause: Clause) -> bool:
    """Tell whether a wish stays a wish, unless the agent can fulfill it, and "has" does not become "is"."""
    linked = {written for written, said in found.links if said == number}
    about = [found.written[each] for each in linked]
    has = any(atom.kind is Kind.HAVE and atom.clause == number for atom in found.owner)
    had = any(atom.kind is Kind.HAVE and found.numbers[at] in linked for at, atom in enumerate(found.entry))
    if has and not had and not clause.be and any(each.be for each in about):
        return False
    if not clause.wish or not about or any(each.wish for each in about):
        return True
    return any(atom.kind is Kind.YOU and atom.clause in {number, number + 1} for atom in found.owner)
