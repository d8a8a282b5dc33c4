"""Find the servers that count in a folder: those in hone.toml, and those in files that the owner approved."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from hone.app import Hone
from hone.core.errors import Refused
from hone.core.visible import one_line
from hone.features.mcp.client.values import EDITOR, OWN, McpServer, make_server
from hone.runtime.permissions.approval import MCP_FILES, ProjectFile
from hone.runtime.project_files import read_file
from hone.settings.sections import McpServerSettings

_KNOWN = ("command", "args", "env", "url", "headers", "folders", "hosts", "tools", "about", "timeout")
"""What a project may say about a server. It cannot remove the sandbox."""


class FoundServers(Struct, frozen=True):
    """The servers by name, and why others do not count, a sentence each."""

    servers: Mapping[str, McpServer]
    problems: tuple[str, ...] = ()


class ProjectServers(Struct, frozen=True):
    """The content of a project's file: servers, the names of those it switches off, and its errors."""

    servers: tuple[McpServer, ...] = ()
    denied: frozenset[str] = frozenset()
    problems: tuple[str, ...] = ()


def find_servers(hone: Hone, folder: Path, passed: Mapping[str, McpServerSettings]) -> FoundServers:
    """Return the servers of a folder. What a project denies counts at once; what it starts counts after the
    owner has seen the file. Those that an editor passed come last."""
    problems: list[str] = []
    servers: dict[str, McpServer] = {}
    for name, settings in sorted(hone.settings.mcp.servers.items()):
        try:
            servers[name] = make_server(name, settings, OWN, folder)
        except Refused as refusal:
            problems.append(f"hone.toml: {refusal}")
    denied = {name for name, server in servers.items() if not server.settings.enabled}
    for file in _read_files(folder, problems):
        said = parse_file(file, folder)
        denied |= said.denied
        if not hone.folders.trusts(folder):
            continue
        if not hone.permissions.approvals.files.is_approved(folder, file):
            problems.append(hone.permissions.approvals.files.explain(folder, file))
            continue
        problems += said.problems
        for server in said.servers:
            if server.name in servers and servers[server.name].source == OWN:
                problems.append(f"{file.name} names a server {server.name}; the one of hone.toml is used.")
            else:
                servers[server.name] = server
    for name, settings in sorted(passed.items()):
        servers.setdefault(name, make_server(name, settings, EDITOR, folder))
    used = {name: server for name, server in sorted(servers.items()) if name not in denied}
    return FoundServers(used, tuple(problems))


def _read_files(folder: Path, problems: list[str]) -> Iterator[ProjectFile]:
    for name in MCP_FILES:
        try:
            if file := read_file(folder, name):
                yield file
        except Refused as refusal:
            problems.append(str(refusal))


def parse_file(file: ProjectFile, folder: Path) -> ProjectServers:
    """Parse a file in the format of Claude Code. An unreadable one denies nothing."""
    try:
        said = json.loads(file.text)
        entries = said.get("mcpServers", {}) if isinstance(said, dict) else None
    except (ValueError, RecursionError) as error:
        return ProjectServers(problems=(f"{file.name} is not JSON: {error}.",))
    if not isinstance(entries, dict):
        return ProjectServers(problems=(f"{file.name} has no object mcpServers.",))
    servers, denied, problems = [], set(), []
    for name, entry in sorted(entries.items()):
        if isinstance(entry, dict) and entry.get("disabled") is True:
            denied.add(name)
            continue
        try:
            servers.append(_parse(name, entry, file.name, folder))
        except (Refused, ValueError, TypeError) as error:
            problems.append(one_line(f"{file.name}, {name}: {str(error).rstrip('.')}.", 300))
    return ProjectServers(tuple(servers), frozenset(denied), tuple(problems))


def _parse(name: str, entry: Any, source: str, folder: Path) -> McpServer:
    """Return a server. Raises ValueError or Refused. A project's server works in the project unless it names
    other folders."""
    if not isinstance(entry, dict):
        raise ValueError("it is no object")
    if entry.get("type", "stdio") not in ("stdio", "http", "streamable-http"):
        raise ValueError(f"Hone does not speak {str(entry['type'])[:20]!r}; use stdio or http")
    known = {key: entry[key] for key in _KNOWN if key in entry}
    if "command" in known:
        known.setdefault("folders", ["."])
    return make_server(name, msgspec.convert(known, McpServerSettings), source, folder)
