"""Serve one client over this process's own input and output."""

from collections.abc import Callable
from typing import Any

from hone.app import Hone
from hone.features.mcp.server.clients import Client
from hone.features.mcp.server.methods import Methods
from hone.features.mcp.server.protocol import LONGEST, has_envelope, read_canceled
from hone.rpc.channels import StdioChannel
from hone.rpc.messages import INVALID_REQUEST, Call, Id, RpcError
from hone.rpc.peer import MessageChannel, Peer, PeerLimits

LIMITS = PeerLimits(requests=16)


class StdioHandler:
    """Answers requests of both eras: each request shows which one it belongs to."""

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
        id = read_canceled(call)
        if id is not None:
            self._cancel(id)


async def serve(hone: Hone, client: Client, channel: MessageChannel | None = None) -> None:
    """Answer until the client disconnects."""
    peer: Peer

    def cancel(id: Id) -> None:
        peer.cancel(id, reply=False)

    handler = StdioHandler(Methods(hone, client), cancel)
    channel = channel or StdioChannel(LONGEST)
    peer = Peer(channel, handler, limits=LIMITS, reports_noise=True, finishes=True)
    await peer.run()
