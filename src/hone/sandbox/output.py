"""Capture the output of a process: its beginning and end in memory, and all of a long output in a file."""

import codecs
from io import FileIO
from pathlib import Path

from msgspec import Struct

from hone.core.regex import regex
from hone.files.atomic import create_file

_COLOUR = regex(r"\x1b\[[0-9;:]*m")


_GAPS = (b"\n", b" ", b'"', b",")
_TORN = 4_096
"""Bytes around a cut in which to look for the end of a line, or else of a word."""


class Spill(Struct, frozen=True):
    """Where the whole output goes if it is too long, and its name for readers of the note."""

    path: Path
    name: str
    most: int = 256 * 2**20


class Output:
    """Takes bytes as they arrive. Call `text` at any time."""

    def __init__(self, spill: Spill, cap: int = 2**20) -> None:
        self.total = 0
        self._spill = spill
        self._half = cap // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._file: FileIO | None = None
        self._kept = 0
        self._trouble = ""

    def feed(self, data: bytes) -> None:
        self.total += len(data)
        room = self._half - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        if self.total > 2 * self._half:
            self._keep(data if self._file or self._trouble else bytes(self._head + self._tail))
        if len(self._tail) > 2 * self._half:
            del self._tail[: -self._half]

    def text(self) -> str:
        """Return the text without colors: they would hide a secret behind a letter, and tell a model nothing.
        If the middle is left out, so is the rest of a line that the cut splits: half a secret cannot be
        recognized."""
        if self.total <= 2 * self._half:
            return _COLOUR.sub("", bytes(self._head + self._tail).decode("utf-8", "replace"))
        head, tail = _up_to_a_gap(bytes(self._head)), _from_a_gap(bytes(self._tail[-self._half :]))
        shown = codecs.getincrementaldecoder("utf-8")("replace").decode(head)
        begun = next((index for index, byte in enumerate(tail[:4]) if byte & 0xC0 != 0x80), 4)
        note = f"\n… {self.total - len(head) - len(tail):,} bytes left out; {self._where()} …\n"
        return _COLOUR.sub("", f"{shown}{note}{tail[begun:].decode('utf-8', 'replace')}")

    def close(self) -> None:
        if self._file:
            self._file.close()

    def _keep(self, data: bytes) -> None:
        if self._trouble:
            return
        try:
            if self._file is None:
                self._file = FileIO(create_file(self._spill.path), "wb")
            self._kept += self._file.write(data[: self._spill.most - self._kept])
        except OSError as error:
            self._trouble = (error.strerror or str(error)).lower()

    def _where(self) -> str:
        if self._kept == 0:
            return f"the rest could not be saved ({self._trouble})"
        part = "whole output" if self._kept == self.total else f"its first {self._kept:,} bytes"
        return f"{part} in {self._spill.name}"


def _up_to_a_gap(data: bytes) -> bytes:
    ends = (data.rfind(gap, max(0, len(data) - _TORN)) + 1 for gap in _GAPS)
    return data[: next(filter(None, ends), len(data))]


def _from_a_gap(data: bytes) -> bytes:
    starts = (data.find(gap, 0, _TORN) for gap in _GAPS)
    return data[next((start for start in starts if start >= 0), 0) :]
