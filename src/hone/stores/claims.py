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
        """A lock of the kernel is lost with the process alone."""
        return True

    async def beat(self) -> None:
        """Nothing: no lock of the kernel times out."""

    async def find_held(self, names: Collection[str]) -> frozenset[str]:
        return frozenset(name for name in names if is_locked(self._path(name)))

    def sweep(self, wanted: Collection[str]) -> None:
        with suppress(OSError, StoreError):  # a file that stays excludes nobody
            for path in self._folder.glob("*.lock"):
                if path.stem not in wanted:
                    with hold_file(path):
                        continue

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.lock"
