"""Check values against a JSON schema (draft 2020-12), as far as that is quick and certain.

`pattern` is not supported: a schema may come from a program, and some expressions match for hours.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from math import isfinite
from typing import Any

from hone.core.errors import Refused
from hone.core.regex import regex
from hone.core.visible import visible

Schema = Mapping[str, Any] | bool
DEPTH = 200
"""The deepest nesting of schemas and values, references included."""
STEPS = 100_000
"""The most comparisons in one check: choices between references can be endless."""
_REFERENCE = regex(r"#(/(\$defs|definitions)/[^/]+)?")
_ANNOTATIONS = (
    *("$schema", "$id", "$comment", "$anchor", "title", "description", "default", "examples", "format"),
    *("deprecated", "readOnly", "writeOnly", "contentEncoding", "contentMediaType", "discriminator"),
)
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_MAPS = ("properties", "$defs", "definitions")
_COUNTS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: _is_number(value) and (isinstance(value, int) or value.is_integer()),
    "number": _is_number,
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}


def check_schema(schema: Any) -> None:
    """Raise Refused unless values can be checked against this schema."""
    if not isinstance(schema, dict):
        raise Refused('A JSON schema is an object, such as {"type": "object"}.')
    for problem in _problems(schema, schema, "$", 0):
        raise Refused(f"The JSON schema cannot be used: {visible(problem)}.")


def find_misfit(value: Any, schema: Mapping[str, Any]) -> str:
    """Return how a value fails to fit a checked schema; nothing if it fits."""
    try:
        return visible(next(_Check(schema).misfits(value, schema, "$", 0), ""))
    except _Endless:
        return "the schema takes too long to check"


def resolve(reference: str, root: Mapping[str, Any]) -> Schema | None:
    """Return the part of a schema that a reference such as #/$defs/Point points to."""
    if not _REFERENCE.fullmatch(reference):
        return None
    found: Any = root
    for step in reference.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, dict | bool) else None


def _problems(schema: Any, root: Mapping[str, Any], at: str, depth: int) -> Iterator[str]:
    if isinstance(schema, bool):
        return
    if not isinstance(schema, dict):
        yield f"{at} is no schema"
        return
    if depth > DEPTH:
        yield f"{at[:80]} is nested too deeply"
        return
    for keyword, given in schema.items():
        yield from _about(keyword, given, root, at)
        yield from _below(keyword, given, root, f"{at}.{keyword}", depth)


def _about(keyword: str, given: Any, root: Mapping[str, Any], at: str) -> Iterator[str]:
    """Yield what is wrong with a keyword on its own."""
    right = True
    match keyword:
        case "type":
            kinds = given if isinstance(given, list) else [given]
            right = bool(kinds) and all(isinstance(each, str) and each in _TYPES for each in kinds)
        case "required":
            right = isinstance(given, list) and all(isinstance(each, str) for each in given)
        case "enum":
            right = isinstance(given, list)
        case "uniqueItems":
            right = isinstance(given, bool)
        case "$ref":
            right = isinstance(given, str) and resolve(given, root) is not None
        case _ if keyword in _COUNTS:
            right = isinstance(given, int) and not isinstance(given, bool) and given >= 0
        case _ if keyword in _NUMBERS:
            right = _is_number(given) and isfinite(given) and (keyword != "multipleOf" or given > 0)
        case "const" | "items" | "additionalProperties":
            pass
        case _ if keyword not in {*_ANNOTATIONS, *_LISTS, *_MAPS}:
            yield f"Hone does not check {keyword!r} (at {at}). Leave it out, and check it yourself"
    if not right:
        yield f"{at}.{keyword} is not what it must be"


def _below(keyword: str, given: Any, root: Mapping[str, Any], at: str, depth: int) -> Iterator[str]:
    if keyword in _MAPS:
        yield from () if isinstance(given, dict) else (f"{at} is no object",)
        for name, each in given.items() if isinstance(given, dict) else ():
            yield from _problems(each, root, f"{at}.{name}", depth + 1)
    elif keyword in _LISTS:
        yield from () if isinstance(given, list) and given else (f"{at} is no list of schemas",)
        for index, each in enumerate(given if isinstance(given, list) else ()):
            yield from _problems(each, root, f"{at}[{index}]", depth + 1)
    elif keyword in ("items", "additionalProperties"):
        yield from _problems(given, root, at, depth + 1)


class _Endless(Exception):
    """The check has used up its steps."""


