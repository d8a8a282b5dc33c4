"""The list of files that Hone wrote outside its home, so that `hone erase` can find them again."""

import json
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from hone.core.errors import StoreError
from hone.files.atomic import write
from hone.files.locks import acquire, release

FILE = "exports.json"
MOST = 1_000
"""How many files are remembered; beyond that, the oldest are forgotten."""


def note_export(home: Path, path: Path) -> None:
    """Remember a file that was written. Errors are ignored: the file exists anyway."""
    with suppress(OSError):
        handle = acquire(home / f"{FILE}.lock")
        try:
            known = [each for each in list_exports(home) if each != path.absolute()]
            _save(home, [*known, path.absolute()][-MOST:])
        finally:
            release(handle)


def list_exports(home: Path) -> list[Path]:
    """Return the written files that still exist, each a regular file and no link."""
    try:
        value = json.loads((home / FILE).read_bytes())
    except (OSError, ValueError):
        return []
    paths = [Path(each) for each in value if isinstance(each, str)]
    return [path for path in paths if _is_file(path)]


def forget_exports(home: Path, is_named: Callable[[str], object]) -> None:
    """Forget deleted files, and those whose names are erased. Raises StoreError."""
    try:
        if (home / FILE).exists():
            _save(home, [path for path in list_exports(home) if not is_named(str(path))])
    except OSError as error:
        raise StoreError(f"{home / FILE} cannot be written: {error.strerror}.") from error


def _save(home: Path, paths: list[Path]) -> None:
    names = [str(path) for path in paths]
    write(home / FILE, json.dumps(names, indent=1).encode())


def _is_file(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except (OSError, ValueError):
        return False
