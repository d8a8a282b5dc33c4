"""MCP servers of other agents, as entries for hone.toml."""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct

from hone.cli.settings_file import Value, find_written, write_settings
from hone.core.errors import Refused
from hone.core.regex import regex
from hone.core.screen import screen

_NAME = regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_REFERENCE = regex(r"\$\{(\w+)\}")
_SECRET = regex(r"(?:token|key|secret|password|passwd|credential|auth|cookie)", re.IGNORECASE)


class ServerProposal(Struct, frozen=True):
    """A program or an address. `withheld` are values that are not imported: they may be secrets."""

    name: str
    source: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    url: str = ""
    headers: Mapping[str, str] = {}
    withheld: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        return self.url or " ".join((self.command, *self.args))


def read_json_servers(data: bytes, source: str, problems: list[str]) -> Iterator[ServerProposal]:
    """Read `mcpServers` of a settings file of Claude Code."""
    yield from _read(lambda: json.loads(data).get("mcpServers", {}), source, problems)


def read_toml_servers(data: bytes, source: str, problems: list[str]) -> Iterator[ServerProposal]:
    """Read `mcp_servers` of a config.toml of Codex."""
    yield from _read(lambda: tomllib.loads(data.decode()).get("mcp_servers", {}), source, problems)


def read_yaml_servers(data: bytes, source: str, problems: list[str]) -> Iterator[ServerProposal]:
    """Read `mcp_servers` of a config.yaml of Hermes."""
    yield from _read(
        lambda: (yaml.load(data, yaml.SafeLoader) or {}).get("mcp_servers") or {}, source, problems
    )


def _read(load: Any, source: str, problems: list[str]) -> Iterator[ServerProposal]:
    try:
        found = load()
        named = dict(found).items()
    except (ValueError, TypeError, AttributeError, RecursionError, yaml.YAMLError):
        problems.append(f"{source}: its servers cannot be read.")
        return
    for name, fields in named:
        made = propose_server(str(name), fields, source) if isinstance(fields, dict) else None
        if made:
            yield made
        else:
            problems.append(f"{source}: the server {str(name)[:80]!r} has neither a command nor an address.")


def propose_server(name: str, fields: Mapping[str, Any], source: str) -> ServerProposal | None:
    """Return a server without its secrets: a variable replaces them. Return None if it cannot be used."""
    command, url = fields.get("command"), fields.get("url")
    args = [each for each in fields.get("args") or () if isinstance(each, str)]
    env, hidden = _withhold(fields.get("env"), "")
    headers, more = _withhold({**_texts(fields.get("headers")), **_texts(fields.get("http_headers"))}, name)
    if isinstance(bearer := fields.get("bearer_token_env_var"), str):
        headers["Authorization"] = f"Bearer ${{{bearer}}}"
    is_program = isinstance(command, str) and bool(command.strip())
    is_address = isinstance(url, str) and url.startswith(("https://", "http://"))
    if not _NAME.fullmatch(name) or is_program == is_address:
        return None
    if any(screen(each).secrets for each in args) or (is_address and screen(str(url)).secrets):
        return None
    withheld = (*hidden, *more)
    if is_program:
        return ServerProposal(name, source, str(command), tuple(args), env, withheld=withheld)
    return ServerProposal(name, source, url=str(url), headers=headers, withheld=withheld)


def _texts(value: object) -> dict[str, str]:
    return {str(key): str(each) for key, each in value.items()} if isinstance(value, dict) else {}


def _withhold(value: object, owner: str) -> tuple[dict[str, str], list[str]]:
    """Return variables or headers, with a reference in place of each value that may be a secret."""
    kept, hidden = _texts(value), []
    for key, text in kept.items():
        if not _REFERENCE.search(text) and (_SECRET.search(key) or screen(text).secrets):
            name = re.sub(r"\W+", "_", f"{owner}_{key}" if owner else key).upper().strip("_")
            kept[key] = f"${{{name}}}"
            hidden.append(name)
    return kept, hidden


def write_servers(file: Path, servers: Sequence[ServerProposal]) -> None:
    """Add servers to hone.toml as [mcp.servers.NAME]. Raises Refused if a name is taken; then nothing was
    written."""
    changes: dict[tuple[str, ...], Value | None] = {}
    for each in servers:
        table = ("mcp", "servers", each.name)
        if find_written(file, table) is not None:
            raise Refused(f"hone.toml has a server {each.name} already. Nothing was written.")
        fields: dict[str, Value] = {"command": each.command, "args": each.args, "url": each.url}
        changes |= {(*table, key): value for key, value in fields.items() if value}
        changes |= {(*table, "env", key): value for key, value in each.env.items()}
        changes |= {(*table, "headers", key): value for key, value in each.headers.items()}
    write_settings(file, changes)
