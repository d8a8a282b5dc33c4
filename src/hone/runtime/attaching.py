"""Attach files to a message: those it names as @path, each with the label of its folder."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

from hone.core.errors import Refused
from hone.core.images import SUFFIXES
from hone.core.messages import Attachment
from hone.core.secrets import redact
from hone.core.visible import visible
from hone.core.work import FileLabels
from hone.files.atomic import open_file
from hone.runtime.pictures import split_words

MOST, LARGEST = 20, 100_000
"""The most files in one message, and bytes to read of each."""
AFTER = ",.;:!?)"
"""Characters that may follow a path in a sentence without belonging to it."""


def find_files(words: str, folder: Path) -> list[Path]:
    """Return the files that a message names as @path. Ignore an @word that names no file."""
    named = [word[1:] for word in split_words(words) if word.startswith("@") and len(word) > 1]
    found = (_find(name, folder) for name in named)
    return list(dict.fromkeys(path for path in found if path))


def _find(name: str, folder: Path) -> Path | None:
    """Return the file with this name, or with the name before a comma."""
    for each in (name, name.rstrip(AFTER)):
        path = folder / os.path.expanduser(each)
        if path.is_file() and not each.lower().endswith(SUFFIXES):
            return path
    return None


async def read_files(files: Sequence[Path], folder: Path, labels: FileLabels) -> list[Attachment]:
    """Return files as attachments. Raises Refused for a file that cannot be read or is not text."""
    if len(files) > MOST:
        raise Refused(f"A message takes at most {MOST} files.")
    return [await asyncio.to_thread(_read, file, folder, labels) for file in files]


def _read(path: Path, folder: Path, labels: FileLabels) -> Attachment:
    inside = path.is_relative_to(folder)
    name = visible(str(path.relative_to(folder) if inside else path))
    try:
        with open_file(path, follow=True) as file:
            data = file.read(LARGEST + 1)
            size = os.fstat(file.fileno()).st_size
    except OSError as error:
        raise Refused(f"{name} cannot be read: {error.strerror}.") from error
    label = labels.of_file(Path(os.path.realpath(path)), data)
    return Attachment(redact(decode(data, size, name)), f"file {name}", label.name.lower())


def decode(data: bytes, size: int, name: str) -> str:
    """Return the text of a file, truncated if it is too long. Raises Refused if it is not text."""
    kept = data[:LARGEST]
    if b"\0" in kept:
        raise Refused(f"{name} is not a text file. Without the @ its name is sent as a word.")
    text = kept.decode("utf-8", "replace")
    if len(data) <= LARGEST:
        return text
    return f"{text}\n[The file has {size:,} bytes; the first {LARGEST:,} are attached.]"
