"""Turn a SandboxSpec into a bubblewrap command line or into Landlock rules."""

import os
import resource
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from hone.sandbox.mounts import Mount, MountKind, arrange
from hone.sandbox.spec import (
    DEVICES,
    ETC,
    PROCESSES,
    SYSTEM,
    Launch,
    SandboxSpec,
    SandboxUnavailable,
    check,
    limits,
    owned,
)

NOBODY = 65533
"""A uid that no system assigns."""
STAGE = Path("/tmp")
"""The path where the supervisor mounts it."""
TMP = Path("/tmp")
"""The path where the command sees it."""
NO_NETWORK = (
    "this machine cannot hold a program to some hosts, because an ordinary user can make no network "
    "namespaces here. Install bubblewrap, then see `hone doctor`"
)

_ALONE = ("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")
_PEOPLE = ("/etc/passwd", "/etc/group")
_KEPT = ("--die-with-parent", "--new-session")
_FACTS = (
    *("/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/uptime", "/proc/loadavg", "/proc/version"),
    *("/proc/filesystems", "/proc/sys/kernel", "/proc/sys/vm", "/sys/devices/system/cpu"),
)


class Bubblewrap(Struct, frozen=True):
    """Runs a command in its own namespaces, with only what it may see mounted in them. `drop` is for root.

    If root starts it, the command runs as a uid that owns nothing (see `descent`): what it may use is then
    staged where that uid can reach it, and bound from there.
    """

    bwrap: str
    prlimit: str | None
    drop: bool

    def wrap(self, argv: Sequence[str], spec: SandboxSpec) -> Launch:
        check(spec)
        mounts = arrange(spec)
        stage = _stage(spec, mounts) if self.drop else {}
        command = [self.bwrap, *_ALONE, *_KEPT, *(() if spec.network else ("--unshare-net",))]
        command += [*_system(self.drop), *_scratch(spec, stage), *_mounted(mounts, stage)]
        command += ["--remount-ro", "/", "--chdir", str(spec.folder), "--", *self._limited(), *argv]
        settings = [*limits()]
        if self.drop:
            settings.append(("drop", str(NOBODY)))
            settings += [("stage", f"{kind}:{path}") for path, (kind, _) in stage.items()]
        return Launch("bubble", tuple(command), tuple(settings), str(TMP))

    def _limited(self) -> tuple[str, ...]:
        """Return a limit set inside, where only the sandbox's processes are counted."""
        _, hardest = resource.getrlimit(resource.RLIMIT_NPROC)
        most = PROCESSES if hardest == resource.RLIM_INFINITY else min(PROCESSES, hardest)
        return (self.prlimit, f"--nproc={most}", "--") if self.prlimit else ()


def _stage(spec: SandboxSpec, mounts: Sequence[Mount]) -> dict[str, tuple[str, str]]:
    """Return how and where the supervisor mounts each tree that the uid could not reach by its path."""
    own = [str(path) for path in owned(spec)]
    lend = [each.path for each in mounts if each.kind is MountKind.LEND and each.within is None]
    kinds = {**dict.fromkeys(lend, "lend"), **dict.fromkeys(own, "own")}
    # Innermost first: a path is found in the first one.
    trees = sorted(kinds, key=len, reverse=True)
    return {path: (kinds[path], f"{STAGE}/{number}") for number, path in enumerate(trees)}


def _source(path: str, stage: Mapping[str, tuple[str, str]]) -> str:
    root = next((each for each in stage if path == each or path.startswith(f"{each}/")), None)
    return path if root is None else stage[root][1] + path[len(root) :]


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


def _scratch(spec: SandboxSpec, stage: Mapping[str, tuple[str, str]]) -> tuple[str, ...]:
    if spec.scratch:
        return ("--bind", _source(str(spec.scratch), stage), str(TMP))
    return ("--tmpfs", str(TMP))


def _mounted(mounts: Sequence[Mount], stage: Mapping[str, tuple[str, str]]) -> Iterator[str]:
    covered: list[str] = []
    for each in mounts:
        match each.kind:
            case MountKind.OWN | MountKind.PIN:
                yield from ("--bind", _source(each.path, stage), each.path)
            case MountKind.LEND | MountKind.SEAL:
                yield from ("--ro-bind", _source(each.path, stage), each.path)
            case MountKind.HIDE if os.path.isdir(each.path):
                covered.append(each.path)
                yield from ("--tmpfs", each.path)
            case MountKind.HIDE:
                yield from ("--ro-bind", "/dev/null", each.path)
    for path in covered:
        yield from ("--remount-ro", path)


class LandlockFence(Struct, frozen=True):
    """For machines without bubblewrap. `drop` is for root.

    The command sees all files and their names, but only opens what the sandbox has. In /etc it opens what any
    user may open: to many programs a file that exists but is refused is an error.

    Landlock cannot exclude anything inside an allowed folder. With `mounts`, the command gets a mount
    namespace in which mounts do that; this needs root or user namespaces. Without them, a sandbox with
    something sealed or hidden in a writable folder does not hold, and guarded places are not sealed.
    """

    drop: bool
    mounts: bool

    def wrap(self, argv: Sequence[str], spec: SandboxSpec) -> Launch:
        check(spec)
        if spec.gateway and not self.mounts:
            raise SandboxUnavailable(NO_NETWORK)
        mounts = arrange(spec)
        trees = [str(path) for path in owned(spec)]
        readable = [*SYSTEM, "/etc", *_FACTS, *map(str, spec.sealed), *self._lent(spec, mounts)]
        settings = [("folder", str(spec.folder)), *limits(), ("limit", f"RLIMIT_NPROC={PROCESSES}")]
        settings += [("read", path) for path in readable]
        settings += [("write", path) for path in trees]
        settings += [("device", path) for path in DEVICES]
        if spec.network or spec.gateway:
            settings.append(("network", "own" if spec.gateway else "yes"))
        if self.drop:
            settings += [("drop", str(NOBODY)), *(("own", path) for path in trees)]
        if self.mounts:
            settings += [("mount", f"{each.kind}:{each.path}") for each in mounts if _is_carved(each)]
            settings.append(("namespace", "yes"))
        return Launch("landlock", tuple(argv), tuple(settings), str(spec.scratch or spec.folder))

    def _lent(self, spec: SandboxSpec, mounts: Sequence[Mount]) -> list[str]:
        paths = [each.path for each in mounts if each.kind is MountKind.LEND]
        if self.mounts:
            return paths
        hidden = [each.path for each in mounts if each.kind is MountKind.HIDE]
        return [part for path in paths for part in _around(path, hidden)]


def _is_carved(mount: Mount) -> bool:
    """Tell whether rules alone do not suffice: inside a hidden place, what may be read or written needs a
    mount."""
    return mount.kind not in (MountKind.OWN, MountKind.LEND) or mount.within in (
        MountKind.HIDE,
        MountKind.OWN,
        MountKind.PIN,
    )


def _around(path: str, hidden: Sequence[str]) -> Iterator[str]:
    """Yield a path without the hidden ones in it: if there are any, their siblings."""
    if path in hidden:
        return
    if not any(each.startswith(f"{path}/") for each in hidden):
        yield path
        return
    for name in os.listdir(path):
        yield from _around(f"{path}/{name}", hidden)
