"""What was typed before, on the arrow keys: one JSON text a line in a file that only its owner can read."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from prompt_toolkit.history import History

from hone.files.atomic import append

REACH = 256 * 1024
"""Bytes that are read back, from the end."""


class KeptHistory(History):
    """Several processes may add to one file: a line goes in with one write. What begins with a space and what
    repeats the last line is not kept. `complain` hears once why the file cannot be used."""

    def __init__(self, path: Path, complain: Callable[[str], None]) -> None:
        super().__init__()
        self._path = path
        self._complain: Callable[[str], None] | None = complain

    def append_string(self, string: str) -> None:
        if not string.startswith(" ") and string not in self._loaded_strings[:1]:
            super().append_string(string)

    def load_history_strings(self) -> Iterator[str]:
        """The newest first. A line that is damaged is left out."""
        try:
            kept = read_end(self._path)
        except FileNotFoundError:
            return
        except OSError as error:
            self._tell(error)
            return
        for line in reversed(kept.splitlines()):
            text = decoded(line)
            if text:
                yield text

    def store_string(self, string: str) -> None:
        try:
            append(self._path, f"{json.dumps(string)}\n".encode())
        except OSError as error:
            self._tell(error)

    def _tell(self, error: OSError) -> None:
        complain, self._complain = self._complain, None
        if complain:
            complain(f"What you type is not kept for the arrow keys: {self._path}: {error.strerror}.")


def read_end(path: Path) -> bytes:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - REACH))
        return file.read()


def decoded(line: bytes) -> str:
    try:
        text = json.loads(line)
    except ValueError:
        return ""
    return text if isinstance(text, str) else ""
