"""What the curator may touch, and what is known of each: how it was used, what it is made of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from hone.core.ledger import SKILL, Actor, ChangeId, Entry, Standing
from hone.core.messages import digest
from hone.core.skill import DOCUMENT, Birth, Listed
from hone.core.trust import Trust, lowest
from hone.knowledge import consolidation, places
from hone.knowledge.folding import Files
from hone.knowledge.library import Library


@dataclass(frozen=True, slots=True)
class Stock:
    """Of the skills that may be changed: their files, their lines, the changes each is made of, how far those
    can be trusted, the days on which each was used or changed. `others` are all other names; `waiting`: an
    earlier plan has not been answered."""

    shelf: Mapping[str, Files]
    listed: Mapping[str, Listed]
    others: frozenset[str]
    grounds: Mapping[str, tuple[ChangeId, ...]]
    labels: Mapping[str, Trust]
    touched: Mapping[str, frozenset[date]]
    waiting: bool

    @property
    def digest(self) -> str:
        return digest(repr([(name, files[DOCUMENT]) for name, files in sorted(self.shelf.items())]).encode())


async def stock(library: Library) -> Stock:
    listed = await library.listed(archived=True)
    ledger = library.keeper.ledger
    waiting = [each for each in await ledger.pending() if _is_curators(each)]
    busy = {places.name_of(each.change.target) for each in waiting}
    own = {each.name: each for each in listed if is_own(each) and each.name not in busy}
    history: dict[str, list[Entry]] = {name: [] for name in own}
    for entry in await ledger.entries(target=SKILL):
        history.get(places.name_of(entry.change.target), []).append(entry)
    days = await library.days()
    return Stock(
        {name: await library.files(name) for name in own},
        own,
        frozenset(each.name for each in listed) - own.keys(),
        {name: tuple(each.id for each in made if _counts(each)) for name, made in history.items()},
        {name: _label(made) for name, made in history.items()},
        {name: days.get(name, frozenset()) | _changed(made) for name, made in history.items()},
        any(each.change.deed == consolidation.MERGE for each in waiting),
    )


def is_own(skill: Listed) -> bool:
    return skill.birth is Birth.AGENT and not skill.pinned and not skill.archived


def _is_curators(entry: Entry) -> bool:
    return entry.change.author.actor is Actor.CURATOR


def _changed(history: Sequence[Entry]) -> frozenset[date]:
    """The days on which somebody else than the curator changed it."""
    return frozenset(
        each.at.astimezone().date() for each in history if _counts(each) and not _is_curators(each)
    )


def _counts(entry: Entry) -> bool:
    return entry.change.standing is Standing.ACTIVE and bool(entry.change.deltas)


def _label(history: Sequence[Entry]) -> Trust:
    """The lowest label that is in it. That the owner approved it says nothing of where it came from."""
    own = {entry.id: entry.change for entry in history}
    active = [change for change in own.values() if change.standing is Standing.ACTIVE]
    approved = [own[change.about] for change in active if change.about in own]
    return lowest(
        label
        for change in (*active, *approved)
        for label in (change.author.ground, *(each.trust for each in change.author.evidence))
    )
