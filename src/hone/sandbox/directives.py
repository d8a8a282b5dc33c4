"""Check what git finds in a repository that commands made: nothing in it may make git run something.

A new repository has a configuration and sample hooks, which are fine. Other hooks, keys that name a program,
and pointers to a git folder outside the tree are not.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from hone.files.moving import names_in, read
from hone.sandbox.census import Census, Site
from hone.sandbox.gitfiles import LONGEST, harmless_part, pointed_folder

_SAMPLE = ".sample"
"""Git runs no hook with such a name."""


class Correction(Struct, frozen=True):
    """A path to remove, and the text to leave in its place, if any."""

    path: str
    text: str = ""


def is_directive(site: Site, census: Census) -> bool:
    """Tell whether a site is one of git's own files."""
    above = site.path.rpartition("/")[0]
    return above in census.git or _is_worktree(above, census)


def correct(site: Site, census: Census, root: str) -> Iterator[Correction]:
    """Yield what must be removed."""
    wrong = [*_wrong(site, census, root)]
    git = site.path.rpartition("/")[0]
    if not wrong or _is_plain(git):
        yield from wrong
        return
    # A folder that only looks like a git folder may hold somebody's own config or hooks.
    yield Correction(f"{git}/HEAD" if git else "HEAD")


def leads_inside(site: Site, census: Census, root: str) -> bool:
    """Tell whether a .git file leads to a git folder in the tree."""
    text = _text(root, site.path)
    place = pointed_folder(text, Path(root, site.path))
    inner = _below(place, root) if place else None
    return inner is not None and (inner in census.git or _is_worktree(inner, census))


def _wrong(site: Site, census: Census, root: str) -> Iterator[Correction]:
    git = site.path.rpartition("/")[0]
    match os.path.basename(site.path):
        case "hooks" if site.is_folder:
            names = names_in(root, site.path)
            yield from (Correction(f"{site.path}/{name}") for name in names if not name.endswith(_SAMPLE))
        case "config" | "config.worktree" if not (site.is_folder or site.is_link):
            text = _text(root, site.path)
            kept = harmless_part(text, Path(root, site.path), Path(root))
            if kept != text:
                yield Correction(site.path, kept)
        case "commondir" if not (site.is_folder or site.is_link):
            shared = Path(os.path.normpath(Path(root, site.path).parent / _text(root, site.path).strip()))
            if not (_is_worktree(git, census) and shared == Path(root, git).parent.parent):
                yield Correction(site.path)
        case _:
            yield Correction(site.path)


def _is_plain(git: str) -> bool:
    """Tell whether its name says that this is a git folder, or part of one."""
    return ".git" in git.split("/")


def _is_worktree(path: str, census: Census) -> bool:
    above, _, kind = path.rpartition("/")[0].rpartition("/")
    return kind == "worktrees" and above in census.git


def _below(place: Path, root: str) -> str | None:
    return str(place.relative_to(root)) if place != Path(root) and place.is_relative_to(root) else None


def _text(root: str, path: str) -> str:
    return (read(root, path, LONGEST) or b"").decode("utf-8", "surrogateescape")
