"""The file that says that a home's data has moved to a remote database."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import msgspec
from msgspec import Struct

from hone.core.errors import StoreError
from hone.core.visible import visible
from hone.files.atomic import settle, write
from hone.stores.home import MOVED


class Marker(Struct, frozen=True):
    """Where the data went, without a password, and when."""

    to: str
    at: datetime


def read_marker(home: Path) -> Marker | None:
    """Return the marker, None if the data is here. An unreadable marker still says that it is not."""
    try:
        text = (home / MOVED).read_bytes()
    except FileNotFoundError:
        return None
    except OSError:
        text = b""
    try:
        return msgspec.json.decode(text, type=Marker)
    except msgspec.MsgspecError:
        return Marker("a PostgreSQL database", datetime.fromtimestamp(0).astimezone())


def mark(home: Path, to: str, now: datetime) -> None:
    """Write the marker. Raises StoreError."""
    with _plainly(home):
        write(home / MOVED, msgspec.json.encode(Marker(to, now)))


def unmark(home: Path) -> None:
    """Remove the marker. Raises StoreError."""
    with _plainly(home):
        (home / MOVED).unlink(missing_ok=True)
    settle(home / MOVED)


@contextmanager
def _plainly(home: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"{visible(str(home / MOVED))} cannot be changed: {error.strerror}. Mend that and run this "
            "again; it finds out how far it came."
        ) from error


def moved_away(home: Path) -> StoreError:
    """Say where the data of this home is."""
    found = read_marker(home)
    where = f"{visible(found.to)} on {found.at:%Y-%m-%d}" if found else "a database elsewhere"
    return StoreError(
        f"The data of {visible(str(home))} moved to {where}. Name that database: "
        "hone config set database postgresql://… To bring it back: hone move --to sqlite --from postgresql://…"
    )
