"""Lines for people about a server: what it starts, what it offers, what is suspicious about it."""

import json
from collections.abc import Iterator, Mapping

from hone.core.visible import one_line, visible
from hone.features.mcp.client.catalog import CatalogEntry, ToolState, describe_difference, find_flags
from hone.features.mcp.client.stdio import list_names
from hone.features.mcp.client.values import McpServer, warn_of_runner

SHOWN = 40
"""The most lines of a description."""


def describe_server(server: McpServer, entry: CatalogEntry) -> Iterator[str]:
    """Yield what is known about a server without starting it."""
    settings = server.settings
    yield one_line(f"{server.name}, from {server.source}: {server.line}", 500)
    reached = _describe_reach(server)
    folders = ", ".join(settings.folders) or "none"
    place = (
        "elsewhere" if server.is_remote else "in the sandbox" if settings.sandbox else "OUTSIDE the sandbox"
    )
    yield one_line(f"runs {place}; folders: {folders}; reaches {reached}", 500)
    if names := list_names({**settings.env, **settings.headers}):
        yield f"gets the values of: {', '.join(names)}"
    if warning := warn_of_runner(server):
        yield f"! {one_line(warning, 300)}"
    if entry.version:
        yield one_line(f"speaks {entry.version}; calls itself {entry.title or 'nothing'}", 300)
    for why in entry.unusable:
        yield f"! {one_line(why, 200)}"


def _describe_reach(server: McpServer) -> str:
    settings = server.settings
    if server.is_remote:
        return "its own address"
    return (", ".join(settings.hosts) or "no host") if settings.sandbox else "every host"


def describe_tools(entry: CatalogEntry) -> Iterator[str]:
    """Yield each tool with its state; of a changed one, the difference."""
    for name, state in entry.states().items():
        raw = entry.tools.get(name) or entry.approved[name]
        about = one_line(str(json.loads(raw).get("description") or ""), 100)
        yield f"{state:<9} {name}: {about}" if about else f"{state:<9} {name}"
        if state is ToolState.CHANGED:
            yield from (
                f"    {line}" for line in describe_difference(entry.approved[name], entry.tools[name])
            )


def describe_whole(name: str, entry: CatalogEntry) -> Iterator[str]:
    """Yield a tool as the owner approves it: every word that the model will read."""
    raw: Mapping[str, object] = json.loads(entry.tools[name])
    state = entry.states()[name]
    yield f"{name} ({state})"
    for flag in find_flags(entry.tools[name]):
        yield f"  ! {flag}"
    if state is ToolState.CHANGED:
        yield from (f"  {line}" for line in describe_difference(entry.approved[name], entry.tools[name]))
        return
    lines = visible(str(raw.get("description") or "(no description)")).strip().split("\n")
    yield from (f"  │ {line}" for line in lines[:SHOWN])
    if len(lines) > SHOWN:
        yield f"  │ … {len(lines) - SHOWN} more lines"
    yield f"  │ arguments: {visible(json.dumps(raw.get('inputSchema'), ensure_ascii=False))}"
    if hints := raw.get("annotations"):
        yield f"  hints, which grant nothing: {one_line(json.dumps(hints), 300)}"


def count_states(entry: CatalogEntry) -> str:
    """Return how many tools are in which state."""
    states = [*entry.states().values()]
    counts = {state: states.count(state) for state in ToolState if state in states}
    return ", ".join(f"{count} {state}" for state, count in counts.items()) or "not seen yet"
