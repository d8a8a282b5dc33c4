"""Read a folder on disk as the files of a skill: all of them, or a reason why not. Links are not followed."""

import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from hone.core.errors import Refused
from hone.core.regex import regex
from hone.core.skill import DOCUMENT
from hone.core.visible import one_line
from hone.files.atomic import FOLDER, open_file
from hone.knowledge.skills.document import FENCE, decode, parse, validate
from hone.knowledge.skills.paths import BYTES, DEEPEST, FILE_BYTES, FILES

_ABOUT = regex(r"(?:license|licence|copying|notice|readme|changelog|changes)(?:\.[a-z]+)?", re.IGNORECASE)
"""Files next to the document that are for people: the agent does without them."""
_NAME = regex(r"^name:.*$", re.MULTILINE)


class InstallPlan(Struct, frozen=True):
    """What would be installed, byte for byte, and which files of the folder would not."""

    name: str
    description: str
    files: Mapping[str, bytes]
    left: tuple[str, ...] = ()


def plan_folder(folder: Path, name: str = "", adapt: Callable[[str], str] = str) -> InstallPlan:
    """Return the folder as a skill with the name in its document, or `name`. `adapt` converts a foreign
    document to the open format. Raises Refused with advice."""
    if not os.path.lexists(folder / DOCUMENT):
        raise Refused(f"{one_line(str(folder), 200)} has no {DOCUMENT}, so it is not a skill.")
    return plan_install(*_gathered(folder), name, adapt)


def plan_install(
    files: dict[str, bytes], left: tuple[str, ...], name: str = "", adapt: Callable[[str], str] = str
) -> InstallPlan:
    """Return files from any source as a skill. Raises Refused with advice."""
    if DOCUMENT not in files:
        raise Refused(f"There is no {DOCUMENT} in there, so it is not a skill.")
    text = adapt(decode(DOCUMENT, files[DOCUMENT]))
    files[DOCUMENT] = text.encode()
    document = parse(text)
    if name and name != document.name:
        files[DOCUMENT] = _renamed(text, name).encode()
    document = validate(name or document.name, files)
    return InstallPlan(document.name, document.description, files, left)


def is_left(path: str) -> bool:
    """Tell whether a path is left out: hidden files, and those beside the document that are for people."""
    names = path.split("/")
    return any(name.startswith(".") or name == "__pycache__" for name in names) or (
        len(names) == 1 and _ABOUT.fullmatch(path) is not None
    )


def _gathered(folder: Path) -> tuple[dict[str, bytes], tuple[str, ...]]:
    files: dict[str, bytes] = {}
    left: list[str] = []
    try:
        handle = os.open(folder, FOLDER)
        try:
            for path, data in _walk(handle, ""):
                if data is None:
                    left.append(path)
                else:
                    files[path] = data
                if len(files) > FILES or sum(map(len, files.values())) > BYTES:
                    raise Refused(
                        f"A skill has at most {FILES} files and {BYTES:,} bytes; this folder has more."
                    )
        finally:
            os.close(handle)
    except OSError as error:
        where = one_line(str(error.filename or folder), 200)
        raise Refused(f"{where} cannot be read: {error.strerror}. Nothing was installed.") from error
    return files, tuple(sorted(left))


def _walk(folder: int, parent: str) -> Iterator[tuple[str, bytes | None]]:
    """Yield each path with its content; None for what is left out."""
    with os.scandir(folder) as entries:
        names = sorted(entry.name for entry in entries)
    for name in names:
        path = f"{parent}{name}"
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        if is_left(path):
            yield path, None
        elif path.startswith("@"):
            raise Refused(f"{one_line(path, 200)} begins with @, as no file of a skill does; take it out.")
        elif stat.S_ISDIR(mode):
            yield from _below(folder, name, path)
        elif stat.S_ISREG(mode):
            yield path, _content(folder, name, path)
        else:
            kind = "a link" if stat.S_ISLNK(mode) else "no plain file"
            raise Refused(
                f"{one_line(path, 200)} is {kind}, and a skill holds plain files only; take it out."
            )


def _below(folder: int, name: str, path: str) -> Iterator[tuple[str, bytes | None]]:
    if path.count("/") > DEEPEST:
        raise Refused(f"{one_line(path, 200)} lies too deep for a skill; move its files up.")
    inner = os.open(name, FOLDER | os.O_NOFOLLOW, dir_fd=folder)
    try:
        yield from _walk(inner, f"{path}/")
    finally:
        os.close(inner)


def _content(folder: int, name: str, path: str) -> bytes:
    with open_file(name, folder=folder) as file:
        data = file.read(FILE_BYTES + 1) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else b""
    if len(data) > FILE_BYTES:
        raise Refused(
            f"{one_line(path, 200)} has more than {FILE_BYTES:,} bytes, the most for a file of a skill."
        )
    return data


def _renamed(text: str, name: str) -> str:
    """Return the document under another name. Its front matter has a name, since it was parsed."""
    start, front, rest = text.split(FENCE, 2)
    return FENCE.join((start, _NAME.sub(f"name: {name}", front, count=1), rest))
