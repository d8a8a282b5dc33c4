"""Know which claims the connection of a process holds, and whether the server still has it.

PostgreSQL itself ends the connection of a process that was silent for too long, and its claims with it. No
other process has to decide that one hangs, and two never hold the same claim.
"""

import select
import time
from collections.abc import Callable
from typing import Any

from psycopg import Connection

SILENCE, FRESH = 3, 0.5
"""Seconds after which a process that promised to beat, and does not, loses its claims, and seconds for which
a beat need not be repeated."""
KNOWN_SINCE = 140000
"""The first version of PostgreSQL that ends silent connections. Older ones keep those of a hung process."""
EXPIRE = f"SELECT set_config('idle_session_timeout', '{SILENCE}s', false)"


class ClaimLease:
    """The lease of one process. Connections follow each other, and each has a number."""

    def __init__(self) -> None:
        self.claimed: dict[tuple[str, str], int] = {}
        """What this process holds, with the number of the connection that holds it. A connection could take
        its own lock twice."""
        self.number = 0
        self._connection: Connection[Any] | None = None
        self._socket: int | None = None  # a broken connection cannot tell
        self._can_expire = False
        self._beats = False
        self._heard = 0.0

    def use(self, connection: Connection[Any]) -> None:
        """Note the connection. Called before each use of it: a new one holds nothing yet, and may expire as
        well."""
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
        """Report that this process is alive. The server counts from a moment that is later than ours."""
        begun = time.monotonic()
        execute(EXPIRE if self._can_expire else "SELECT 1")
        self._beats, self._heard = True, begun

    @property
    def is_fresh(self) -> bool:
        """Tell whether the current connection was heard a moment ago."""
        return self._beats and self._socket is not None and time.monotonic() < self._heard + FRESH

    def is_certain(self, name: tuple[str, str]) -> bool:
        """Tell without asking whether a claim still holds: its connection is the current one, a server that
        ended it would have said so, and one that cannot be reached has not waited long enough."""
        if self.claimed.get(name) != self.number or self._socket is None:
            return False
        if self._beats and time.monotonic() >= self._heard + SILENCE:
            return False
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return not poll.poll(0)
