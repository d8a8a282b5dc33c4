"""A private folder next to a result, in which the result is made. It is locked while in use.

A marker in it says that it is unfinished. Without the marker it may be a complete home, so only a folder with
the marker is ever deleted.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hone.files.atomic import FOLDER, create_file, sync_folder, sync_tree
from hone.files.locks import lock

MARKER = "unfinished.lock"
RESCUED = "hone-home-left-by-restore-"


@contextmanager
def open_stage(folder: Path, prefix: str) -> Iterator[Path]:
    """Yield a folder that only its owner can enter. At the end it is deleted, if it is still unfinished.
    Raises OSError."""
    path, handle = _begin(folder, prefix)
    try:
        yield path
    finally:
        with suppress(OSError):  # the next stage removes leftovers; the result exists or not
            delete_unfinished(path)
        os.close(handle)


def make_place(stage: Path, path: str) -> Path:
    """Return the place of a path in a stage, in folders that only their owner can enter. Raises OSError."""
    place = stage / path
    for folder in reversed(place.relative_to(stage).parents):
        (stage / folder).mkdir(mode=0o700, exist_ok=True)
    return place


def finish(stage: Path) -> None:
    """Remove the marker: from now on the folder is a complete home. Raises OSError."""
    sync_tree(stage)
    (stage / MARKER).unlink()
    sync_folder(stage)


def sweep_stages(folder: Path, prefix: str) -> list[Path]:
    """Delete what killed processes left unfinished. Return complete homes that they left, which get a visible
    name."""
    rescued = []
    with suppress(OSError):  # a folder one may write to but not read
        for path in sorted(folder.glob(f"{prefix}*")):
            with suppress(OSError):  # in use, somebody else's, or gone
                found = _sweep(path, prefix)
                rescued += [found] if found else []
    return rescued


def delete_unfinished(path: Path) -> None:
    """Delete a folder with the marker in it, the marker last: if killed in between, it is still
    unfinished."""
    if not (path / MARKER).exists():
        return
    for each in path.iterdir():
        if each.is_dir() and not each.is_symlink():
            shutil.rmtree(each)
        elif each.name != MARKER:
            each.unlink()
    (path / MARKER).unlink()
    path.rmdir()


def _begin(folder: Path, prefix: str) -> tuple[Path, int]:
    while True:
        path = folder / f"{prefix}{os.urandom(8).hex()}"
        path.mkdir(mode=0o700)
        try:
            handle = os.open(path, FOLDER | os.O_NOFOLLOW)
        except FileNotFoundError:
            continue  # swept away before it was locked
        try:
            lock(handle)
            os.close(create_file(path / MARKER))
        except FileNotFoundError:
            os.close(handle)
            continue
        except BaseException:
            os.close(handle)
            with suppress(OSError):
                path.rmdir()
            raise
        return path, handle


def _sweep(path: Path, prefix: str) -> Path | None:
    handle = os.open(path, FOLDER | os.O_NOFOLLOW)
    try:
        if os.fstat(handle).st_uid != os.geteuid():
            return None
        lock(handle, wait=False)
        if (path / MARKER).exists():
            delete_unfinished(path)
            return None
        if not os.listdir(handle):
            path.rmdir()
            return None
        visible = path.with_name(RESCUED + path.name.removeprefix(prefix))
        path.rename(visible)
        return visible
    finally:
        os.close(handle)
