"""Servers and what they offer, as values. A server's words are foreign text, and never obeyed here."""

import json
import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from msgspec import Struct

from hone.core.errors import Refused
from hone.core.messages import canonical, digest
from hone.core.regex import regex
from hone.core.visible import path_to_text
from hone.features.mcp.client.events import find_header_fault
from hone.settings.sections import McpServerSettings

OWN = "hone.toml"
EDITOR = "the editor"
"""The source of a server that no file names."""
SEPARATOR = "__"
LONGEST_NAME = 64
"""The most characters in a tool's name that every provider accepts."""
LARGEST_TOOL = 64_000
"""The most characters of a tool's wire object."""
_SERVER = regex(r"[A-Za-z0-9](?:[A-Za-z0-9-]|_(?!_)){0,31}")
_TOOL = regex(r"[A-Za-z0-9_./-]{1,128}")
_UNSAFE = regex(r"[^A-Za-z0-9_-]")
RUNNERS = {"npx": "@", "bunx": "@", "uvx": "==", "pipx": "=="}
"""Programs that download a package and run it, and the sign before a version."""


class McpServer(Struct, frozen=True):
    """A server from the settings or an approved file of a project. `source` is that file, `folder` is the
    conversation's."""

    name: str
    settings: McpServerSettings
    source: str
    folder: Path

    @property
    def is_remote(self) -> bool:
        return bool(self.settings.url)

    @property
    def key(self) -> str:
        """Return what approvals are bound to: its source, and what it starts or reaches."""
        set_ = self.settings
        place = OWN if self.source == OWN else path_to_text(self.folder / self.source)
        bound = [place, self.name, set_.command, set_.args, dict(set_.env), set_.url, dict(set_.headers)]
        return digest(canonical(bound).encode())[:32]

    @property
    def line(self) -> str:
        """Return what it starts or reaches, on one line."""
        return self.settings.url or " ".join((self.settings.command, *self.settings.args))

    def describe_doubt(self) -> str:
        """Return why a call needs a question in auto mode, in a sentence; empty in the sandbox."""
        set_ = self.settings
        if self.is_remote:
            return f"The arguments go to {set_.url.partition('//')[2].partition('/')[0]}."
        if not set_.sandbox:
            return f"The server {self.name} runs outside the sandbox."
        return f"The server {self.name} can reach {', '.join(set_.hosts)}." if set_.hosts else ""


class WireTool:
    """A tool as a server sent it. Raises Refused for one that cannot be offered to anybody."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.raw = canonical(raw)
        self.digest = digest(self.raw.encode())
        name = raw.get("name")
        if not isinstance(name, str) or not _TOOL.fullmatch(name):
            raise Refused("a tool has a name that cannot be used")
        self.name = name
        if len(self.raw) > LARGEST_TOOL:
            raise Refused(f"the tool {self.name} takes {len(self.raw):,} characters to describe")
        description, schema = raw.get("description"), raw.get("inputSchema")
        self.description = description if isinstance(description, str) else ""
        if not isinstance(schema, dict) or schema.get("type", "object") != "object":
            raise Refused(f"the tool {self.name} has no schema for its arguments")
        if fault := find_header_fault(schema):
            raise Refused(f"the tool {self.name} {fault}")
        self.schema: Mapping[str, Any] = {"type": "object", "properties": {}, **schema}

    @classmethod
    def parse(cls, raw: str) -> "WireTool":
        return cls(json.loads(raw))

    @cached_property
    def parameters(self) -> Mapping[str, Any]:
        """Return the schema without mere names: every byte of it is in each request."""
        return {name: value for name, value in self.schema.items() if name not in ("$schema", "$id", "title")}


def make_server(name: str, settings: McpServerSettings, source: str, folder: Path) -> McpServer:
    """Return a server. Raises Refused for an invalid name, and for one without an address."""
    check_name(name)
    if settings.enabled and bool(settings.command.strip()) == bool(settings.url.strip()):
        raise Refused(f"The MCP server {name} needs either a command or a url.")
    return McpServer(name, settings, source, folder)


def check_name(name: str) -> str:
    """Return the name of a server. Raises Refused."""
    if not _SERVER.fullmatch(name) or name.endswith("_"):
        raise Refused(
            f"{name[:40]!r} cannot name a server: up to 32 letters, digits, hyphens and single underscores."
        )
    return name


def name_tools(server: str, tools: Iterable[str]) -> dict[str, str]:
    """Return the names by which the model knows a server's tools: unique, and acceptable to every
    provider."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for tool in sorted(dict.fromkeys(tools)):
        name = f"{server}{SEPARATOR}{_UNSAFE.sub('_', tool)}"
        if len(name) > LONGEST_NAME or name.lower() in taken:
            name = f"{name[: LONGEST_NAME - 9]}_{digest(tool.encode())[:8]}"
        taken.add(name.lower())
        found[tool] = name
    return found


def warn_of_runner(server: McpServer) -> str:
    """Warn of a program that always downloads the newest version of a package; empty otherwise."""
    words = [Path(server.settings.command).name, *server.settings.args]
    mark = RUNNERS.get(words[0])
    if mark is None:
        return ""
    rest = [word for word in words[1:] if not word.startswith("-") and word not in ("run", "tool")]
    package = rest[0] if rest else ""
    pinned = re.search(r"[^@]@\d|==", package) or (mark == "==" and "@" in package)
    if pinned:
        return ""
    return f"{words[0]} runs whatever version is the newest. Pin one: {package or 'PACKAGE'}{mark}VERSION"
