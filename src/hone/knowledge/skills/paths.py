"""Check which files a skill may hold besides its document, and how large it may be. No disk access."""

import re
import unicodedata
from collections.abc import Iterable, Mapping

from hone.core.errors import Refused
from hone.core.regex import regex
from hone.core.skill import CHECKS, DOCUMENT
from hone.core.visible import one_line, visible

FOLDERS = ("references", "templates", "scripts", "assets")
DEEPEST = 4
"""The deepest nesting below one of the folders, the file included."""
LONGEST_NAME, LONGEST_PATH = 100, 200
DOCUMENT_CHARACTERS = 100_000
FILE_BYTES = 2**20
FILES, BYTES = 200, 10 * 2**20
"""For a skill as a whole."""

_BYTES_OF_A_NAME = 255
_SIGNS = ". _ - + @ , ( )"
_DEVICE = regex(r"(con|prn|aux|nul|conin|conout|com\d|lpt\d) *(\..*)?", re.IGNORECASE | re.ASCII | re.DOTALL)


def check(path: str) -> str:
    """Return the path of a support file to write, unchanged. Raises Refused with advice."""
    _spare_document(path)
    folder, slash, _ = path.partition("/")
    if folder not in (*FOLDERS, CHECKS.rstrip("/")) or not slash:
        raise _refused(path, f"a file lies below {_listed(FOLDERS)}, for example references/notes.md")
    return accept(path)


def accept(path: str) -> str:
    """Return the path of a support file that came with a skill: those from elsewhere may be in other folders.
    Raises Refused with advice."""
    _spare_document(path)
    names = path.split("/")
    if path.startswith("@"):
        raise _refused(path, "what begins with @ is a fact about a skill")
    if len(names) > DEEPEST + 1:
        raise _refused(path, f"no more than {DEEPEST} names may follow {one_line(names[0], LONGEST_NAME)}/")
    if len(path) > LONGEST_PATH:
        raise _refused(path, f"it has {len(path):,} characters, and at most {LONGEST_PATH} are allowed")
    for name in names:
        if fault := _fault(name):
            raise _refused(path, fault)
    return path


def _spare_document(path: str) -> None:
    if any(_folded(name).rstrip(". ") == _folded(DOCUMENT) for name in path.split("/")):
        raise _refused(path, f"{DOCUMENT} is written as the skill's document, not as a file beside it")


def weigh(files: Mapping[str, bytes]) -> None:
    """Check the size of the document and the support files together; facts do not count. Raises Refused with
    advice."""
    sizes = {path: len(data) for path, data in files.items() if not path.startswith("@")}
    if len(sizes) > FILES:
        raise Refused(
            f"The skill would have {len(sizes):,} files, and at most {FILES} are allowed. Join some of them."
        )
    for path, size in sizes.items():
        if size > FILE_BYTES:
            raise _refused(
                path, f"it would have {size:,} bytes, and at most {FILE_BYTES:,} are allowed; split it"
            )
    if sum(sizes.values()) > BYTES:
        raise Refused(
            f"The skill would have {sum(sizes.values()):,} bytes, and at most {BYTES:,} are allowed."
        )
    length = len(files.get(DOCUMENT, b"").decode(errors="replace"))
    if length > DOCUMENT_CHARACTERS:
        raise _refused(
            DOCUMENT,
            f"it would have {length:,} characters, and at most {DOCUMENT_CHARACTERS:,} are allowed; "
            "move detail to files below references/",
        )
    _part(sizes)


def _part(paths: Iterable[str]) -> None:
    """Refuse clashing paths. If case does not count, or a file has the name of a folder, one would replace
    the other."""
    seen: dict[str, tuple[str, bool]] = {}
    for path in sorted(paths):
        names = path.split("/")
        for end in range(1, len(names) + 1):
            place = "/".join(names[:end]), end == len(names)
            other = seen.setdefault(_folded(place[0]), place)
            if other != place:
                raise _refused(path, f"{one_line(other[0], LONGEST_PATH)} is there already")


def _fault(name: str) -> str:
    """Return what is wrong with one name of a path; nothing if every file system accepts it."""
    if name in ("", ".", "..") or name[0] == "." or name[-1] in ". " or name[0] == " ":
        return "no part of it may be empty, begin with a dot or space, or end with one"
    if len(name) > LONGEST_NAME or len(name.encode(errors="replace")) > _BYTES_OF_A_NAME:
        return f"no name in it may be longer than {LONGEST_NAME} characters and {_BYTES_OF_A_NAME} bytes"
    if unfit := [letter for letter in name if not _is_fit(letter)]:
        return f"{unfit[0]!a} may not be in a name; use letters, digits, space and {_SIGNS}"
    if unicodedata.normalize("NFKC", name) != name or visible(name) != name:
        return "it has letters that hide or look like others; use the plain ones"
    if _DEVICE.fullmatch(name):
        return f"{name} is the name of a device on Windows"
    return ""


def _is_fit(letter: str) -> bool:
    return letter in _SIGNS or unicodedata.category(letter)[0] in "LMN"


def _folded(name: str) -> str:
    return unicodedata.normalize("NFKC", name).upper().casefold()


def _refused(path: str, reason: str) -> Refused:
    return Refused(f"{one_line(path, LONGEST_PATH)} cannot be a file of a skill: {reason}.")


def _listed(folders: Iterable[str]) -> str:
    *first, last = (f"{folder}/" for folder in folders)
    return f"{', '.join(first)} or {last}"
