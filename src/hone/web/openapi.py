"""Generate the OpenAPI description from the table that also defines the routes."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from hone import __version__
from hone.core.regex import regex
from hone.web.auth import OPEN
from hone.web.operation import STREAM, Nothing, Operation, OperationCall

PATH = "/openapi.json"
_PLACEHOLDER = regex(r"\{(\w+)(?::(\w+))?\}")
_REFERENCES = "#/components/schemas/{name}"
PROBLEM = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "type"],
            "properties": {
                "message": {"type": "string"},
                "type": {"type": "string"},
                "param": {"type": ["string", "null"]},
                "code": {"type": ["string", "null"]},
            },
        }
    },
}


def describe(operations: Sequence[Operation]) -> dict[str, Any]:
    types = {each for operation in operations for each in (operation.query, operation.body)}
    ordered = sorted(types, key=lambda each: (each.__module__, each.__qualname__))
    schemas, components = msgspec.json.schema_components(ordered, ref_template=_REFERENCES)
    known = dict(zip(ordered, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        path = _PLACEHOLDER.sub(r"{\1}", operation.path)
        paths.setdefault(path, {})[operation.method.lower()] = _described(operation, known, components)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Hone", "version": __version__},
        "components": {
            "schemas": {**components, "Problem": PROBLEM},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"key": []}],
        "paths": paths,
    }


def _described(
    operation: Operation, known: Mapping[type, Any], components: Mapping[str, Any]
) -> dict[str, Any]:
    media = STREAM if operation.streams else "application/json"
    found: dict[str, Any] = {
        "operationId": _name(operation),
        "summary": (operation.act.__doc__ or "").strip().partition("\n")[0],
        "parameters": [*_placeholders(operation.path), *_query(operation, known, components)],
        "responses": {
            str(operation.status): {"description": "What was asked for.", "content": {media: {}}},
            "default": {
                "description": "A sentence that says what to do.",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
            },
        },
    }
    if operation.path in OPEN:
        found["security"] = []
    if operation.method not in ("GET", "HEAD"):
        content = {"application/json": {"schema": known[operation.body]}}
        found["requestBody"] = {"required": operation.body is not Nothing, "content": content}
    return found


def _name(operation: Operation) -> str:
    words = re.findall(r"\w+", _PLACEHOLDER.sub(r"\1", operation.path))
    return "_".join([operation.method.lower(), *words])


def _placeholders(path: str) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "integer", "minimum": 0}
            if kind == "int"
            else {"type": "string", "minLength": 1},
        }
        for name, kind in _PLACEHOLDER.findall(path)
    ]


def _query(
    operation: Operation, known: Mapping[type, Any], components: Mapping[str, Any]
) -> list[dict[str, Any]]:
    whole = components[known[operation.query]["$ref"].rpartition("/")[2]]
    return [
        {"name": name, "in": "query", "required": name in whole.get("required", ()), "schema": schema}
        for name, schema in whole.get("properties", {}).items()
    ]


def operation(operations: Sequence[Operation]) -> Operation:
    """The description, served beside what it describes."""

    async def openapi(_: OperationCall[Nothing, Nothing]) -> dict[str, Any]:
        """This description."""
        return describe((*operations, own))

    own = Operation("GET", PATH, openapi)
    return own
