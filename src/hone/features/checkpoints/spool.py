"""Copy contents of files into a file without a name: it uses no memory, and nothing is left of it when the
process ends, however it ends."""

import os
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from hone.files.atomic import MARKS, make_folder


class Spool:
    """Contents that may be needed after the next command. Created with the first one. Raises OSError."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: IO[bytes] | None = None
        self.size = 0

    def put(self, data: bytes) -> int:
        """Store a content; return its position."""
        if self._file is None:
            make_folder(self._folder)
            # Where an unnamed file is impossible, it looks like any draft of a killed process.
            self._file = TemporaryFile(buffering=0, dir=self._folder, prefix=MARKS[0], suffix=MARKS[1])  # noqa: SIM115
        place, rest = self.size, memoryview(data)
        while rest:
            written = os.pwrite(self._file.fileno(), rest, self.size)
            rest, self.size = rest[written:], self.size + written
        return place

    def get(self, place: int, size: int) -> bytes:
        return os.pread(self._file.fileno(), size, place) if self._file else b""

    def clear(self) -> None:
        """Forget all contents."""
        if self._file:
            self._file.truncate(0)
        self.size = 0

    def close(self) -> None:
        if self._file:
            with suppress(OSError):  # nothing in it is needed any more
                self._file.close()
        self._file = None
