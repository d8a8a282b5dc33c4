"""Find the faults in a TOML text that is to become a Struct: the key, its line and what is allowed there."""

import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta, Struct

from hone.core.regex import regex

KeyPath = tuple[str, ...]
Hint = Any
"""A type as used in an annotation."""

_PLAIN: Mapping[Any, str] = {
    str: "text in quotes",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
}
_KEY_TUPLE = regex(r"\('([^()]*)',?\)")


class TomlFault(Struct, frozen=True):
    """One fault. `path` is empty if the text as a whole is wrong, `line` is 0 if it is unknown."""

    path: KeyPath
    line: int
    says: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.says}" if self.line else self.says


def find_faults(text: str, values: Mapping[str, Any], kind: type[Struct]) -> list[TomlFault]:
    """Return every key that is unknown or has an invalid value. `values` are those of the text."""
    found = list(_check((), values, kind))
    rest = leave_out(values, [path for path, _ in found])
    found += _check_together(rest, kind)
    lines = [TomlFault(path, find_line(text, path), says) for path, says in found]
    return sorted(lines, key=lambda fault: fault.line)


def leave_out(values: Mapping[str, Any], paths: Collection[KeyPath]) -> dict[str, Any]:
    """Return the values without some keys."""
    here = {path[0] for path in paths if len(path) == 1}
    return {
        name: leave_out(value, [path[1:] for path in paths if path[:1] == (name,)])
        if isinstance(value, Mapping)
        else value
        for name, value in values.items()
        if name not in here
    }


def _check(path: KeyPath, value: Any, hint: Hint) -> Iterator[tuple[KeyPath, str]]:
    """Yield what is wrong with the names and types of a value and of everything in it."""
    inner, each = find_fields(hint), find_entries(hint)
    if inner and isinstance(value, Mapping):
        for name, item in value.items():
            if name in inner:
                yield from _check((*path, name), item, inner[name])
            else:
                yield (*path, name), describe_unknown((*path, name), inner)
        if missing := [name for name in _required(hint) if name not in value]:
            yield path, f"{spell(path)} needs {' and '.join(missing)}"
    elif each is not None and isinstance(value, Mapping):
        for name, item in value.items():
            yield from _check((*path, name), item, each)
    elif not _fits(value, hint):
        yield path, f"{spell(path)} must be {describe_type(hint)}"


def _check_together(values: Mapping[str, Any], kind: type[Struct]) -> Iterator[tuple[KeyPath, str]]:
    """Yield keys whose value has the right type but is not allowed. Each is tried alone, so that the wrong
    key is named."""
    alone = [(path, _explain(_nest(path, value), kind)) for path, value in _leaves((), values, kind)]
    yield from ((path, _named(path, says)) for path, says in alone if says)
    if not any(says for _, says in alone) and (says := _explain(values, kind)):
        yield (), says


def _leaves(path: KeyPath, value: Any, hint: Hint) -> Iterator[tuple[KeyPath, Any]]:
    """Yield the values that are valid alone. A table named by the owner is one value, since it needs all its
    keys."""
    inner = find_fields(hint)
    if inner and isinstance(value, Mapping) and not _required(hint):
        for name, item in value.items():
            yield from _leaves((*path, name), item, inner[name])
    elif find_entries(hint) is not None and isinstance(value, Mapping):
        for name, item in value.items():
            yield from _leaves((*path, name), item, find_entries(hint))
    else:
        yield path, value


def _explain(values: Mapping[str, Any], kind: type[Struct]) -> str:
    """Return why a Struct cannot be made; nothing if it can."""
    try:
        msgspec.convert(values, kind)
    except (msgspec.ValidationError, ValueError) as error:
        return str(error).partition(" - at `$")[0]
    return ""


def _named(path: KeyPath, says: str) -> str:
    return says if path[-1] in says else f"{spell(path)}: {says}"


def _nest(path: KeyPath, value: Any) -> dict[str, Any]:
    for name in reversed(path):
        value = {name: value}
    nested: dict[str, Any] = value
    return nested


