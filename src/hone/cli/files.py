"""New files that only their owner can read."""

import os
from pathlib import Path

from hone.core.errors import HoneError


def create(path: Path, text: str) -> None:
    """Raises HoneError if there is such a file already: nothing is overwritten."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise HoneError(f"{path} is there already and is left as it is.") from None
    except OSError as error:
        raise HoneError(f"{path} cannot be written: {error.strerror}.") from error
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(text)


def make_home(home: Path) -> None:
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise HoneError(f"{home} cannot be made: {error.strerror}.") from error
