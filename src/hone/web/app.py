"""The app: the page and every operation behind one door."""

from collections.abc import Collection

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware

from hone.core.errors import HoneError
from hone.web import openapi, page, stream
from hone.web.answers import on_crash, on_hone_error, on_http_error
from hone.web.auth import AuthMiddleware
from hone.web.openai.endpoint import ChatEndpoint
from hone.web.operation import Operation
from hone.web.operations import changes, chat, journal, reviews, search, sessions, skills, status
from hone.web.operations import usage as figures
from hone.web.state import ServerState


def operations() -> tuple[Operation, ...]:
    rooms = (status, changes, journal, skills, sessions, search, reviews, figures, chat, stream)
    every = (*(each for room in rooms for each in room.OPERATIONS), *ChatEndpoint().operations)
    return (*every, openapi.operation(every))


def create_app(state: ServerState, hosts: Collection[str]) -> Starlette:
    """`hosts` are the names it answers to, as a browser writes them: with the port, if there is one."""
    return Starlette(
        routes=[*page.routes(), *(each.route(state) for each in operations())],
        middleware=[Middleware(AuthMiddleware, keys=state.keys, hosts=hosts)],
        exception_handlers={HoneError: on_hone_error, HTTPException: on_http_error, Exception: on_crash},
    )
