"""What the Model Context Protocol says, in both of its eras: versions, envelopes, results."""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from hone import __version__
from hone.core.errors import HoneError
from hone.rpc.messages import RpcError

MODERN = "2026-07-28"
HANDSHAKE = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
UNSUPPORTED_VERSION = -32022
URL_REQUIRED = -32042
UNAUTHORIZED = -32401
"""Our own code for a server that requires a sign-in."""
ROUNDS = 10
"""How often a server may ask for input before one answer."""

_META = "io.modelcontextprotocol/"
CLIENT = {"name": "hone", "title": "Hone", "version": __version__}
CAPABILITIES: Mapping[str, Any] = {"elicitation": {"form": {}, "url": {}}}
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""The methods whose subject is in a header, and where it is in their params."""


class ProtocolError(HoneError):
    """A server violates the protocol, or speaks no version of it that Hone speaks."""


class ServerFacts(Struct, frozen=True):
    """A server's self-description. `lists` are the kinds it offers, `notifies` those whose changes it
    reports."""

    version: str
    title: str = ""
    instructions: str = ""
    lists: frozenset[str] = frozenset()
    notifies: frozenset[str] = frozenset()

    @property
    def is_modern(self) -> bool:
        return self.version == MODERN


def initialize_params(version: str = HANDSHAKE[0]) -> dict[str, Any]:
    return {"protocolVersion": version, "capabilities": CAPABILITIES, "clientInfo": CLIENT}


def envelop(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return params with the sender's data that a request without a handshake needs."""
    said = {
        f"{_META}protocolVersion": MODERN,
        f"{_META}clientInfo": CLIENT,
        f"{_META}clientCapabilities": CAPABILITIES,
    }
    return {**params, "_meta": {**params.get("_meta", {}), **said}}


def read_object(result: bytes) -> dict[str, Any]:
    """Return a result, which must be an object. Raises ProtocolError."""
    try:
        found = msgspec.json.decode(result)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ProtocolError(f"The server sent a result that cannot be read: {error}.") from None
    if not isinstance(found, dict):
        raise ProtocolError("The server sent a result that is no object.")
    return found


def read_initialized(result: bytes) -> ServerFacts:
    """Return the answer to a handshake. Raises ProtocolError."""
    found = read_object(result)
    version = found.get("protocolVersion")
    if version not in HANDSHAKE:
        raise ProtocolError(f"The server speaks version {str(version)[:40]!r}, which Hone does not know.")
    info = found.get("serverInfo")
    return _facts(str(version), info, found)


def read_discovered(result: bytes) -> ServerFacts | None:
    """Return the self-description of a server without handshake; None if it speaks no version of that era."""
    found = read_object(result)
    supported = found.get("supportedVersions")
    if not isinstance(supported, list) or MODERN not in supported:
        return None
    meta = found.get("_meta")
    info = meta.get(f"{_META}serverInfo") if isinstance(meta, dict) else None
    return _facts(MODERN, info, found)


def _facts(version: str, info: object, found: Mapping[str, Any]) -> ServerFacts:
    known = info if isinstance(info, dict) else {}
    title = known.get("title") or known.get("name") or ""
    said, offered = found.get("instructions"), found.get("capabilities")
    kinds = offered if isinstance(offered, dict) else {}
    lists = frozenset(kind for kind in ("tools", "resources", "prompts") if isinstance(kinds.get(kind), dict))
    return ServerFacts(
        version,
        title[:200] if isinstance(title, str) else "",
        said[:4_000] if isinstance(said, str) else "",
        lists,
        frozenset(kind for kind in lists if kinds[kind].get("listChanged") is True),
    )


def names_handshake(error: RpcError) -> bool:
    """Tell whether a refusal leaves the handshake possible: it does unless it lists only other versions."""
    if error.code != UNSUPPORTED_VERSION or not isinstance(error.data, dict):
        return True
    supported = error.data.get("supported")
    return not isinstance(supported, list) or any(each in HANDSHAKE for each in supported)
