"""Erase experiments that contain words to erase, or whose task came from an erased conversation."""

import asyncio
from collections.abc import Sequence

from hone.app import Hone
from hone.core.documents import EXPERIMENTS, GATE
from hone.core.erasure import Erasure, Scrubber
from hone.core.holding import Occurrence
from hone.features.experiments.store import TASK, is_name
from hone.features.experiments.working import delete, studies_of
from hone.files.erasing import DocumentEraser, below, remove_whole, tally


class ExperimentEraser:
    """Deletes an experiment as a whole: its figures mean nothing without its task and its lesson."""

    def __init__(self, hone: Hone) -> None:
        self._hone = hone
        self._studies = studies_of(hone)

    async def find(self, what: Erasure) -> Sequence[Occurrence]:
        return await asyncio.to_thread(self._find, what)

    async def erase(self, what: Erasure) -> Sequence[str]:
        for each in await self.find(what):
            await delete(self._hone, each.place.removeprefix(f"{EXPERIMENTS.folder}/").rstrip("/"))
        return ()

    def _find(self, what: Erasure) -> list[Occurrence]:
        scrub, found, studies = Scrubber(what.words), [], self._studies
        for name in {*studies.names(), *self._left()}:
            documents = studies.documents(name)
            count = sum(scrub.tally(studies.contents(each)) for each in documents) + scrub.count(name)
            count += sum(tally(path, scrub) for path in below(studies.place(name)) if path.name[0] == ".")
            # Without its task it is a killed process's leftover.
            is_left = f"{name}/{TASK}" not in documents
            if count or is_left or studies.is_from(name, what.sessions):
                place = f"{EXPERIMENTS.folder}/{name}/"
                found.append(Occurrence("experiments", place, max(1, count), whole=True))
        return sorted(found, key=lambda each: each.place)

    def _left(self) -> list[str]:
        """Return folders of this machine that may only contain notes."""
        folder = self._hone.home / EXPERIMENTS.folder
        return [each.name for each in folder.glob("*") if is_name(each.name) and each.is_dir()]


def erase_gate(hone: Hone) -> DocumentEraser:
    """Remove the gate's trials if they name the words: they hold names of lessons, no texts."""
    return DocumentEraser(hone.home, hone.documents, GATE, remove_whole)
