"""Receive other servers' NOTIFY on one connection for all owners of a process."""

import asyncio
import hashlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import psycopg

AGAIN = 1.0
"""Seconds before a lost connection for signals is reopened."""
LISTEN = "LISTEN hone_wake"
ALL = "*"
"""Stands for every server of an owner."""


@dataclass(eq=False, slots=True)
class Subscription:
    """What one owner's part of a server waits for."""

    owner: str
    server: str
    stirred: asyncio.Event = field(default_factory=asyncio.Event)


class Signals:
    """The connection does nothing else. It is opened with the first listener, and closed with the last.
    Without it, waiting takes its full time."""

    def __init__(self, dial: Callable[[], psycopg.Connection[Any]]) -> None:
        self._dial = dial
        self._known: dict[str, list[Subscription]] = {}
        self._connection: psycopg.Connection[Any] | None = None
        self._connecting = asyncio.Lock()
        self._socket = -1  # a broken connection cannot tell
        self._next = 0.0

    def add(self, owner: str, server: str) -> Subscription:
        """Listen to signals for one owner's server."""
        name = hashlib.md5(owner.encode(), usedforsecurity=False).hexdigest()
        subscription = Subscription(name, server)
        self._known.setdefault(name, []).append(subscription)
        return subscription

    def remove(self, subscription: Subscription) -> None:
        left = [each for each in self._known.pop(subscription.owner, ()) if each is not subscription]
        if left:
            self._known[subscription.owner] = left
        if not self._known:
            self.close()

    async def wait(self, subscription: Subscription, seconds: float) -> None:
        await self._connect()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await subscription.stirred.wait()
        subscription.stirred.clear()

    async def _connect(self) -> None:
        if self._connection:
            return
        async with self._connecting:
            loop = asyncio.get_running_loop()
            if self._connection or loop.time() < self._next:
                return
            self._next = loop.time() + AGAIN
            with suppress(psycopg.Error):
                opened = await asyncio.to_thread(self._open)
                if not self._known:  # all have gone in the meantime
                    opened.close()
                    return
                self._connection = opened
                self._socket = self._connection.fileno()
                loop.add_reader(self._socket, self._read)
                self._stir_all()  # a signal may have come before anybody listened

    def _open(self) -> psycopg.Connection[Any]:
        connection = self._dial()
        connection.execute(LISTEN)
        return connection

    def _read(self) -> None:
        """Read. The event loop calls this when the server has sent something, or is gone."""
        assert self._connection is not None
        try:
            self._connection.pgconn.consume_input()
            while found := self._connection.pgconn.notifies():
                owner, _, server = found.extra.decode().partition(" ")
                for each in self._known.get(owner, ()):
                    if server in (each.server, ALL):
                        each.stirred.set()
        except psycopg.Error:
            self.close()
            self._stir_all()

    def _stir_all(self) -> None:
        for owner in self._known.values():
            for each in owner:
                each.stirred.set()

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection:
            asyncio.get_running_loop().remove_reader(self._socket)
            connection.close()
