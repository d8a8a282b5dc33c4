"""Hold contents of files aside, in a file without a name: it takes no memory, and nothing is left of it when
the process ends, however it ends."""

from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from hone.files.atomic import MARKS


class Spool:
    """Contents that may be needed after the next command. Made with the first one. Raises OSError."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: IO[bytes] | None = None
        self.size = 0

    def put(self, data: bytes) -> int:
        """Hold a content; returns where it is."""
        if self._file is None:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Where a file without a name cannot be made, it looks like any draft of a killed process.
            self._file = TemporaryFile(dir=self._folder, prefix=MARKS[0], suffix=MARKS[1])  # noqa: SIM115
        place = self.size
        self._file.seek(place)
        self._file.write(data)
        self.size += len(data)
        return place

    def get(self, place: int, size: int) -> bytes:
        if self._file is None:
            return b""
        self._file.seek(place)
        return self._file.read(size)

    def clear(self) -> None:
        """Forget all contents."""
        if self._file is not None:
            self._file.seek(0)
            self._file.truncate()
        self.size = 0

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file = None
