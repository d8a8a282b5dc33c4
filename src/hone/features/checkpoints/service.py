"""All of checkpoints for one Hone: what observes, what rewinds, and what keeps the store small."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from hone.core.clock import Clock
from hone.core.errors import StoreError
from hone.core.ids import SessionId
from hone.core.machine_rows import OpenMachineRows
from hone.core.ports import Sessions
from hone.features.checkpoints import pruning
from hone.features.checkpoints.history import FileHistory
from hone.features.checkpoints.observer import Checkpointer
from hone.features.checkpoints.rows import microseconds
from hone.features.checkpoints.store import CheckpointStore
from hone.files.atomic import sweep
from hone.settings.sections import CheckpointSettings

MEBIBYTE = 2**20


class CheckpointService:
    """Created on demand. It also opens everything on demand."""

    def __init__(
        self,
        home: Path,
        sessions: Sessions,
        clock: Clock,
        settings: CheckpointSettings,
        rows: OpenMachineRows | None = None,
    ) -> None:
        self._clock = clock
        self._settings = settings
        self.store = CheckpointStore(home, clock, rows() if rows else None)
        self._everywhere = rows(everywhere=True) if rows else None
        self.observer = Checkpointer(home, self.store, sessions)
        self.history = FileHistory(home, self.store, sessions)

    async def prune(self) -> None:
        """Delete what is too old or too large, except for sessions that change files in this process."""
        if self.store.exists:
            sweep(self.store.folder)
            oldest = microseconds(self._clock.now() - timedelta(days=self._settings.days))
            size = self._settings.size * MEBIBYTE
            used = frozenset(self.observer.used)
            await self.store.run(pruning.prune, size, oldest, used)
            if self._everywhere:  # a retired machine no longer does that
                await self._everywhere.write(lambda rows: pruning.drop_old(rows, oldest, used))

    async def forget(self, session: SessionId) -> int:
        """Delete everything about a session; return how many changes that were."""
        return await self.store.run(pruning.forget, session) if self.store.exists else 0

    async def leftovers(self, sessions: Sequence[SessionId]) -> list[str]:
        counts = {each: await self.store.run(pruning.count_of, each) for each in sessions}
        return [
            f"Old versions of files it changed are still kept. Delete them, too: hone rewind {id} --forget"
            for id, count in counts.items()
            if count
        ]

    async def checks(self) -> list[tuple[bool, str]]:
        count, size, damaged = await self.store.run(pruning.examine)
        if damaged:
            return [(False, f"checkpoints: {damaged:,} contents are damaged; files that need them stay")]
        return [(True, f"checkpoints: all can be read ({count:,} changes, {size / MEBIBYTE:,.1f} MiB)")]

    async def close(self) -> None:
        """Prune after changes: a program that does one task has no idle time for it."""
        await self.observer.close()
        if self.observer.used:
            with suppress(StoreError, OSError):  # the next process does it
                await self.prune()
        await self.store.close()
