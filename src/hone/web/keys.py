"""The credentials of the server: the home's key, a cookie made from it, a one-time ticket, a password."""

import hashlib
import hmac
import os
import secrets
from pathlib import Path

from hone.core.clock import Clock
from hone.core.errors import Refused, StoreError
from hone.files.atomic import sweep, write

FILE = "serve.key"
STAY = 12 * 3600
"""Seconds a cookie is good for."""
WAIT = 3600
"""Seconds a ticket is good for."""
GUESSES, PAUSE = 5, 60.0
"""Wrong passwords, after which nobody is asked for so many seconds."""
SHORTEST = 12
"""Characters of a password."""


def stored(home: Path) -> str:
    """The key of this home, made at first use. Whoever can read the file is the owner."""
    path, key = home / FILE, secrets.token_urlsafe(32)
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        sweep(home)
        if not os.path.lexists(path):
            write(path, f"{key}\n".encode(), over=False)  # never over another server's
            return key
    except FileExistsError:
        return _read(path)  # another server was faster
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror}. The server needs a key.") from error
    return _read(path)


def _read(path: Path) -> str:
    try:
        key = path.read_text("ascii").strip()
    except (OSError, ValueError) as error:
        raise StoreError(f"{path} cannot be read. Remove it, and the next start makes another.") from error
    if len(key) < SHORTEST:
        raise StoreError(f"{path} holds no key. Remove it, and the next start makes another.")
    return key


def password(path: Path) -> str:
    """The first line of a file. Raises Refused if that is too easy to guess."""
    try:
        word = path.read_text("utf-8").split("\n", 1)[0].strip()
    except (OSError, ValueError) as error:
        raise Refused(f"The password file {path} cannot be read as text.") from error
    if len(word) < SHORTEST:
        raise Refused(f"The password in {path} needs at least {SHORTEST} characters.")
    return word


class Keys:
    """`port` names the cookie, so that two servers on one host do not take each other's."""

    def __init__(self, key: str, clock: Clock, port: int = 0, password: str = "") -> None:
        self.cookie_name = f"hone-{port}"
        self.has_password = bool(password)
        self._key = key.encode()
        self._clock = clock
        self._password = password.encode()
        self._tickets: dict[str, float] = {}
        self._wrong: list[float] = []

    def ticket(self) -> str:
        """Good for one visit."""
        word = secrets.token_urlsafe(32)
        self._tickets[_digest(word)] = self._clock.monotonic() + WAIT
        return word

    def takes_ticket(self, word: str) -> bool:
        """True once."""
        now = self._clock.monotonic()
        self._tickets = {each: until for each, until in self._tickets.items() if until > now}
        return self._tickets.pop(_digest(word), None) is not None

    def takes_password(self, word: str) -> bool:
        """After some wrong ones, none is right for a while: nobody can guess for long."""
        now = self._clock.monotonic()
        self._wrong = [at for at in self._wrong if at > now - PAUSE]
        if not self._password or len(self._wrong) >= GUESSES:
            return False
        if hmac.compare_digest(word.encode(), self._password):
            return True
        self._wrong.append(now)
        return False

    def takes_key(self, word: str) -> bool:
        return hmac.compare_digest(word.encode(), self._key)

    def cookie(self) -> str:
        """The time it ends, something nobody can guess, and our seal on both."""
        text = f"{int(self._clock.now().timestamp()) + STAY}.{secrets.token_urlsafe(16)}"
        return f"{text}.{self._seal(text)}"

    def takes_cookie(self, value: str) -> bool:
        text, _, seal = value.rpartition(".")
        until = text.partition(".")[0]
        if not hmac.compare_digest(seal.encode(), self._seal(text).encode()):
            return False
        return until.isdigit() and int(until) > self._clock.now().timestamp()

    def _seal(self, text: str) -> str:
        return hmac.new(self._key + self._password, f"cookie {text}".encode(), hashlib.sha256).hexdigest()


def _digest(word: str) -> str:
    return hashlib.sha256(word.encode()).hexdigest()
