"""The part that offers the tools of servers. It is imported if a server is configured."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from hone.app import Hone
from hone.core.errors import HoneError, Missing
from hone.core.holding import Backup, Holding
from hone.core.messages import Attachment
from hone.core.part import Part
from hone.core.prefix import Prefix
from hone.core.tool import Tool
from hone.core.transcript import Transcript
from hone.core.work import Work
from hone.features.mcp.client.bridge import Bridge, CallTool, FindTool, ServerTool
from hone.features.mcp.client.catalog import FOLDER, Catalog, CatalogEntry, Offer, ToolState, list_offers
from hone.features.mcp.client.chatting import expand_prompt, read_resources
from hone.features.mcp.client.manager import Servers, Show
from hone.features.mcp.client.news import describe_changes, find_told, write_news
from hone.features.mcp.client.passed import PassedServers
from hone.features.mcp.client.placing import describe_servers, place
from hone.features.mcp.client.skills import PREFIX, fetch_skill
from hone.features.mcp.client.sources import FoundServers, find_servers
from hone.features.mcp.client.tokens import FILE as TOKENS
from hone.features.mcp.client.values import McpServer, name_tools
from hone.runtime.model_factory import open_keys
from hone.runtime.permissions.decide import deny_by
from hone.runtime.permissions.network import NEVER
from hone.runtime.permissions.rules import match_host

PATIENCE = 2.0
"""Seconds that the user's words wait for a server that reported changed tools."""
ERASER = "hone.features.mcp.client.erasing:ErrorsEraser"


