"""Count the wrong passwords of the last minute, at all servers. After some of them, passwords are refused for
a while."""

from pathlib import Path

from msgspec import Struct

from hone.core.clock import Clock
from hone.web.shared_file import Place, share

NAME = "serve-guesses.json"
MOST, PAUSE = 5, 60.0
"""How many wrong passwords, and for how many seconds they are then refused."""


class _Guesses(Struct, frozen=True):
    at: tuple[float, ...] = ()


class Guesses:
    """In a home with one server they are counted in memory: the next process does not need them."""

    def __init__(self, clock: Clock, place: Place = None) -> None:
        self._clock = clock
        self._is_shared = not (place is None or isinstance(place, Path))
        self._value = share(place if self._is_shared else None, NAME, _Guesses())

    def begin(self) -> bool:
        """Count a guess before it is checked, so that many parallel ones cannot get around the limit. Return
        False if none is allowed now."""
        allowed = False

        def count(known: _Guesses) -> _Guesses:
            nonlocal allowed
            recent = self._recent(known)
            allowed = len(recent) < MOST
            return _Guesses((*recent, self._now()) if allowed else recent)

        self._value.change(count)
        return allowed

    def forgive(self) -> None:
        """Uncount the last guess, which was right."""
        self._value.change(lambda known: _Guesses(known.at[:-1]))

    @property
    def count(self) -> int:
        return len(self._recent(self._value.read()))

    def _now(self) -> float:
        """Return the time. Machines share a clock; within one process, use one that nobody can set back."""
        return self._clock.now().timestamp() if self._is_shared else self._clock.monotonic()

    def _recent(self, known: _Guesses) -> tuple[float, ...]:
        now = self._now()
        return tuple(at for at in known.at if now - PAUSE < at <= now + PAUSE)
