"""API keys besides the home's own: each has a name and is for a person or for a program.

A key is shown once, when it is made; the home keeps its digest. The server checks the file with each request,
so a removed key stops working at once.
"""

import hashlib
import hmac
import os
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path

import msgspec
from msgspec import Struct

from hone.core.clock import Clock
from hone.core.errors import Missing, Refused, StoreError
from hone.core.regex import regex
from hone.core.shared_values import SharedValues
from hone.core.visible import visible
from hone.files.atomic import locked, open_file, write

FILE, LOCK, USES = "serve-keys.json", "serve-keys.lock", "serve-keys-used.json"
MARK = "hone-"
"""How a key begins, so that people and scanners recognize it."""
OFTEN = timedelta(minutes=1)
"""The last use of a key is recorded at most this often."""
LARGEST = 1_000_000
EMPTY = b"{}"
"""A document that was never written."""
NAME = regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class KeyKind(StrEnum):
    """Whose words come with a key: a person's are the owner's, a program's are foreign."""

    PERSON = "person"
    PROGRAM = "program"


class ApiKey(Struct, frozen=True):
    name: str
    kind: KeyKind
    digest: str
    created: datetime


class KeyFile(Struct, frozen=True):
    keys: tuple[ApiKey, ...] = ()


class ApiKeys:
    """The keys of a home, as its file has them now, or those of a database, for all its servers."""

    def __init__(self, place: Path | SharedValues, clock: Clock) -> None:
        self._home = place if isinstance(place, Path) else None
        self._values = None if isinstance(place, Path) else place
        self._clock = clock
        self._read: tuple[object, tuple[ApiKey, ...]] = (None, ())
        self._noted: dict[str, datetime] = {}

    def list(self) -> tuple[ApiKey, ...]:
        """Return all keys in the order they were made. Raises StoreError if they cannot be read."""
        if self._values:
            return _decode(self._values.read(FILE) or EMPTY, "The database")
        assert self._home is not None
        path = self._home / FILE
        try:
            with open_file(path) as file:
                version = _version(os.fstat(file.fileno()))
                if version != self._read[0]:
                    self._read = version, _decode(file.read(LARGEST), str(path))
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise _unreadable(str(path)) from error
        return self._read[1]

    def find(self, word: str) -> ApiKey | None:
        """Return the key with this text. Without a readable file there is none."""
        wanted, found = digest(word), None
        for key in self._valid():
            if hmac.compare_digest(wanted, key.digest):
                found = key
        return found

    def has(self, tag: str) -> bool:
        """Tell whether the key with this digest still exists."""
        return any(hmac.compare_digest(tag, key.digest) for key in self._valid())

    def _valid(self) -> tuple[ApiKey, ...]:
        try:
            return self.list()
        except StoreError:
            if self._values:
                raise  # a database that does not answer does not make a key wrong
            return ()

    def add(self, name: str, kind: KeyKind) -> str:
        """Make a key and return its text, which is stored nowhere. Raises Refused."""
        if not NAME.fullmatch(name):
            raise Refused(
                f"{visible(name)!r} cannot be the name of a key. Use up to 64 letters, digits and . _ -"
            )
        word = f"{MARK}{secrets.token_urlsafe(32)}"
        made = ApiKey(name, kind, digest(word), self._clock.now())

        def put(keys: tuple[ApiKey, ...]) -> tuple[ApiKey, ...]:
            if any(key.name == name for key in keys):
                raise Refused(
                    f"There is a key named {name} already. Remove it first: hone serve keys remove {name}"
                )
            return (*keys, made)

        self._change(put)
        return word

    def adopt(self, keys: tuple[ApiKey, ...]) -> None:
        """Add keys that were made elsewhere. Skip one whose name is taken."""

        def put(known: tuple[ApiKey, ...]) -> tuple[ApiKey, ...]:
            names = {key.name for key in known}
            return (*known, *(key for key in keys if key.name not in names))

        self._change(put)

    def remove(self, name: str) -> ApiKey:
        """Raise Missing if there is no such key."""
        gone: list[ApiKey] = []

        def put(keys: tuple[ApiKey, ...]) -> tuple[ApiKey, ...]:
            gone[:] = [key for key in keys if key.name == name]
            if not gone:
                raise Missing(f"There is no key named {visible(name)}. List them: hone serve keys list")
            return tuple(key for key in keys if key.name != name)

        self._change(put)
        return gone[0]

    def note_use(self, key: ApiKey) -> None:
        """Record when a key was used, at most once a minute. Ignore a failing disk."""
        now = self._clock.now()
        before = self._noted.get(key.digest)
        if before is not None and now - before < OFTEN:
            return
        self._noted[key.digest] = now
        known = {each.digest for each in self._valid()}

        def put(uses: Mapping[str, datetime]) -> bytes:
            return msgspec.json.encode(
                {tag: at for tag, at in {**uses, key.digest: now}.items() if tag in known}
            )

        with suppress(OSError, StoreError):
            if self._values:
                self._values.change(USES, lambda data: put(_decode_uses(data)))
            elif self._home:
                write(self._home / USES, put(self.uses()), durable=False)

    def uses(self) -> Mapping[str, datetime]:
        """Return when each key was last used, by its digest, to the minute."""
        if self._values:
            return _decode_uses(self._values.read(USES))
        assert self._home is not None
        try:
            with open_file(self._home / USES) as file:
                return _decode_uses(file.read(LARGEST))
        except OSError:
            return {}

    def _change(self, change: Callable[[tuple[ApiKey, ...]], tuple[ApiKey, ...]]) -> None:
        if self._values:
            self._values.change(
                FILE,
                lambda data: msgspec.json.encode(KeyFile(change(_decode(data or EMPTY, "The database")))),
            )
            return
        assert self._home is not None
        with locked(self._home, LOCK):
            self._write(change(self.list()))

    def _write(self, keys: tuple[ApiKey, ...]) -> None:
        assert self._home is not None
        path = self._home / FILE
        try:
            write(path, msgspec.json.format(msgspec.json.encode(KeyFile(keys))))
        except OSError as error:
            raise StoreError(f"{visible(str(path))} cannot be written: {error.strerror}.") from error


def _decode(data: bytes, where: str) -> tuple[ApiKey, ...]:
    try:
        return msgspec.json.decode(data, type=KeyFile).keys
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise _unreadable(where) from error


def _decode_uses(data: bytes) -> Mapping[str, datetime]:
    try:
        return msgspec.json.decode(data or b"{}", type=dict[str, datetime])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return {}


def _unreadable(where: str) -> StoreError:
    return StoreError(
        f"{visible(where)} cannot be read, so no API key is valid. Remove it and make new keys."
    )


def digest(word: str) -> str:
    """Hash a key. Long random keys need no salt and no slow hash."""
    return hashlib.sha256(word.encode()).hexdigest()


def _version(status: os.stat_result) -> object:
    """Return a version of the file: each state is a new file."""
    return status.st_ino, status.st_mtime_ns, status.st_size
