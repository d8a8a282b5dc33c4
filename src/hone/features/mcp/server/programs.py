"""The programs that `hone mcp install` knows: where each keeps its MCP servers, and in which format."""

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from hone.features.mcp.server.config_text import ConfigForm, Entry, JsonForm, TomlForm

NAME = "hone"
"""Hone's name in the configuration of other programs."""


class Program(Struct, frozen=True):
    """`variable` names a folder that replaces `folder` below the user's home. `always` is what its entries
    have besides a command."""

    name: str
    variable: str
    folder: str
    file: str
    table: str
    form: ConfigForm
    always: Mapping[str, str] = {}

    def path(self, environ: Mapping[str, str] = os.environ) -> Path:
        named = environ.get(self.variable) if self.variable else ""
        return (Path(named) if named else Path.home() / self.folder) / self.file

    def entry(self, command: list[str]) -> Entry:
        return {**self.always, "command": command[0], "args": command[1:]}


PROGRAMS = {
    each.name: each
    for each in (
        Program(
            *("claude-code", "CLAUDE_CONFIG_DIR", "", ".claude.json", "mcpServers"),
            JsonForm(),
            {"type": "stdio"},
        ),
        Program("codex", "CODEX_HOME", ".codex", "config.toml", "mcp_servers", TomlForm()),
        Program("cursor", "", ".cursor", "mcp.json", "mcpServers", JsonForm()),
        Program("zed", "XDG_CONFIG_HOME", ".config", "zed/settings.json", "context_servers", JsonForm()),
    )
}


def find_command(client: str, home: Path | None) -> list[str]:
    """Return the command that serves this client, by its full path: an editor may have another PATH. Python
    must not look for modules in the project that it is started in."""
    beside = Path(sys.executable).with_name("hone")
    own = str(beside) if os.access(beside, os.X_OK) else shutil.which("hone")
    start = [own] if own else [sys.executable, "-P", "-m", "hone"]
    return [*start, *(("--home", str(home.absolute())) if home else ()), "mcp", "--client", client]
