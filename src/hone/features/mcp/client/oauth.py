"""Sign in to a server with OAuth, using the official SDK (the extra `mcp`). Imported when a server requires
it."""

import asyncio
from collections.abc import Awaitable, Callable
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.exceptions import OAuthFlowError
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from pydantic import AnyUrl, ValidationError

from hone.core.errors import Refused
from hone.core.visible import one_line
from hone.features.mcp.client.tokens import Challenge, TokenFile
from hone.features.mcp.client.wire import HANDSHAKE

PATIENCE = 300.0
"""Seconds that the owner has to sign in."""
_DONE = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\nYou can close this page.\n"

Show = Callable[[str], Awaitable[None]]
"""Show the owner the address at which to sign in."""


class StoredSignIn:
    """The SDK's storage, in our file. Data that does not fit counts as missing."""

    def __init__(self, file: TokenFile, key: str) -> None:
        self._file = file
        self._key = key

    async def get_tokens(self) -> OAuthToken | None:
        try:
            return OAuthToken.model_validate(self._file.get(self._key).get("tokens"))
        except ValidationError:
            return None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._file.put(self._key, "tokens", tokens.model_dump(mode="json", exclude_none=True))

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        try:
            return OAuthClientInformationFull.model_validate(self._file.get(self._key).get("client"))
        except ValidationError:
            return None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._file.put(self._key, "client", client_info.model_dump(mode="json", exclude_none=True))


class Callback:
    """Waits on loopback for the browser to return."""

    def __init__(self) -> None:
        self._came: asyncio.Future[AuthorizationCodeResult] = asyncio.get_running_loop().create_future()
        self._server: asyncio.Server | None = None

    async def open(self) -> str:
        """Return the address for the browser's return."""
        self._server = await asyncio.start_server(self._hear, "127.0.0.1", 0)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/callback"

    async def wait(self) -> AuthorizationCodeResult:
        async with asyncio.timeout(PATIENCE):
            return await self._came

    def close(self) -> None:
        if self._server:
            self._server.close()

    async def _hear(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            line = (await reader.readuntil(b"\r\n")).decode("latin-1").split(" ")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            line = []
        query = parse_qs(urlsplit(line[1]).query) if len(line) > 1 else {}
        if "code" in query and not self._came.done():
            first = {name: values[0] for name, values in query.items()}
            self._came.set_result(
                AuthorizationCodeResult(code=first["code"], state=first.get("state"), iss=first.get("iss"))
            )
        writer.write(_DONE)
        await writer.drain()
        writer.close()


class Replay(httpx2.AsyncBaseTransport):
    """Replays a server's refusal to the SDK without asking the server again. Other requests of a sign-in use
    the network."""

    def __init__(self, url: str, challenge: Challenge) -> None:
        self._url = httpx2.URL(url)
        self._refusals = [challenge]
        self._network = httpx2.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.url != self._url or request.method != "POST":
            return await self._network.handle_async_request(request)
        if not self._refusals:
            return httpx2.Response(200, request=request)
        refusal = self._refusals.pop()
        headers = {"www-authenticate": refusal.said} if refusal.said else {}
        return httpx2.Response(refusal.status, headers=headers, request=request)

    async def aclose(self) -> None:
        await self._network.aclose()


async def sign_in(url: str, key: str, challenge: Challenge, file: TokenFile, show: Show | None) -> str:
    """Return the value for Authorization: refresh the stored token, or let the owner sign in. Without `show`
    nobody is there for that. Raises Refused."""
    callback = Callback()
    back = await callback.open()

    async def redirect(address: str) -> None:
        if show is None:
            raise OAuthFlowError("you have to sign in")
        await show(address)

    metadata = OAuthClientMetadata(redirect_uris=[AnyUrl(back)], client_name="Hone")
    storage = StoredSignIn(file, key)
    provider = OAuthClientProvider(url, metadata, storage, redirect, callback.wait)
    try:
        transport = Replay(url, challenge)
        async with httpx2.AsyncClient(auth=provider, timeout=30.0, transport=transport) as client:
            await client.post(url, headers={"MCP-Protocol-Version": HANDSHAKE[0]})
    except (OAuthFlowError, httpx2.HTTPError, TimeoutError) as error:
        raise Refused(f"Signing in did not work: {one_line(str(error), 200)}.") from error
    finally:
        callback.close()
    header = file.get_header(key)
    if not header:
        raise Refused("The server gave no token.")
    return header
