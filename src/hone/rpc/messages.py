"""Messages of JSON-RPC 2.0: calls and replies, decoded strictly and encoded as one line of JSON."""

from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from hone.core.errors import HoneError

Id = int | str

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
CANCELLED = -32800
BUSY = -32000

NO_PARAMS = b"{}"


class RpcError(HoneError):
    """The other side refused or failed a request; raised by a handler, it becomes the reply."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


class ConnectionLost(HoneError):
    """The other side is gone, so no reply can arrive."""


class MalformedMessage(HoneError):
    """Bytes that are not a message. `id` is that of the request, if it could be read."""

    def __init__(self, code: int, message: str, id: Id | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.id = id


class Call(Struct, frozen=True):
    """A request, or a notification if it has no `id`. `params` are JSON."""

    method: str
    params: bytes = NO_PARAMS
    id: Id | None = None


class Fault(Struct, frozen=True, omit_defaults=True):
    code: int
    message: str
    data: Any = UNSET


class RpcReply(Struct, frozen=True):
    """A result as JSON, or a fault. An `id` of None answers something unreadable."""

    id: Id | None
    result: bytes | None = None
    fault: Fault | None = None


class _Wire(Struct):
    jsonrpc: str = ""
    id: int | str | UnsetType | None = UNSET
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Fault | UnsetType = UNSET


class _Named(Struct):
    id: int | str | None = None


_decoder = msgspec.json.Decoder(_Wire)


def decode(message: bytes) -> Call | RpcReply:
    """Return the message. Raises MalformedMessage for anything else, a batch included."""
    try:
        wire = _decoder.decode(message)
    except msgspec.ValidationError as error:
        raise MalformedMessage(
            INVALID_REQUEST, f"This is no JSON-RPC message: {error}.", _find_id(message)
        ) from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise MalformedMessage(PARSE_ERROR, f"This is no JSON: {error}.") from None
    id = None if isinstance(wire.id, UnsetType) else wire.id
    if wire.jsonrpc != "2.0":
        raise MalformedMessage(INVALID_REQUEST, 'A message needs "jsonrpc": "2.0".', id)
    if not isinstance(wire.method, UnsetType):
        if wire.id is None:
            raise MalformedMessage(INVALID_REQUEST, "The id of a request must not be null.")
        return Call(wire.method, _params(wire.params, id), id)
    if not isinstance(wire.error, UnsetType):
        return RpcReply(id, fault=wire.error)
    if isinstance(wire.result, UnsetType) or id is None:
        raise MalformedMessage(INVALID_REQUEST, "A message needs a method, a result or an error.", id)
    return RpcReply(id, bytes(wire.result))


def _params(params: Raw | UnsetType, id: Id | None) -> bytes:
    if isinstance(params, UnsetType):
        return NO_PARAMS
    if bytes(params)[:1] not in (b"{", b"["):
        raise MalformedMessage(INVALID_REQUEST, "The params of a call must be an object or an array.", id)
    return bytes(params)


def _find_id(message: bytes) -> Id | None:
    try:
        return msgspec.json.decode(message, type=_Named).id
    except (msgspec.DecodeError, RecursionError):
        return None


def encode_call(method: str, params: object, id: Id | None = None) -> bytes:
    return _encode(
        {"jsonrpc": "2.0", **({} if id is None else {"id": id}), "method": method, "params": params}
    )


def encode_result(id: Id, result: object) -> bytes:
    return _encode({"jsonrpc": "2.0", "id": id, "result": result})


def encode_fault(id: Id | None, error: RpcError | MalformedMessage) -> bytes:
    data = getattr(error, "data", None)
    return _encode(
        {"jsonrpc": "2.0", "id": id, "error": Fault(error.code, str(error), UNSET if data is None else data)}
    )


def _encode(message: dict[str, object]) -> bytes:
    return msgspec.json.encode(message)
