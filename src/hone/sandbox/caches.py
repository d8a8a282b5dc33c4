"""Keep what commands download and compile, per working folder, below Hone's home.

A command with the network can put anything there, so commands of another folder never see the cache.
"""

import hashlib
import os
from pathlib import Path

from msgspec import Struct

from hone.core import seldom
from hone.core.value import replace

CACHES = "caches"
DATA, MARK = "data", "folder"
UNUSED = 30 * 86_400
"""Seconds after which an unused cache is removed."""
BUSY = 86_400
"""Seconds after its last use for which a cache stays, however large."""
LARGEST = 20 * 2**30
"""The most bytes of all caches together; beyond that, the least recently used ones are removed."""

_VARIABLES = {
    "XDG_CACHE_HOME": "xdg",
    "PIP_CACHE_DIR": "pip",
    "UV_CACHE_DIR": "uv",
    "npm_config_cache": "npm",
    "YARN_CACHE_FOLDER": "yarn",
    "BUN_INSTALL_CACHE_DIR": "bun",
    "CARGO_HOME": "cargo",
    "GOCACHE": "go/build",
    "GOMODCACHE": "go/modules",
    "GOPATH": "go/path",
    "GRADLE_USER_HOME": "gradle",
}


def cache_variables(root: str) -> tuple[tuple[str, str], ...]:
    """Return variables that tell common package managers where to cache. A cache is a separate mount, so uv
    cannot link from it and would warn."""
    named = ((name, f"{root}/{place}") for name, place in _VARIABLES.items())
    return (*named, ("UV_LINK_MODE", "copy"))


def cache_of(home: Path, folder: Path) -> Path:
    """Return the place of a folder's cache, whether or not it exists."""
    return home / CACHES / hashlib.sha256(os.fsencode(folder)).hexdigest()[:16] / DATA


def open_cache(home: Path, folder: Path) -> Path | None:
    """Create the cache of a folder if there is none; return None if that is impossible."""
    place = cache_of(home, folder)
    try:
        for each in (place.parent.parent, place.parent, place):
            each.mkdir(mode=0o700, exist_ok=True)
        place.with_name(MARK).write_bytes(os.fsencode(folder))
    except OSError:
        return None
    return place


class Cache(Struct, frozen=True):
    """`used` is in seconds since 1970, `size` in bytes."""

    place: Path
    folder: Path
    used: float
    size: int = 0


def list_caches(home: Path) -> list[Cache]:
    """Return the caches, least recently used first."""
    found = []
    for mark in (home / CACHES).glob(f"*/{MARK}"):
        try:
            folder = Path(os.fsdecode(mark.read_bytes()))
            found.append(Cache(mark.parent, folder, mark.stat().st_mtime))
        except (OSError, ValueError):
            continue
    return sorted(found, key=lambda cache: cache.used)


def prune_caches(home: Path, now: float) -> list[Path]:
    """Remove caches that were unused for long, and more while the total is too large. Return whose they
    were."""
    caches = list_caches(home)
    old = [cache for cache in caches if now - cache.used > UNUSED]
    rest = [replace(cache, size=measure(cache.place)) for cache in caches if cache not in old]
    total = sum(cache.size for cache in rest)
    for cache in rest:
        if total <= LARGEST or now - cache.used <= BUSY:
            break
        total -= cache.size
        old.append(cache)
    for cache in old:
        cleared(cache.place)
    return [cache.folder for cache in old]


def prune_daily(home: Path, now: float) -> None:
    """Prune, unless that was done today: measuring takes time."""
    mark = home / CACHES / ".pruned"
    try:
        if mark.exists() and now - mark.stat().st_mtime < BUSY:
            return
        prune_caches(home, now)
        mark.touch()
    except OSError:
        return


def measure(folder: Path) -> int:
    """Measure the bytes on disk."""
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(root, name)).st_blocks * 512
            except OSError:
                continue
    return total


def cleared(folder: Path) -> None:
    """Remove a folder that commands have written to. They may have left folders without permissions, and
    links that must not be followed."""
    for root, names, _ in os.walk(folder):
        for name in names:
            path = os.path.join(root, name)
            if not os.path.islink(path):
                os.chmod(path, 0o700)
    seldom.shutil.rmtree(folder, ignore_errors=True)
