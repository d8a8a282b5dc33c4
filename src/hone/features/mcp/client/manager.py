"""The running servers: started on first use, restarted after growing pauses, ended together."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from hone.core.clock import Clock
from hone.core.errors import HoneError, Refused
from hone.core.loading import import_object
from hone.core.secrets import redact
from hone.core.value import replace
from hone.core.visible import one_line, visible
from hone.features.mcp.client.catalog import Catalog, CatalogEntry, Offer, ToolState, note_seen
from hone.features.mcp.client.connection import Elicit, Progress, ServerConnection
from hone.features.mcp.client.http import HttpChannel, client_for
from hone.features.mcp.client.stdio import NotStarted, ProcessChannel, fill, list_names, start
from hone.features.mcp.client.tokens import Challenge, TokenFile
from hone.features.mcp.client.values import McpServer
from hone.features.mcp.client.wire import HANDSHAKE, MODERN
from hone.rpc.messages import ConnectionLost, RpcError

LONGEST_PAUSE = 60.0
PATIENCE = 2.0
"""Seconds that a call waits for a server to restart."""
LEAST, MOST = 30.0, 3_600.0
"""Seconds for which a list of tools is valid, whatever a stateless server says."""
KEPT = 4_000
"""The most characters of a server's error output to store."""

SIGN_IN = "hone.features.mcp.client.oauth:sign_in"
"""Imported when a server requires it, since it needs the official SDK."""
Show = Callable[[str], Awaitable[None]]
FindKey = Callable[[str], str]
"""Returns the value of an environment variable or a stored key; empty if there is none."""
DenyIn = Callable[[Path, str], str]
"""Returns why the owner's rules for a folder close a host; empty if they do not. Raises HoneError."""


class Quarantined(HoneError):
    """A tool differs from the one that the owner approved."""


class RunningServer:
    """One server and its connection. `failures` counts failed starts and crashes."""

    def __init__(self, server: McpServer) -> None:
        self.server = server
        self.connection: ServerConnection | None = None
        self.lock = asyncio.Lock()
        self.stale = True
        self.fresh_until = 0.0
        self.failures = 0
        self.not_before = 0.0
        self.reason = ""


