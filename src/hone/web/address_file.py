"""Publish where the home's server listens, for commands that need it."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from hone.core.errors import StoreError
from hone.files.atomic import open_file, write

FILE = "serve-address.json"
LARGEST = 10_000
PATIENCE = 1.0
"""Seconds that a server gets to accept a connection."""
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""How to reach a server that listens everywhere, from its own machine."""


class PublishedAddress(Struct, frozen=True):
    """`url` is what browsers open; `host` and `port` are where it listens."""

    url: str
    host: str
    port: int


@contextmanager
def published(home: Path, address: PublishedAddress) -> Iterator[None]:
    """Tell commands of this home where its server is, until it ends. If there are two, the later one is
    published."""
    path = home / FILE
    with suppress(OSError, StoreError):
        write(path, msgspec.json.encode(address))
    try:
        yield
    finally:
        if _read(path) == address:
            with suppress(OSError):
                path.unlink()


def find_server(home: Path) -> PublishedAddress | None:
    """Return where a server of this home listens, if one answers there."""
    found = _read(home / FILE)
    if found is None:
        return None
    try:
        socket.create_connection((EVERYWHERE.get(found.host, found.host), found.port), PATIENCE).close()
    except OSError:
        return None
    return found


def _read(path: Path) -> PublishedAddress | None:
    try:
        with open_file(path) as file:
            return msgspec.json.decode(file.read(LARGEST), type=PublishedAddress)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None
