"""An operation: a path, its parameters and its handler. One table defines the routes and the API docs."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from hone.core.errors import Missing
from hone.web.answers import answer, failure
from hone.web.callers import NOBODY, ApiCaller
from hone.web.state import ServerState

Query = TypeVar("Query")
Body = TypeVar("Body")
STREAM = "text/event-stream"
CALLER = "hone.caller"
"""The key in a request's scope for its sender."""
STATE = "hone.state"
"""The key for the user's state that a request is about, unless it is the server's own."""
LARGEST_NUMBER = 2**53
"""The largest number that every JSON reader, and the database, can represent."""


class Nothing(Struct, frozen=True):
    """Where no query or no body is wanted."""


class OperationCall(Struct, Generic[Query, Body], frozen=True):
    state: ServerState
    path: Mapping[str, Any]
    query: Query
    body: Body
    headers: Headers
    gone: Callable[[], Awaitable[bool]]
    """Tells whether the client has disconnected."""
    caller: ApiCaller = NOBODY


Act = Callable[[OperationCall[Any, Any]], Awaitable[Any]]
"""Returns a value for JSON, or a complete response."""


class Operation(Struct, frozen=True):
    """One operation. The docstring of `act` describes it. `streams`: it answers with server-sent events.
    `raw`: it gets the bytes of the body. `for_programs`: a program's key suffices. `spends`: it calls a
    model, or queues that, so users are held to their limits."""

    method: str
    path: str
    act: Act
    query: type[Struct] = Nothing
    body: type[Struct] = Nothing
    status: int = 200
    streams: bool = False
    raw: bool = False
    for_programs: bool = False
    spends: bool = False

    def route(self, state: ServerState) -> Route:
        async def endpoint(request: Request) -> Response:
            return await self._perform(request.scope.get(STATE, state), request)

        return Route(self.path, endpoint, methods=[self.method], name=f"{self.method} {self.path}")

    async def _perform(self, state: ServerState, request: Request) -> Response:
        path = dict(request.path_params)
        if any(isinstance(each, int) and each > LARGEST_NUMBER for each in path.values()):
            raise Missing("There is nothing of that number.")
        try:
            query = msgspec.convert(dict(request.query_params), self.query, strict=False)
            body = await self._read(request)
        except ClientDisconnect:
            return failure(413, "too_large", "The request is too long, or was broken off.")
        except (msgspec.ValidationError, msgspec.DecodeError, UnicodeDecodeError) as error:
            return failure(400, "invalid_request_error", f"This cannot be read: {error}.")
        except RecursionError:
            return failure(400, "invalid_request_error", "This cannot be read: it is nested too deeply.")
        if request.method == "HEAD" and self.streams:
            return Response(media_type=STREAM)  # nobody would hear what follows
        if self.spends:
            await state.open_sessions.admit()
        result = await self.act(
            OperationCall(
                state,
                path,
                query,
                body,
                request.headers,
                request.is_disconnected,
                request.scope.get(CALLER, NOBODY),
            )
        )
        return result if isinstance(result, Response) else answer(result, self.status)

    async def _read(self, request: Request) -> Struct | bytes:
        if self.method in ("GET", "HEAD"):
            return Nothing()
        data = await request.body()
        if self.raw:
            return data
        return msgspec.json.decode(data or b"{}", type=self.body)
