"""Links that each let one browser in, once, within an hour. The home keeps a digest of each."""

import hashlib
import secrets
from datetime import datetime, timedelta

from msgspec import Struct

from hone.core.clock import Clock
from hone.web.shared_file import Place, share

FILE = "serve-tickets.json"
WAIT = timedelta(hours=1)
"""How long a ticket is valid."""
MOST = 100
"""The most pending tickets; the oldest is dropped."""


class LoginTicket(Struct, frozen=True):
    """`tag` is the digest of the API key it was made with, if any."""

    digest: str
    until: datetime
    tag: str = ""


class _TicketFile(Struct, frozen=True):
    tickets: tuple[LoginTicket, ...] = ()


class Tickets:
    """The tickets of one home or database: those of its servers, and those of `hone serve link`."""

    def __init__(self, clock: Clock, place: Place = None) -> None:
        self._clock = clock
        self._file = share(place, FILE, _TicketFile())

    def add(self, tag: str = "") -> str:
        """Make a ticket and return its text, which is stored nowhere."""
        word = secrets.token_urlsafe(32)
        new = LoginTicket(_digest(word), self._clock.now() + WAIT, tag)
        self._file.change(lambda known: _TicketFile((*self._current(known), new)[-MOST:]))
        return word

    def take(self, word: str) -> LoginTicket | None:
        """Return the ticket with this text, and invalidate it."""
        wanted = _digest(word)
        if all(each.digest != wanted for each in self._current(self._file.read())):
            return None
        taken: list[LoginTicket] = []

        def without(known: _TicketFile) -> _TicketFile:
            taken[:] = [each for each in self._current(known) if each.digest == wanted]
            return _TicketFile(tuple(each for each in self._current(known) if each.digest != wanted))

        self._file.change(without)
        return taken[0] if taken else None

    def _current(self, known: _TicketFile) -> tuple[LoginTicket, ...]:
        """Return the valid ones. A clock that is set back gives nobody more than an hour."""
        now = self._clock.now()
        return tuple(each for each in known.tickets if now < each.until <= now + WAIT)


def _digest(word: str) -> str:
    return hashlib.sha256(f"ticket {word}".encode()).hexdigest()
