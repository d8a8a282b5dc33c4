"""Know what the connection holds that has the claims of a process, and whether the server still has it.

PostgreSQL itself ends the connection of a process that was silent for too long, and with it its claims. No
other process has to decide that somebody hangs, and no claim is ever held by two.
"""

import select
import time
from collections.abc import Callable
from typing import Any

from psycopg import Connection

SILENCE, FRESH = 3, 0.5
"""Seconds after which a process that promised to beat, and does not, loses its claims, and for which a beat
need not be repeated."""
KNOWN_SINCE = 140000
"""The first version of PostgreSQL that ends silent connections. Older ones keep those of a hung process."""
EXPIRE = f"SELECT set_config('idle_session_timeout', '{SILENCE}s', false)"


class ClaimLease:
    """Of one process. Connections follow each other, and each has a number."""

    def __init__(self) -> None:
        self.claimed: dict[tuple[str, str], int] = {}
        """What this process holds, with the number of the connection that does. A connection could take its
        own lock a second time."""
        self.number = 0
        self._connection: Connection[Any] | None = None
        self._socket: int | None = None  # a connection that broke no longer tells
        self._can_expire = False
        self._beats = False
        self._heard = 0.0

    def use(self, connection: Connection[Any]) -> None:
        """Called before each use of a connection: a new one holds nothing yet, and may expire as well."""
        if connection is self._connection:
            return
        self._connection = connection
        self.number += 1
        self._socket = connection.fileno()
        self._can_expire = connection.info.server_version >= KNOWN_SINCE
        if self._beats:
            self.beat(connection.execute)

    def close(self) -> None:
        self._connection = self._socket = None

    def beat(self, execute: Callable[[str], object]) -> None:
        """Say that this process is there. The server counts from a moment that is later than ours."""
        begun = time.monotonic()
        execute(EXPIRE if self._can_expire else "SELECT 1")
        self._beats, self._heard = True, begun

    @property
    def is_fresh(self) -> bool:
        """Whether the present connection was heard a moment ago."""
        return self._beats and self._socket is not None and time.monotonic() < self._heard + FRESH

    def is_certain(self, name: tuple[str, str]) -> bool:
        """Tell without asking whether a claim still holds: its connection is the present one, a server that
        ended it would have said so, and one that cannot be heard has not waited for long enough."""
        if self.claimed.get(name) != self.number or self._socket is None:
            return False
        if self._beats and time.monotonic() >= self._heard + SILENCE:
            return False
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return not poll.poll(0)
