"""Clients that talk to servers over HTTP, turn to another one when theirs fails, and remember what they were
told."""

import asyncio
import time
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random

import httpx2

from tests.faults.fleet.machines import Fleet, Machine
from tests.faults.fleet.provider import say

TIMEOUT = 2.0
"""Seconds that a client waits for a server."""
POLL = 0.1
RECOVERY = 15.0
"""Seconds after a restart of the database in which a server may say that it does not answer."""
OWNER = "local"


class Fate(StrEnum):
    ACKNOWLEDGED = "acknowledged"
    UNKNOWN = "unknown"
    """The server was killed or stopped before it said anything. It may have stored the message."""


@dataclass
class Takeover:
    """A conversation whose server was killed or stopped in the middle of a turn was continued elsewhere."""

    kind: str
    seconds: float


@dataclass
class Record:
    """What all clients know. A ticket is sent once: one that was not acknowledged is followed by another."""

    fates: dict[str, Fate] = field(default_factory=dict)
    talks: dict[str, str] = field(default_factory=dict)
    """The session of each conversation, by its first ticket."""
    takeovers: list[Takeover] = field(default_factory=list)
    busy: int = 0
    """How often a server said that a conversation is busy."""
    refused: int = 0
    """How often it said that it could not store the message."""
    odd: list[str] = field(default_factory=list)
    """Answers that nobody expects."""
    count: int = 0

    def find_takeovers(self, kind: str) -> list[float]:
        return [each.seconds for each in self.takeovers if each.kind == kind]

    def new_ticket(self) -> str:
        self.count += 1
        return f"m{self.count}"


class Client:
    """Has one conversation after another, each of a few messages."""

    def __init__(self, fleet: Fleet, record: Record, random: Random) -> None:
        self._fleet, self._record, self._random = fleet, record, random
        self._talk = self._session = ""
        self._last: Machine | None = None
        """The server that has acknowledged the last message, until its turn has ended."""
        self._failed: Machine | None = None
        """The server that did not answer."""

    async def run(self, end: float, pause: float) -> None:
        async with httpx2.AsyncClient(timeout=TIMEOUT) as http:
            while time.monotonic() < end:
                self._talk = self._session = ""
                for _ in range(self._random.randint(1, 4)):
                    await self.say(http)
                    if not self._last:  # who waits for the end of a turn asks elsewhere at once
                        await self._random_pause(pause)

    async def _random_pause(self, pause: float) -> None:
        await asyncio.sleep(self._random.uniform(0, 2 * pause))

    async def say(self, http: httpx2.AsyncClient) -> None:
        """Send one message until a server acknowledges it, and wait for the end of its turn."""
        ticket = ""
        while True:
            server = self._choose()
            if server is None:
                await asyncio.sleep(POLL)
                continue
            ticket = ticket or self._record.new_ticket()
            status = await self.send(http, server, ticket)
            if status == 202:
                break
            if status != 409:
                ticket = ""  # what became of it is not known
            await asyncio.sleep(POLL)
        self._note_takeover()
        self._last, self._failed = server, None
        await self.until_answered(http, server)

    def _choose(self) -> Machine | None:
        """A random server. One who has to continue a turn elsewhere asks servers that work, so that the time
        is not that of a guess."""
        ready = [each for each in self._fleet.ready if each is not self._failed]
        if self._last:
            ready = [each for each in ready if each is not self._last and each.stopped is None]
        return self._random.choice(ready) if ready else None

    async def send(self, http: httpx2.AsyncClient, server: Machine, ticket: str) -> int:
        """Return the status of its answer; 0 if there was none."""
        if not self._session:
            self._talk = ticket
        text = say(OWNER, ticket, self._talk)
        path = f"/api/sessions/{self._session}/messages" if self._session else "/api/sessions"
        self._record.fates[ticket] = Fate.UNKNOWN
        try:
            answer = await http.post(f"{server.url}{path}", json={"text": text}, headers=_sign(server))
        except httpx2.HTTPError:
            self._failed = server
            return 0
        if answer.status_code == 202:
            self._record.fates[ticket] = Fate.ACKNOWLEDGED
            self._session = answer.json()["session"]
            self._record.talks[self._talk] = self._session
        elif answer.status_code == 409:
            self._record.busy += 1
            del self._record.fates[ticket]
        elif answer.status_code == 503:
            self._record.refused += 1
            if time.monotonic() > self._fleet.restarted + RECOVERY:
                self._record.odd.append(f"503 {answer.text[:200]}")
        else:
            self._record.odd.append(f"{answer.status_code} {answer.text[:200]}")
        return answer.status_code

    async def until_sent(self, http: httpx2.AsyncClient, server: Machine, ticket: str) -> None:
        """Send a message to a server until the conversation is no longer busy."""
        while await self.send(http, server, ticket) == 409:  # noqa: ASYNC110  others are elsewhere
            await asyncio.sleep(POLL)

    def _note_takeover(self) -> None:
        """Called when a server has acknowledged a message. Was another one in the middle of a turn?"""
        before, self._last = self._last, None
        if before is None:
            return
        now, restarted = time.monotonic(), self._fleet.restarted
        for kind, began in (("killed", before.killed), ("stopped", before.stopped)):
            if began is not None and restarted < began:
                self._record.takeovers.append(Takeover(kind, now - began))
                return

    async def until_answered(self, http: httpx2.AsyncClient, server: Machine) -> None:
        """Wait for the end of a turn. The server counts as failed if it does not answer any more."""
        while True:
            try:
                path = f"{server.url}/api/sessions/{self._session}"
                answer = await http.get(path, headers=_sign(server), params={"limit": 1})
            except httpx2.HTTPError:
                return
            if answer.status_code == 200 and not answer.json()["busy"]:
                self._last = None
                return
            await asyncio.sleep(POLL)


def _sign(server: Machine) -> dict[str, str]:
    return {"authorization": f"Bearer {server.key}"}
