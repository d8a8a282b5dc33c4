"""Complete slash commands, skills and file names on Tab. Independent of the editor."""

import os
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

from msgspec import Struct

from hone.core.regex import regex

MOST = 200
"""The most commands or files to offer at once."""
_COMMAND = regex(r"/[A-Za-z0-9-]*")
_WORD = regex(r"\S*\Z")


class Completion(Struct, frozen=True):
    """`text` replaces the last `length` letters."""

    text: str
    length: int
    label: str
    about: str = ""


def offers(before: str, folder: Path, commands: Mapping[str, str]) -> Iterator[Completion]:
    """Yield completions of the text before the cursor; `commands` have their descriptions."""
    if _COMMAND.fullmatch(before):
        # A copy, made at once: this runs in a thread, and skills come and go.
        fitting = (each for each in list(commands.items()) if each[0].startswith(before[1:].lower()))
        for name, about in islice(fitting, MOST):
            yield Completion(f"/{name}", len(before), f"/{name}", about)
        return
    word = last_word(before)
    if word.startswith("@"):
        yield from files(word[1:], folder)
    elif "/" in word or word.startswith((".", "~")):
        yield from files(word, folder)


def is_eager(before: str) -> bool:
    """Tell whether to offer something without being asked."""
    return bool(_COMMAND.fullmatch(before)) or last_word(before).startswith("@")


def last_word(before: str) -> str:
    found = _WORD.search(before)
    return found.group() if found else ""


def files(begun: str, folder: Path) -> Iterator[Completion]:
    """Yield files. Folders end in a slash. Hidden files are offered only after a dot."""
    parent, _, beginning = begun.rpartition("/")
    place = folder / os.path.expanduser(f"{parent}/" if parent or begun.startswith("/") else "")
    names = sorted(name for name in _names(place, beginning) if name.startswith(beginning))
    for name in names[:MOST]:
        yield Completion(name, len(beginning), name)


def _names(place: Path, beginning: str) -> Iterator[str]:
    """Yield the names in a folder. A name that cannot be printed cannot be typed either."""
    try:
        with os.scandir(place) as entries:
            for entry in entries:
                if entry.name.isprintable() and (beginning.startswith(".") or not entry.name.startswith(".")):
                    yield f"{entry.name}/" if entry.is_dir() else entry.name
    except OSError:
        return
