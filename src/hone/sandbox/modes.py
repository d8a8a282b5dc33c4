"""Turn a SandboxSpec into a bubblewrap command line or into Landlock rules."""

import os
import resource
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from hone.sandbox.spec import (
    DEVICES,
    ETC,
    PROCESSES,
    SYSTEM,
    Launch,
    SandboxSpec,
    SandboxUnavailable,
    check,
    inside,
    lent,
    limits,
    owned,
)

NOBODY = 65533
"""No system hands this uid out."""
STAGE = Path("/tmp")
"""As the supervisor mounts it."""
TMP = Path("/tmp")
"""As the command sees it."""

_ALONE = ("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")
_PEOPLE = ("/etc/passwd", "/etc/group")
_KEPT = ("--die-with-parent", "--new-session")
_FACTS = (
    *("/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/uptime", "/proc/loadavg", "/proc/version"),
    *("/proc/filesystems", "/proc/sys/kernel", "/proc/sys/vm", "/sys/devices/system/cpu"),
)


class Bubblewrap(Struct, frozen=True):
    """Namespaces of its own for a command, and only what it may see mounted in them. `drop` for root.

    Started by root, the command runs as a uid that owns nothing (see `descent`): what it may use is then
    staged where that uid can reach it, and bound from there."""

    bwrap: str
    prlimit: str | None
    drop: bool

    def wrap(self, argv: Sequence[str], spec: SandboxSpec) -> Launch:
        check(spec)
        plan = _ground(spec, self.drop)
        command = [self.bwrap, *_ALONE, *_KEPT, *(() if spec.network else ("--unshare-net",))]
        command += [*_system(self.drop), *_own(spec, plan), *_carved(spec, plan)]
        command += ["--remount-ro", "/", "--chdir", str(spec.folder), "--", *self._limited(), *argv]
        settings = [*limits()]
        if self.drop:
            settings.append(("drop", str(NOBODY)))
            settings += [("own", str(path)) for path in plan.owned]
            settings += [("lend", str(path)) for path in plan.lent]
        return Launch("bubble", tuple(command), tuple(settings), str(TMP))

    def _limited(self) -> tuple[str, ...]:
        """Set inside, where only the cell's own processes are counted."""
        _, hardest = resource.getrlimit(resource.RLIMIT_NPROC)
        most = PROCESSES if hardest == resource.RLIM_INFINITY else min(PROCESSES, hardest)
        return (self.prlimit, f"--nproc={most}", "--") if self.prlimit else ()


class MountPlan(Struct, frozen=True):
    """The trees a cell is bound from."""

    owned: tuple[Path, ...]
    lent: tuple[Path, ...]
    staged: bool

    def source(self, path: Path) -> str:
        if not self.staged:
            return str(path)
        trees = (*self.owned, *self.lent)
        root = inside(path, trees)
        return str(STAGE / str(trees.index(root)) / path.relative_to(root) if root else path)


def _ground(spec: SandboxSpec, staged: bool) -> MountPlan:
    trees = owned(spec)
    seen = (*trees, *(Path(each) for each in SYSTEM))
    read = [path for path in lent(spec) if os.path.exists(path) and not inside(path, seen)]
    return MountPlan(trees, tuple(dict.fromkeys(read)), staged)


def _system(staged: bool) -> Iterator[str]:
    for path in SYSTEM:
        if os.path.islink(path):
            yield from ("--symlink", os.readlink(path), path)
        elif os.path.isdir(path):
            yield from ("--ro-bind", path, path)
    for path in ETC:
        source = str(STAGE / Path(path).name) if staged and path in _PEOPLE else path
        if os.path.exists(path):
            yield from ("--ro-bind", source, path)
    yield from ("--proc", "/proc", "--dev", "/dev", "--tmpfs", "/run", "--tmpfs", "/var/tmp")


def _own(spec: SandboxSpec, plan: MountPlan) -> Iterator[str]:
    if spec.scratch:
        yield from ("--bind", plan.source(spec.scratch), str(TMP))
    else:
        yield from ("--tmpfs", str(TMP))
    for path in plan.lent:
        yield from ("--ro-bind", plan.source(path), str(path))
    for path in plan.owned:
        if path != spec.scratch:
            yield from ("--bind", plan.source(path), str(path))


def _carved(spec: SandboxSpec, plan: MountPlan) -> Iterator[str]:
    """What is taken away again, the outer before the inner."""
    trees = (*plan.owned, *plan.lent, *(Path(each) for each in SYSTEM))
    hidden = {path for path in spec.hidden if os.path.exists(path) and inside(path, trees)}
    sealed = {
        path for path in (*spec.sealed, *spec.readable) if os.path.exists(path) and inside(path, plan.owned)
    }
    taken: list[Path] = []
    pinned: set[Path] = set()
    for path in sorted(hidden | sealed):
        if path.resolve() != path or path in plan.owned:
            raise SandboxUnavailable(f"{path} is a link, or a folder to write in")
        yield from _pinned(path, plan, taken, pinned)
        cover = ("--tmpfs",) if os.path.isdir(path) else ("--ro-bind", "/dev/null")
        yield from (*(cover if path in hidden else ("--ro-bind", plan.source(path))), str(path))
        taken.append(path)
    for path in sorted(hidden):
        if os.path.isdir(path):
            yield from ("--remount-ro", str(path))


def _pinned(path: Path, plan: MountPlan, taken: Sequence[Path], pinned: set[Path]) -> Iterator[str]:
    """Mounts the folders above on themselves: a folder that is a mount cannot be renamed, and so what lies
    below it cannot be moved out of its place."""
    root = inside(path, plan.owned)
    for each in reversed(path.parents):
        if root and each != root and inside(each, [root]) and not inside(each, taken) and each not in pinned:
            pinned.add(each)
            yield from ("--bind", plan.source(each), str(each))


class LandlockFence(Struct, frozen=True):
    """For machines without bubblewrap: needs no program and no namespace. `drop` for root.

    The command sees the whole tree of files and their names, but opens only what the cell has. Nothing can be
    taken away inside a folder that is allowed: a cell with something sealed or hidden in it does not hold
    here. Of /etc it opens what any user may open: to many programs a file that is there and refused is an
    error."""

    drop: bool

    def wrap(self, argv: Sequence[str], spec: SandboxSpec) -> Launch:
        check(spec)
        trees = [str(path) for path in owned(spec)]
        readable = (*SYSTEM, "/etc", *_FACTS, *(str(path) for path in (*lent(spec), *spec.sealed)))
        settings = [("folder", str(spec.folder)), *limits(), ("limit", f"RLIMIT_NPROC={PROCESSES}")]
        settings += [("read", path) for path in readable]
        settings += [("write", path) for path in trees]
        settings += [("device", path) for path in DEVICES]
        if spec.network:
            settings.append(("network", "yes"))
        if self.drop:
            settings += [("drop", str(NOBODY)), *(("own", path) for path in trees)]
        return Launch("landlock", tuple(argv), tuple(settings), str(spec.scratch or spec.folder))
