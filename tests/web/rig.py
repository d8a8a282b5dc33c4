"""A server in this process, on loopback, with a scripted provider behind it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import msgspec

from hone import Hone
from hone.core.clock import Clock, SystemClock
from hone.core.switchboard import Switchboard
from hone.models.fake_provider import FakeProvider
from hone.models.scripted import Script, echo
from hone.settings import Settings
from hone.settings.sections import ProviderSettings
from hone.web.api_keys import ApiKeys
from hone.web.bus import Bus
from hone.web.keys import stored
from hone.web.pending_questions import PendingQuestions
from hone.web.protocol import BOUNDS, ArrivalBounds
from hone.web.serving import Address, bind, compose, open_board, open_keys, server
from hone.web.state import ServerState

PATIENCE = 60.0
DEFAULTS = Settings()


@dataclass
class Running:
    url: str
    key: str
    state: ServerState
    stage: FakeProvider
    client: httpx2.AsyncClient
    """Holds the key."""
    issued: ApiKeys

    async def get(self, path: str, **query: Any) -> Any:
        response = await self.client.get(path, params=query)
        assert response.status_code == 200, response.text
        return response.json()

    async def post(self, path: str, **body: Any) -> Any:
        response = await self.client.post(path, json=body)
        assert response.is_success, response.text
        return response.json()


@asynccontextmanager
async def running(
    home: Path,
    folder: Path,
    script: Script = echo,
    *,
    settings: Settings = DEFAULTS,
    password: str = "",
    clock: Clock | None = None,
    latency: float = 0.0,
    grace: float = 0.0,
    bounds: ArrivalBounds = BOUNDS,
) -> AsyncIterator[Running]:
    address, bus, time = Address(port=0, password=password), Bus(), clock or SystemClock()
    board: list[Switchboard] = []
    questions, listener = PendingQuestions(bus, time, lambda: board[0]), bind(address)
    port = listener.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    async with FakeProvider(script, latency=latency) as stage:
        known = msgspec.structs.replace(settings, providers={"stage": ProviderSettings(f"{stage.url}/v1")})
        async with Hone(
            home=home,
            model="stage/scripted",
            folder=folder,
            settings=known,
            ask=questions.ask,
            learning="queue",  # as hone serve does: the server itself attends to the queue
        ) as hone:
            key = stored(home)
            values = hone.stores.open_values
            issued = ApiKeys(values() if values else home, time)
            board.append(open_board(hone))
            state = compose(hone, open_keys(hone, time, port, password), bus, questions, board[0], time, url)
            serving = server(state, address.hosts(port), grace, bounds)
            task = asyncio.create_task(serving.serve([listener]))
            headers = {"authorization": f"Bearer {key}"}
            try:
                async with httpx2.AsyncClient(base_url=url, headers=headers, timeout=PATIENCE) as client:
                    yield Running(url, key, state, stage, client, issued)
            finally:
                serving.should_exit = True
                await task
                await board[0].close()


@dataclass
class Heard:
    """What a stream of events said."""

    events: list[tuple[str, str, Any]] = field(default_factory=list)

    @property
    def kinds(self) -> list[str]:
        return [kind for _, kind, _ in self.events]


async def listen(
    client: httpx2.AsyncClient, path: str, until: str, since: str = "", heard: Heard | None = None
) -> Heard:
    """All events up to the first of this kind."""
    found = heard or Heard()
    headers = {"last-event-id": since} if since else {}
    async with asyncio.timeout(PATIENCE), client.stream("GET", path, headers=headers) as response:
        assert response.status_code == 200, await response.aread()
        block: dict[str, str] = {}
        async for line in response.aiter_lines():
            name, _, value = line.partition(": ")
            if line:
                block[name] = value
                continue
            if "event" in block:
                found.events.append((block["id"], block["event"], msgspec.json.decode(block["data"])))
                if block["event"] == until:
                    return found
            block = {}
    raise AssertionError(f"the stream ended before {until}: {found.kinds}")
