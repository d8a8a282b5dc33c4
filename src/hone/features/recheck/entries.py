"""Find the entries that are past their date, and decide about them."""

from collections.abc import Sequence
from datetime import date
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from hone.core.errors import Missing, Refused
from hone.core.ledger import ChangeId, Entry, Target
from hone.core.visible import one_line
from hone.knowledge import places
from hone.knowledge.journal import Edit, Remove, ReplaceEntry, entries
from hone.knowledge.keeper import OWNER, Keeper
from hone.knowledge.sections import section
from hone.knowledge.snapshots import journals
from hone.knowledge.validity import past, read, renew

DAYS = 30
"""How long an entry that was found to hold is kept."""


class RecheckAnswer(StrEnum):
    KEEP = "keep"
    EXTEND = "extend"
    REMOVE = "remove"


class PastEntry(Struct, frozen=True):
    """An entry whose last day is over, and the change that added it."""

    target: Target
    text: str
    until: date
    change: ChangeId | None = None

    @property
    def part(self) -> str:
        return places.name_of(self.target)

    @property
    def name(self) -> str:
        """Return the name for a command."""
        return str(self.change) if self.change else f'"{one_line(self.text, 60)}"'


async def find_entries(keeper: Keeper, folder: Path, today: date) -> list[PastEntry]:
    """Return those of the journal in a folder, earliest end first."""
    found = []
    for target in journals(folder):
        if gone := past(entries(await keeper.text(target)), today):
            known = await section(keeper, target)
            for text in gone:
                brought = known.brought.get(text)
                until = read(text).until
                assert until is not None
                found.append(PastEntry(target, text, until, brought.id if brought else None))
    return sorted(found, key=lambda each: (each.until, each.target, each.text))


def choose(found: Sequence[PastEntry], wanted: str) -> PastEntry:
    """Return the one with this change number or these words. Raises Missing or Refused."""
    if wanted.isascii() and wanted.isdigit():
        named = [each for each in found if each.change == int(wanted)]
    else:
        named = [each for each in found if wanted and wanted in each.text]
    if len(named) == 1:
        return named[0]
    if named:
        listed = "".join(f"\n  {each.name}  {one_line(each.text, 100)}" for each in named)
        raise Refused(f"Several entries fit {one_line(wanted, 80)!r}. Name one of them:{listed}")
    raise Missing(f"No entry past its date fits {one_line(wanted, 80)!r}. hone recheck lists them.")


async def settle(keeper: Keeper, entry: PastEntry, answer: RecheckAnswer, until: date | None = None) -> Entry:
    """Apply the owner's decision about an entry, as one change. Raises Refused if it is gone."""
    edit: Edit
    if answer is RecheckAnswer.REMOVE:
        edit = Remove(entry.text)
    else:
        edit = ReplaceEntry(entry.text, renew(entry.text, until if answer is RecheckAnswer.EXTEND else None))
    [made] = await keeper.note([(entry.target, edit)], OWNER)
    return made
