"""Journal and skills without files: a remote database serves them to every machine.

Nothing is published or read from disk, so all servers and workers know the same, whatever is in their homes.
No lock covers all machines: a change that another one overtook is repeated.
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
    """Replaces FileSync. The `home` holds unpacked scripts of skills for commands; copies for other agents on
    this machine are written under its lock."""

    tries = 20
    """How often a change is tried: each failure means that another writer's was recorded."""

    def __init__(self, ledger: Ledger, home: Path) -> None:
        self._ledger = ledger
        self._disk = FileTree(home)
        self._skills = LaidOutSkills(home / places.SKILL_FILES)
        self._turn = asyncio.Lock()

    def close(self) -> None:
        """Do nothing: there is nothing to close."""

    async def aside(self, work: Callable[[], T]) -> T:
        """Run blocking work in a thread, while no other process on this machine writes copies."""

        def locked() -> T:
            with self._disk.lock():
                return work()

        return await asyncio.to_thread(locked)

    @asynccontextmanager
    async def lock(self) -> AsyncIterator[None]:
        """Exclude other changes of this process. Those of other processes end in a Conflict for one of the
        two."""
        async with self._turn:
            yield

    async def lay_out(self, name: str, files: Files) -> str:
        """Return the sentence that says where a skill's scripts can be run; empty if it has none."""
        return await self._skills.describe(name, files)

    async def folders(self, place: str, known: Collection[str]) -> set[str] | None:
        """Return None: there are no folders."""

    async def find_touched(self, skills: Sequence[Target]) -> Sequence[Target]:
        return ()

    async def sight(self, paths: Sequence[str]) -> Sight:
        """Report that nothing is there and nothing has changed: only the ledger has news."""
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
        """Do nothing: the record is all there is."""

    async def settle(self) -> None:
        """Do nothing: nothing is published later."""

    async def adopt(self, names: Sequence[str]) -> None:
        """Do nothing: nobody adds folders there."""

    async def publish(self, target: Target, files: Files) -> None:
        """Do nothing: the record is all there is."""
