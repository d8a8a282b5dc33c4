"""One side of a JSON-RPC connection: it asks and answers at the same time, cancels, and keeps its limits."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from itertools import count
from typing import Protocol, TypeVar

import msgspec
from msgspec import Struct

from hone.core.errors import HoneError
from hone.rpc.messages import (
    BUSY,
    CANCELLED,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    Call,
    ConnectionLost,
    Id,
    MalformedMessage,
    RpcError,
    RpcReply,
    decode,
    encode_call,
    encode_fault,
    encode_result,
)

T = TypeVar("T")

log = logging.getLogger("hone")


class MessageChannel(Protocol):
    """Carries whole messages both ways."""

    async def send(self, message: bytes) -> None:
        """Send a message. Raises ConnectionLost if the other side is gone."""
        ...

    async def receive(self) -> bytes:
        """Return the next message. Raises ConnectionLost at the end, or if a message is too large."""
        ...

    async def close(self) -> None: ...


class Handler(Protocol):
    """Answers the other side's requests."""

    async def answer(self, call: Call) -> object:
        """Return the result of a request, or a Followed one. Raises RpcError, which becomes the reply."""
        ...

    async def hear(self, call: Call) -> None:
        """Handle a notification. Notifications are handled in order, before anything that follows them."""
        ...


class Followed(Struct, frozen=True):
    """A result, and what to do after it has been sent, since the follow-up must not precede it."""

    result: object
    then: Callable[[], None]


class NoHandler:
    """Answers nothing, for a side that only sends requests."""

    async def answer(self, call: Call) -> object:
        raise unknown_method(call.method)

    async def hear(self, call: Call) -> None:
        pass


class PeerLimits(Struct, frozen=True):
    """`requests`: how many of the other side's requests are answered at once. `noise`: how many invalid
    messages are skipped before the connection ends; servers print to their output by mistake."""

    requests: int = 64
    noise: int = 100


Cancel = Callable[[Id], tuple[str, object]]
"""Returns the method and the params of the notification that cancels one of our requests."""


