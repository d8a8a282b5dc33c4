"""Skills that a server offers over MCP, as a source to install from. Their digests are checked."""

import base64
import binascii
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from hone.core.errors import Refused
from hone.core.messages import digest
from hone.core.skill import DOCUMENT
from hone.core.visible import one_line
from hone.features.mcp.client.manager import Servers
from hone.features.mcp.client.values import McpServer
from hone.knowledge.skills.paths import FILE_BYTES

PREFIX = "mcp:"
PAGES = 100
"""The most pages of a server's list to read."""
FILES = 1_000
"""The most files of one skill to read."""


async def fetch_skill(servers: Servers, server: McpServer, folder: str) -> dict[str, bytes]:
    """Return the files of the skill with the name `folder`, or of the only one. Raises HoneError."""
    skills = await _list(servers, server)
    name = folder.strip("/") or (next(iter(skills)) if len(skills) == 1 else "")
    if name not in skills:
        known = one_line(", ".join(sorted(skills)), 500) or "none"
        raise Refused(f"Name one of the skills of {server.name} with --path. It offers: {known}.")
    if len(skills[name]) > FILES:
        raise Refused(f"The skill {one_line(name, 80)} has more than {FILES:,} files. Nothing was installed.")
    return {path: await _read(servers, server, path, entry) for path, entry in skills[name].items()}


async def _list(servers: Servers, server: McpServer) -> dict[str, dict[str, Mapping[str, Any]]]:
    """Return the files of each skill, by path."""
    found: dict[str, dict[str, Mapping[str, Any]]] = {}
    cursor: dict[str, str] = {}
    for _ in range(PAGES):
        page = await servers.ask(server, "skills/list", cursor)
        for skill in page.get("skills") or ():
            name, files = _parse(skill)
            found[name] = files
        if not isinstance(after := page.get("nextCursor"), str):
            break
        cursor = {"cursor": after}
    return found


def _parse(skill: Any) -> tuple[str, dict[str, Mapping[str, Any]]]:
    """Return the name of a skill and its files. Raises Refused if it has no document."""
    try:
        uri, listed = skill["uri"], skill["resources"]
        root = uri.removesuffix(DOCUMENT)
        files = {unquote(each["uri"].removeprefix(root)): each for each in listed}
        name = unquote(root.rstrip("/").rpartition("/")[2])
    except (AttributeError, KeyError, TypeError) as error:
        raise Refused("The server lists a skill that cannot be read. Nothing was installed.") from error
    if root == uri or DOCUMENT not in files:
        raise Refused(f"The server lists a skill without {DOCUMENT}. Nothing was installed.")
    return name, files


async def _read(servers: Servers, server: McpServer, path: str, entry: Mapping[str, Any]) -> bytes:
    """Return a file that matches its digest. Raises Refused."""
    result = await servers.ask(server, "resources/read", {"uri": entry["uri"]})
    try:
        [content] = result["contents"]
        text = content.get("text")
        data = text.encode() if isinstance(text, str) else base64.b64decode(content["blob"], validate=True)
    except (AttributeError, KeyError, TypeError, ValueError, binascii.Error) as error:
        raise Refused(f"{one_line(path, 200)} cannot be read from the server.") from error
    if len(data) > FILE_BYTES:
        raise Refused(f"{one_line(path, 200)} is larger than {FILE_BYTES:,} bytes. Nothing was installed.")
    if entry.get("digest") != f"sha256:{digest(data)}":
        raise Refused(f"{one_line(path, 200)} is not what the server's digest says. Nothing was installed.")
    return data
