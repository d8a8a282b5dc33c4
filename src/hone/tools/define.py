"""Make a Tool from a typed function with a docstring: derive its schema and check its arguments."""

import inspect
from collections.abc import Callable, Collection, Hashable, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, cast, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct

from hone.core.messages import ToolCall, canonical
from hone.core.permit import Effect
from hone.core.threads import in_thread
from hone.core.tool import Outcome, Tool, ToolKind, ToolSpec, refused
from hone.core.tool_context import ToolContext
from hone.core.trust import Trust

Definitions = Mapping[str, dict[str, Any]]
Function = Callable[..., Any]
"""Returns a str, an Outcome or a value that becomes JSON, directly or when awaited."""
UNDECLARED = frozenset({Effect.EXECUTE, Effect.NETWORK})
"""The effects of a plain function: it declares none, so it may do anything."""


SCHEMAS = Path(__file__).with_name("schemas.json")
"""The schemas of Hone's own tools. Computing them would take three milliseconds of every start."""
MOST = 1_000
"""The most shapes to cache. With more functions than this, each is analyzed every time."""


class Shape(Struct, frozen=True):
    """What a function's signature says. `expected` describes the arguments to the model; `witness` names the
    parameter, if there is one, that gets the tool context."""

    schema: str
    decoder: msgspec.json.Decoder[Struct]
    expected: str
    witness: str


_SHAPES: dict[Hashable, Shape] = {}


class FunctionTool(Struct, frozen=True):
    spec: ToolSpec
    function: Function
    shape: Shape | None = None
    """None: computed with the first call."""
    trust: Trust = Trust.FOREIGN

    async def run(self, call: ToolCall, context: ToolContext) -> Outcome:
        shape = self.shape or _shape(self.function)
        try:
            decoded = shape.decoder.decode(call.arguments.strip() or "{}")
        except (ValueError, RecursionError) as error:
            return refused(f"{self.spec.name} was not run: {_complaint(error)}. {shape.expected}")
        arguments = {name: getattr(decoded, name) for name in decoded.__struct_fields__}
        if shape.witness:
            arguments[shape.witness] = context
        if inspect.iscoroutinefunction(self.function):
            return _outcome(await self.function(**arguments), self.trust)
        return _outcome(await in_thread(self.function, **arguments), self.trust)


def tool(
    *,
    effects: Collection[Effect],
    readonly: bool = False,
    kind: ToolKind = ToolKind.OTHER,
    network_flag: str = "",
    trust: Trust = Trust.FOREIGN,
) -> Callable[[Function], FunctionTool]:
    """Make a tool from a typed function. `Annotated[str, "..."]` describes a parameter, a default makes it
    optional, and a parameter annotated `ToolContext` gets the context of the call. The function returns a
    str, an Outcome if it fails in a known way, or any value that msgspec can write as JSON. `trust` is the
    best label of what it returns, unless that is an Outcome."""

    def define(function: Function) -> FunctionTool:
        known = _find_schema(function)
        shape = None if known else _shape(function)
        schema = shape.schema if shape else known
        spec = ToolSpec(function.__name__, schema, frozenset(effects), readonly, kind, network_flag)
        return FunctionTool(spec, function, shape, trust)

    return define


def as_tool(given: Tool | Function) -> Tool:
    """Return a tool unchanged, or make one from a plain function."""
    return tool(effects=UNDECLARED)(given) if inspect.isroutine(given) else cast("Tool", given)


class KnownSchema(Struct, frozen=True):
    """A schema with the docstring that it was made from. A changed docstring makes another schema."""

    docstring: str
    schema: str


def read_docstring(function: Function) -> str:
    """Return the words of a docstring. Its indentation depends on the version of Python."""
    return " ".join((function.__doc__ or "").split())


@cache
def read_schemas() -> Mapping[str, KnownSchema]:
    """Return the schemas of Hone's own tools, by module and name of their function."""
    return msgspec.json.decode(SCHEMAS.read_bytes(), type=dict[str, KnownSchema])


def name_function(function: Function) -> str:
    return f"{function.__module__}:{function.__qualname__}"


def _find_schema(function: Function) -> str:
    """Return the known schema of a function; empty if there is none."""
    if not function.__module__.startswith("hone."):
        return ""
    known = read_schemas().get(name_function(function))
    return known.schema if known and known.docstring == read_docstring(function) else ""


