"""Erase from the home's database and the files it publishes: conversations, ledger, journal and skills."""

from collections.abc import Sequence

from hone.app import Hone
from hone.core.erasure import Erasure, Scrubber
from hone.core.errors import Refused, StoreError
from hone.core.holding import Occurrence
from hone.core.ledger import COPY, SECTION, SKILL, Target
from hone.core.value import replace
from hone.features.erasing.knowledge import make_rewrite
from hone.files.erasing import FileEraser
from hone.knowledge import places
from hone.knowledge.folding import load_steps
from hone.knowledge.items import Items
from hone.knowledge.keeper import OWNER
from hone.knowledge.skills.folder import SetFiles
from hone.stores.erasure_store import open_erasures
from hone.stores.tree import stamp

PUBLISHED = ("MEMORY.md*", "USER.md*", ".MEMORY.md*", ".USER.md*", "projects/", "skills/")
DATABASE = "database"
NAMES = {
    "contents": "messages",
    "conversation": "messages of the conversation (all of it)",
    "prefixes": "stored prompts",
    "knowledge": "versions of journal and skills",
    "sessions": "conversations: titles and folders",
    "changes": "changes: reasons and quotes",
    "evidence": "what lessons rest on",
    "deltas": "names of files of skills",
    "holdings": "names of what is known",
    "prints": "names of published files",
    "jobs": "reviews",
    "looks": "conversations to look back over",
    "rounds": "reports of the curator",
    "outbox": "messages to a memory backend",
}


class DatabaseEraser:
    """Erases rows in one transaction, then publishes journal and skills again. A process killed in between
    leaves files that count as stale: the next one publishes them."""

    def __init__(self, hone: Hone) -> None:
        self._hone = hone
        self.store = open_erasures(hone.home, hone.settings.database)

    async def find(self, what: Erasure) -> Sequence[Occurrence]:
        found = await self.store.find(what)
        rows = [Occurrence(DATABASE, NAMES.get(each.table, each.table), each.count) for each in found]
        return [*rows, *await self._files().find(replace(what, files=()))]

    async def erase(self, what: Erasure) -> Sequence[str]:
        keeper, now = self._hone.keeper, stamp(self._hone.clock.now())
        await self._uninstall(what)
        left = await self._take_copies(what)
        async with keeper.lock():
            for target in await self._targets():
                await keeper.sync(target)
            rewrite = make_rewrite(Scrubber(what.words))
            await self.store.erase(what, rewrite, now)
        return [*left, *await self.settle(what)]

    async def settle(self, what: Erasure) -> Sequence[str]:
        """Update everything that follows from the rows: files, pending changes that are now empty, the
        log."""
        keeper = self._hone.keeper
        async with keeper.lock():
            for target in await self._targets():
                await keeper.sync(target)
        await self._files().erase(replace(what, files=()))
        await self._reject_empty()
        await self._hone.library.listed()
        return await self.store.purge(what)

    async def begin(self, holdings: Sequence[str]) -> None:
        """Record the other holdings of the text, for a backup that still has it there."""
        if holdings:
            await self.store.begin(holdings, stamp(self._hone.clock.now()))

    async def _targets(self) -> list[Target]:
        every = await self.store.target_names()
        return [each for each in every if not places.is_outside(each)]

    async def _uninstall(self, what: Erasure) -> None:
        """Remove skills whose names contain the words, and skills and items that should not stay at all."""
        scrub, keeper = Scrubber(what.words), self._hone.keeper
        items = Items(keeper, self._hone.clock)
        for target in await self.store.target_names():
            held, name = await keeper.ledger.held(target), places.name_of(target)
            if held and places.is_item(target) and (name in what.keys or scrub.count(name)):
                await items.keep(target, None, OWNER)
            is_gone = scrub.count(name) or any(each in what.contents for each in held.values())
            if target.startswith(SKILL) and is_gone and held:
                await keeper.edit_skill(name, SetFiles({}), OWNER)

    async def _take_copies(self, what: Erasure) -> list[str]:
        """Remove what Hone wrote for other agents, where it contains the words. Return what must not be
        touched."""
        scrub, keeper = Scrubber(what.words), self._hone.keeper
        left: list[str] = []
        copies = {**await keeper.ledger.held_below(COPY), **await keeper.ledger.held_below(SECTION)}
        for target, held in copies.items():
            bodies = await keeper.ledger.contents(set(held.values()))
            named = scrub.count(target) or any(each in what.contents for each in held.values())
            if named or any(scrub.count(each.decode("utf-8", "replace")) for each in bodies.values()):
                try:
                    await keeper.share(target, {}, OWNER)
                except (Refused, StoreError) as error:
                    left.append(f"{places.folder_of(target)} may still hold it: {error}")
        return left

    async def _reject_empty(self) -> None:
        ledger = self._hone.ledger
        for entry in await ledger.pending():
            made = await load_steps(ledger, entry.change)
            if all(step.before == step.after for step in made):
                await self._hone.keeper.reject(entry.id)

    def _files(self) -> FileEraser:
        """Return the eraser of files next to the published ones, left by an editor or a killed process."""
        return FileEraser(self._hone.home, "journal and skills", PUBLISHED)
