"""The folders the owner trusts: what tools bring from there counts as local."""

from pathlib import Path

from hone.core.trust import Trust
from hone.runtime.lists import OwnersList


class Folders:
    def __init__(self, trusted: OwnersList) -> None:
        self._trusted = trusted

    def label(self, path: Path) -> Trust:
        """By where a path really leads, links followed."""
        return Trust.LOCAL if self.trusts(path) else Trust.FOREIGN

    def trusts(self, path: Path) -> bool:
        try:
            real = path.resolve()
        except (OSError, ValueError, RuntimeError):  # links in circles, names that are none
            return False
        return any(real.is_relative_to(folder) for folder in self._trusted.items())

    def trust(self, folder: Path) -> None:
        self._trusted.add(str(folder.resolve()))

    def forget(self, folder: Path) -> None:
        self._trusted.remove(str(folder.resolve()))

    def all(self) -> list[str]:
        return self._trusted.items()
