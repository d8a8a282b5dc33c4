"""Speak HTTP/1.1 strictly, one request at a time, and drop requests that are never finished.

uvicorn and h11 do the work. This layer shows h11 only whole, well-formed heads, sets bounds on how long a
request may take to arrive, and never reads a second request before the first is answered.
"""

import asyncio
from http import HTTPStatus
from typing import Any

import h11
import msgspec
from msgspec import Struct
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from hone.web.answers import HEADERS, problem
from hone.web.heads import END, LARGEST_HEAD, begins_well, read_head


class ArrivalBounds(Struct, frozen=True):
    """Seconds: for a head to arrive, for a body (plus one for each `rate` bytes of it), between two requests,
    and to keep reading after an answer that ends the connection."""

    head: float = 10.0
    body: float = 30.0
    rate: int = 16 * 1024
    idle: float = 75.0
    """Longer than clients keep theirs, so that they never use a connection that was just closed."""
    linger: float = 2.0


BOUNDS = ArrivalBounds()


def strict(bounds: ArrivalBounds) -> type["StrictProtocol"]:
    """Return the protocol with these bounds, for uvicorn to make one per connection."""

    class WithBounds(StrictProtocol):
        def __init__(self, *arguments: Any, **named: Any) -> None:
            super().__init__(*arguments, **named)
            self.bounds = bounds

    return WithBounds


class StrictProtocol(H11Protocol):
    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.bounds = BOUNDS
        self._head = bytearray()
        self._timer: asyncio.TimerHandle | None = None
        self._began = 0.0
        self._arrived = 0
        self._left: int | None = 0
        """Bytes of the body that are still to come, if that is known."""
        self._ending = False
        """Nothing more is parsed; the client is about to get the end of the answer."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as above
        super().connection_made(transport)
        self._set_timer(self.bounds.idle)

    def connection_lost(self, exc: Exception | None) -> None:
        self._set_timer(None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._ending or self.transport.is_closing():
            return
        if self.conn.their_state is h11.IDLE:
            self._receive_head(data)
        elif self.conn.their_state is h11.SEND_BODY:
            self._receive_body(data)
        else:
            self._end_after_answer()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            return
        self._unset_keepalive_if_required()
        if self.conn.their_state is not h11.SEND_BODY:
            self._set_timer(self.bounds.idle)
        elif self._left is None:
            self._end()
        else:  # answered before the body had arrived; the rest of it may still come
            self._set_timer(self.bounds.linger)

    def send_400_response(self, msg: str) -> None:
        self._refuse(HTTPStatus.BAD_REQUEST, msg)

    def _receive_head(self, data: bytes) -> None:
        """Buffer a head until it is complete, and pass it on if it is well-formed."""
        if not self._head:
            self._set_timer(self.bounds.head)
        seen = max(0, len(self._head) - 2)
        self._head += data
        end = END.search(self._head, seen)
        size = end.end() if end else len(self._head)
        if size > LARGEST_HEAD:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "The headers are too long.")
        elif not begins_well(self._head[:1]):
            self._refuse(HTTPStatus.BAD_REQUEST, "This is no HTTP request.")
        elif end:
            self._receive_whole_head(bytes(self._head[:size]), bytes(self._head[size:]))

    def _receive_whole_head(self, head: bytes, rest: bytes) -> None:
        found = read_head(head)
        if found.fault:
            self._refuse(HTTPStatus.BAD_REQUEST, found.fault)
            return
        self._head.clear()
        self._began, self._arrived, self._left = self.loop.time(), 0, found.length
        self._set_timer(self.bounds.body)
        super().data_received(head)
        if not self._ending:
            self._receive_body(rest)

    def _receive_body(self, data: bytes) -> None:
        """Pass on what belongs to the request, and nothing after it."""
        own, rest = data, b""
        if self._left is not None:
            own, rest = data[: self._left], data[self._left :]
            self._left -= len(own)
        self._arrived += len(own)
        if own:
            super().data_received(own)
        if self._ending or self.conn.their_state is h11.SEND_BODY:
            return
        if self.conn.their_state is h11.IDLE:  # it was answered before
            self._set_timer(self.bounds.idle)
            if rest:
                self._receive_head(rest)
            return
        self._set_timer(None)
        if rest or self.conn.trailing_data[0]:
            self._end_after_answer()

    def _end_after_answer(self) -> None:
        """Stop at a second request before the first is answered: no client here sends one, so it is not
        read."""
        self.cycle.keep_alive = False

    def _expire(self) -> None:
        """End the connection when the time for the next data is up."""
        self._timer = None
        if self._ending:
            self.transport.abort()
        elif self._head:
            self._refuse(HTTPStatus.REQUEST_TIMEOUT, "The headers did not arrive in time.")
        elif self.conn.their_state is not h11.SEND_BODY or self.cycle.response_complete:
            self.transport.close()
        elif (left := self._began + self._allowed() - self.loop.time()) > 0:
            self._set_timer(left)
        else:
            self._refuse(HTTPStatus.REQUEST_TIMEOUT, "The body did not arrive in time.")

    def _allowed(self) -> float:
        return self.bounds.body + self._arrived / self.bounds.rate

    def _refuse(self, status: HTTPStatus, message: str) -> None:
        """Answer with our own text, unless an answer has begun, and read no more."""
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is None or cycle.response_complete or not cycle.response_started:
            self.transport.write(_answer(status, message))
        if cycle is not None and not cycle.response_complete:
            cycle.disconnected = True
            cycle.message_event.set()
        self._end()

    def _end(self) -> None:
        """Send the end of the answer, and keep reading: a reset could reach the client before the answer."""
        self._ending = True
        self._head.clear()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.flow.resume_reading()
        self._set_timer(self.bounds.linger)

    def _set_timer(self, seconds: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else self.loop.call_later(seconds, self._expire)


def _answer(status: HTTPStatus, message: str) -> bytes:
    body = msgspec.json.encode(problem("invalid_request_error", message))
    headers = {
        **HEADERS,
        "content-type": "application/json",
        "content-length": str(len(body)),
        "connection": "close",
    }
    lines = [
        f"HTTP/1.1 {status.value} {status.phrase}",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    return "\r\n".join((*lines, "", "")).encode() + body
