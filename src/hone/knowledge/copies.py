"""Write copies of skills where other agents read them, and never overwrite what a person wrote.

A copy is a target of the ledger whose files lie outside the home: a folder, or a section between two marks of
a file. Its place must hold what Hone last wrote, or nothing; everything else is a person's.
"""

import os
from collections.abc import Awaitable, Callable, Collection, Mapping
from pathlib import Path
from typing import TypeVar

from hone.core.errors import Refused, StoreError
from hone.core.ledger import COPY, SECTION, Ledger, PublishedFile, Target
from hone.core.messages import digest
from hone.core.regex import regex
from hone.core.visible import one_line, text_to_path
from hone.files.atomic import UNFOLLOWED
from hone.files.tree import FileTree
from hone.knowledge import folding
from hone.knowledge.folding import Files

T = TypeVar("T")
Aside = Callable[[Callable[[], T]], Awaitable[T]]
TEXT = "section.md"
"""The only content of a section."""
_MARK = regex(r"^<!-- hone: (begin|end) ([a-z0-9-]+) -->$")
Published = Mapping[str, PublishedFile]


class Copies:
    """Checks and writes copies. `aside` runs blocking work in a thread."""

    def __init__(self, ledger: Ledger, aside: Aside[None]) -> None:
        self._ledger = ledger
        self._aside = aside

    async def check(self, target: Target, wanted: Collection[str] = ()) -> None:
        """Raise Refused if a person wrote or changed a copy, or something where one of the `wanted` files
        belongs."""
        held, published = await folding.load(self._ledger, target), await self._published(target)
        check = _check_folder if target.startswith(COPY) else _check_section
        await self._aside(lambda: check(target, held, published, wanted))

    async def publish(self, target: Target, files: Files) -> None:
        """Write the files of a copy, and remove those that are no longer in it. Raises StoreError."""
        published = await self._published(target)
        made: dict[str, PublishedFile | None] = {}

        def write() -> None:
            if target.startswith(COPY):
                _write_folder(target, files, published, made)
            else:
                _write_section(target, files, published, made)

        try:
            await self._aside(write)
        finally:
            if made:
                await self._ledger.mark_published({(target, path): each for path, each in made.items()})

    async def _published(self, target: Target) -> Published:
        found = await self._ledger.published_files([target])
        return {path: each for (_, path), each in found.items()}


def _find(target: Target) -> tuple[FileTree, str]:
    """Return the folder around a copy, and the copy's name in it."""
    place = target.removeprefix(COPY).removeprefix(SECTION)
    path = text_to_path(place if target.startswith(COPY) else place.rpartition("#")[0])
    return FileTree(path.parent), path.name


def _check_folder(target: Target, held: Files, published: Published, wanted: Collection[str]) -> None:
    tree, name = _find(target)
    for place in (each.path for each in tree.listing(name)):
        path = place.removeprefix(f"{name}/")
        concerned = path in held or path in wanted or not held
        if not concerned or path.startswith("."):
            continue
        found = tree.read(place)
        ours = found is None or _is_ours(found[1].digest, published.get(path), _print(held.get(path)))
        if not ours:
            raise _refused(target, place, written=path in held)


def _print(data: bytes | None) -> PublishedFile | None:
    return None if data is None else PublishedFile(digest(data), 0, 0)


def _refused(target: Target, place: str, *, written: bool) -> Refused:
    what = "was changed since Hone wrote it" if written else "was not written by Hone"
    where = one_line(str(_outer(target) / place), 300)
    return Refused(
        f"{where} {what}, so it stays as it is. Move it away and repeat the command, or leave it there."
    )


def _outer(target: Target) -> Path:
    place = target.removeprefix(COPY).removeprefix(SECTION)
    return text_to_path(place if target.startswith(COPY) else place.rpartition("#")[0]).parent


