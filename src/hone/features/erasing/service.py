"""Erase: find the text in every holding, remove it, and prove that no file of the home contains it."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from hone.app import Hone
from hone.core.documents import CONSENT, RULES
from hone.core.erasure import Erasure, Scrubber
from hone.core.holding import Eraser, Occurrence
from hone.core.loading import import_object
from hone.core.value import replace
from hone.features.erasing.database import DATABASE, DatabaseEraser
from hone.files.atomic import sweep
from hone.files.erasing import below, tally
from hone.holdings import all_holdings

ROUNDS = 3
"""How often to erase again if other processes bring the text back."""
UNSEARCHED = ("models", "caches")
"""Folders without any text of conversations: weights of models, and caches of tools."""
OWNERS = (
    *(
        "hone.toml",
        "prompts/",
        "agents/",
    ),
    *(*RULES.fixed, *CONSENT.fixed),
    *("keys.json", "serve.key", "serve-keys.json", "serve-keys-used.json"),
)
"""Files that the owner wrote or decided: they are reported, not changed."""


ELSEWHERE = (
    "Some of its sentences are in other conversations or lessons, too. hone erase words removes them there."
)


class Proof(Struct, frozen=True):
    """What a search found in the bytes of every file, and in all rows of a remote database. `left` are files
    and tables that still have it, `owners` files that only the owner may change."""

    files: int
    size: int
    left: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()
    rows: int = 0


class ErasureOutcome(Struct, frozen=True):
    """The result. `notes` are sentences for the owner."""

    proof: Proof
    notes: tuple[str, ...] = ()

    @property
    def is_clean(self) -> bool:
        return not self.proof.left and not self.proof.owners


class Erasing:
    """Everything that can be erased in one home."""

    def __init__(self, hone: Hone) -> None:
        self._hone = hone
        self._database = DatabaseEraser(hone)

    async def find(self, what: Erasure) -> list[Occurrence]:
        """Return every place that holds it."""
        return [place for each in self._erasers() for place in await each.find(what)]

    async def erase(self, what: Erasure) -> ErasureOutcome:
        """Remove it for good. The database comes after the files: it tells what belongs to a conversation or
        a lesson until everything else is done, so that a killed command can be repeated."""
        notes: dict[str, None] = {}
        await self._database.begin(sorted({each.holding for each in await self.find(what)} - {DATABASE}))
        for _ in range(ROUNDS):
            for each in (*self._beside(), self._database, *self._beside()):
                notes |= dict.fromkeys(await each.erase(what))
            sweep(self._hone.home)
            if not await self.find(what):
                break
        probes = await self._own(what.probes)
        if len(probes) < len(what.probes):
            notes[ELSEWHERE] = None
        proof = await self.prove(replace(what, words=(*what.words, *probes)))
        if not proof.left:
            await self._database.store.finish()
        return ErasureOutcome(proof, tuple(notes))

    async def _own(self, probes: tuple[str, ...]) -> tuple[str, ...]:
        """Return the sentences that nothing else contains: those must be nowhere."""
        if not probes or not await self.find(Erasure(words=probes)):
            return probes
        return tuple([each for each in probes if not await self.find(Erasure(words=(each,)))])

    async def is_cut_off(self) -> bool:
        """Tell whether a killed process left an erasure unfinished."""
        return await self._database.store.is_cut_off()

    async def resume(self) -> Sequence[str]:
        """Finish what a killed process left, as far as possible without the words."""
        notes = dict.fromkeys(await self._database.settle(Erasure()))
        for each in self._beside():
            notes |= dict.fromkeys(await each.erase(Erasure()))
        await self._database.store.finish()
        return tuple(notes)

    async def prove(self, what: Erasure) -> Proof:
        """Search the bytes of every file of the home, the names of files, and remote rows."""
        scrub = Scrubber(what.words)
        proof = await asyncio.to_thread(self._prove, scrub)
        rows, tables = await self._database.store.search(scrub)
        decided = await self._database.store.find_decisions(scrub)
        return replace(proof, rows=rows, left=(*proof.left, *tables), owners=(*proof.owners, *decided))

    def _prove(self, scrub: Scrubber) -> Proof:
        home, files, size = self._hone.home, 0, 0
        left: list[str] = []
        for path in sorted(below(home)):
            name = str(path.relative_to(home))
            if path.relative_to(home).parts[0] in UNSEARCHED:
                continue
            files, size = files + 1, size + _size(path)
            if scrub.count(name) or tally(path, scrub):
                left.append(name)
        owners = tuple(each for each in left if each.startswith(OWNERS))
        return Proof(files, size, tuple(each for each in left if each not in owners), owners)

    def _beside(self) -> list[Eraser]:
        return [each for each in self._erasers() if not isinstance(each, DatabaseEraser)]

    def _erasers(self) -> list[Eraser]:
        holdings = all_holdings(self._hone.parts("holdings"))
        names = dict.fromkeys(each.eraser for each in holdings if each.eraser)
        return [import_object(name)(self._hone) for name in names]


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0
