"""Resources and prompts in the chat: attach `@server:resource`, send `/server:prompt`, both as foreign."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from hone.core.errors import Refused
from hone.core.messages import Attachment
from hone.core.secrets import redact
from hone.core.visible import one_line
from hone.features.mcp.client.manager import Servers
from hone.features.mcp.client.results import render_prompt, render_resource
from hone.features.mcp.client.values import McpServer
from hone.rpc.messages import RpcError

LARGEST = 100_000
"""The most characters of a resource or a prompt to attach."""
_NAMED = re.compile(r"(?<!\S)@([A-Za-z0-9][A-Za-z0-9_-]{0,31}):(\S+)")
_AFTER = ",.;:!?)"
_PAIR = re.compile(r"([A-Za-z0-9_.-]+)=(?:\"([^\"]*)\"|(\S+))")


async def read_resources(words: str, known: Mapping[str, McpServer], servers: Servers) -> list[Attachment]:
    """Return the resources that the user's words name. An @word without a server's name before the colon is
    an ordinary word. Raises HoneError."""
    found = []
    for name, wanted in dict.fromkeys(_NAMED.findall(words)):
        if name in known:
            found.append(await _read(known[name], wanted, servers))
    return found


async def _read(server: McpServer, wanted: str, servers: Servers) -> Attachment:
    uri = await _find_uri(server, wanted, servers)
    try:
        result = await servers.ask(server, "resources/read", {"uri": uri})
    except RpcError as error:
        raise Refused(
            f"The MCP server {server.name} cannot give {uri}: {one_line(str(error), 200)}"
        ) from error
    contents = result.get("contents")
    parts = ["\n".join(render_resource(each)) for each in contents] if isinstance(contents, list) else []
    return _attach("\n\n".join(parts), f"resource {server.name}:{uri}")


async def _find_uri(server: McpServer, wanted: str, servers: Servers) -> str:
    """Return the address of a resource, which may be given by name. Punctuation may follow it."""
    listed = await servers.list_all(server, "resources")
    names = {str(each.get("name")): str(each.get("uri")) for each in listed}
    for each in (wanted, wanted.rstrip(_AFTER)):
        if each in names:
            return names[each]
        if each in names.values():
            return each
    return wanted.rstrip(_AFTER)


async def expand_prompt(
    name: str, argument: str, known: Mapping[str, McpServer], servers: Servers
) -> Attachment | None:
    """Return a server's prompt with its arguments filled in; None if no server has this name. Raises
    HoneError."""
    server_name, _, wanted = name.partition(":")
    server = next((each for each in known.values() if each.name.lower() == server_name.lower()), None)
    if server is None or not wanted:
        return None
    prompts = await servers.list_all(server, "prompts")
    found = next((each for each in prompts if str(each.get("name")).lower() == wanted.lower()), None)
    if found is None:
        names = ", ".join(sorted(one_line(str(each.get("name")), 60) for each in prompts)) or "none"
        raise Refused(f"The MCP server {server.name} has no prompt {wanted[:60]!r}. It has: {names}.")
    params = {"name": found["name"], "arguments": fill_arguments(found, argument)}
    result = await servers.ask(server, "prompts/get", params)
    return _attach(render_prompt(result), f"prompt {server.name}:{found['name']}")


def fill_arguments(prompt: Mapping[str, Any], text: str) -> dict[str, str]:
    """Return the arguments of a prompt: `name=value` by name, otherwise all words for the first one. Raises
    Refused if a required one is missing."""
    declared = prompt.get("arguments")
    fields = [each for each in declared if isinstance(each, Mapping)] if isinstance(declared, list) else []
    names = [str(each.get("name")) for each in fields]
    given = {key: quoted or plain for key, quoted, plain in _PAIR.findall(text) if key in names}
    if not given and text and names:
        given = {names[0]: text}
    missing = [
        str(each.get("name"))
        for each in fields
        if each.get("required") and str(each.get("name")) not in given
    ]
    if missing:
        raise Refused(f"This prompt needs {', '.join(missing)}. Write it as {missing[0]}=VALUE.")
    return given


def _attach(text: str, name: str) -> Attachment:
    more = f"\n[{len(text):,} characters; the first {LARGEST:,} are attached.]" if len(text) > LARGEST else ""
    return Attachment(redact(text[:LARGEST]) + more, one_line(name, 200), "foreign")


def list_names(items: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names of resources or prompts, for people."""
    return sorted(one_line(str(each.get("name")), 80) for each in items)
