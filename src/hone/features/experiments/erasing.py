"""Erase experiments that hold words which are to go, or whose task came from an erased conversation."""

from collections.abc import Sequence

from hone.app import Hone
from hone.core.erasure import Erasure, Scrubber
from hone.core.holding import Occurrence
from hone.features.experiments.store import FOLDER, GATE, TASK, Studies
from hone.files.erasing import FileEraser, below, remove_whole, tally


class ExperimentEraser:
    """An experiment goes as a whole: its figures say nothing without its task and its lesson."""

    def __init__(self, hone: Hone) -> None:
        self._studies = Studies(hone.home)

    async def find(self, what: Erasure) -> Sequence[Occurrence]:
        scrub, found = Scrubber(what.words), []
        for name in self._studies.names():
            count = sum(tally(path, scrub) for path in below(self._studies.folder / name)) + scrub.count(name)
            # Without its task it is what a killed process left.
            is_left = not (self._studies.folder / name / TASK).exists()
            if count or is_left or self._studies.is_from(name, what.sessions):
                found.append(Occurrence("experiments", f"{FOLDER}/{name}/", max(1, count), whole=True))
        return found

    async def erase(self, what: Erasure) -> Sequence[str]:
        for each in await self.find(what):
            self._studies.delete(each.place.removeprefix(f"{FOLDER}/").rstrip("/"))
        return ()


def erase_gate(hone: Hone) -> FileEraser:
    """Remove what was tried on held-out tasks if it names the words: it holds names of lessons, no texts."""
    return FileEraser(hone.home, "gate", (f"{GATE}/",), remove_whole)
