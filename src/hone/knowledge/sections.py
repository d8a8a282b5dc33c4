"""The parts of the journal as they are now, each entry with the change that added it."""

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

from msgspec import Struct

from hone.core.ledger import ChangeKind, ChangeQuery, ChangeState, Entry, Target
from hone.core.value import replace
from hone.knowledge import places
from hone.knowledge.journal import blocks, entries, size
from hone.knowledge.keeper import Keeper
from hone.knowledge.snapshots import journals
from hone.knowledge.validity import past, read


class Section(Struct, frozen=True):
    """The current state of a part of the journal. `brought` are the changes that added its entries."""

    target: Target
    limit: int
    text: str
    brought: Mapping[str, Entry]

    @property
    def name(self) -> str:
        return places.name_of(self.target)

    @property
    def place(self) -> str:
        return places.place_of(self.target)

    @property
    def room(self) -> str:
        return f"{size(self.text):,} of {self.limit:,} characters"


def targets(folder: Path) -> Mapping[str, Target]:
    """Return the parts of the journal by their usual names."""
    return {places.name_of(target): target for target in journals(folder)}


async def sections(keeper: Keeper, folder: Path) -> list[Section]:
    return [await section(keeper, target) for target in journals(folder)]


async def find_past(keeper: Keeper, folder: Path, today: date) -> list[tuple[str, str]]:
    """Return the entries whose last day is over, each with its part. They are in no prompt any more, and the
    owner is asked whether they still hold."""
    texts = [(target, await keeper.text(target)) for target in journals(folder)]
    return [(places.name_of(target), entry) for target, text in texts for entry in past(entries(text), today)]


async def section(keeper: Keeper, target: Target) -> Section:
    text = await keeper.text(target)
    limit = keeper.rules.limits[places.name_of(target)]
    return Section(target, limit, text, await _brought(keeper, target, text))


async def _brought(keeper: Keeper, target: Target, text: str) -> Mapping[str, Entry]:
    """Return the newest change that added each entry."""
    missing, found = set(entries(text)), {}
    for entry in await keeper.ledger.entries(ChangeQuery(target=target)):
        if not missing:
            break
        if entry.change.standing is ChangeState.ACTIVE:
            for each in missing & await find_new_entries(keeper, entry):
                found[each] = await _confirm(keeper, entry)
            missing -= found.keys()
    return found


async def _confirm(keeper: Keeper, entry: Entry) -> Entry:
    """Return a change as confirmed if it was confirmed later."""
    if not entry.settled or (await keeper.ledger.entry(entry.settled)).change.kind is not ChangeKind.CONFIRM:
        return entry
    return replace(entry, change=replace(entry.change, confirmed=True))


async def find_new_entries(keeper: Keeper, entry: Entry) -> set[str]:
    """Return the entries that a change added."""
    new: set[str] = set()
    for delta in entry.change.deltas:
        contents = await keeper.ledger.contents({each for each in (delta.before, delta.after) if each})
        before, after = (
            set(entries(contents[each].decode() if each else "")) for each in (delta.before, delta.after)
        )
        new |= after - before
    return new


def data(section: Section) -> dict[str, Any]:
    """Return the parts for programs, with their exact texts."""
    found = blocks(section.text)
    return {
        "part": section.name,
        "target": section.target,
        "file": section.place,
        "characters": size(section.text),
        "limit": section.limit,
        "entries": [_entry_data(each.entry, section) for each in found if each.entry is not None],
        "prose": "".join(each.raw for each in found if each.entry is None),
    }


def _entry_data(text: str, section: Section) -> dict[str, Any]:
    entry = section.brought.get(text)
    pinned = {"pinned": True} if read(text).pinned else {}
    if entry is None:
        return {"text": text, **pinned}
    author = entry.change.author
    return {
        "text": text,
        **pinned,
        "change": entry.id,
        "at": entry.at.isoformat(),
        "actor": author.actor,
        "session": author.session or None,
        "confirmed": entry.change.confirmed,
    }
