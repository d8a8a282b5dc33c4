"""The web application: the page and every operation, behind one authentication check."""

from collections.abc import Collection
from importlib import import_module

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware

from hone.core.errors import HoneError
from hone.registry import FEATURES
from hone.web import openapi, page
from hone.web.answers import on_crash, on_hone_error, on_http_error
from hone.web.auth import AuthMiddleware
from hone.web.openai.endpoint import ChatEndpoint
from hone.web.operation import Operation
from hone.web.operations import (
    changes,
    chat,
    going_back,
    journal,
    known,
    markdown,
    pairs,
    permissions,
    reviews,
    sessions,
    skills,
    status,
    usage,
)
from hone.web.state import ServerState

OWN = (
    *(status, changes, journal, skills, sessions, known),
    *(reviews, chat, going_back, markdown, usage, permissions, pairs),
)


def operations() -> tuple[Operation, ...]:
    """Return the table of all operations: our own, those of features, and the description of them all."""
    features = (import_module(each.operations) for each in FEATURES if each.operations)
    own = (each for module in (*OWN, *features) for each in module.OPERATIONS)
    every = (*own, *ChatEndpoint().operations)
    return (*every, openapi.operation(every))


def create_app(state: ServerState, hosts: Collection[str]) -> Starlette:
    """Create the application. `hosts` are the names it answers to, as a browser writes them: with the port,
    if there is one."""
    every = operations()
    programs = [each.path for each in every if each.for_programs]
    return Starlette(
        routes=[*page.routes(), *(each.route(state) for each in every)],
        middleware=[Middleware(AuthMiddleware, state=state, hosts=hosts, programs=programs)],
        exception_handlers={HoneError: on_hone_error, HTTPException: on_http_error, Exception: on_crash},
    )
