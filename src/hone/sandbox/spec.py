"""Values that describe what a command may touch, and the system paths that every command needs."""

import os
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from functools import cache
from pathlib import Path

from msgspec import Struct


class Claim(StrEnum):
    """What a sandboxed command cannot reach."""

    FILES = "files outside the working folder"
    PROCESSES = "other processes"
    NETWORK = "the network"
    RIGHTS = "rights beyond an ordinary user's"


ALL = frozenset(Claim)


class SandboxSpec(Struct, frozen=True):
    """A working folder to write in, the system to read, nothing else. Paths are absolute and without links.
    Where one lies in another, the inner one decides.

    writable:  further folders to write in
    readable:  further folders and files to read
    sealed:    read-only even where they lie in a folder to write in
    hidden:    not there even where they lie in one of the others
    guarded:   sealed by the modes that can seal; under the others, changes are found and taken back
    scratch:   the folder that is /tmp, or stands in for it; None for a /tmp that lasts one command
    read_only: nothing is written outside the scratch folder
    gateway:   an empty network of its own, in which it can listen and reach itself; see `gateway`
    """

    folder: Path
    network: bool = False
    writable: tuple[Path, ...] = ()
    readable: tuple[Path, ...] = ()
    sealed: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()
    guarded: tuple[Path, ...] = ()
    scratch: Path | None = None
    read_only: bool = False
    gateway: bool = False


class SandboxAccess(Struct, frozen=True):
    """What the owner's settings give commands in a folder: paths to read and to write, and the names of
    environment variables to pass on."""

    read: tuple[Path, ...] = ()
    write: tuple[Path, ...] = ()
    env: tuple[str, ...] = ()


class Launch(Struct, frozen=True):
    """A command in the supervisor's form. `tmp` is where the command finds its scratch folder, `env` adds to
    its usual environment, `files` are descriptors that it inherits."""

    kind: str
    argv: tuple[str, ...]
    settings: tuple[tuple[str, str], ...] = ()
    tmp: str = "/tmp"
    env: tuple[tuple[str, str], ...] = ()
    network: bool = False
    files: tuple[int, ...] = ()


class SandboxMode(Struct, frozen=True):
    """A way to enforce a cell, and what it claims to enforce. `wrap` raises SandboxUnavailable where it
    cannot be made.

    seals:    whether it makes guarded places read-only
    enters:   whether commands can reach what it shows them of a closed folder, such as Hone's home
    """

    name: str
    claims: frozenset[Claim]
    wrap: Callable[[Sequence[str], SandboxSpec], Launch]
    seals: bool = False
    enters: bool = True


class SandboxUnavailable(Exception):
    """Such a sandbox is impossible; the message says why."""


SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"),
    *("/nix/store", "/gnu/store", "/run/current-system"),
)
_ETC = """
    alternatives bash.bashrc ca-certificates ca-certificates.conf crypto-policies debian_version
    fonts gai.conf group host.conf hosts inputrc ld.so.cache ld.so.conf ld.so.conf.d locale.alias
    locale.conf localtime magic mime.types nsswitch.conf os-release passwd perl pki profile
    profile.d protocols python3 resolv.conf rpc services shells ssl/certs ssl/cert.pem
    ssl/openssl.cnf terminfo timezone xml
"""
ETC = tuple(f"/etc/{name}" for name in _ETC.split())
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"

_KERNELS = ("/proc", "/sys", "/dev", "/run", "/boot", "/etc")
_GIB = 2**30
PROCESSES = 4096
"""The most processes of one sandbox, threads included."""


def limits() -> tuple[tuple[str, str], ...]:
    """Return generous limits: they only stop what runs away. Merely reserved memory does not count."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    values = {"RLIMIT_CORE": 0, "RLIMIT_FSIZE": 16 * _GIB, "RLIMIT_DATA": max(2 * _GIB, memory * 3 // 4)}
    return tuple(("limit", f"{name}={value}") for name, value in values.items())


def inside(path: Path, roots: Iterable[Path]) -> Path | None:
    """Return the first root that is the path or contains it."""
    return next((root for root in roots if path.is_relative_to(root)), None)


def owned(spec: SandboxSpec) -> tuple[Path, ...]:
    """Return what may be written, each tree once, the working folder first."""
    trees: list[Path] = []
    scratch = (spec.scratch,) if spec.scratch else ()
    for path in scratch if spec.read_only else (spec.folder, *spec.writable, *scratch):
        if not inside(path, trees):
            trees.append(path)
    return tuple(trees)


def lent(spec: SandboxSpec) -> tuple[Path, ...]:
    """Return what may only be read."""
    return (*((spec.folder, *spec.writable) if spec.read_only else ()), *spec.readable)


def find_system(path: Path) -> str | None:
    """Return the part of the system that a folder is or contains, if any."""
    return next((each for each, real in _system_roots() if real.is_relative_to(path)), None)


@cache
def _system_roots() -> tuple[tuple[str, Path], ...]:
    """Return the resolved roots, cached: every command asks."""
    return tuple((each, Path(each).resolve()) for each in (*SYSTEM, *_KERNELS))


def check(spec: SandboxSpec) -> None:
    """Raise SandboxUnavailable where a cell around this folder would hold what no command may have."""
    for path in (spec.folder, *spec.writable):
        if path != path.resolve() or not path.is_dir():
            raise SandboxUnavailable(f"{path} is not a folder, or is reached through a link")
        system = find_system(path)
        if system:
            raise SandboxUnavailable(f"{path} holds the system itself ({system})")
        if path in spec.hidden:
            raise SandboxUnavailable(f"{path} is Hone's own home")


def real_path(path: str) -> Path:
    """Return a path from the owner's settings without ~ and links."""
    return Path(os.path.realpath(os.path.expanduser(path)))


def check_access(key: str, path: str) -> None:
    """Raise ValueError unless a path from the owner's settings may be opened to commands."""
    if not path.startswith(("/", "~/")) and path != "~":
        raise ValueError(f"{path!r} in {key} of sandbox must begin with / or ~/")
    real = real_path(path)
    if real == Path("/"):
        raise ValueError(f"{path!r} in {key} of sandbox is the whole machine; name the folders you need")
    system = find_system(real) if key == "write" else None
    if system:
        raise ValueError(f"{path!r} in write of sandbox holds the system itself ({system})")
