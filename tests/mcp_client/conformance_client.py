"""The client that the conformance suite starts, with the address of its server as the last argument.

Run by hand:
  conformance client --command ".venv/bin/python -m tests.mcp_client.conformance_client" --scenario initialize
"""

import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx2

from hone.core.clock import SystemClock
from hone.core.permissions import Answer, Question
from hone.features.mcp.client.arguments import make_example
from hone.features.mcp.client.catalog import Catalog, CatalogEntry, Offer, approve, list_offers
from hone.features.mcp.client.eliciting import ask_owner
from hone.features.mcp.client.manager import Servers
from hone.features.mcp.client.values import McpServer
from hone.settings.sections import McpServerSettings


async def agree(_: Question) -> Answer:
    return Answer.ONCE


async def elicit(params: Mapping[str, Any]) -> dict[str, Any]:
    return await ask_owner(params, "suite", agree)


async def follow(address: str) -> None:
    """Stand in for the browser: go where the sign-in leads."""
    async with httpx2.AsyncClient(follow_redirects=True) as browser:
        await browser.get(address)


def find_arguments(offer: Offer) -> dict[str, Any]:
    """Arguments of the right kind."""
    return {name: 5 if value == 1 else value for name, value in make_example(offer.tool.schema).items()}


async def main(url: str, home: Path) -> None:
    catalog = Catalog(home)
    servers = Servers(home, catalog, SystemClock(), lambda _: "", follow)
    server = McpServer("suite", McpServerSettings(url=url), "hone.toml", home)
    try:
        await servers.look(server)
        entry: CatalogEntry = catalog.change(server, lambda now: approve(now, now.tools))
        for offer in list_offers([server], {server.key: entry}):
            print(offer.name, await servers.call(offer, find_arguments(offer), elicit, print))
    finally:
        await servers.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[-1], Path(os.environ.get("HONE_HOME") or "/tmp/hone-conformance")))
