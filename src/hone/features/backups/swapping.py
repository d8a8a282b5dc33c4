"""Replace a home with a restored one, with one rename. The former one is kept."""

import ctypes
import errno
import os
from datetime import datetime
from pathlib import Path

from hone.core.errors import Refused, StoreError
from hone.core.visible import visible
from hone.files.atomic import settle

HERE, EXCHANGE = -100, 2
"""Arguments of renameat2: unchanged paths, and a swap of both names."""


def is_vacant(home: Path) -> bool:
    """Tell whether a home's place is empty. Raises OSError."""
    return not os.path.lexists(home) or (home.is_dir() and not os.listdir(home))


def put_in_place(stage: Path, home: Path, now: datetime) -> Path | None:
    """Give a finished stage the name of the home. Return where the former home is kept. Raises Refused or
    StoreError; then the home is unchanged, unless the error says otherwise."""
    try:
        kept = None if is_vacant(home) else _exchange(stage, home, find_free_name(home, now))
        if kept is None:
            stage.rename(home)
    except OSError as error:
        raise _explain(home, error) from error
    settle(home)
    return kept


def find_free_name(home: Path, now: datetime) -> Path:
    """Return an unused name next to the home."""
    wanted = home.with_name(f"{home.name}-before-restore-{now:%Y%m%d-%H%M%S}")
    free, number = wanted, 1
    while os.path.lexists(free):
        number += 1
        free = wanted.with_name(f"{wanted.name}-{number}")
    return free


def _exchange(stage: Path, home: Path, kept: Path) -> Path:
    if _swap(stage, home):
        try:
            return stage.rename(kept)
        except OSError:
            return stage  # the next restore gives it a visible name
    home.rename(kept)  # if killed here, the home has another name
    try:
        stage.rename(home)
    except OSError:
        kept.rename(home)
        raise
    return kept


def _swap(one: Path, other: Path) -> bool:
    """Swap two names at once. Return False if the system or the file system cannot. Raises OSError."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    if rename(HERE, os.fsencode(one), HERE, os.fsencode(other), EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):
        return False
    raise OSError(number, os.strerror(number))


def _explain(home: Path, error: OSError) -> Exception:
    name = visible(str(home))
    if error.errno in (errno.EBUSY, errno.EXDEV):
        return Refused(
            f"{name} is a mount point and cannot be replaced as a whole; nothing was changed. Restore into a "
            f"folder in it: hone --home {name}/home restore …"
        )
    if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
        return Refused(f"Another process has begun to use {name} meanwhile; nothing was changed. Try again.")
    return StoreError(f"{name} cannot be replaced: {error.strerror}. The home is as it was.")
