"""Read and change single settings by their key, such as `learning.turns` or `providers.mine.url`."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from types import NoneType
from typing import Annotated, Any, Literal, get_args

import click
import msgspec

from hone.cli.settings_file import Scalar, Value
from hone.core.secrets import mask_password
from hone.core.toml_faults import (
    Hint,
    KeyPath,
    describe_type,
    describe_unknown,
    find_entries,
    find_fields,
    find_origin,
    parse_path,
    spell,
)
from hone.settings import Settings

WORDS: Mapping[str, bool] = {
    **dict.fromkeys(("true", "yes", "on"), True),
    **dict.fromkeys(("false", "no", "off"), False),
}


def list_keys(hint: Hint = Settings, above: KeyPath = ()) -> Iterator[KeyPath]:
    """Yield the keys that have a name, without those of tables that the owner names."""
    for name, kind in (find_fields(hint) or {}).items():
        if find_fields(kind):
            yield from list_keys(kind, (*above, name))
        else:
            yield (*above, name)


def split_key(text: str) -> KeyPath:
    """Split a key into its names, whether it exists or not. Raises UsageError."""
    path = parse_path(f"{text} = 0")
    if path in ((), ("",)):
        raise click.UsageError(f"{text!r} is not a key. Write it as in hone.toml, such as learning.turns.")
    return path


def parse_key(text: str) -> tuple[KeyPath, Hint]:
    """Return a key and the type of its value. Raises UsageError if it does not exist."""
    path = split_key(text)
    hint: Hint = Settings
    for at, name in enumerate(path):
        fields, entries = find_fields(hint), find_entries(hint)
        if fields is None and entries is None:
            raise click.UsageError(f"{spell(path[:at])} is {describe_type(hint)} and holds no keys.")
        if fields is not None and name not in fields:
            says = describe_unknown(path[: at + 1], fields)
            raise click.UsageError(f"T{says[1:]}.")
        hint = fields[name] if fields is not None else entries
    return path, hint


def parse_value(path: KeyPath, hint: Hint, words: Sequence[str]) -> Value:
    """Return the value of the command line's words for this key. Raises UsageError."""
    if find_fields(hint) or (find_entries(hint) is not None and len(path) == 1):
        raise click.UsageError(f"{spell(path)} is a table. Name one of its keys, or use hone config edit.")
    try:
        value = _convert(hint, words)
        msgspec.convert(value, hint)
    except (ValueError, msgspec.ValidationError) as error:
        raise click.UsageError(f"{spell(path)} must be {describe_type(hint)}.") from error
    return value


def _convert(hint: Hint, words: Sequence[str]) -> Value:
    """Convert a text to a value. Raises ValueError."""
    kind = _plain(hint)
    if find_origin(kind) is tuple:
        return tuple(_convert_one(get_args(kind)[0], word) for word in _split(words))
    [word] = words
    return _convert_one(kind, word)


def _convert_one(kind: Hint, word: str) -> Scalar:
    if kind is bool:
        return WORDS[word.lower()] if word.lower() in WORDS else _fail()
    if kind is int:
        return int(word)
    if kind is float:
        return float(word)
    return word if kind is str or find_origin(kind) is Literal else _guess(word)


def _split(words: Sequence[str]) -> Sequence[str]:
    """Return the entries of a list: each word, or those of a single word that is a list in TOML."""
    if len(words) != 1 or not words[0].startswith("["):
        return words
    return [str(each) for each in tomllib.loads(f"x = {words[0]}")["x"]]


def _guess(word: str) -> Scalar:
    """Return the value of a word where any type is allowed: a number, true or false, or text."""
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(word, word)


def _fail() -> bool:
    raise ValueError


def _plain(hint: Hint) -> Hint:
    """Return the type without its constraints, and without None."""
    if find_origin(hint) is Annotated:
        return get_args(hint)[0]
    others = [each for each in get_args(hint) if each is not NoneType]
    return others[0] if NoneType in get_args(hint) else hint


def find_value(settings: Settings, path: KeyPath) -> Any:
    """Return the value of a key. Raises UsageError if the owner has no such table."""
    value: Any = shown_values(settings)
    for at, name in enumerate(path):
        if name not in value:
            raise click.UsageError(f"{spell(path[: at + 1])} is not set.")
        value = value[name]
    return value


def shown_values(settings: Settings) -> dict[str, Any]:
    """Return the settings to show: without a password or a key that was pasted by mistake."""
    values: dict[str, Any] = msgspec.to_builtins(settings)
    for provider in values["providers"].values():
        provider["key"] = name_variable(provider["key"])
    values["memory"]["url"] = mask_password(values["memory"]["url"])
    for server in values["mcp"]["servers"].values():
        for table in ("env", "headers"):
            server[table] = {name: _name_only(text) for name, text in server[table].items()}
    values["database"] = mask_password(values["database"])
    return values


def _name_only(text: str) -> str:
    """Return a text if it names a variable. Any other could be a key, and is hidden."""
    return text if not text or "${" in text else "(not shown)"


def name_variable(name: str) -> str:
    """Return the name of a variable. Anything else could be the key itself, and is hidden."""
    return name if not name or name.isidentifier() else "(not the name of a variable)"


def describe_values(value: Any, path: KeyPath) -> Iterator[str]:
    """Yield lines for a value: bare text, a table by its keys, anything else as in hone.toml."""
    if isinstance(value, dict):
        for name, each in value.items():
            inner = describe_values(each, (*path, name)) if isinstance(each, dict) else None
            yield from inner or [f"{spell((*path, name))} = {msgspec.json.encode(each).decode()}"]
    else:
        yield value if isinstance(value, str) else msgspec.json.encode(value).decode()
