"""Check the arguments of a call against the tool's schema before a server gets them; show how to call it."""

import json
from collections.abc import Mapping
from typing import Any

from hone.core.errors import Refused
from hone.core.json_schema import check_schema, find_misfit, resolve
from hone.core.messages import canonical

_CHECKED = frozenset(
    (
        *("type", "required", "enum", "const", "uniqueItems", "items", "additionalProperties", "properties"),
        *("anyOf", "oneOf", "allOf", "prefixItems", "$defs", "definitions", "$ref"),
        *("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    )
)
"""The keywords that Hone checks. The server checks the rest."""
DEPTH = 50
SHOWN = 6_000
"""The most characters of a schema to show."""


def find_fault(arguments: object, schema: Mapping[str, Any]) -> str:
    """Return how arguments fail to fit a schema; nothing if they fit, as far as Hone can tell."""
    if not isinstance(arguments, dict):
        return "the arguments must be an object"
    known = _loosen(schema, schema, 0)
    if not isinstance(known, dict):
        return ""
    try:
        check_schema(known)
    except Refused:
        return ""
    return find_misfit(arguments, known)


def _loosen(schema: Any, root: Mapping[str, Any], depth: int) -> Any:
    """Return a schema without what Hone does not check."""
    if not isinstance(schema, Mapping) or depth > DEPTH:
        return schema if isinstance(schema, bool) else True
    if "$ref" in schema and (not isinstance(schema["$ref"], str) or resolve(schema["$ref"], root) is None):
        return True
    kept: dict[str, Any] = {}
    for name, value in schema.items():
        if name not in _CHECKED:
            continue
        if name in ("properties", "$defs", "definitions") and isinstance(value, Mapping):
            kept[name] = {each: _loosen(inner, root, depth + 1) for each, inner in value.items()}
        elif name in ("items", "additionalProperties"):
            kept[name] = _loosen(value, root, depth + 1)
        elif name in ("anyOf", "oneOf", "allOf", "prefixItems") and isinstance(value, list):
            kept[name] = [_loosen(each, root, depth + 1) for each in value]
        else:
            kept[name] = value
    if "oneOf" in kept:  # without its distinguishing part, a choice would match twice
        kept["anyOf"] = kept.pop("oneOf") if "anyOf" not in kept else kept["anyOf"]
        kept.pop("oneOf", None)
    return kept


def make_example(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments for one complete call: every required one, with a value of the right type."""
    properties = schema.get("properties")
    known = properties if isinstance(properties, Mapping) else {}
    required = schema.get("required")
    names = required if isinstance(required, list) else []
    return {name: _sample(known.get(name), schema, 0) for name in names if isinstance(name, str)}


def _sample(schema: Any, root: Mapping[str, Any], depth: int) -> Any:
    if not isinstance(schema, Mapping) or depth > DEPTH:
        return "…"
    if isinstance(reference := schema.get("$ref"), str):
        return _sample(resolve(reference, root), root, depth + 1)
    for name in ("default", "const"):
        if name in schema:
            return schema[name]
    for name in ("examples", "enum", "anyOf", "oneOf", "allOf"):
        found = schema.get(name)
        if isinstance(found, list) and found:
            return found[0] if name in ("examples", "enum") else _sample(found[0], root, depth + 1)
    return _of_kind(schema, root, depth)


def _of_kind(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> Any:
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) and kind else kind
    if kind == "object":
        return {
            name: _sample(schema.get("properties", {}).get(name), root, depth + 1)
            for name in schema.get("required", ())
            if isinstance(schema.get("properties", {}), Mapping)
        }
    if kind == "array":
        return [_sample(schema.get("items"), root, depth + 1)]
    least = schema.get("minimum", 1)
    plain: dict[Any, Any] = {"integer": least, "number": least, "boolean": True, "null": None}
    return plain.get(kind, "…")


def describe_call(name: str, schema: Mapping[str, Any], *, through: str = "") -> str:
    """Return a tool's schema and one complete call. `through` is the tool that makes the call."""
    text = canonical(schema)
    if len(text) > SHOWN:
        text = f"{text[:SHOWN]}… ({len(text) - SHOWN:,} more characters)"
    example = make_example(schema)
    given = json.dumps({"name": name, "arguments": example} if through else example, ensure_ascii=False)
    return f"Schema of the arguments: {text}\nA complete call: {through or name} {given}"
