"""Open files without surprises: a pipe is not waited for, a link is not followed, a new file is private."""

import os
from io import BufferedReader
from pathlib import Path

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
UNFOLLOWED = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def open_file(path: Path | str, *, follow: bool = False, folder: int | None = None) -> BufferedReader:
    """Open a file to read it, below the descriptor of a `folder` if there is one. Raises OSError."""
    return open(os.open(path, _READ if follow else _READ | os.O_NOFOLLOW, dir_fd=folder), "rb")


def create_file(path: Path | str, mode: int = 0o600, *, folder: int | None = None) -> int:
    """Create a file and return its descriptor. Raises FileExistsError rather than touch one that is there."""
    return os.open(path, _NEW, mode, dir_fd=folder)
