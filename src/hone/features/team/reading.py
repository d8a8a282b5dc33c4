"""Read what the team shares from its ledger, again only after a change."""

from collections.abc import Mapping
from datetime import date

from hone.core.knowledge import SharedKnowledge, SharedLesson, SharedSkill
from hone.core.ledger import MEMORY, SKILL, ChangeKind, ChangeQuery, ChangeState, Entry, Target, skill
from hone.core.skill import DOCUMENT
from hone.core.value import replace
from hone.knowledge import places
from hone.knowledge.folding import Files, load
from hone.knowledge.journal import entries
from hone.knowledge.keeper import Keeper
from hone.knowledge.sections import section
from hone.knowledge.skills.document import parse
from hone.knowledge.validity import valid


class SharedReader:
    """Asks for the last change of the team's ledger, and reads the rest only if that is new."""

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._known: SharedKnowledge | None = None

    async def read(self, today: date) -> SharedKnowledge:
        """Return what applies today."""
        latest = await self._keeper.ledger.latest()
        if self._known is None or self._known.upto != latest:
            self._known = SharedKnowledge(upto=latest)
            if latest:
                self._known = SharedKnowledge(await self._entries(), await self._skills(), latest)
        known = self._known
        holding = set(valid((each.text for each in known.entries), today))
        return replace(known, entries=tuple(each for each in known.entries if each.text in holding))

    async def files(self, name: str) -> Files:
        """Return the files of a skill that the team shares; none if it shares no such skill."""
        held = await load(self._keeper.ledger, skill(name))
        return {path: data for path, data in held.items() if not path.startswith("@")}

    async def _entries(self) -> tuple[SharedLesson, ...]:
        found = await section(self._keeper, MEMORY)
        return tuple(
            [
                SharedLesson(text, await find_sharer(self._keeper, entry), entry.change.author.name, entry.id)
                for text in entries(found.text)
                if (entry := found.brought.get(text))
            ]
        )

    async def _skills(self) -> tuple[SharedSkill, ...]:
        held: Mapping[Target, Mapping[str, str]] = await self._keeper.ledger.held_below(SKILL)
        found = []
        for target in sorted(each for each, paths in held.items() if DOCUMENT in paths):
            made = await self._keeper.ledger.entries(ChangeQuery(target=target))
            entry = next(
                each for each in made if each.change.standing is ChangeState.ACTIVE and each.change.deltas
            )
            document = (await load(self._keeper.ledger, target))[DOCUMENT].decode()
            sharer, approver = await find_sharer(self._keeper, entry), entry.change.author.name
            about = parse(document).description
            found.append(SharedSkill(places.name_of(target), about, sharer, approver, entry.id))
        return tuple(found)


async def find_sharer(keeper: Keeper, entry: Entry) -> str:
    """Return who proposed what a change added."""
    while entry.change.about and entry.change.kind in (ChangeKind.APPROVE, ChangeKind.UNDO):
        entry = await keeper.ledger.entry(entry.change.about)
    return entry.change.author.name