class Peer:
    """`run` reads until the connection ends; `request` and `notify` work in the meantime. `reports_noise`:
    unreadable messages are answered with an error, as a server does. `finishes`: requests from before the
    other side stopped asking are answered first."""

    def __init__(
        self,
        channel: MessageChannel,
        handler: Handler | None = None,
        *,
        cancel: Cancel | None = None,
        limits: PeerLimits | None = None,
        reports_noise: bool = False,
        finishes: bool = False,
    ) -> None:
        self._channel = channel
        self._handler = handler or NoHandler()
        self._cancel = cancel
        self._limits = limits or PeerLimits()
        self._reports_noise = reports_noise
        self._finishes = finishes
        self._ids = count(1)
        self._waiting: dict[Id, asyncio.Future[bytes]] = {}
        self._answering: dict[Id, asyncio.Task[None]] = {}
        self._unheard: set[Id] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._sending = asyncio.Lock()
        self._over: HoneError | None = None

    @property
    def is_over(self) -> bool:
        """Tell whether the connection has ended, so that every request fails."""
        return self._over is not None

    async def request(self, method: str, params: object) -> bytes:
        """Return the result as JSON. Raises RpcError if the other side refuses, ConnectionLost if it
        disconnects. A cancelled caller cancels the request."""
        if self._over:
            raise ConnectionLost(str(self._over))
        id = next(self._ids)
        reply: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._waiting[id] = reply
        try:
            await self._send(encode_call(method, params, id))
            return await reply
        except asyncio.CancelledError:
            if self._cancel and not self._over:
                self._start(self._tell(*self._cancel(id)))
            raise
        finally:
            del self._waiting[id]

    async def notify(self, method: str, params: object) -> None:
        await self._send(encode_call(method, params))

    def cancel(self, id: Id, *, reply: bool = True) -> None:
        """Cancel a request that is being answered. Without `reply` the other side hears nothing more of
        it."""
        if task := self._answering.get(id):
            if not reply:
                self._unheard.add(id)
            task.cancel()

    async def run(self) -> None:
        """Read and answer until the connection ends; then callers that wait for a reply get
        ConnectionLost."""
        reason: HoneError = ConnectionLost("The connection was closed.")
        try:
            await self._read()
        except HoneError as error:
            reason = error
            if self._finishes:
                await asyncio.gather(*self._answering.values(), return_exceptions=True)
        finally:
            self._over = reason
            for reply in self._waiting.values():
                if not reply.done():
                    reply.set_exception(ConnectionLost(str(reason)))
            tasks = [*self._answering.values(), *self._tasks]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._channel.close()

    async def _read(self) -> None:
        noise = 0
        while True:
            message = await self._channel.receive()
            try:
                read = decode(message)
            except MalformedMessage as fault:
                noise += 1
                if noise > self._limits.noise:
                    raise ConnectionLost("The other side sends what is no JSON-RPC.") from None
                if self._reports_noise:
                    await self._send(encode_fault(fault.id, fault))
                continue
            await self._take(read)

    async def _take(self, message: Call | RpcReply) -> None:
        if isinstance(message, RpcReply):
            self._settle(message)
        elif message.id is None:
            await self._handler.hear(message)
        elif message.id in self._answering or len(self._answering) >= self._limits.requests:
            busy = RpcError(BUSY, "Too many requests at once, or an id that is in use.")
            await self._send(encode_fault(message.id, busy))
        else:
            self._answering[message.id] = asyncio.create_task(self._answer(message, message.id))
            await asyncio.sleep(0)  # it begins before the next message is read, which may cancel it

    def _settle(self, reply: RpcReply) -> None:
        """Pass a reply to its caller. A cancelled request has none."""
        waiting = None if reply.id is None else self._waiting.get(reply.id)
        if waiting is None or waiting.done():
            return
        if reply.fault:
            fault = reply.fault
            waiting.set_exception(RpcError(fault.code, fault.message, fault.data))
        else:
            waiting.set_result(reply.result or b"null")

    async def _answer(self, call: Call, id: Id) -> None:
        then = None
        try:
            result = await self._handler.answer(call)
            if isinstance(result, Followed):
                then = result.then
            answer = encode_result(id, result.result if isinstance(result, Followed) else result)
        except RpcError as error:
            answer = encode_fault(id, error)
        except HoneError as error:
            answer = encode_fault(id, RpcError(INTERNAL_ERROR, str(error)))
        except asyncio.CancelledError:
            if self._over:
                raise
            answer = encode_fault(id, RpcError(CANCELLED, "The request was canceled."))
        except Exception as error:  # the wall: every request gets an answer, whatever a handler does
            log.exception("%s failed", call.method[:100])
            answer = encode_fault(
                id, RpcError(INTERNAL_ERROR, f"{type(error).__name__} in {call.method[:100]}.")
            )
        finally:
            del self._answering[id]
        if id in self._unheard:
            self._unheard.discard(id)
        else:
            await self._tell_bytes(answer)
        if then:
            then()

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _tell(self, method: str, params: object) -> None:
        await self._tell_bytes(encode_call(method, params))

    async def _tell_bytes(self, message: bytes) -> None:
        try:
            await self._send(message)
        except ConnectionLost:
            return  # the reader notices

    async def _send(self, message: bytes) -> None:
        async with self._sending:
            await self._channel.send(message)


def unknown_method(method: str) -> RpcError:
    return RpcError(METHOD_NOT_FOUND, f"There is no method {method[:100]!r}.")


def read_params(call: Call, type: type[T]) -> T:
    """Return the params of a call as a value. Raises RpcError if they have another type."""
    try:
        return msgspec.json.decode(call.params, type=type)
    except (msgspec.DecodeError, RecursionError) as error:
        raise RpcError(INVALID_PARAMS, f"The params of {call.method[:100]} do not fit: {error}.") from None
