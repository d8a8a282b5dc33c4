"""Claims as kernel locks on files of a home. Each lock ends with the process that holds it."""

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from hone.core.errors import StoreError
from hone.files.atomic import hold_file
from hone.files.locks import FOLDER, is_locked


class FileClaims:
    """Claims of all processes that use one home on one machine."""

    def __init__(self, home: Path) -> None:
        self._folder = home / FOLDER

    @asynccontextmanager
    async def hold(self, name: str) -> AsyncIterator[bool]:
        with hold_file(self._path(name)) as handle:
            yield handle is not None

    async def confirm(self, name: str) -> bool:
        """Tell whether a claim still holds. Only the end of the process releases a kernel lock."""
        return True

    async def beat(self) -> None:
        """Do nothing: kernel locks do not time out."""

    async def find_held(self, names: Collection[str]) -> frozenset[str]:
        return frozenset(name for name in names if is_locked(self._path(name)))

    def sweep(self, wanted: Collection[str]) -> None:
        with suppress(OSError, StoreError):  # a leftover file locks nothing
            for path in self._folder.glob("*.lock"):
                if path.stem not in wanted:
                    with hold_file(path):
                        continue

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.lock"
