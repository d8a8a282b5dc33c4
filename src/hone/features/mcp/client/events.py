"""McpServer-sent events, and the headers of a request over HTTP: both without I/O."""

import base64
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from hone.core.regex import regex
from hone.features.mcp.client.wire import MODERN, NAMED
from hone.rpc.messages import Call, ConnectionLost

_PLAIN = regex(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
HEADER = "x-mcp-header"
_TOKEN = regex(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_VERSION = "io.modelcontextprotocol/protocolVersion"
LONGEST_RETRY = 30.0
"""The most seconds that a server may ask Hone to wait."""


class ServerEvent(Struct, frozen=True):
    """`data` is empty in an event that only marks the position of a stream."""

    data: bytes
    id: str = ""


class EventReader:
    """Takes bytes as they arrive. Raises ConnectionLost for an event that is too long."""

    def __init__(self, most: int) -> None:
        self.retry: float | None = None
        self._most = most
        self._rest = bytearray()
        self._data: list[bytes] = []
        self._id = ""
        self._seen = False
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[ServerEvent]:
        *lines, rest = chunk.split(b"\n")
        if lines and self._rest:
            lines[0] = bytes(self._rest) + lines[0]
            self._rest.clear()
        self._rest += rest
        for each in lines:
            line = each.removesuffix(b"\r")
            if not line:
                if self._seen:
                    yield ServerEvent(b"\n".join(self._data), self._id)
                self._data, self._seen, self._size = [], False, 0
            else:
                self._take(line)
        if len(self._rest) + self._size > self._most:
            raise ConnectionLost(f"An event is longer than {self._most:,} bytes.")

    def _take(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match name:
            case b"data":
                self._data.append(value)
                self._size += len(value) + 64  # an empty line takes room, too
                self._seen = True
            case b"id" if b"\0" not in value:
                self._id = value.decode("utf-8", "replace")[:500]
                self._seen = True
            case b"retry" if value.isdigit():
                self.retry = min(int(value[:9]) / 1000, LONGEST_RETRY)


def routing_headers(call: Call, mirrored: Mapping[str, Mapping[tuple[str, ...], str]]) -> dict[str, str]:
    """Return the headers that repeat parts of a request without a handshake; none for one with."""
    try:
        params = msgspec.json.decode(call.params)
    except msgspec.DecodeError:
        return {}
    meta = params.get("_meta") if isinstance(params, dict) else None
    if not isinstance(meta, dict) or meta.get(_VERSION) != MODERN:
        return {}
    headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": call.method}
    subject = params.get(NAMED.get(call.method, ""))
    if isinstance(subject, str):
        headers["Mcp-Name"] = encode_value(subject)
        if call.method == "tools/call":
            headers |= _mirror(mirrored.get(subject, {}), params.get("arguments") or {})
    return headers


def encode_value(value: str) -> str:
    """Return a value in a form that a header allows."""
    if _PLAIN.fullmatch(value) and not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    return f"=?base64?{base64.b64encode(value.encode()).decode()}?="


def find_mirrored(schema: Mapping[str, Any], path: tuple[str, ...] = ()) -> dict[tuple[str, ...], str]:
    """Return the arguments of a tool that are repeated in headers, by their path."""
    found: dict[tuple[str, ...], str] = {}
    properties = schema.get("properties")
    for name, each in properties.items() if isinstance(properties, dict) and len(path) < 10 else ():
        if not isinstance(each, dict):
            continue
        token = each.get(HEADER)
        if isinstance(token, str) and _TOKEN.fullmatch(token):
            found[*path, name] = token
        found |= find_mirrored(each, (*path, name))
    return found


def find_header_fault(schema: Mapping[str, Any]) -> str:
    """Return what is wrong with the headers that a tool wants for its arguments; empty if nothing is. No two
    have the same name, and each belongs to a text, an integer or a boolean."""
    names = [*_wanted_headers(schema)]
    for name, kind in names:
        if not isinstance(name, str) or not _TOKEN.fullmatch(name):
            return "wants a header for an argument whose name cannot be one"
        if kind not in ("string", "integer", "boolean"):
            return f"wants the header {name} for an argument that is no single value"
    unique = {str(name).lower() for name, _ in names}
    return "wants one header for two arguments" if len(unique) < len(names) else ""


def _wanted_headers(schema: Mapping[str, Any], depth: int = 0) -> Iterator[tuple[object, object]]:
    """Yield each header that an argument asks for, and the argument's type."""
    properties = schema.get("properties")
    for each in properties.values() if isinstance(properties, dict) and depth < 10 else ():
        if isinstance(each, dict):
            if HEADER in each:
                yield each[HEADER], each.get("type")
            yield from _wanted_headers(each, depth + 1)


def _mirror(paths: Mapping[tuple[str, ...], str], arguments: object) -> dict[str, str]:
    headers = {}
    for path, token in paths.items():
        value: Any = arguments
        for step in path:
            value = value.get(step) if isinstance(value, dict) else None
        if isinstance(value, bool):
            value = "true" if value else "false"
        if isinstance(value, str | int):
            headers[f"Mcp-Param-{token}"] = encode_value(str(value))
    return headers
