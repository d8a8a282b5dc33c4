"""Every way to ask for something of somebody else's: routes, tools and commands, filled with known ids."""

import re
from collections.abc import Iterator, Sequence
from enum import Enum
from random import Random
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec
from msgspec import Struct

from hone.web.operation import Operation
from tests.isolation.people import Person

PLACE = re.compile(r"\{(\w+)(?::(\w+))?\}")
NUMBERS = (1, 2, 3, 7)


class Question(Struct, frozen=True):
    """A request to the server."""

    route: str
    method: str
    path: str
    query: dict[str, Any]
    body: Any


def ask_route(operation: Operation, about: Person, random: Random) -> Question:
    """Fill one operation with what somebody may know of another person."""

    def place(found: re.Match[str]) -> str:
        return str(random.choice(NUMBERS)) if found[2] == "int" else random.choice(about.known)

    route = f"{operation.method} {operation.path}"
    query = {key: value for key, value in fill(operation.query, about, random).items() if value is not None}
    body = fill(operation.body, about, random)
    if operation.path == "/v1/chat/completions":
        body = {"messages": [{"role": "user", "content": f"What is {random.choice(about.known)}?"}]}
    elif operation.path == "/mcp":
        body = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "session_search", "arguments": {"query": about.word}},
        }
    return Question(route, operation.method, PLACE.sub(place, operation.path), query, body)


def fill(kind: type[Struct], about: Person, random: Random) -> dict[str, Any]:
    fields = msgspec.structs.fields(kind)
    return {each.encode_name: make(each.type, about, random) for each in fields}


def make(kind: Any, about: Person, random: Random) -> Any:
    """Make a value of a type. Numbers are small: ids are counted for each owner."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return make(inner[0], about, random)
    if origin in (Union, UnionType):
        return None if type(None) in inner and random.random() < 0.5 else make(inner[0], about, random)
    if origin is Literal:
        return random.choice(inner)
    if origin in (list, Sequence, tuple):
        return [make(inner[0], about, random)] if inner and inner[0] is str else []
    if isinstance(kind, type) and issubclass(kind, Enum):
        return random.choice(list(kind)).value
    known = {str: random.choice(about.known), int: random.choice(NUMBERS), bool: random.random() < 0.5}
    return known.get(kind)


def list_calls(about: Person, workspace: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield calls of tools by which a model would look for something of another person."""
    yield "session_search", {"query": about.word}
    yield "session_search", {"query": f'"{about.said[:9]}"'}
    yield "session_search", {"session": about.session}
    yield "memory", {"action": "list", "target": "user", "evidence": []}
    yield "memory", {"action": "remove", "target": "memory", "match": about.word, "evidence": [1]}
    yield "skills_list", {"query": about.word}
    yield "skill_view", {"name": f"{about.word}-skill"}
    yield "memory_backend", {"action": "query", "query": about.word}
    yield "memory_backend", {"action": "retrieve", "key": about.word}
    yield "memory_backend", {"action": "list"}
    yield "read_file", {"path": f"{workspace}/{about.name}/note.txt"}
    yield "read_file", {"path": f"../{about.name}/note.txt"}
    yield "search_files", {"pattern": "secret", "path": f"{workspace}/{about.name}"}
    yield (
        "terminal",
        {"command": f"cat {workspace}/{about.name}/note.txt ../{about.name}/note.txt; ls -R {workspace}"},
    )
    yield "execute_code", {"code": f"print(open('{workspace}/{about.name}/note.txt').read())"}


def list_commands(about: Person) -> Iterator[list[str]]:
    """Yield commands of the administrator, which show numbers and nothing that users said."""
    ids = (about.session, about.word)
    yield from (["sessions", "show", each] for each in ids)
    yield from (["sessions", "export", each] for each in ids)
    yield from (["review", each] for each in ids)
    yield from (["templates", "show", each] for each in ids)
    yield from (["skills", "show", f"{each}-skill"] for each in ids)
    yield from ([each, "1"] for each in ("show", "diff"))
    yield from (["sessions", "search", each] for each in about.known)
    yield ["sessions", "list"]
    yield ["sessions", "list", "--all", "--json"]
    yield ["memory", "show"]
    yield ["skills", "list"]
    yield ["log"]
    yield ["log", "--json"]
    yield ["pending"]
    yield ["reviews"]
    yield ["why"]
    yield ["payback"]
    yield ["curator", "status"]
    yield ["traces", "tree"]
    yield ["worker", "status"]
    yield ["experiment", "list"]
    yield ["templates", "list"]
    yield ["doctor", "--deep"]
    yield ["users", "list"]
    yield ["users", "usage"]
    yield ["users", "usage", about.name]
    yield ["users", "audit"]
    yield ["users", "audit", "--json"]
