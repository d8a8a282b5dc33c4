"""New files that only their owner can read."""

from pathlib import Path

from hone.core.errors import HoneError
from hone.files.atomic import create_file


def create(path: Path, text: str) -> None:
    """Raises HoneError if there is such a file already: nothing is overwritten."""
    try:
        descriptor = create_file(path)
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
