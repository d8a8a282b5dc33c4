"""Answer the methods of MCP for one client, in either era and over either transport."""

import traceback
from typing import Any

from hone.app import Hone
from hone.core.errors import HoneError
from hone.features.mcp.server import protocol, skills
from hone.features.mcp.server.clients import Client
from hone.features.mcp.server.skills import PageParams, UriParams
from hone.features.mcp.server.tools import CallParams, call_tool, list_tools
from hone.rpc.messages import INTERNAL_ERROR, Call, RpcError
from hone.rpc.peer import read_params, unknown_method


class Methods:
    def __init__(self, hone: Hone, client: Client) -> None:
        self._hone = hone
        self._client = client

    async def answer(self, call: Call) -> dict[str, Any]:
        """Answer a request of the era with a handshake. Raises RpcError."""
        if call.method == "initialize":
            return protocol.initialize(call)
        if call.method == "ping":
            return {}
        return await self._guarded(call, stateless=False)

    async def answer_stateless(self, call: Call) -> dict[str, Any]:
        """Answer a request that carries its own envelope. Raises RpcError."""
        protocol.check_envelope(call)
        if call.method == "server/discover":
            return protocol.finish(call.method, protocol.discover())
        return protocol.finish(call.method, await self._guarded(call, stateless=True))

    async def _guarded(self, call: Call, *, stateless: bool) -> dict[str, Any]:
        try:
            return await self._dispatch(call, stateless=stateless)
        except HoneError:
            raise
        except Exception as error:  # a client hears that it failed, and no internal details
            traceback.print_exception(error)
            raise RpcError(INTERNAL_ERROR, f"{call.method[:100]} failed ({type(error).__name__}).") from error

    async def _dispatch(self, call: Call, *, stateless: bool) -> dict[str, Any]:
        hone, client = self._hone, self._client
        match call.method:
            case "tools/list":
                return list_tools(client)
            case "tools/call":
                return await call_tool(hone, client, read_params(call, CallParams))
            case "skills/list":
                return await skills.list_skills(hone, read_params(call, PageParams))
            case "skills/get":
                return await skills.get_skill(hone, read_params(call, UriParams).uri)
            case "resources/list":
                return await skills.list_resources(hone, read_params(call, PageParams))
            case "resources/templates/list":
                return {"resourceTemplates": []}
            case "resources/read":
                uri = read_params(call, UriParams).uri
                return await skills.read_resource(hone, client, uri, stateless=stateless)
            case "resources/directory/read":
                return await skills.read_folder(hone, read_params(call, UriParams).uri)
        raise unknown_method(call.method)
