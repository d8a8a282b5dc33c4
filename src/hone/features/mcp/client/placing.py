"""Decide where tools go: into the prefix as ordinary tools, or behind two constant ones. Pure."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from msgspec import Struct

from hone.core.messages import canonical
from hone.core.visible import one_line, visible
from hone.features.mcp.client.catalog import CatalogEntry, Offer

MOST_TOOLS, MOST_BYTES = 16, 12_000
"""How many servers' tools the prefix may hold, and their bytes in total."""
LONGEST = 4_000
"""Characters of a description."""
FIND, CALL = "mcp_find", "mcp_call"
HEAD = "# Tools of MCP servers\n\nFind one with `mcp_find` and call it with `mcp_call`.\n"
_PURPOSE = 100


class Placement(Struct, frozen=True):
    """`direct` are the names in the prefix; the others are `behind` mcp_find and mcp_call."""

    direct: frozenset[str] = frozenset()
    behind: frozenset[str] = frozenset()


def write_schema(offer: Offer) -> str:
    """Return the schema for a provider. Nothing in it is hidden."""
    described = visible(offer.tool.description)[:LONGEST] or f"A tool of the MCP server {offer.server.name}."
    return canonical(
        {"name": offer.name, "description": described, "parameters": _shown(offer.tool.parameters)}
    )


def _shown(value: Any) -> Any:
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, Mapping):
        return {name: _shown(each) for name, each in value.items()}
    return [_shown(each) for each in value] if isinstance(value, list) else value


def place(offers: Sequence[Offer]) -> Placement:
    """Decide by the settings of each server, and for `auto` by the number and total size of the candidates
    for the prefix."""
    wanted = [offer for offer in offers if _is_named(offer)]
    free = [offer for offer in offers if offer.server.settings.tools == "auto"]
    both = [*wanted, *free]
    size = sum(len(write_schema(offer).encode()) for offer in both)
    direct = both if len(both) <= MOST_TOOLS and size <= MOST_BYTES else wanted
    names = frozenset(offer.name for offer in direct)
    return Placement(names, frozenset(offer.name for offer in offers) - names)


def _is_named(offer: Offer) -> bool:
    tools = offer.server.settings.tools
    return tools == "always" or (not isinstance(tools, str) and offer.tool.name in tools)


def describe_servers(
    offers: Sequence[Offer], behind: Collection[str], entries: Mapping[str, CatalogEntry]
) -> str:
    """Return the prompt section with a line for each server that has tools behind the two; empty if none
    has."""
    lines = {}
    for offer in offers:
        if offer.name in behind:
            server = offer.server
            count = sum(each.server.name == server.name and each.name in behind for each in offers)
            entry = entries[server.key]
            about = one_line(server.settings.about or entry.purpose, _PURPOSE)
            tools = "1 tool" if count == 1 else f"{count} tools"
            lines[server.name] = (
                f"- {server.name}: {about} ({tools})" if about else f"- {server.name} ({tools})"
            )
    return "\n".join([HEAD, *(lines[name] for name in sorted(lines))]) if lines else ""
