"""Find out which files in some folders were opened, without reading any of them."""

import os
from collections.abc import Iterable

from hone.files import inotify
from hone.files.inotify import Inotify


class OpenWatch:
    """Collects which files below some folders were opened, and in the folders of `alone`, without their
    subfolders. Raises OSError where the system does not tell."""

    def __init__(self, folders: Iterable[str], alone: Iterable[str] = ()) -> None:
        self._inotify = Inotify(inotify.READS)
        self._folders: dict[int, str] = {}
        try:
            for folder in folders:
                self._add(folder)
            self._alone = frozenset(alone) - frozenset(self._folders.values())
            for folder in self._alone:
                self._folders[self._inotify.add(folder)] = folder
        except OSError:
            self._inotify.close()
            raise

    def drain(self) -> tuple[set[str], bool]:
        """Return the paths opened since the last call, and whether some are missing."""
        found: set[str] = set()
        missing = False
        for watch, mask, name in self._inotify.read():
            if mask & inotify.OVERFLOW:
                missing = True
            elif name and watch in self._folders:
                path = os.path.join(self._folders[watch], name)
                if not mask & inotify.IS_FOLDER:
                    found.add(path)
                elif mask & (inotify.CREATE | inotify.MOVED_TO) and os.path.dirname(path) not in self._alone:
                    self._add(path)
                    missing = True  # its files may have been read before it was watched
        return found, missing

    def close(self) -> None:
        self._inotify.close()

    def _add(self, top: str) -> None:
        for folder, _, _ in os.walk(top):
            try:
                self._folders[self._inotify.add(folder)] = folder
            except (FileNotFoundError, NotADirectoryError, PermissionError):
                continue
