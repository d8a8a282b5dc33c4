"""A small JSON file of the home that a server and commands change, each seeing at once what others did."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from hone.core.errors import StoreError
from hone.files.atomic import locked, open_file, write

T = TypeVar("T")

LOCK = "serve.lock"
LARGEST = 1_000_000
"""Bytes that are read."""


class SharedFile(Generic[T]):
    """`empty` stands for a file that is missing or cannot be read. Without a `home`, or in one that cannot be
    written, the value lasts as long as the process."""

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
                    self._version, self._value = version, self._decode(file.read(LARGEST))
        except OSError:
            if self._version is not None:  # it was there; without it, what this process knows is all there is
                self._version, self._value = None, self._empty
        return self._value

    def change(self, change: Callable[[T], T], *, durable: bool = True) -> T:
        """Replace the value by what `change` makes of it, and return that."""
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

    def _decode(self, data: bytes) -> T:
        try:
            return msgspec.json.decode(data, type=type(self._empty))
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return self._empty
