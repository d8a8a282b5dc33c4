"""Signing in: through the official SDK, only when a server asks for it, with tokens that stay in the home."""

import json
import stat
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from hone.core.clock import SystemClock
from hone.features.mcp.client.catalog import Catalog
from hone.features.mcp.client.manager import Servers
from hone.features.mcp.client.stdio import NotStarted
from hone.features.mcp.client.tokens import FILE, TokenFile
from hone.features.mcp.client.values import McpServer
from hone.features.mcp.client.wire import MODERN
from hone.settings.sections import McpServerSettings
from tests.mcp_client.test_http import answer, serve

JSON = {"Content-Type": "application/json"}


class Guarded:
    """A server behind a sign-in, and the one that signs in, at one address."""

    def __init__(self) -> None:
        self.url = ""

    def reply(self, head: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        root, path = self.url.removesuffix("/mcp"), head.split(" ")[1]
        if path == "/mcp":
            return self.serve(head, body)
        found: dict[str, object] = {
            "access_token": "the-token",
            "token_type": "Bearer",
            "refresh_token": "more",
        }
        if "oauth-protected-resource" in path:
            found = {"resource": self.url, "authorization_servers": [root]}
        elif "oauth-authorization-server" in path:
            names = {"authorization": "authorize", "token": "token", "registration": "register"}
            found = {f"{name}_endpoint": f"{root}/{place}" for name, place in names.items()}
            found |= {"issuer": root, "response_types_supported": ["code"]}
            found["code_challenge_methods_supported"] = ["S256"]
        elif path == "/register":
            found = {**json.loads(body), "client_id": "hone"}
        return 200, JSON, json.dumps(found).encode()

    def serve(self, head: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        if "Bearer the-token" not in head:
            return 401, {"WWW-Authenticate": "Bearer"}, b""
        if b"server/discover" in body:
            return answer(body, {"supportedVersions": [MODERN], "capabilities": {"tools": {}}})
        return answer(body, {"tools": []})


async def follow(address: str) -> None:
    """Sign in as a browser does: go back with a code."""
    query = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
    async with httpx2.AsyncClient() as browser:
        await browser.get(query["redirect_uri"], params={"code": "abc", "state": query["state"]})


async def test_the_owner_signs_in_once_and_nobody_else_is_asked(tmp_path: Path) -> None:
    guarded, clock, catalog = Guarded(), SystemClock(), Catalog(tmp_path)
    async with serve(guarded.reply) as (url, heads):
        guarded.url = url
        server = McpServer("demo", McpServerSettings(url=url), "hone.toml", tmp_path)
        alone = Servers(tmp_path, catalog, clock, lambda _: "")
        with pytest.raises(NotStarted, match="Sign in with: hone mcp check demo"):
            await alone.look(server)
        await alone.close()
        attended = Servers(tmp_path, catalog, clock, lambda _: "", follow)
        assert (await attended.look(server)).version == MODERN
        await attended.close()
        asked = len(heads)
        later = Servers(tmp_path, catalog, clock, lambda _: "")
        assert (await later.look(server)).version == MODERN
        await later.close()
    assert all(head.startswith("POST /mcp") for head in heads[asked:])
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600
    tokens = TokenFile(tmp_path)
    assert tokens.get_header(server.key) == "Bearer the-token"
    tokens.remove(server.key)
    assert tokens.get_header(server.key) == ""
