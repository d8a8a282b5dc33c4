"""Enforce a JSON schema for answers by the provider's own means, where it has them."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

import msgspec

from hone.core.errors import Rejected
from hone.core.json_schema import resolve
from hone.core.model import Model, Piece, Restart
from hone.core.prefix import Prefix
from hone.core.transcript import Transcript
from hone.core.value import replace
from hone.models.wrappers import Windowed

NAME = "answer"
_KINDS = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}
_CHOICES = ("anyOf", "oneOf")


class _Unsuited(Exception):
    """The schema has a part that providers cannot express."""


def make_format(schema: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the `response_format` for a schema; None if providers cannot express it. Rules that they cannot
    check (lengths, ranges) are left out: Hone checks the answer in any case."""
    reference = schema.get("$ref")
    root = resolve(reference, schema) if reference else schema
    definitions = schema.get("$defs", {})
    try:
        if not isinstance(root, dict) or root.get("type") != "object":
            raise _Unsuited
        narrow = _narrow(root)
        if definitions:
            narrow["$defs"] = {name: _narrow(each) for name, each in definitions.items()}
    except _Unsuited:
        return None
    form = {"name": NAME, "schema": narrow, "strict": _is_strict(narrow)}
    return {"type": "json_schema", "json_schema": form}


def _narrow(schema: Any) -> dict[str, Any]:
    """Return a schema in keywords that all providers know. The result and the rules left out are together as
    strict as the schema."""
    if not isinstance(schema, dict) or {"allOf", "prefixItems", "definitions"} & schema.keys():
        raise _Unsuited
    said = {"description": schema["description"]} if "description" in schema else {}
    if "$ref" in schema:
        return {"$ref": schema["$ref"]}
    for keyword in _CHOICES:
        if keyword in schema:
            return {"anyOf": [_narrow(each) for each in schema[keyword]], **said}
    if isinstance(schema.get("type"), list):
        return {"anyOf": [_narrow({**schema, "type": each}) for each in schema["type"]], **said}
    if "enum" in schema or "const" in schema:
        return {**_narrow_choice(schema.get("enum", [schema.get("const")])), **said}
    match schema.get("type"):
        case "object":
            return {**_narrow_object(schema), **said}
        case "array":
            return {"type": "array", "items": _narrow(schema.get("items")), **said}
        case str(kind):
            return {"type": kind, **said}
    raise _Unsuited


def _narrow_choice(values: list[Any]) -> dict[str, Any]:
    kinds = {_KINDS.get(type(value)) for value in values}
    if len(kinds) != 1 or None in kinds:
        raise _Unsuited
    return {"type": kinds.pop(), "enum": values}


def _narrow_object(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Narrow an object. All its property names must be known in advance."""
    properties = schema.get("properties")
    if not properties or schema.get("additionalProperties", False) is not False:
        raise _Unsuited
    narrow = {name: _narrow(each) for name, each in properties.items()}
    required = [name for name in narrow if name in schema.get("required", ())]
    return {"type": "object", "properties": narrow, "required": required, "additionalProperties": False}


def _is_strict(schema: Any) -> bool:
    """Tell whether no property is optional, as OpenAI requires of an enforced schema."""
    if isinstance(schema, list):
        return all(map(_is_strict, schema))
    if not isinstance(schema, dict):
        return True
    properties = schema.get("properties")
    whole = schema.get("type") != "object" or set(schema.get("required", ())) == set(properties or ())
    return whole and all(map(_is_strict, schema.values()))


def constrain(model: Model, form: Mapping[str, Any]) -> Model:
    """Return a model that asks for this `response_format`, if the model supports it."""
    return ConstrainedModel(model, form) if isinstance(model, Windowed) and model.schemas else model


class ConstrainedModel:
    """Asks for an answer in a format. If a provider refuses the request, later requests leave the format out:
    the message says in words what is wanted."""

    def __init__(self, model: Model, form: Mapping[str, Any]) -> None:
        self._model = model
        self._form: Mapping[str, Any] | None = form

    async def stream(self, prefix: Prefix, transcript: Transcript) -> AsyncGenerator[Piece, None]:
        spoken = False
        while True:
            try:
                async with aclosing(self._model.stream(self._formed(prefix), transcript)) as pieces:
                    async for piece in pieces:
                        spoken = spoken or not isinstance(piece, Restart)
                        yield piece
                return
            except Rejected as error:
                if spoken or self._form is None:
                    raise
                self._form = None
                yield Restart(str(error))

    def _formed(self, prefix: Prefix) -> Prefix:
        if self._form is None:
            return prefix
        settings = {**prefix.settings, "response_format": self._form}
        return replace(prefix, sampling=msgspec.json.encode(settings).decode())
