"""Delete text that is older than the owner wants: conversations, long results, quarantine and history."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta

from hone.app import Hone
from hone.core.documents import SPILL
from hone.core.errors import Missing
from hone.core.ids import SessionId
from hone.core.ports import SessionSummary
from hone.files.erasing import change_file, remove, walk


class Retention:
    """The settings under `[retention]`. It deletes, and does not search for copies as erase does."""

    def __init__(self, hone: Hone) -> None:
        self._hone = hone
        self._settings = hone.settings.retention

    async def apply(self) -> None:
        """Delete what has expired. Raises HoneError."""
        now = self._hone.clock.now()
        await asyncio.to_thread(self._delete_files, "spill/", self._settings.spill, now)
        if self._settings.spill and self._hone.documents.shared:
            oldest = now - timedelta(days=self._settings.spill)
            await asyncio.to_thread(self._hone.documents.expire, SPILL, oldest)
        await asyncio.to_thread(self._delete_files, "quarantine/", self._settings.quarantine, now)
        await asyncio.to_thread(self._shorten_history)
        if self._settings.sessions:
            every = await self._hone.sessions.list(None, None)
            for id in find_old(every, now - timedelta(days=self._settings.sessions)):
                with suppress(Missing):  # deleted with the session that it was forked from
                    await self._hone.sessions.delete(id)

    def _delete_files(self, place: str, days: int, now: datetime) -> None:
        oldest = (now - timedelta(days=days)).timestamp()
        for path in walk(self._hone.home, (place,)) if days else ():
            if path.lstat().st_mtime < oldest:
                remove(path)

    def _shorten_history(self) -> None:
        most, path = self._settings.history, self._hone.home / "history"
        if most and path.exists() and path.read_bytes().count(b"\n") > most:
            change_file(path, lambda data: b"".join(data.splitlines(keepends=True)[-most:]))


def find_old(sessions: Sequence[SessionSummary], oldest: datetime) -> list[SessionId]:
    """Return the conversations without activity since then, latest first. Those that others continue stay
    until those are old, too."""
    young = {each.header.parent for each in sessions if each.updated >= oldest}
    return [each.header.id for each in sessions if each.updated < oldest and each.header.id not in young]
