"""Build HTTP responses: values as JSON, errors in the format that OpenAI clients understand.

All responses carry security headers: no foreign script, no frame, no cache, no content type sniffing. They
also carry a mark, so that another Hone does not take this one for a model server.
"""

from collections.abc import Mapping
from math import ceil
from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Send

from hone.core.errors import (
    Conflict,
    Ending,
    HoneError,
    LimitReached,
    Missing,
    ModelError,
    Refused,
    SettingsError,
    StoreError,
)
from hone.models.endpoint import MARK

STATUS: tuple[tuple[type[HoneError], int, str], ...] = (
    (Missing, 404, "not_found"),
    (LimitReached, 429, "rate_limit_exceeded"),
    (Conflict, 409, "conflict"),
    (Ending, 503, "stopping"),
    (StoreError, 503, "store_error"),
    (Refused, 422, "refused"),
    (SettingsError, 422, "settings_error"),
    (ModelError, 502, "model_error"),
    (HoneError, 400, "invalid_request_error"),
)

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS: Mapping[str, str] = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
    MARK: "serve",
}


def answer(value: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")


def problem(kind: str, message: str, code: str | None = None, param: str | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": param, "code": code or kind}}


def failure(
    status: int, kind: str, message: str, *, code: str | None = None, param: str | None = None
) -> Response:
    return answer(problem(kind, message, code, param), status)


def told(error: HoneError) -> tuple[int, str]:
    """Return the status and the type of an error."""
    return next((status, kind) for each, status, kind in STATUS if isinstance(error, each))


async def on_hone_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HoneError)
    status, kind = told(error)
    response = failure(status, kind, str(error))
    return postponed(response, error.wait) if isinstance(error, (LimitReached, Ending)) else response


def postponed(response: Response, wait: float) -> Response:
    """Say after how many seconds to try again."""
    response.headers["retry-after"] = str(max(1, ceil(wait)))
    return response


async def on_http_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    kind = {404: "not_found", 405: "method_not_allowed"}.get(error.status_code, "invalid_request_error")
    response = failure(error.status_code, kind, str(error.detail))
    response.headers.update(error.headers or {})
    return response


async def on_crash(_: Request, error: Exception) -> Response:
    """Return an answer for a crash. Its place in the code goes to the server's log; the client only gets its
    type."""
    response = failure(
        500, "internal_error", f"The server failed with {type(error).__name__}; its log has more."
    )
    response.headers.update(HEADERS)  # made outside of AuthMiddleware
    return response


def add_security_headers(send: Send) -> Send:
    """Add the headers to every answer, wherever it was made. A file of the page may set how long it is
    cached."""

    async def pass_on(message: Message) -> None:
        if message["type"] == "http.response.start":
            said = [(name.lower(), value) for name, value in message.get("headers", ())]
            kept = {name for name, _ in said}
            own = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
            message = {**message, "headers": [*said, *(each for each in own if each[0] not in kept)]}
        await send(message)

    return pass_on