class McpPart(Part):
    name = "mcp"

    def __init__(self, hone: Hone) -> None:
        self._hone = hone
        self.catalog = Catalog(hone.home)
        self._passed = PassedServers(hone.home)
        self.servers = self.open_servers()

    def open_servers(self, show: Show | None = None) -> Servers:
        """Return separate connections, for somebody who is there to sign in. The caller closes them."""
        hone = self._hone
        return Servers(hone.home, self.catalog, hone.clock, self._find_key, show, self._deny)

    def find(self, folder: Path) -> FoundServers:
        """Return the servers that count in a folder, and why others do not."""
        return find_servers(self._hone, folder, self._passed.read(folder))

    def get(self, name: str, folder: Path) -> McpServer:
        """Return a server by its name. Raises Missing."""
        found = self.find(folder)
        if name not in found.servers:
            why = next((each for each in found.problems if name in each), "")
            known = ", ".join(found.servers) or "none"
            raise Missing(why or f"There is no MCP server {name[:40]!r} here. These are set up: {known}.")
        return found.servers[name]

    def offer_servers(self, folder: Path, servers: Sequence[Mapping[str, Any]]) -> None:
        for problem in self._passed.take(folder, servers):
            self._hone.say(problem)

    async def fetch_skill(self, source: str, folder: str) -> Mapping[str, bytes] | None:
        if not source.startswith(PREFIX):
            return None
        server = self.get(source.removeprefix(PREFIX), self._hone.folder)
        return await fetch_skill(self.servers, server, folder)

    def offers(self, folder: Path) -> list[Offer]:
        """Return the tools that may be called in a folder."""
        return list_offers(self.find(folder).servers.values(), self.catalog.read())

    def wrap(self, tools: Sequence[Tool], folder: Path, work: Work) -> Sequence[Tool]:
        """Add the tools of servers. All can be called; which ones go into the prefix is decided here, once
        for a conversation, by the last known state."""
        servers, entries = self._usable(folder)
        offers = list_offers(servers.values(), entries)
        if not servers:
            return tools
        placed = place(offers)
        bridge = Bridge(self.servers, folder, work, self._hone.clock)

        def now() -> Sequence[Offer]:
            return self.offers(folder)

        two = bool(placed.behind)
        own = [ServerTool(offer, bridge, offer.name in placed.direct) for offer in offers]
        return [*tools, *own, FindTool(now, two), CallTool(now, bridge, two)]

    def folder_sections(self, folder: Path) -> Sequence[str]:
        servers, entries = self._usable(folder)
        offers = list_offers(servers.values(), entries)
        section = describe_servers(offers, place(offers).behind, entries)
        return [section] if section else []

    async def news(self, folder: Path, prefix: Prefix, transcript: Transcript) -> str:
        with suppress(TimeoutError):  # a hanging one is checked with its next call
            async with self._hone.clock.timeout(PATIENCE):
                await self.servers.refresh()
        servers, entries = self._usable(folder)
        lines = describe_changes(prefix, list_offers(servers.values(), entries), _changed(servers, entries))
        return write_news(lines, find_told(transcript))

    async def attach(self, words: str, folder: Path) -> Sequence[Attachment]:
        return await read_resources(words, self.find(folder).servers, self.servers)

    async def expand(self, name: str, argument: str, folder: Path) -> Attachment | None:
        return await expand_prompt(name, argument, self.find(folder).servers, self.servers)

    def holdings(self) -> Sequence[Holding]:
        keeps = "what MCP servers offered and last printed, and which of their tools you approved"
        lasts = "until you remove the server"
        places = (f"{FOLDER}/",)
        tokens = (f"{TOKENS}", "mcp-tokens.lock")
        stays, signed = "servers are started on this machine", "tokens of MCP servers"
        return (
            Holding("mcp", keeps, lasts, places=places, backup=Backup.ASKED, eraser=ERASER, stays=stays),
            Holding("mcp sign-ins", signed, lasts, places=tokens, backup=Backup.LEFT_OUT, stays=stays),
        )

    async def close(self) -> None:
        await self.servers.close()

    def _usable(self, folder: Path) -> tuple[Mapping[str, McpServer], Mapping[str, CatalogEntry]]:
        """Return the servers whose tools a conversation gets, with the catalog. An experiment measures the
        agent alone, and a program that chose its tools has everything it wants."""
        if self._hone.enclosure is not None or self._hone.tools.wanted is not True:
            return {}, {}
        found = self.find(folder)
        for problem in found.problems:
            self._hone.say(problem)
        try:
            entries = self.catalog.read()
        except HoneError as error:
            self._hone.say(str(error))
            return {}, {}
        for server in found.servers.values():
            self._say_waiting(server, entries.get(server.key))
        return found.servers, entries

    def _say_waiting(self, server: McpServer, entry: CatalogEntry | None) -> None:
        """Tell the owner what of a server waits for approval."""
        name = server.name
        if entry is None or not (entry.tools or entry.approved):
            self._hone.say(
                f"No tool of the MCP server {name} is approved yet. See them: hone mcp approve {name}"
            )
            return
        if changed := entry.pick(ToolState.CHANGED):
            many = f"{len(changed)} tools" if len(changed) > 1 else f"the tool {changed[0]}"
            self._hone.say(f"The MCP server {name} changed {many}, which wait for you: hone mcp show {name}")
        if new := entry.pick(ToolState.NEW):
            many = f"{len(new)} tools" if len(new) > 1 else "1 tool"
            self._hone.say(
                f"The MCP server {name} offers {many} that you have not approved: hone mcp approve {name}"
            )

    def _deny(self, folder: Path, host: str) -> str:
        """Return why a server of this folder may not reach a host, whatever it declares."""
        if self._hone.settings.sandbox_in(folder).network == "never":
            return NEVER
        rule = match_host(self._hone.permissions.effective(folder).deny, host)
        return deny_by(rule).reason if rule else ""

    def _find_key(self, name: str) -> str:
        keys = open_keys(self._hone.home)
        return self._passed.find_value(name) or (keys.get(name) if keys else "")


def _changed(servers: Mapping[str, McpServer], entries: Mapping[str, CatalogEntry]) -> frozenset[str]:
    """Return the names of the tools in quarantine."""
    found = set()
    for server in servers.values():
        entry = entries.get(server.key)
        if entry:
            names = name_tools(server.name, entry.approved)
            found |= {names[tool] for tool in entry.pick(ToolState.CHANGED)}
    return frozenset(found)
