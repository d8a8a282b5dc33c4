"""MCP over HTTP, at /mcp of `hone serve`: each message is a request, each answer one JSON object."""

import base64
import binascii
from collections.abc import Awaitable
from secrets import token_hex
from typing import Any

from starlette.datastructures import Headers
from starlette.responses import Response

from hone.core.errors import HoneError
from hone.core.value import replace
from hone.core.visible import path_to_text
from hone.features.mcp.server.cancelling import RunningRequests, run_while_there
from hone.features.mcp.server.clients import find_client
from hone.features.mcp.server.methods import Methods
from hone.features.mcp.server.protocol import (
    HANDSHAKE,
    HEADER_MISMATCH,
    LONGEST,
    UNSUPPORTED_VERSION,
    VERSION,
    check_envelope,
    check_version,
    has_envelope,
    read_canceled,
)
from hone.rpc.messages import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    Call,
    Id,
    MalformedMessage,
    RpcError,
    RpcReply,
    decode,
    encode_fault,
    encode_result,
)
from hone.rpc.peer import read_params
from hone.web.answers import failure
from hone.web.operation import Nothing, Operation, OperationCall

SESSION = "mcp-session-id"
VERSION_HEADER, METHOD_HEADER, NAME_HEADER = "mcp-protocol-version", "mcp-method", "mcp-name"
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""The parameter that the header Mcp-Name repeats, by method."""
ENCODED = ("=?base64?", "?=")
STATUS = {
    **dict.fromkeys(
        (PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS, HEADER_MISMATCH, UNSUPPORTED_VERSION), 400
    ),
    METHOD_NOT_FOUND: 404,
}
"""Of the stateless era: the status of an answer, by its error."""
ONLY_PROGRAMS = (
    "Agents use /mcp with a key of their own, so that the log can name them. "
    "Make one: hone serve keys add NAME"
)
RUNNING = RunningRequests()
HttpCall = OperationCall[Nothing, bytes]


async def post(call: HttpCall) -> Response:
    """Answer one message of an MCP client, which is named by its key."""
    if not call.caller.is_program:
        return failure(403, "forbidden_for_people", ONLY_PROGRAMS)
    if len(call.body) > LONGEST:
        return failure(413, "too_large", f"A message has at most {LONGEST:,} bytes.")
    if not _accepts_json(call.headers):
        return failure(406, "not_acceptable", "Accept application/json and text/event-stream.")
    try:
        message = decode(call.body)
    except MalformedMessage as fault:
        return _json(encode_fault(fault.id, fault), 400)
    hone = call.state.hone
    client = find_client(hone.settings, call.caller.name, path_to_text(hone.folder))
    methods = Methods(hone, replace(client, admit=call.state.open_sessions.admit))
    version = call.headers.get(VERSION_HEADER)
    stateless = version is not None and version not in HANDSHAKE
    if stateless or (isinstance(message, Call) and has_envelope(message)):
        return await _answer_stateless(call, message, methods)
    return await _answer_session(call, message, methods)


async def _answer_session(call: HttpCall, message: Call | RpcReply, methods: Methods) -> Response:
    """Answer in the era with a handshake. A session holds nothing: its id only shows that there was one."""
    id = message.id
    if isinstance(message, Call) and message.method == "initialize" and id is not None:
        response = await _reply(id, methods.answer(message))
        response.headers[SESSION] = call.caller.session_id(token_hex(16))
        return response
    session = call.headers.get(SESSION)
    if session is None:
        return _refuse(400, id, f"Send initialize first, and then the header {SESSION} with each message.")
    if not call.caller.began(session):
        return _refuse(404, id, "There is no such session; send initialize again.")
    if isinstance(message, RpcReply):
        return Response(status_code=202)
    if id is None:
        canceled = read_canceled(message)
        if canceled is not None:
            RUNNING.cancel(session, canceled)
        return Response(status_code=202)
    return await _reply(id, RUNNING.run(session, id, methods.answer(message)))


async def _answer_stateless(call: HttpCall, message: Call | RpcReply, methods: Methods) -> Response:
    id, headers = message.id, call.headers
    try:
        if isinstance(message, RpcReply):
            raise RpcError(INVALID_REQUEST, "This server asks nothing, so it takes no replies.")
        if id is None:
            check_version(headers.get(VERSION_HEADER, ""))
            return Response(status_code=202)
        _check_headers(headers, message)
    except RpcError as error:
        return _json(encode_fault(id, error), STATUS[error.code])
    return await _reply(id, run_while_there(methods.answer_stateless(message), call.gone), STATUS)


async def _reply(
    id: Id, work: Awaitable[dict[str, Any] | None], status: dict[int, int] | None = None
) -> Response:
    """Return the answer. A request that was canceled gets none: only that it was taken."""
    try:
        result = await work
        return Response(status_code=202) if result is None else _json(encode_result(id, result))
    except RpcError as error:
        return _json(encode_fault(id, error), (status or {}).get(error.code, 200))
    except HoneError as error:
        return _json(encode_fault(id, RpcError(INTERNAL_ERROR, str(error))))


def _check_headers(headers: Headers, call: Call) -> None:
    """Headers repeat what the message says, for those who route it. Raises RpcError if they differ."""
    for name in (VERSION_HEADER, METHOD_HEADER, NAME_HEADER):
        if len(headers.getlist(name)) > 1:
            raise RpcError(HEADER_MISMATCH, f"The header {name} comes more than once.")
    params = read_params(call, dict[str, Any])
    meta = params.get("_meta")
    version = meta.get(VERSION) if isinstance(meta, dict) else None
    if version is None:
        check_envelope(call)
    expected = {VERSION_HEADER: version, METHOD_HEADER: call.method}
    for name, value in expected.items():
        if headers.get(name) != value:
            raise RpcError(HEADER_MISMATCH, f"The header {name} does not say what the message says.")
    named = params.get(NAMED.get(call.method, ""))
    if named is not None and _decode(headers.get(NAME_HEADER)) != named:
        raise RpcError(HEADER_MISMATCH, f"The header {NAME_HEADER} does not say what the message says.")


def _decode(value: str | None) -> str | None:
    """Return what a header says that may be in base64."""
    begin, end = ENCODED
    if value is None or not (value.startswith(begin) and value.endswith(end)):
        return value
    try:
        return base64.b64decode(value[len(begin) : -len(end)], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None


def _accepts_json(headers: Headers) -> bool:
    kinds = {each.partition(";")[0].strip().lower() for each in headers.get("accept", "*/*").split(",")}
    return bool(kinds & {"application/json", "application/*", "*/*"})


def _refuse(status: int, id: Id | None, reason: str) -> Response:
    return _json(encode_fault(id, RpcError(INVALID_REQUEST, reason)), status)


def _json(body: bytes, status: int = 200) -> Response:
    return Response(body, status, media_type="application/json")


OPERATIONS = (Operation("POST", "/mcp", post, raw=True, for_programs=True),)