class _Check:
    """Checks one value against `root`."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._left = STEPS

    def _step(self, count: int = 1) -> None:
        self._left -= count
        if self._left < 0:
            raise _Endless

    def misfits(self, value: Any, schema: Schema, at: str, depth: int) -> Iterator[str]:
        self._step()
        if isinstance(schema, bool):
            yield from () if schema else (f"{at} must not be there",)
            return
        if depth > DEPTH:
            yield f"{at[:80]} is nested too deeply"
            return
        if "$ref" in schema:
            yield from self.misfits(value, resolve(schema["$ref"], self._root) or False, at, depth + 1)
        yield from _about_kind(value, schema, at)
        yield from self._about_choices(value, schema, at, depth)
        if _is_number(value):
            yield from _about_number(value, schema, at)
        elif isinstance(value, str):
            yield from _about_size(len(value), schema, "Length", "characters", at)
        elif isinstance(value, list):
            yield from self._about_list(value, schema, at, depth)
        elif isinstance(value, dict):
            yield from self._about_object(value, schema, at, depth)

    def _about_choices(self, value: Any, schema: Mapping[str, Any], at: str, depth: int) -> Iterator[str]:
        for each in schema.get("allOf", ()):
            yield from self.misfits(value, each, at, depth + 1)
        for keyword in ("anyOf", "oneOf"):
            if keyword not in schema:
                continue
            found = [next(self.misfits(value, each, at, depth + 1), "") for each in schema[keyword]]
            fitting = found.count("")
            if not fitting:
                yield found[0] if len(found) == 1 else f"{at} fits none of the choices ({found[0]}, …)"
            elif fitting > 1 and keyword == "oneOf":
                yield f"{at} fits {fitting} of the choices, not one"

    def _about_list(
        self, value: Sequence[Any], schema: Mapping[str, Any], at: str, depth: int
    ) -> Iterator[str]:
        yield from _about_size(len(value), schema, "Items", "items", at)
        first = schema.get("prefixItems", ())
        for index, each in enumerate(value):
            wanted = first[index] if index < len(first) else schema.get("items", True)
            yield from self.misfits(each, wanted, f"{at}[{index}]", depth + 1)
        if schema.get("uniqueItems"):
            self._step(len(value) ** 2)
            if any(_equal(each, other) for index, each in enumerate(value) for other in value[:index]):
                yield f"{at} must not hold anything twice"

    def _about_object(
        self, value: Mapping[str, Any], schema: Mapping[str, Any], at: str, depth: int
    ) -> Iterator[str]:
        yield from _about_size(len(value), schema, "Properties", "properties", at)
        yield from (f"{at} lacks {name!r}" for name in schema.get("required", ()) if name not in value)
        known, others = schema.get("properties", {}), schema.get("additionalProperties", True)
        for name, each in value.items():
            if name not in known and others is False:
                yield f"{at} must not have {name!r}"
            else:
                yield from self.misfits(each, known.get(name, others), f"{at}.{name}", depth + 1)


def _about_kind(value: Any, schema: Mapping[str, Any], at: str) -> Iterator[str]:
    wanted = schema.get("type", ())
    kinds = [wanted] if isinstance(wanted, str) else wanted
    if kinds and not any(_TYPES[kind](value) for kind in kinds):
        yield f"{at} must be of type {' or '.join(kinds)}"
    if "enum" in schema and not any(_equal(value, each) for each in schema["enum"]):
        yield f"{at} is none of the values that are allowed there"
    if "const" in schema and not _equal(value, schema["const"]):
        yield f"{at} is not the one value that is allowed there"


def _about_number(value: float, schema: Mapping[str, Any], at: str) -> Iterator[str]:
    if value < schema.get("minimum", value):
        yield f"{at} must be at least {schema['minimum']}"
    if value > schema.get("maximum", value):
        yield f"{at} must be at most {schema['maximum']}"
    if "exclusiveMinimum" in schema and value <= schema["exclusiveMinimum"]:
        yield f"{at} must be more than {schema['exclusiveMinimum']}"
    if "exclusiveMaximum" in schema and value >= schema["exclusiveMaximum"]:
        yield f"{at} must be less than {schema['exclusiveMaximum']}"
    if "multipleOf" in schema and Fraction(str(value)) % Fraction(str(schema["multipleOf"])):
        yield f"{at} must be a multiple of {schema['multipleOf']}"


def _about_size(size: int, schema: Mapping[str, Any], what: str, unit: str, at: str) -> Iterator[str]:
    if size < schema.get(f"min{what}", 0):
        yield f"{at} must have at least {schema[f'min{what}']} {unit}"
    if size > schema.get(f"max{what}", size):
        yield f"{at} must have at most {schema[f'max{what}']} {unit}"


def _equal(one: Any, other: Any) -> bool:
    """Compare as JSON does: 1 and 1.0 are the same, 1 and true are not."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_equal, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_equal(one[name], other[name]) for name in one)
    return bool(one == other)
