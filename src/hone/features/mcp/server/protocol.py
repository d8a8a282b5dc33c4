"""The two eras of MCP: what a request and an answer must carry, and how we identify ourselves."""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from hone import __version__
from hone.rpc.messages import INVALID_PARAMS, Call, Id, RpcError
from hone.rpc.peer import read_params

HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Versions that begin with `initialize`."""
STATELESS = ("2026-07-28",)
"""Versions that carry an envelope in every request."""
VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
SERVER = "io.modelcontextprotocol/serverInfo"
SKILLS = "io.modelcontextprotocol/skills"

HEADER_MISMATCH = -32020
UNSUPPORTED_VERSION = -32022
RESOURCE_NOT_FOUND = -32002
"""Used in the first era; since then it is INVALID_PARAMS."""

LONGEST = 8 * 1024 * 1024
"""Bytes of a message."""
FRESH = 60_000
"""Milliseconds for which a list may be cached."""
CACHED: Mapping[str, int] = {
    "server/discover": FRESH,
    "tools/list": FRESH,
    "resources/list": FRESH,
    "resources/templates/list": FRESH,
    "resources/read": 0,
    "skills/list": FRESH,
    "skills/get": 0,
}
INSTRUCTIONS = (
    "Hone keeps skills and notes from the owner's earlier work. Before a task, look for a skill with "
    "skills_list and read it with skill_view; journal has notes about this project. Hand a conversation "
    "over with learn, or propose one lesson with propose. Both wait for the owner's approval."
)


class _Envelope(Struct):
    meta: dict[str, Raw] | UnsetType | None = msgspec.field(name="_meta", default=UNSET)


class _Canceled(Struct):
    requestId: Id  # noqa: N815  as the protocol spells it


class _Handshake(Struct):
    protocolVersion: str  # noqa: N815  as the protocol spells it
    capabilities: dict[str, Raw]
    clientInfo: dict[str, Raw]  # noqa: N815


def has_envelope(call: Call) -> bool:
    """Tell whether a request belongs to the stateless era. A handshake never does."""
    return call.method != "initialize" and VERSION in _read_meta(call)


def check_envelope(call: Call) -> str:
    """Return the version that a request of the stateless era names. Raises RpcError."""
    meta = _read_meta(call)
    if missing := [key for key in (VERSION, CAPABILITIES) if key not in meta]:
        raise RpcError(INVALID_PARAMS, f"params._meta lacks {' and '.join(missing)}.")
    try:
        version = msgspec.json.decode(meta[VERSION], type=str)
    except msgspec.DecodeError:
        raise RpcError(INVALID_PARAMS, f"{VERSION} must be a string.") from None
    check_version(version)
    return version


def check_version(version: str) -> None:
    """Raise RpcError for a version that is not of the stateless era, with those that are."""
    if version not in STATELESS:
        data = {"supported": list(STATELESS), "requested": version[:100]}
        raise RpcError(UNSUPPORTED_VERSION, "This protocol version is not supported.", data)


def _read_meta(call: Call) -> Mapping[str, Raw]:
    try:
        found = msgspec.json.decode(call.params, type=_Envelope).meta
    except (msgspec.DecodeError, RecursionError):
        return {}
    return found or {} if not isinstance(found, UnsetType) else {}


def read_canceled(call: Call) -> Id | None:
    """Return the request that a notification cancels; None if it is another notification."""
    if call.method != "notifications/cancelled":
        return None
    try:
        return read_params(call, _Canceled).requestId
    except RpcError:
        return None  # nobody waits for an answer to a notification


def initialize(call: Call) -> dict[str, Any]:
    """Answer a handshake with the requested version, or else the newest one. Raises RpcError."""
    wanted = read_params(call, _Handshake).protocolVersion
    version = wanted if wanted in HANDSHAKE else HANDSHAKE[-1]
    return {
        "protocolVersion": version,
        "capabilities": capabilities(),
        "serverInfo": server_info(),
        "instructions": INSTRUCTIONS,
    }


def discover() -> dict[str, Any]:
    return {
        "supportedVersions": list(STATELESS),
        "capabilities": capabilities(),
        "instructions": INSTRUCTIONS,
    }


def capabilities() -> dict[str, Any]:
    return {"tools": {}, "resources": {}, "extensions": {SKILLS: {"directoryRead": True}}}


def server_info() -> dict[str, Any]:
    return {"name": "hone", "title": "Hone", "version": __version__}


def finish(method: str, result: dict[str, Any]) -> dict[str, Any]:
    """Return a result with what the stateless era requires in all of them. It depends on the client, so
    nobody else may cache it."""
    kept = {"ttlMs": CACHED[method], "cacheScope": "private"} if method in CACHED else {}
    return {"resultType": "complete", **result, **kept, "_meta": {SERVER: server_info()}}
