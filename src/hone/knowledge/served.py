"""Journal and skills without files: a database elsewhere serves them to every machine.

Nothing is published and nothing is read from the disk, so all servers and workers know the same, whatever
lies in their homes. There is no lock that all machines share: a change that another overtook is made anew.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from hone.core.ledger import Ledger, Target
from hone.files.tree import TICK, FileTree, Sight
from hone.knowledge import folding, places
from hone.knowledge.folding import Files
from hone.knowledge.skills.laid_out import LaidOutSkills

T = TypeVar("T")


class ServedKnowledge:
    """Stands where FileSync does. In the `home`, scripts of skills are laid out for commands, and copies for
    other agents on this machine are written under its lock."""

    tries = 20
    """How often a change is made: each failure means that somebody else's was recorded."""

    def __init__(self, ledger: Ledger, home: Path) -> None:
        self._ledger = ledger
        self._disk = FileTree(home)
        self._skills = LaidOutSkills(home / places.SKILL_FILES)
        self._turn = asyncio.Lock()

    def close(self) -> None:
        """Nothing is open."""

    async def aside(self, work: Callable[[], T]) -> T:
        """Do what may block in a thread, while no other process on this machine writes copies."""

        def locked() -> T:
            with self._disk.lock():
                return work()

        return await asyncio.to_thread(locked)

    @asynccontextmanager
    async def lock(self) -> AsyncIterator[None]:
        """Exclude other changes of this process. Those of others end in a Conflict for one of the two."""
        async with self._turn:
            yield

    async def lay_out(self, name: str, files: Files) -> str:
        """Return the sentence that says where the scripts of a skill can be run; empty if it has none."""
        return await self._skills.describe(name, files)

    async def folders(self, place: str, known: Collection[str]) -> set[str] | None:
        """There is no place to look at."""

    async def find_touched(self, skills: Sequence[Target]) -> Sequence[Target]:
        return ()

    async def sight(self, paths: Sequence[str]) -> Sight:
        """Return that nothing lies there and nothing was touched: only the ledger tells what is new."""
        return Sight((None,) * len(paths), 2 * TICK, 0)

    async def is_in_sync(self, target: Target, files: Files) -> bool:
        return True

    async def read(self, target: Target, files: Files) -> Files:
        return files

    async def sync(self, target: Target) -> Files:
        return await folding.load(self._ledger, target)

    async def load(self, targets: Sequence[Target], lag: float = 0) -> folding.Loaded:
        """Return what targets hold."""
        view = await self._ledger.view(targets)
        files = {
            target: {path: view.contents[name] for path, name in view.held[target].items()}
            for target in targets
        }
        return folding.Loaded(files)

    def publish_later(self, target: Target, contents: Mapping[str, bytes], lag: float) -> None:
        """What is recorded is all there is."""

    async def settle(self) -> None:
        """Nothing is published later."""

    async def adopt(self, names: Sequence[str]) -> None:
        """Nobody puts folders there."""

    async def publish(self, target: Target, files: Files) -> None:
        """What is recorded is all there is."""