def _fits(value: Any, hint: Hint) -> bool:
    try:
        msgspec.convert(value, hint)
    except (msgspec.ValidationError, ValueError):
        return False
    return True


def find_origin(hint: Hint) -> Any:
    """Return the type without its brackets."""
    origin: Any = get_origin(hint)
    return origin


def find_fields(hint: Hint) -> dict[str, Hint] | None:
    """Return the fields of a Struct by name; None for another type."""
    is_struct = isinstance(hint, type) and issubclass(hint, Struct)
    return get_type_hints(hint, include_extras=True) if is_struct else None


def find_entries(hint: Hint) -> Hint | None:
    """Return the value type of a table whose keys the owner chooses; None for another type."""
    origin = find_origin(hint)
    return get_args(hint)[1] if isinstance(origin, type) and issubclass(origin, Mapping) else None


def _required(hint: Hint) -> list[str]:
    return [each.name for each in msgspec.structs.fields(hint) if each.required]


def describe_unknown(path: KeyPath, known: Mapping[str, Any]) -> str:
    """Say that there is no such key, and suggest the one that may be meant."""
    swapped = [name for name in known if sorted(name) == sorted(path[-1])]
    near = swapped or get_close_matches(path[-1], list(known), 1)
    hint = f"did you mean {spell((*path[:-1], near[0]))}?" if near else f"known are {', '.join(known)}"
    return f"there is no key {spell(path)} ({hint})"


def describe_type(hint: Hint) -> str:
    """Say which values are allowed."""
    origin, args = find_origin(hint), get_args(hint)
    if origin is Annotated:
        return f"{describe_type(args[0])}{''.join(_describe_bounds(each) for each in args[1:])}"
    if origin is Literal:
        return f"one of {', '.join(map(_quote, args))}"
    if origin in (Union, UnionType):
        return " or ".join(describe_type(each) for each in args if each is not NoneType)
    if origin is tuple:
        several = len(args) == 2 and args[1] is Ellipsis
        kind = "tables" if find_fields(args[0]) else "texts"
        return f"a list of {kind}" if several else f"a list of {len(args)} whole numbers"
    if find_fields(hint) or find_entries(hint) is not None:
        return "a table"
    return _PLAIN.get(hint, "a value")


def _describe_bounds(meta: Meta) -> str:
    return f" from {meta.ge} to {meta.le}" if meta.ge is not None and meta.le is not None else ""


def spell(path: Sequence[str]) -> str:
    """Return a key as written in TOML, with its tables."""
    return ".".join(name if _is_bare(name) else _quote(name) for name in path)


def _is_bare(name: str) -> bool:
    return name.isascii() and bool(name) and all(letter.isalnum() or letter in "_-" for letter in name)


def _quote(text: object) -> str:
    return '"' + str(text).replace("\\", "\\\\").replace('"', '\\"') + '"'


def find_line(text: str, path: KeyPath) -> int:
    """Return the line that sets a key, or else the line of its table; 0 if neither is there."""
    table: KeyPath = ()
    best, at = 0, 0
    for number, line in enumerate(text.splitlines(), 1):
        written = line.strip()
        if written.startswith("["):
            table = here = parse_path(written)
        elif "=" in written and not written.startswith("#"):
            here = (*table, *parse_path(f"{written.partition('=')[0]} = 0"))
        else:
            continue
        if best < len(here) and here == path[: len(here)]:
            best, at = len(here), number
    return at


def parse_path(line: str) -> KeyPath:
    """Return the names in a line of TOML: those of a header, or of a key that starts with an index."""
    try:
        value: Any = tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return ("",)
    names: list[str] = []
    while isinstance(value, dict) and value:
        name, value = next(iter(value.items()))
        names.append(name)
    return tuple(names)


def describe_syntax(error: ValueError) -> str:
    """Return why a text is not TOML, with keys as they are written: `a.b` in place of `('a', 'b')`."""
    return _KEY_TUPLE.sub(lambda found: found[1].replace("', '", "."), str(error))
