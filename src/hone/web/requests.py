"""Give each request an id, tell monitors how it ended, and keep the text of crashes out of the log."""

import os
import re
from collections.abc import Mapping

from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from hone.core.clock import Clock
from hone.core.monitor import TRACE_HEADERS, Monitors, RequestEnd, RequestStep, request_id
from hone.monitoring.logs import Log
from hone.web.callers import NOBODY
from hone.web.operation import CALLER

HEADER = "x-request-id"
ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{7,63}", re.ASCII)
PARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}", re.ASCII)
STATE = re.compile(r"[!-~ ]{1,512}", re.ASCII)
NOTHING = "0" * 32


class MonitoredRequests:
    """Wraps the whole app, including what it refuses and what crashes in it."""

    def __init__(self, app: Starlette, monitors: Monitors, clock: Clock, log: Log) -> None:
        self._app = app
        self._monitors = monitors
        self._clock = clock
        self._log = log
        self._routes = {each.endpoint: each.path for each in app.routes if isinstance(each, Route)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        trace = read_trace(scope)
        id, began = choose_id(scope, trace), self._clock.monotonic()
        status, begun, error = 500, 0.0, ""
        request_id.set(id)

        async def pass_on(message: Message) -> None:
            nonlocal status, begun
            if message["type"] == "http.response.start":
                status, begun = message["status"], self._clock.monotonic() - began
                own = (HEADER.encode(), id.encode())
                message = {**message, "headers": [*message.get("headers", ()), own]}
            await send(message)

        end = self._monitors.begin(RequestStep(scope["method"], trace))
        try:
            await self._app(scope, receive, pass_on)
        except Exception as raised:  # noqa: BLE001  it was answered; uvicorn would print its text
            error = type(raised).__name__
            self._log.crash(raised, self._route(scope) or "none")
        finally:
            who = scope.get(CALLER, NOBODY)
            user = "" if who is NOBODY else who.name
            end(RequestEnd(self._route(scope), status, begun, user, error))

    def _route(self, scope: Scope) -> str:
        """Return the template of the path, never the path; nothing if it was refused or matches no route."""
        return self._routes.get(scope["endpoint"], "") if "endpoint" in scope else ""


def read_trace(scope: Scope) -> Mapping[str, str]:
    """Return the headers that name the trace of a request, if they are well-formed."""
    found = {name: _header(scope, name) for name in TRACE_HEADERS}
    parent, state = (found[name] for name in TRACE_HEADERS)
    known = PARENT.fullmatch(parent)
    if known is None or known[1] == NOTHING or known[2] == NOTHING[:16]:
        return {}
    return found if STATE.fullmatch(state) else {TRACE_HEADERS[0]: parent}


def choose_id(scope: Scope, trace: Mapping[str, str]) -> str:
    """Return the id from the client or its proxy, that of the trace, or a new one."""
    asked = _header(scope, HEADER)
    if ID.fullmatch(asked):
        return asked
    return trace[TRACE_HEADERS[0]].split("-")[1] if trace else os.urandom(8).hex()


def _header(scope: Scope, name: str) -> str:
    """Return a header that appears exactly once, or nothing."""
    found = [value for each, value in scope["headers"] if each.lower() == name.encode()]
    return found[0].decode("latin-1") if len(found) == 1 else ""
