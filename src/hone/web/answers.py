"""Answers: values as JSON, and errors in the one shape that OpenAI clients understand, too."""

from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from hone.core.errors import Conflict, HoneError, Missing, ModelError, Refused, SettingsError, StoreError
from hone.web.security_headers import HEADERS

STATUS: tuple[tuple[type[HoneError], int, str], ...] = (
    (Missing, 404, "not_found"),
    (Conflict, 409, "conflict"),
    (StoreError, 503, "store_error"),
    (Refused, 422, "refused"),
    (SettingsError, 422, "settings_error"),
    (ModelError, 502, "model_error"),
    (HoneError, 400, "invalid_request_error"),
)


def answer(value: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")


def problem(kind: str, message: str, code: str | None = None, param: str | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": param, "code": code or kind}}


def failure(
    status: int, kind: str, message: str, *, code: str | None = None, param: str | None = None
) -> Response:
    return answer(problem(kind, message, code, param), status)


def told(error: HoneError) -> tuple[int, str]:
    """The status and the kind of an error."""
    return next((status, kind) for each, status, kind in STATUS if isinstance(error, each))


async def on_hone_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HoneError)
    status, kind = told(error)
    return failure(status, kind, str(error))


async def on_http_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    kind = {404: "not_found", 405: "method_not_allowed"}.get(error.status_code, "invalid_request_error")
    response = failure(error.status_code, kind, str(error.detail))
    response.headers.update(error.headers or {})
    return response


async def on_crash(_: Request, error: Exception) -> Response:
    """The trace is in the log of the server; whoever asked learns only what it is called."""
    response = failure(
        500, "internal_error", f"The server failed with {type(error).__name__}; its log has more."
    )
    response.headers.update(HEADERS)  # made outside of the door
    return response
