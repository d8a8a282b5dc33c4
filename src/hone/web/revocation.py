"""End a request whose API key is removed while it is running."""

import asyncio
from collections.abc import Awaitable, Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hone.web.answers import failure

LOOK = 1.0
"""Seconds between two checks whether the key still exists."""
UNKNOWN = "Send a valid key as a bearer token, or log in. hone serve keys list shows which keys there are."
START, BODY = "http.response.start", "http.response.body"


class RevocableCall:
    """One request. To the app a removed key looks like a client that has disconnected, so its turn ends in
    order; the client gets a truncated answer, or none."""

    def __init__(self, is_valid: Callable[[], Awaitable[bool]], receive: Receive, send: Send) -> None:
        self._is_valid = is_valid
        self._receive = receive
        self._send = send
        self._started = self._ended = False
        self._waiting: asyncio.Task[Message] | None = None

    async def run(self, app: ASGIApp, scope: Scope) -> None:
        try:
            await app(scope, self._hear, self._say)
        finally:
            if self._waiting:
                self._waiting.cancel()
        if not self._started:
            await failure(401, "unauthorized", UNKNOWN)(scope, self._receive, self._send)
        elif not self._ended:
            await self._send({"type": BODY, "body": b"", "more_body": False})

    async def _hear(self) -> Message:
        """Return what the client sends, or a disconnect once its key is gone. Data that has arrived is
        returned at once: checking for a disconnect does not wait."""
        while await self._is_valid():
            self._waiting = self._waiting or asyncio.ensure_future(self._receive())
            if not self._waiting.done():
                await asyncio.wait([self._waiting], timeout=LOOK)
            if self._waiting.done():
                message, self._waiting = self._waiting.result(), None
                return message
        return {"type": "http.disconnect"}

    async def _say(self, message: Message) -> None:
        if self._ended or not await self._is_valid():
            return
        self._started = True
        self._ended = message["type"] == BODY and not message.get("more_body", False)
        await self._send(message)
