"""Erase exported files that contain the text. Only files that Hone wrote itself are known here."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from hone.app import Hone
from hone.core.erasure import Erasure, Scrubber
from hone.core.holding import Occurrence
from hone.files.atomic import open_file
from hone.files.erasing import remove, tally
from hone.files.exports import forget_exports, list_exports

CLOSED = (
    "{path} cannot be searched and may still hold it. Delete it if it is older; restored into this home, a "
    "backup is erased again."
)


class ExportEraser:
    """Deletes exports as a whole: each is a copy of data in the home."""

    def __init__(self, hone: Hone) -> None:
        self._home = hone.home

    async def find(self, what: Erasure) -> Sequence[Occurrence]:
        return await asyncio.to_thread(self._find, what)

    async def erase(self, what: Erasure) -> Sequence[str]:
        for each in await self.find(what):
            await asyncio.to_thread(remove, Path(each.place))
        await asyncio.to_thread(forget_exports, self._home, Scrubber(what.words).count)
        closed = await asyncio.to_thread(
            lambda: [each for each in list_exports(self._home) if _is_closed(each)]
        )
        return [CLOSED.format(path=path) for path in closed]

    def _find(self, what: Erasure) -> list[Occurrence]:
        scrub = Scrubber((*what.words, *what.sessions))
        counted = [(str(path), tally(path, scrub)) for path in list_exports(self._home)]
        return [Occurrence("exports", place, count, whole=True) for place, count in counted if count]


def _is_closed(path: Path) -> bool:
    """Tell whether a file is not plain text, such as a backup."""
    try:
        with open_file(path) as file:
            return b"\0" in file.read(1 << 13)
    except OSError:
        return True
