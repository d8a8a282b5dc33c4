"""Serve one client over this process's own input and output."""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from hone.app import Hone
from hone.features.mcp.server.clients import Client
from hone.features.mcp.server.methods import Methods
from hone.features.mcp.server.protocol import LONGEST, has_envelope
from hone.rpc.channels import StdioChannel
from hone.rpc.messages import INVALID_REQUEST, Call, Id, RpcError
from hone.rpc.peer import MessageChannel, Peer, PeerLimits, read_params

LIMITS = PeerLimits(requests=16)


class _Cancelled(Struct):
    requestId: Id  # noqa: N815  as the protocol spells it


class StdioHandler:
    """Answers requests of both eras: each says by itself to which one it belongs."""

    def __init__(self, methods: Methods, cancel: Callable[[Id], None]) -> None:
        self._methods = methods
        self._cancel = cancel
        self._greeted = False

    async def answer(self, call: Call) -> dict[str, Any]:
        if has_envelope(call):
            return await self._methods.answer_stateless(call)
        if call.method == "initialize":
            result = await self._methods.answer(call)
            self._greeted = True
            return result
        if not self._greeted and call.method != "ping":
            raise RpcError(INVALID_REQUEST, "Send initialize first, or a request with an envelope in _meta.")
        return await self._methods.answer(call)

    async def hear(self, call: Call) -> None:
        if call.method == "notifications/cancelled":
            try:
                self._cancel(read_params(call, _Cancelled).requestId)
            except RpcError:
                return  # nobody waits for an answer to a notification


async def serve(hone: Hone, client: Client, channel: MessageChannel | None = None) -> None:
    """Answer until the client goes away."""
    peer: Peer

    def cancel(id: Id) -> None:
        peer.cancel(id, reply=False)

    handler = StdioHandler(Methods(hone, client), cancel)
    channel = channel or StdioChannel(LONGEST)
    peer = Peer(channel, handler, limits=LIMITS, reports_noise=True, finishes=True)
    await peer.run()
