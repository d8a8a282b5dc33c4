"""Wrong passwords of the last minute, at all servers. After some of them, nobody is asked for a while."""

from pathlib import Path

from msgspec import Struct

from hone.core.clock import Clock
from hone.web.shared_file import Place, share

NAME = "serve-guesses.json"
MOST, PAUSE = 5, 60.0
"""Wrong passwords, after which nobody is asked for so many seconds."""


class _Guesses(Struct, frozen=True):
    at: tuple[float, ...] = ()


class Guesses:
    """In a home with one server they are counted in memory, as they are of no interest to the next one."""

    def __init__(self, clock: Clock, place: Place = None) -> None:
        self._clock = clock
        self._is_shared = not (place is None or isinstance(place, Path))
        self._value = share(place if self._is_shared else None, NAME, _Guesses())

    def begin(self) -> bool:
        """Count a guess before it is looked at, so that many at once are not many guesses. False: not now."""
        allowed = False

        def count(known: _Guesses) -> _Guesses:
            nonlocal allowed
            recent = self._recent(known)
            allowed = len(recent) < MOST
            return _Guesses((*recent, self._now()) if allowed else recent)

        self._value.change(count)
        return allowed

    def forgive(self) -> None:
        """The last one was right."""
        self._value.change(lambda known: _Guesses(known.at[:-1]))

    @property
    def count(self) -> int:
        return len(self._recent(self._value.read()))

    def _now(self) -> float:
        """Machines have a clock in common; in one process, no clock can be set back."""
        return self._clock.now().timestamp() if self._is_shared else self._clock.monotonic()

    def _recent(self, known: _Guesses) -> tuple[float, ...]:
        now = self._now()
        return tuple(at for at in known.at if now - PAUSE < at <= now + PAUSE)
