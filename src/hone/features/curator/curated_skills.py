"""List the skills that the curator may change, with their usage and their contents."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date

from msgspec import Struct

from hone.core.ledger import SKILL, Actor, ChangeId, ChangeKind, ChangeQuery, ChangeState, Entry
from hone.core.messages import digest
from hone.core.skill import DOCUMENT, ListedSkill, SkillOrigin
from hone.core.trust import Trust, lowest
from hone.core.value import replace
from hone.core.visible import one_line, visible
from hone.knowledge import places
from hone.knowledge.folding import Files
from hone.knowledge.library import Library

WHOLE = 80_000
"""The most characters of skills to show a model in full; of the others it gets a line each and can view
them."""
WIDTH = 200


class CuratedSkills(Struct, frozen=True):
    """The skills that may be changed: their files, their lines, the changes each is made of, how far those
    can be trusted, and the days of their use. `changed` says which skill was created or changed on which day,
    in that order; `others` are all other names; `waiting`: an earlier plan has not been answered."""

    folders: Mapping[str, Files]
    listed: Mapping[str, ListedSkill]
    others: frozenset[str]
    grounds: Mapping[str, tuple[ChangeId, ...]]
    labels: Mapping[str, Trust]
    used: Mapping[str, frozenset[date]]
    changed: tuple[tuple[str, date], ...]
    waiting: bool

    def without(self, names: Collection[str]) -> "CuratedSkills":
        """Return the same without these skills."""
        folders = {name: files for name, files in self.folders.items() if name not in names}
        listed = {name: each for name, each in self.listed.items() if name not in names}
        return replace(self, folders=folders, listed=listed, others=self.others | set(names))

    @property
    def digest(self) -> str:
        return digest(
            repr([(name, files[DOCUMENT]) for name, files in sorted(self.folders.items())]).encode()
        )


async def load_skills(library: Library) -> CuratedSkills:
    listed = await library.listed(archived=True)
    ledger = library.keeper.ledger
    waiting = [each for each in await ledger.pending() if _is_curators(each)]
    busy = {places.name_of(each.change.target) for each in waiting}
    own = {each.name: each for each in listed if is_own(each) and each.name not in busy}
    entries = await ledger.entries(ChangeQuery(target=SKILL))
    history: dict[str, list[Entry]] = {name: [] for name in own}
    for entry in entries:
        history.get(_name(entry), []).append(entry)
    forebears, days = _forebears(entries), await library.days()
    return CuratedSkills(
        {name: await library.files(name) for name in own},
        own,
        frozenset(each.name for each in listed) - own.keys(),
        {name: tuple(each.id for each in made if _counts(each)) for name, made in history.items()},
        {name: _label(made) for name, made in history.items()},
        {
            name: frozenset().union(*(days.get(each, ()) for each in (name, *forebears.get(name, ()))))
            for name in own
        },
        tuple(_changed(reversed(entries), forebears)),
        any(each.change.kind is ChangeKind.MERGE for each in waiting),
    )


def is_own(skill: ListedSkill) -> bool:
    return skill.origin is SkillOrigin.AGENT and not skill.pinned and not skill.archived


def _is_curators(entry: Entry) -> bool:
    return entry.change.author.actor is Actor.CURATOR


def _name(entry: Entry) -> str:
    return places.name_of(entry.change.target)


def _changed(
    entries: Iterable[Entry], forebears: Mapping[str, Collection[str]]
) -> Iterator[tuple[str, date]]:
    """Yield the days on which skills were changed, oldest first, each with those that it was merged into."""
    for entry in entries:
        if _touches(entry):
            heirs = (name for name, merged in forebears.items() if _name(entry) in merged)
            yield from (
                (name, entry.at.astimezone().date()) for name in dict.fromkeys((_name(entry), *heirs))
            )


def _touches(entry: Entry) -> bool:
    """Tell whether an entry creates or changes a skill. The curator's own changes make nothing younger."""
    return _counts(entry) and not _is_curators(entry)


def _forebears(entries: Sequence[Entry]) -> Mapping[str, set[str]]:
    """Return the skills that each was merged from, and their own sources: a skill is as young as the
    youngest."""
    named = {entry.id: _name(entry) for entry in entries}
    found: dict[str, set[str]] = {}
    for entry in reversed(entries):
        if entry.change.kind is ChangeKind.MERGE:
            sources = {named[each] for each in entry.change.sources if each in named}
            earlier = set[str]().union(*(found.get(each, ()) for each in sources))
            found.setdefault(_name(entry), set()).update(sources | earlier)
    return found


def _counts(entry: Entry) -> bool:
    return entry.change.standing is ChangeState.ACTIVE and bool(entry.change.deltas)


def _label(history: Sequence[Entry]) -> Trust:
    """Return the lowest label in it. The owner's approval says nothing about its source."""
    own = {entry.id: entry.change for entry in history}
    active = [change for change in own.values() if change.standing is ChangeState.ACTIVE]
    approved = [own[change.about] for change in active if change.about in own]
    return lowest(
        label
        for change in (*active, *approved)
        for label in (change.author.trust_floor, *(each.trust for each in change.author.evidence))
    )


def question(known: CuratedSkills, asked: str) -> str:
    """Return the question to a model: which of these skills should be merged."""
    room, parts = WHOLE, [asked]
    for name, listed in sorted(known.listed.items()):
        head = f"# {name} ({listed.counts.uses:,} uses)"
        shown = visible(known.folders[name][DOCUMENT].decode())
        room -= len(shown)
        if room >= 0:
            parts.append("\n".join((head, *(f"  {line}".rstrip() for line in shown.split("\n")))))
        else:
            parts.append(f"{head}: {one_line(listed.description, WIDTH)}")
    return "\n\n".join(parts)
