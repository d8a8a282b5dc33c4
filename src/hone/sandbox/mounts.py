"""Arrange a command's mounts: what it may write, read and not see, outer ones before inner ones."""

import os
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from hone.sandbox.spec import SYSTEM, SandboxSpec, SandboxUnavailable, lent, owned


class MountKind(StrEnum):
    OWN = "own"
    """Writable."""
    LEND = "lend"
    """Readable."""
    SEAL = "seal"
    """Readable, inside a writable folder."""
    HIDE = "hide"
    PIN = "pin"
    """A folder mounted on itself: it cannot be renamed, so nothing in it can be moved away."""


_READ = (MountKind.LEND, MountKind.SEAL)
_WRITTEN = (MountKind.OWN, MountKind.PIN)


class Mount(Struct, frozen=True):
    """`within` is the kind of the mount around this one; None if there is none."""

    path: str
    kind: MountKind
    within: MountKind | None


def arrange(spec: SandboxSpec) -> list[Mount]:
    """Leave out what changes nothing: a readable folder inside a readable folder, and what nobody sees."""
    return [*_nested(sorted(_wanted(spec).items(), key=lambda item: item[0].split("/")))]


def _wanted(spec: SandboxSpec) -> dict[str, MountKind]:
    trees = [str(path) for path in owned(spec)]
    kinds = dict.fromkeys(_present(lent(spec)), MountKind.LEND)
    if not spec.read_only:
        kinds |= dict.fromkeys(map(str, (spec.folder, *spec.writable)), MountKind.OWN)
    firm, loose = _present((*spec.sealed, *spec.hidden)), _present(spec.guarded)
    for path in (*firm, *loose):
        _refuse_links(path, trees)
    for path in (*_above(firm, trees), *_above(loose, trees, dotted=True)):
        kinds.setdefault(path, MountKind.PIN)
    kinds |= {path: MountKind.SEAL for path in _present((*spec.sealed, *spec.guarded)) if _root(path, trees)}
    kinds |= dict.fromkeys(_present(spec.hidden), MountKind.HIDE)
    return kinds


def _present(paths: Iterable[Path]) -> list[str]:
    return [name for name in map(str, paths) if os.path.exists(name)]


def _root(path: str, trees: Iterable[str]) -> str | None:
    return next((tree for tree in trees if path == tree or path.startswith(f"{tree}/")), None)


def _refuse_links(path: str, trees: Sequence[str]) -> None:
    if path in trees or os.path.realpath(path) != path:
        raise SandboxUnavailable(f"{path} is a link, or a folder to write in")


def _above(paths: Iterable[str], trees: Sequence[str], *, dotted: bool = False) -> Iterator[str]:
    """Yield the folders between a tree and a path in it; if `dotted`, from the first hidden one on. An
    ordinary folder can be renamed with a guarded place in it: the place is then found again."""
    for path in paths:
        root = _root(path, trees)
        above = os.path.dirname(path)
        while root and len(above) > len(root) and not (dotted and "/." not in above[len(root) :]):
            yield above
            above = os.path.dirname(above)


def _nested(items: Iterable[tuple[str, MountKind]]) -> Iterator[Mount]:
    around: list[tuple[str, MountKind]] = []
    for path, kind in items:
        while around and not path.startswith(f"{around[-1][0]}/"):
            around.pop()
        beneath = MountKind.LEND if _root(path, SYSTEM) else None
        outer = around[-1][1] if around else beneath
        if _matters(kind, outer):
            yield Mount(path, kind, outer)
            around.append((path, kind))


def _matters(kind: MountKind, outer: MountKind | None) -> bool:
    match kind:
        case MountKind.HIDE:
            return outer not in (None, MountKind.HIDE)
        case MountKind.LEND | MountKind.SEAL:
            return outer not in _READ
        case MountKind.OWN:
            return outer not in _WRITTEN
    return outer in _WRITTEN