class Servers:
    """Connects to servers and keeps the catalog current. Close it with the part."""

    def __init__(
        self,
        home: Path,
        catalog: Catalog,
        clock: Clock,
        find_key: FindKey,
        show: Show | None = None,
        deny: DenyIn = lambda *_: "",
    ) -> None:
        """`show` shows the owner where to sign in; without it nobody is there for that."""
        self._deny = deny
        self._show = show
        self._tokens = TokenFile(home)
        self._home = home
        self._catalog = catalog
        self._clock = clock
        self._find_key = find_key
        self._running: dict[str, RunningServer] = {}

    async def call(
        self, offer: Offer, arguments: Mapping[str, Any], elicit: Elicit, heard: Progress
    ) -> dict[str, Any]:
        """Call a tool that is unchanged since its approval. Raises HoneError; RpcError has the server's
        words."""
        params = {"name": offer.tool.name, "arguments": arguments}
        running = await self._ready(offer.server)
        self._check(offer)
        return await self._interact(running, "tools/call", params, elicit, heard)

    async def ask(
        self, server: McpServer, method: str, params: Mapping[str, Any], elicit: Elicit | None = None
    ) -> dict[str, Any]:
        """Make another request: for a resource or a prompt. Raises HoneError."""
        running = await self._ready(server)
        return await self._interact(running, method, params, elicit or _nobody, None)

    async def list_all(self, server: McpServer, kind: str) -> list[dict[str, Any]]:
        """Return the resources or prompts of a server; none if it has no such list. Raises HoneError."""
        running = await self._ready(server)
        assert running.connection
        if kind not in running.connection.facts.lists:
            return []
        return (await running.connection.list_all(kind))[0]

    async def look(self, server: McpServer) -> CatalogEntry:
        """Start a server if necessary, and record what it offers now. Raises HoneError."""
        running = self._get(server)
        running.stale = True
        await self._ready(server)
        return self._catalog.get(server)

    async def refresh(self) -> None:
        """Query the running servers again that reported changes. A failure waits for the next call."""
        for running in [*self._running.values()]:
            if running.stale and running.connection and running.connection.is_open:
                try:
                    async with running.lock:
                        await self._list(running)
                except HoneError as error:
                    self._fail(running, error)

    def errors_of(self, server: McpServer) -> str:
        """Return a running server's error output."""
        connection = self._get(server).connection
        channel = connection.channel if connection else None
        return channel.errors if isinstance(channel, ProcessChannel) else ""

    async def close(self) -> None:
        running, self._running = [*self._running.values()], {}
        await asyncio.gather(*(each.connection.close() for each in running if each.connection))

    def _get(self, server: McpServer) -> RunningServer:
        return self._running.setdefault(f"{server.key} {server.folder}", RunningServer(server))

    async def _interact(
        self,
        running: RunningServer,
        method: str,
        params: Mapping[str, Any],
        elicit: Elicit,
        heard: Progress | None,
    ) -> dict[str, Any]:
        connection, timeout = running.connection, running.server.settings.timeout
        assert connection
        try:
            return await connection.interact(method, params, timeout, elicit, heard)
        except ConnectionLost as error:
            self._fail(running, error)
            raise ConnectionLost(
                f"The server {running.server.name} ended during the call: {error}"
            ) from error

    async def _ready(self, server: McpServer) -> RunningServer:
        """Return a connected server with a fresh list of tools. Raises HoneError."""
        running = self._get(server)
        async with running.lock:
            if running.connection is None or not running.connection.is_open:
                await self._restart(running)
            expired = self._clock.monotonic() >= running.fresh_until
            if running.stale or expired:
                await self._list(running)
        return running

    async def _restart(self, running: RunningServer) -> None:
        if running.connection:
            if not running.reason:
                self._fail(running, ConnectionLost("it ended by itself"))
            await running.connection.close()
            running.connection = None
        wait = running.not_before - self._clock.monotonic()
        if wait > PATIENCE:
            raise NotStarted(
                f"The server {running.server.name} failed {running.failures} times ({running.reason}); "
                f"Hone tries again in {wait:.0f} seconds."
            )
        if wait > 0:
            await self._clock.sleep(wait)
        try:
            running.connection = await self._connect(running)
        except HoneError as error:
            self._fail(running, error)
            raise NotStarted(f"The MCP server {running.server.name} cannot be used. {error}") from error
        running.stale, running.reason = True, ""

    async def _connect(self, running: RunningServer) -> ServerConnection:
        """Connect. Try the era that a server spoke last time first. A server that dies of an unknown question
        is restarted for a handshake."""
        version, shown = self._catalog.get(running.server).version, f"hone mcp show {running.server.name}"
        for tried in dict.fromkeys((version, HANDSHAKE[0])):
            connection = await self._open(running)
            try:
                await connection.open(tried)
                return connection
            except ConnectionLost as error:
                self._keep_errors(running, connection)
                if tried not in ("", MODERN):
                    raise NotStarted(f"{error} `{shown}` has what it printed.") from error
            except RpcError as error:
                raise NotStarted(one_line(str(error), 500)) from error
            except HoneError:
                self._keep_errors(running, connection)
                raise
        raise NotStarted("It ended at once.")

    async def _open(self, running: RunningServer) -> ServerConnection:
        server, settings = running.server, running.server.settings
        if server.is_remote:
            channel: HttpChannel | ProcessChannel = self._reach(server)
        else:
            values = fill(settings.env, self._values(settings.env))
            deny = partial(self._deny, server.folder)
            channel = await start(server, self._home, values, self._clock, deny)

        def changed(kind: str) -> None:
            running.stale = running.stale or kind == "tools"

        return ServerConnection(channel, self._clock, changed)

    def _reach(self, server: McpServer) -> HttpChannel:
        """Reach a server over HTTP. If the owner put a token into the headers, it is the only one; otherwise
        a sign-in provides one."""
        settings = server.settings
        headers = fill(settings.headers, self._values(settings.headers))
        http = client_for(settings.url, settings.hosts, self._clock)
        if any(name.lower() == "authorization" for name in headers):
            return HttpChannel(http, settings.url, headers, self._clock)
        known = self._tokens.get_header(server.key)
        headers |= {"Authorization": known} if known else {}
        return HttpChannel(http, settings.url, headers, self._clock, partial(self._sign_in, server))

    async def _sign_in(self, server: McpServer, challenge: Challenge) -> str:
        try:
            sign_in = import_object(SIGN_IN)
        except ImportError as error:
            raise Refused("Signing in needs the extra: pip install 'hone-agent[mcp]'") from error
        try:
            header: str = await sign_in(server.settings.url, server.key, challenge, self._tokens, self._show)
        except Refused as refusal:
            hint = "" if self._show else f" Sign in with: hone mcp check {server.name}"
            raise Refused(f"{refusal}{hint}") from refusal
        return header

    def _values(self, texts: Mapping[str, str]) -> dict[str, str]:
        found = {name: os.environ.get(name) or self._find_key(name) for name in list_names(texts)}
        return {name: value for name, value in found.items() if value}

    async def _list(self, running: RunningServer) -> None:
        """Record what a server offers. Raises HoneError."""
        connection, server = running.connection, running.server
        assert connection
        facts = connection.facts
        running.stale = False
        try:
            items, ttl = await connection.list_all("tools") if "tools" in facts.lists else ([], 0.0)
        except HoneError:
            running.stale = True
            raise
        lasting = facts.is_modern and "tools" not in facts.notifies
        running.fresh_until = self._clock.monotonic() + (min(max(ttl, LEAST), MOST) if lasting else 1e9)
        running.failures = 0
        title, version = one_line(facts.title, 100), facts.version
        entry = self._catalog.change(
            server, lambda entry: replace(note_seen(entry, items), version=version, title=title, errors="")
        )
        if isinstance(connection.channel, HttpChannel):
            connection.channel.know(
                {str(each.get("name")): each["inputSchema"] for each in items if "inputSchema" in each}
            )
        del entry

    def _check(self, offer: Offer) -> None:
        """Raise Quarantined unless a tool is unchanged since the owner's approval."""
        entry = self._catalog.get(offer.server)
        state = entry.states().get(offer.tool.name)
        server, tool = offer.server.name, offer.tool.name
        if state is ToolState.APPROVED and entry.approved[tool] == offer.tool.raw:
            return
        if state is ToolState.GONE:
            raise Quarantined(f"The server {server} no longer offers {tool}.")
        raise Quarantined(
            f"The server {server} changed {tool} since the user approved it, so it is not called. "
            f"The user can see the difference with `hone mcp show {server}` and approve it with "
            f"`hone mcp approve {server} {tool}`."
        )

    def _fail(self, running: RunningServer, error: HoneError) -> None:
        running.failures += 1
        running.reason = one_line(str(error), 200)
        pause = 0.0 if running.failures == 1 else min(2.0 ** (running.failures - 2), LONGEST_PAUSE)
        running.not_before = self._clock.monotonic() + pause
        if running.connection:
            self._keep_errors(running, running.connection)

    def _keep_errors(self, running: RunningServer, connection: ServerConnection) -> None:
        """Store the end of a server's error output, for `hone mcp show`."""
        if isinstance(connection.channel, ProcessChannel) and connection.channel.errors:
            said = visible(redact(connection.channel.errors))[-KEPT:]
            self._catalog.change(running.server, lambda entry: replace(entry, errors=said))


async def _nobody(_: Mapping[str, Any]) -> dict[str, Any]:
    return {"action": "cancel"}
