"""How many model calls a turn may make."""

from threading import Lock


class Budget:
    """`consume` takes one call if there is one; `refund` gives one back, up to `ceiling` calls in all."""

    def __init__(self, calls: int, ceiling: int | None = None) -> None:
        self._left = calls
        self._ceiling = 3 * calls if ceiling is None else ceiling
        self._used = 0
        self._lock = Lock()

    def consume(self) -> bool:
        with self._lock:
            if self._left <= 0 or self._used >= self._ceiling:
                return False
            self._left -= 1
            self._used += 1
            return True

    def refund(self) -> None:
        with self._lock:
            self._left += 1