def _write_folder(
    target: Target, files: Files, published: Published, made: dict[str, PublishedFile | None]
) -> None:
    """Write what is missing or different. What a person has saved since the check stays."""
    tree, name = _find(target)
    for path, data in sorted(files.items()):
        found = tree.read(f"{name}/{path}")
        if found and found[0] == data:
            made[path] = found[1]
        elif found and not _is_ours(found[1].digest, published.get(path)):
            raise _saved_meanwhile(target)
        else:
            made[path] = tree.write(f"{name}/{path}", data, found and found[1])
    for path in published.keys() - files.keys():
        found = tree.read(f"{name}/{path}")
        if found and _is_ours(found[1].digest, published[path]):
            tree.remove(f"{name}/{path}", found[1])
        made[path] = None
    if not files:
        tree.remove_folder(name)  # unless a person has put something there


def _is_ours(found: str, *known: PublishedFile | None) -> bool:
    """Tell whether a place holds, by digest, what Hone wrote."""
    return any(each is not None and each.digest == found for each in known)


def _saved_meanwhile(target: Target) -> StoreError:
    place = one_line(target.removeprefix(COPY).removeprefix(SECTION), 300)
    return StoreError(f"{place} was saved by somebody else meanwhile, so it stays as it is.")


# A section of a file


def split(text: str, name: str) -> tuple[str, str | None, str]:
    """Return the text before the section of this name, the section, and the text after it; None if there is
    no such section. Raises Refused if its marks do not match."""
    lines = text.splitlines(keepends=True)
    marks = [
        (at, found[1])
        for at, line in enumerate(lines)
        if (found := _MARK.match(line.strip())) and found[2] == name
    ]
    if not marks:
        return text, None, ""
    if [kind for _, kind in marks] != ["begin", "end"]:
        raise Refused(
            f"The marks around the section {name} do not match. Each of them must stand there once."
        )
    (first, _), (last, _) = marks
    return "".join(lines[:first]), "".join(lines[first + 1 : last]), "".join(lines[last + 1 :])


def join(text: str, name: str, section: str | None) -> str:
    """Return a text with this section in place of the old one, or at the end if there was none. None removes
    it."""
    before, old, after = split(text, name)
    if section is None and old is None:
        return text
    if section is None:
        return f"{before}{after}" if after else before.removesuffix("\n")
    marked = f"<!-- hone: begin {name} -->\n{section}<!-- hone: end {name} -->\n"
    if old is not None:
        return f"{before}{marked}{after}"
    return f"{before}\n{marked}" if before else marked


def _check_section(target: Target, held: Files, published: Published, _: Collection[str]) -> None:
    tree, file = _find(target)
    found = tree.read(file)
    section = split(_decode(target, found[0]) if found else "", _name(target))[1]
    if section is None:
        return
    if not _is_ours(digest(section.encode()), published.get(TEXT), _print(held.get(TEXT))):
        raise _refused(target, f"{file}, section {_name(target)},", written=bool(held))


def _write_section(
    target: Target, files: Files, published: Published, made: dict[str, PublishedFile | None]
) -> None:
    tree, file = _find(target)
    found = tree.read(file)
    text = _decode(target, found[0]) if found else ""
    section, now = files[TEXT].decode() if TEXT in files else None, split(text, _name(target))[1]
    if now not in (None, section) and not _is_ours(digest(str(now).encode()), published.get(TEXT)):
        raise _saved_meanwhile(target)
    after = join(text, _name(target), section)
    mode = _mode(_outer(target) / file)
    if not after and found:
        tree.remove(file, found[1])
    elif after != text:
        tree.write(file, after.encode(), found and found[1])
        _set_mode(_outer(target) / file, mode)
    made[TEXT] = _print(files.get(TEXT))


def _name(target: Target) -> str:
    return target.rpartition("#")[2]


def _decode(target: Target, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise Refused(f"{one_line(target, 300)} is not text in UTF-8, so it stays as it is.") from None


def _mode(path: Path) -> int:
    """Return the file mode of a file that others share; everybody who may read the folder may read a new
    one."""
    try:
        return path.lstat().st_mode & 0o777
    except OSError:
        return 0o644


def _set_mode(path: Path, mode: int) -> None:
    handle = os.open(path, os.O_RDONLY | UNFOLLOWED)
    try:
        os.fchmod(handle, mode)
    finally:
        os.close(handle)
