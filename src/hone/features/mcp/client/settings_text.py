"""Remove a server from the text of hone.toml, and leave the rest as it is."""

import tomllib
from pathlib import Path

from hone.core.errors import SettingsError
from hone.files.atomic import write


def remove_server(file: Path, name: str) -> None:
    """Remove the tables of a server. Raises SettingsError; then the file is unchanged."""
    try:
        before = file.read_text("utf-8")
        after = "".join(_without(before.splitlines(keepends=True), name))
        expected = tomllib.loads(before)
        del expected["mcp"]["servers"][name]
        left = tomllib.loads(after)
        same = left.setdefault("mcp", {}).setdefault("servers", {}) == expected["mcp"]["servers"]
    except (OSError, ValueError, KeyError) as error:
        raise SettingsError(f"{file} cannot be changed: {error}.") from error
    if not same or {**left, "mcp": 0} != {**expected, "mcp": 0}:
        raise SettingsError(
            f"{file} is written in a way that Hone cannot change. Take out mcp.servers.{name}."
        )
    write(file.resolve(), after.encode())


def _without(lines: list[str], name: str) -> list[str]:
    kept, inside = [], False
    for line in lines:
        if line.lstrip().startswith("["):
            inside = _names(line, name)
        if not inside:
            kept.append(line)
    return kept


def _names(line: str, name: str) -> bool:
    try:
        found = tomllib.loads(line)
        return name in found["mcp"]["servers"]
    except (tomllib.TOMLDecodeError, KeyError, TypeError):
        return False
