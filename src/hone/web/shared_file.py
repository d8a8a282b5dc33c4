"""A small JSON value that servers and commands change, and of which each sees changes at once: a file of the
home, or a document in the database that several machines share."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import msgspec

from hone.core.errors import StoreError
from hone.core.shared_values import SharedValues
from hone.files.atomic import locked, open_file, write

T = TypeVar("T")
Place = Path | SharedValues | None
"""Where the values are stored: in a home, in a database, or in this process."""

LOCK = "serve.lock"
LARGEST = 1_000_000
"""The most bytes to read."""


class SharedValue(Protocol[T]):
    def read(self) -> T: ...

    def change(self, change: Callable[[T], T], *, durable: bool = True) -> T:
        """Replace the value by what `change` makes of it, and return the result."""
        ...


def share(place: Place, name: str, empty: T) -> SharedValue[T]:
    """`empty` stands for a value that is missing or cannot be read."""
    if place is None or isinstance(place, Path):
        return SharedFile(place, name, empty)
    return SharedRow(place, name, empty)


class SharedFile(Generic[T]):
    """Without a `home`, or in a read-only one, the value lasts as long as the process."""

    def __init__(self, home: Path | None, name: str, empty: T) -> None:
        self._home = home
        self._name = name
        self._empty = empty
        self._value = empty
        self._version: object = None

    def read(self) -> T:
        if self._home is None:
            return self._value
        try:
            with open_file(self._home / self._name) as file:
                status = os.fstat(file.fileno())
                version = status.st_ino, status.st_mtime_ns, status.st_size
                if version != self._version:
                    self._version, self._value = version, _decode(file.read(LARGEST), self._empty)
        except OSError:
            if self._version is not None:  # it was there; without it, what this process knows is all there is
                self._version, self._value = None, self._empty
        return self._value

    def change(self, change: Callable[[T], T], *, durable: bool = True) -> T:
        if self._home is None:
            self._value = change(self._value)
            return self._value
        try:
            with locked(self._home, LOCK):
                self._write(change(self.read()), durable=durable)
        except (OSError, StoreError):
            self._value = change(self._value)
        return self.read()

    def _write(self, value: T, *, durable: bool) -> None:
        assert self._home is not None
        write(self._home / self._name, msgspec.json.format(msgspec.json.encode(value)), durable=durable)


class SharedRow(Generic[T]):
    """A document in a database. Nobody is let in while it cannot be read: both methods raise StoreError."""

    def __init__(self, values: SharedValues, name: str, empty: T) -> None:
        self._values = values
        self._name = name
        self._empty = empty

    def read(self) -> T:
        return _decode(self._values.read(self._name), self._empty)

    def change(self, change: Callable[[T], T], *, durable: bool = True) -> T:
        made = self._values.change(
            self._name, lambda data: msgspec.json.encode(change(_decode(data, self._empty)))
        )
        return _decode(made, self._empty)


def _decode(data: bytes, empty: T) -> T:
    try:
        return msgspec.json.decode(data, type=type(empty))
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return empty
