"""Keep the keys of model providers: in the system keyring if there is one, else in a private file.

The file `keys.json` is in the home, which tools and commands cannot see. It lists every key by the name of
its environment variable; values in the keyring are not in the file.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Protocol

import msgspec
from msgspec import Struct

from hone.core.errors import Missing, Refused, StoreError
from hone.core.loading import import_object
from hone.core.visible import visible
from hone.files.atomic import locked, open_file, write

FILE, LOCK, SERVICE = "keys.json", "keys.lock", "hone"
LARGEST = 1_000_000
LONGEST = 4_096
"""The most characters of a key."""
SAFE = 1
"""The lowest priority of a usable keyring. Others store keys in a file outside the home, which is no better
than ours."""


class Keyring(Protocol):
    """The methods of a `keyring` backend that Hone uses."""

    def get_password(self, service: str, username: str) -> str | None: ...
    def set_password(self, service: str, username: str, password: str) -> None: ...
    def delete_password(self, service: str, username: str) -> None: ...


FindKeyring = Callable[[], Keyring | None]


class ProviderKey(Struct, frozen=True, omit_defaults=True):
    """A stored key. `value` is empty if the keyring keeps it."""

    created: datetime
    value: str = ""

    @property
    def place(self) -> str:
        return "file" if self.value else "keyring"

    def __repr__(self) -> str:
        return f"ProviderKey(created={self.created!r}, place={self.place!r})"


class _ProviderKeyFile(Struct, frozen=True):
    keys: dict[str, ProviderKey] = {}


class ProviderKeys:
    """The stored keys of a home, as its file has them now."""

    def __init__(self, home: Path, keyring: FindKeyring | None = None) -> None:
        self._home = home
        self._find_keyring = keyring or find_keyring
        self._fetched: dict[tuple[str, datetime], str] = {}

    def list(self) -> Mapping[str, ProviderKey]:
        """Return the keys by the names of their variables. Raises StoreError if the file cannot be read."""
        path = self._home / FILE
        try:
            with open_file(path) as file:
                return msgspec.json.decode(file.read(LARGEST), type=_ProviderKeyFile).keys
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise StoreError(
                f"{visible(str(path))} cannot be read, and so no stored key. Remove it and store them anew."
            ) from error

    def get(self, name: str) -> str:
        """Return the key, or nothing if none is stored. Raises StoreError if it cannot be read."""
        key = self.list().get(name)
        return self._value(name, key) if key else ""

    def values(self) -> tuple[str, ...]:
        """Return every stored key that can be read."""
        found = []
        with suppress(StoreError):
            for name, key in self.list().items():
                with suppress(StoreError):
                    found.append(self._value(name, key))
        return tuple(found)

    def set(self, name: str, value: str, created: datetime, *, in_file: bool = False) -> ProviderKey:
        """Store a key in place of the one before. Raises Refused, or StoreError if nothing was stored."""
        value = check_key(value)
        keyring = None if in_file else self._find_keyring()
        key = ProviderKey(created, "" if keyring else value)
        with locked(self._home, LOCK):
            keys = dict(self.list())
            if keyring:
                with _translated():
                    keyring.set_password(SERVICE, self._user(name), value)
            elif name in keys and not keys[name].value:
                self._forget(name)
            self._write({**keys, name: key})
        return key

    def remove(self, name: str) -> ProviderKey:
        """Remove a key. Raises Missing if there is no such key, StoreError if it could not be removed."""
        with locked(self._home, LOCK):
            keys = dict(self.list())
            gone = keys.pop(name, None)
            if gone is None:
                raise Missing(f"No key is stored for {visible(name)}. List the stored keys: hone keys list")
            if not gone.value:
                self._forget(name)
            self._write(keys)
        return gone

    def _value(self, name: str, key: ProviderKey) -> str:
        if key.value:
            return key.value
        if (name, key.created) not in self._fetched:
            with _translated():
                value = self._keyring().get_password(SERVICE, self._user(name))
            if not value:
                raise StoreError(
                    f"The system keyring no longer has {name}. Store it again: hone keys set {name}"
                )
            self._fetched[name, key.created] = value
        return self._fetched[name, key.created]

    def _keyring(self) -> Keyring:
        keyring = self._find_keyring()
        if keyring is None:
            raise StoreError(
                "The key is in the system keyring, which cannot be used here. Set its variable, "
                "or store it in a file: hone keys set --file"
            )
        return keyring

    def _forget(self, name: str) -> None:
        """Remove a key from the keyring, if the keyring is still there."""
        keyring = self._find_keyring()
        if keyring:
            with _translated():
                if keyring.get_password(SERVICE, self._user(name)) is not None:
                    keyring.delete_password(SERVICE, self._user(name))

    def _user(self, name: str) -> str:
        """Return the keyring's user name for this home: homes do not share keys."""
        return f"{name} {self._home.absolute()}"

    def _write(self, keys: dict[str, ProviderKey]) -> None:
        path = self._home / FILE
        try:
            write(path, msgspec.json.format(msgspec.json.encode(_ProviderKeyFile(keys))))
        except OSError as error:
            raise StoreError(f"{visible(str(path))} cannot be written: {error.strerror}.") from error


def examine_keys(home: Path) -> tuple[bool, str] | None:
    """Check the stored keys for `hone doctor`: whether all is well, and what there is to say."""
    path = home / FILE
    if not os.path.lexists(path):
        return None
    try:
        count = len(ProviderKeys(home).list())
    except StoreError as error:
        return False, f"keys: {error}"
    if path.stat().st_mode & 0o077:
        return False, f"keys: others can read {path}; close it with: chmod 600 {path}"
    return True, f"keys: {count} stored; hone keys list"


def check_key(value: str) -> str:
    """Return a key without surrounding space. Raises Refused for other text, without repeating it."""
    value = value.strip()
    if not value:
        raise Refused("No key was given; nothing was stored.")
    if not value.isascii() or not value.isprintable() or " " in value or len(value) > LONGEST:
        raise Refused("This is not a key: a key is one word of printable ASCII. Nothing was stored.")
    return value


def find_keyring() -> Keyring | None:
    """Return the system keyring, or None if there is none or the `keyring` extra is not installed."""
    try:
        backend = import_object("keyring.core:get_keyring")()
    except Exception:  # noqa: BLE001  a backend is anybody's code, and the file is always there
        return None
    return backend if backend.priority >= SAFE else None


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except StoreError:
        raise
    except Exception as error:  # a backend may raise anything
        raise StoreError(
            f"The system keyring refused ({type(error).__name__}). Unlock it, set the key's variable, "
            "or store the key in a file: hone keys set --file"
        ) from error