def _shape(function: Function) -> Shape:
    """Return the shape of a function. Functions redefined for every conversation share one."""
    key = _key(function)
    shape = _SHAPES.get(key) or work_out(function)
    if key is not None and len(_SHAPES) < MOST:
        _SHAPES[key] = shape
    return shape


def _key(function: Function) -> Hashable:
    """Return everything that a shape depends on; None if that is unknown."""
    if not inspect.isfunction(function) or hasattr(function, "__wrapped__"):
        return None
    given = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    defaults = tuple((type(value), value) for value in given)  # 0 and False must differ here
    named = function.__code__, function.__name__, function.__module__, function.__doc__
    key = (*named, *function.__annotations__.items(), defaults)
    try:
        hash(key)
    except TypeError:
        return None
    return key


def work_out(function: Function) -> Shape:
    name, description = function.__name__, inspect.getdoc(function)
    if not description:
        raise TypeError(f"the tool {name} needs a docstring: the model reads it")
    hints = get_type_hints(function, include_extras=True)
    witness = next((each for each, hint in hints.items() if hint is ToolContext), "")
    arguments = _struct(function, hints, witness)
    (reference,), definitions = msgspec.json.schema_components([arguments])
    parameters = _plain(reference, definitions, ())
    if not parameters.get("required", True):
        del parameters["required"]
    schema = canonical({"name": name, "description": description, "parameters": parameters})
    decoder = msgspec.json.Decoder(arguments, strict=False)
    return Shape(schema, decoder, _expected(parameters), witness)


def _struct(function: Function, hints: Mapping[str, Any], witness: str) -> type[Struct]:
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    for each in inspect.signature(function).parameters.values():
        if each.name == witness:
            continue
        named = each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)
        if not named or each.name not in hints:
            raise TypeError(f"parameter {each.name} of {function.__name__} needs a name and a type")
        hint = _described(hints[each.name])
        fields.append((each.name, hint) if each.default is each.empty else (each.name, hint, each.default))
    return msgspec.defstruct(function.__name__, fields, kw_only=True, forbid_unknown_fields=True)


def _described(hint: Any) -> Any:
    if get_origin(hint) is not Annotated:
        return hint
    bare, *notes = get_args(hint)
    return Annotated[
        (bare, *(msgspec.Meta(description=note) if isinstance(note, str) else note for note in notes))
    ]


def _plain(schema: Mapping[str, Any], types: Definitions, above: tuple[str, ...]) -> dict[str, Any]:
    """Shorten a schema: no titles, no references, and no null where a value may be left out."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        if name in above:
            raise TypeError(f"{name} contains itself; a tool's arguments have a fixed depth")
        return _plain(types[name], types, (*above, name)) | _rest(schema, "$ref")
    if "anyOf" in schema:
        choices = [choice for choice in schema["anyOf"] if choice != {"type": "null"}]
        if len(choices) == 1:
            return _plain({**choices[0], **_rest(schema, "anyOf")}, types, above)
    return {key: _inner(key, value, types, above) for key, value in _rest(schema, "title").items()}


def _inner(key: str, value: Any, types: Definitions, above: tuple[str, ...]) -> Any:
    match key, value:
        case "properties", dict():
            return {name: _plain(each, types, above) for name, each in value.items()}
        case (("items" | "additionalProperties"), dict()):
            return _plain(value, types, above)
        case (("anyOf" | "prefixItems"), list()):
            return [_plain(each, types, above) for each in value]
    return value


def _rest(schema: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {
        name: value for name, value in schema.items() if name != key and (name, value) != ("default", None)
    }


def _complaint(error: ValueError | RecursionError) -> str:
    match error:
        case msgspec.ValidationError():
            return str(error)
        case RecursionError():
            return "its arguments are nested too deeply"
    return f"its arguments are not valid JSON ({error})"


def _expected(parameters: Mapping[str, Any]) -> str:
    required = parameters.get("required", ())
    described = [
        f"{name}{'' if name in required else '?'}: {schema.get('type', 'any')}"
        for name, schema in parameters["properties"].items()
    ]
    return f"It takes one JSON object {{{', '.join(described)}}}."


def _outcome(result: object, trust: Trust) -> Outcome:
    match result:
        case Outcome():
            return result
        case str():
            return Outcome(result, trust=trust)
    return Outcome(msgspec.json.encode(result).decode(), trust=trust)
