"""Servers that an editor passes with a conversation. They are stored by folder, so that the owner can inspect
and approve their tools; values of variables and headers stay in memory."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from hone.core.errors import Refused, StoreError
from hone.core.screen import screen
from hone.core.visible import one_line, path_to_text, visible
from hone.features.mcp.client.catalog import FOLDER, LOCK
from hone.features.mcp.client.values import check_name
from hone.files.atomic import locked, open_file, write
from hone.settings.sections import McpServerSettings

FILE = "editor.json"
MOST = 20
"""The most servers that an editor may pass for a folder."""

Passed = Mapping[str, McpServerSettings]


class PassedServers:
    """What editors passed, by folder."""

    def __init__(self, home: Path) -> None:
        self._folder = home / FOLDER
        self._values: dict[str, str] = {}

    def find_value(self, name: str) -> str:
        """Return the value of a variable that an editor passed; empty if none did."""
        return self._values.get(name, "")

    def read(self, folder: Path) -> Passed:
        """Return the servers that were passed for a folder. Raises StoreError."""
        return self._load().get(path_to_text(folder), {})

    def take(self, folder: Path, servers: Sequence[Mapping[str, Any]]) -> list[str]:
        """Store what an editor passes for a folder, replacing what it passed before. Return why some cannot
        be used, a sentence each. Raises StoreError."""
        problems: list[str] = []
        found: dict[str, McpServerSettings] = {}
        for entry in servers[:MOST]:
            try:
                name, settings, values = parse(entry)
            except (Refused, ValueError, TypeError, KeyError) as error:
                problems.append(one_line(f"An MCP server of the editor cannot be used: {error}", 300))
                continue
            found[name] = settings
            self._values |= values
        if found != self.read(folder):
            with locked(self._folder, LOCK):
                self._write({**self._load(), path_to_text(folder): found})
        return problems

    def _load(self) -> dict[str, Passed]:
        path = self._folder / FILE
        try:
            with open_file(path) as file:
                return msgspec.json.decode(file.read(), type=dict[str, Passed])
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise StoreError(f"{visible(str(path))} cannot be read. Remove it.") from error

    def _write(self, passed: Mapping[str, Passed]) -> None:
        path = self._folder / FILE
        kept = {folder: servers for folder, servers in passed.items() if servers}
        try:
            write(path, msgspec.json.encode(kept))
        except OSError as error:
            raise StoreError(f"{visible(str(path))} cannot be written: {error.strerror}.") from error


def parse(entry: Mapping[str, Any]) -> tuple[str, McpServerSettings, dict[str, str]]:
    """Return a server in ACP's form by its name, with references in place of values, and the values. Raises
    Refused, ValueError, TypeError or KeyError."""
    name = check_name(str(entry["name"]))
    if entry.get("type", "stdio") not in ("stdio", "http"):
        raise Refused(f"Hone does not speak {str(entry['type'])[:20]!r} with {name}.")
    args = [str(each) for each in entry.get("args") or ()]
    if any(screen(each).secrets for each in (*args, str(entry.get("url", "")))):
        raise Refused(f"{name} has a secret in its arguments. Pass it as a variable.")
    values: dict[str, str] = {}
    env = _refer(entry.get("env"), "", values)
    headers = _refer(entry.get("headers"), f"{name}_", values)
    fields = {"command": entry.get("command", ""), "args": args, "url": entry.get("url", "")}
    folders = ["."] if fields["command"] else []
    known = {**fields, "env": env, "headers": headers, "folders": folders}
    return name, msgspec.convert(known, McpServerSettings), values


def _refer(pairs: Any, prefix: str, values: dict[str, str]) -> dict[str, str]:
    """Return the names with references, and add what these stand for to `values`."""
    found = {}
    for pair in pairs or ():
        key = str(pair["name"])
        variable = re.sub(r"\W", "_", f"{prefix}{key}")
        found[key] = f"${{{variable}}}"
        values[variable] = str(pair["value"])
    return found
