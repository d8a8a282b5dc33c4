"""Watch a folder while commands run in it, and record what they changed.

Changes between two commands are the user's or another tool's. Changes while a command runs are the command's.
A background process is different: the user works at the same time. Changes count as its work only during the
turn that started it.
"""

import asyncio
from dataclasses import dataclass
from pathlib import Path

from hone.core.secrets import redact
from hone.core.visible import one_line
from hone.features.checkpoints.folders import TooMany
from hone.features.checkpoints.snapshot import FolderSnapshot, PathDifference
from hone.features.checkpoints.store import CheckpointStore
from hone.features.checkpoints.values import ChangeDraft, TurnMark

WIDEST = 120
"""The most characters of a command to keep, to name it in a list."""


@dataclass(eq=False)
class CommandRun:
    """A running command. `since` is the last change that was stored before it."""

    mark: TurnMark
    by: str
    background: bool = False
    since: int = 0


class CommandWatch:
    """All commands that run in one folder."""

    def __init__(self, folder: Path, home: Path, store: CheckpointStore) -> None:
        self._snapshot = FolderSnapshot(folder, home)
        self._store = store
        self._running: list[CommandRun] = []
        self._is_too_large = False
        self._turn = asyncio.Lock()

    async def enter(self, run: CommandRun) -> None:
        """Prepare for a command. Raises TooMany, OSError or StoreError; then it is not watched."""
        async with self._turn:
            if self._is_too_large:
                raise TooMany
            other = self._responsible(run.mark)
            if other:
                await self._record(other)
            else:
                await self._refresh()
            run.since = await self._store.latest()
            self._running.append(run)

    async def leave(self, run: CommandRun, *, discard: bool) -> None:
        """Record what a command changed, unless that is to be discarded because its author is unknown."""
        async with self._turn:
            self._running.remove(run)
            if not discard:
                await self._record(run)

    async def close(self) -> None:
        async with self._turn:
            await asyncio.to_thread(self._snapshot.close)

    def _responsible(self, mark: TurnMark) -> CommandRun | None:
        """Return the command that counts as the author of changes up to now."""
        for run in reversed(self._running):
            if not run.background or run.mark == mark:
                return run
        return None

    async def _refresh(self) -> None:
        try:
            await asyncio.to_thread(self._snapshot.refresh)
        except TooMany:
            self._is_too_large = True
            raise

    async def _record(self, run: CommandRun) -> None:
        found = await asyncio.to_thread(self._snapshot.compare)
        if found:
            drafts = [_draft(each, run.by) for each in found]
            contents = {
                each.before.digest: each.content
                for each in found
                if each.before and each.before.has_content and not each.lost
            }
            await self._store.record(run.mark, drafts, contents, run.since)


def _draft(difference: PathDifference, by: str) -> ChangeDraft:
    name = one_line(redact(by), WIDEST)
    return ChangeDraft(difference.path, difference.before, difference.after, name, difference.lost)
