"""Signed-in browsers. The home keeps a digest of each cookie, so that a browser can be signed out."""

import hashlib
from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from hone.core.clock import Clock
from hone.core.errors import Missing
from hone.core.value import replace
from hone.web.shared_file import Place, share

FILE = "serve-logins.json"
MOST = 200
"""How many browsers are remembered; the oldest sign-in is dropped first."""
OFTEN = timedelta(minutes=1)
"""The precision of the last request's time."""
BROWSERS = ("Firefox", "Edg", "OPR", "Chrome", "Safari")
NAMES = {"Edg": "Edge", "OPR": "Opera"}
SYSTEMS = ("Android", "iPhone", "iPad", "Windows", "Macintosh", "Linux")


class Login(Struct, frozen=True):
    """One browser. `tag` is the digest of the API key that it signed in with, if any."""

    id: str
    label: str
    created: datetime
    until: datetime
    used: datetime
    tag: str = ""


class _LoginFile(Struct, frozen=True):
    logins: tuple[Login, ...] = ()


class Logins:
    """The sign-ins of one home or database, at any of its servers. `place` is None if nothing is kept after
    the process."""

    def __init__(self, clock: Clock, place: Place = None) -> None:
        self._clock = clock
        self._file = share(place, FILE, _LoginFile())

    def add(self, word: str, stay: timedelta, agent: str = "", tag: str = "") -> Login:
        now = self._clock.now()
        login = Login(login_id(word), describe_browser(agent), now, now + stay, now, tag)
        self._file.change(lambda known: _LoginFile((*self._current(known), login)[-MOST:]))
        return login

    def list(self) -> Sequence[Login]:
        """Return the sign-ins that are still valid, oldest first."""
        return self._current(self._file.read())

    def has(self, id: str) -> bool:
        return any(each.id == id for each in self._file.read().logins)

    def note_use(self, id: str) -> None:
        """Record when a browser last sent a request, at most once a minute."""
        now = self._clock.now()
        if any(each.id == id and now - each.used >= OFTEN for each in self._file.read().logins):
            self._file.change(lambda known: _used(known, id, now), durable=False)

    def remove(self, id: str) -> Login:
        """Sign a browser out. Raises Missing if it is not signed in."""
        gone = next((each for each in self.list() if each.id == id), None)
        if gone is None:
            raise Missing("No such browser is signed in. hone serve logins lists those that are.")
        self._file.change(
            lambda known: _LoginFile(tuple(each for each in self._current(known) if each.id != id))
        )
        return gone

    def clear(self) -> None:
        """Sign every browser out."""
        self._file.change(lambda _: _LoginFile())

    def _current(self, known: _LoginFile) -> tuple[Login, ...]:
        now = self._clock.now()
        return tuple(each for each in known.logins if each.until > now)


def _used(known: _LoginFile, id: str, now: datetime) -> _LoginFile:
    return _LoginFile(tuple(replace(each, used=now) if each.id == id else each for each in known.logins))


def login_id(word: str) -> str:
    return hashlib.sha256(f"login {word}".encode()).hexdigest()[:16]


def describe_browser(agent: str) -> str:
    """Name a browser and its system as a person would: Firefox on Linux."""
    browser = next((NAMES.get(each, each) for each in BROWSERS if f"{each}/" in agent), "A browser")
    system = next((each for each in SYSTEMS if each in agent), "")
    return f"{browser} on {'Mac' if system == 'Macintosh' else system}" if system else browser
