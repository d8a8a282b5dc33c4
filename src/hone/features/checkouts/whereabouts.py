"""Remember the checkouts on this machine, so that `hone erase` finds them."""

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from hone.app import Hone
from hone.core.erasure import Erasure, Scrubber
from hone.core.holding import Occurrence
from hone.core.value import replace
from hone.core.visible import path_to_text, text_to_path
from hone.features.checkouts.bases import MANIFEST
from hone.files.atomic import write
from hone.files.erasing import FileEraser
from hone.files.locks import acquire, release

FILE = "checkouts.json"
PLACES = ("MEMORY.md*", "USER.md*", ".MEMORY.md*", ".USER.md*", "projects/", "skills/", MANIFEST)


def note_checkout(home: Path, folder: Path) -> None:
    """Remember a folder. An error here must not prevent a pull."""
    with suppress(OSError):
        handle = acquire(home / f"{FILE}.lock")
        try:
            known = list_checkouts(home)
            if folder not in known:
                _save(home, [*known, folder])
        finally:
            release(handle)


def list_checkouts(home: Path) -> list[Path]:
    """Return the folders that are still checkouts, or are about to become one."""
    try:
        value = json.loads((home / FILE).read_bytes())
    except (OSError, ValueError):
        return []
    paths = [text_to_path(each) for each in value if isinstance(each, str)]
    return [path for path in paths if path.is_dir()]


def _save(home: Path, folders: Sequence[Path]) -> None:
    write(home / FILE, json.dumps([path_to_text(each) for each in folders], indent=1).encode())


class CheckoutEraser:
    """Removes words from the files of every checkout on this machine."""

    def __init__(self, hone: Hone) -> None:
        self._home = hone.home

    async def find(self, what: Erasure) -> Sequence[Occurrence]:
        found: list[Occurrence] = []
        for folder in list_checkouts(self._home):
            here = await self._eraser(folder).find(replace(what, files=()))
            found += [replace(each, place=str(folder / each.place)) for each in here]
        return found

    async def erase(self, what: Erasure) -> Sequence[str]:
        """Erase. Checkouts on other machines are out of reach, but what they edited cannot be pushed before a
        pull."""
        scrub = Scrubber(what.words)
        for folder in list_checkouts(self._home):
            await self._eraser(folder).erase(replace(what, files=()))
        with suppress(OSError):
            kept = [each for each in list_checkouts(self._home) if not scrub.count(str(each))]
            if (self._home / FILE).exists():
                _save(self._home, kept)
        return ()

    def _eraser(self, folder: Path) -> FileEraser:
        return FileEraser(folder, "checkouts", PLACES)
