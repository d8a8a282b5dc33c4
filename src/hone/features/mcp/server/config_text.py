"""Add one entry to the configuration file of another program, or remove it. Everything else stays unchanged.

Comments, order and spaces are kept. The new text must mean the old one with that change, or ValueError is
raised and nothing is written.
"""

import json
import re
import tomllib
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from hone.cli.settings_file import Value, change_text
from hone.core.regex import regex

Entry = Mapping[str, str | list[str]]

_SPACE = regex(r"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = regex(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_SCALAR = regex(r"[^\s,:\[\]{}\"/]+")
_COMMENT = regex(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_COMMA = regex(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])', re.DOTALL)
INDENT = "  "


class ConfigForm(Protocol):
    """The format of a configuration file. `table` holds the servers, by name."""

    def find(self, text: str, table: str, name: str) -> Any:
        """Return the entry; None if there is none. Raises ValueError for an unreadable text."""
        ...

    def put(self, text: str, table: str, name: str, entry: Entry) -> str: ...

    def take(self, text: str, table: str, name: str) -> str: ...


class JsonForm:
    """JSON, also with comments and trailing commas."""

    def find(self, text: str, table: str, name: str) -> Any:
        return _find(_read_json(text), table, name)

    def put(self, text: str, table: str, name: str, entry: Entry) -> str:
        expected = _read_json(text)
        _put(expected, table, name, dict(entry))
        if not text.strip():
            return json.dumps(expected, indent=len(INDENT), ensure_ascii=False) + "\n"
        root = _skip(text, int(text.startswith("\ufeff")))
        inner = _members(text, root).get(table)
        if inner is None:
            changed = _insert(text, root, table, {name: dict(entry)}, INDENT)
        elif (old := _members(text, inner.value).get(name)) is not None:
            written = _indent(dict(entry), INDENT * 2)
            changed = text[: old.value] + written + text[old.end :]
        else:
            changed = _insert(text, inner.value, name, dict(entry), INDENT * 2)
        return _check(changed, expected, _read_json(changed))

    def take(self, text: str, table: str, name: str) -> str:
        expected = _read_json(text)
        del expected[table][name]
        root = _skip(text, int(text.startswith("\ufeff")))
        members = _members(text, _members(text, root)[table].value)
        gone, before = members[name], [each for each in members.values() if each.end <= members[name].start]
        lead, after = len(text[: gone.start].rstrip()), _skip(text, gone.end)
        if text[after : after + 1] == ",":
            changed = text[:lead] + text[after + 1 :]
        elif before:
            comma = _skip(text, before[-1].end)
            changed = text[:comma] + text[comma + 1 : lead] + text[gone.end :]
        else:
            changed = text[:lead] + text[gone.end :]
        return _check(changed, expected, _read_json(changed))


class TomlForm:
    def find(self, text: str, table: str, name: str) -> Any:
        return _find(tomllib.loads(text), table, name)

    def put(self, text: str, table: str, name: str, entry: Entry) -> str:
        values: dict[tuple[str, ...], Value | None] = {
            (table, name, key): tuple(value) if isinstance(value, list) else value
            for key, value in entry.items()
        }
        return change_text(text, values)

    def take(self, text: str, table: str, name: str) -> str:
        expected = tomllib.loads(text)
        del expected[table][name]
        own = regex(
            rf'\s*\[\s*"?{re.escape(table)}"?\s*\.\s*"?{re.escape(name)}"?\s*(?:\.[^\]]*)?\]\s*(?:#.*)?'
        )
        kept: list[str] = []
        within = False
        for line in text.splitlines(keepends=True):
            if line.lstrip().startswith("["):
                within = own.fullmatch(line.rstrip()) is not None
            if not within or line.lstrip().startswith("#"):  # a comment may belong to what follows
                kept.append(line)
        changed = "".join(kept)
        found = tomllib.loads(changed)
        return _check(changed, expected, {table: {}, **found} if expected.get(table) == {} else found)


class _Member(NamedTuple):
    """Where the key of a member begins, and where its value begins and ends."""

    start: int
    value: int
    end: int


def _read_json(text: str) -> dict[str, Any]:
    plain = _COMMENT.sub(lambda found: found[1] or " ", text.removeprefix("\ufeff"))
    plain = _COMMA.sub(lambda found: found[1] or "", plain)
    try:
        value = json.loads(plain) if plain.strip() else {}
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError("it is not an object")
    return value


def _find(values: Mapping[str, Any], table: str, name: str) -> Any:
    inner = values.get(table, {})
    if not isinstance(inner, dict):
        raise ValueError(f"{table} is not an object")
    return inner.get(name)


def _put(values: dict[str, Any], table: str, name: str, entry: Any) -> None:
    _find(values, table, name)
    values.setdefault(table, {})[name] = entry


def _check(text: str, expected: object, found: object) -> str:
    if found != expected:
        raise ValueError("it is written in a way that cannot be changed safely")
    return text


def _insert(text: str, at: int, name: str, value: Any, indent: str) -> str:
    """Insert a member as the first one of the object at a position."""
    comma = "," if _members(text, at) else ""
    head = f"\n{indent}{json.dumps(name)}: {_indent(value, indent)}{comma}"
    rest = text[at + 1 :]
    gap = "\n" + indent.removesuffix(INDENT) if rest.lstrip(" \t").startswith("}") else ""
    return text[: at + 1] + head + gap + rest


def _indent(value: Any, indent: str) -> str:
    written = json.dumps(value, indent=len(INDENT), ensure_ascii=False)
    return written.replace("\n", f"\n{indent}")


def _members(text: str, at: int) -> dict[str, _Member]:
    """Return the members of the object at a position. Raises ValueError."""
    if text[at : at + 1] != "{":
        raise ValueError("an object was expected")
    found: dict[str, _Member] = {}
    at = _skip(text, at + 1)
    while text[at : at + 1] != "}":
        key = _STRING.match(text, at)
        if key is None:
            raise ValueError("the name of a member was expected")
        value = _skip(text, _expect(text, _skip(text, key.end()), ":"))
        end = _end(text, value)
        found[json.loads(key[0])] = _Member(at, value, end)
        at = _skip(text, end)
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
        elif text[at : at + 1] != "}":
            raise ValueError("a comma was expected")
    return found


def _end(text: str, at: int) -> int:
    """Return where a value ends. The text is known to be JSON; brackets in strings do not count."""
    depth = 0
    while at < len(text):
        sign = text[at]
        if sign in "{[":
            depth += 1
            at += 1
        elif sign in "}]":
            depth -= 1
            at += 1
        elif found := (_STRING if sign == '"' else _SCALAR).match(text, at):
            at = found.end()
        else:
            at = max(at + 1, _skip(text, at))
        if not depth:
            return at
    raise ValueError("a value has no end")


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _expect(text: str, at: int, sign: str) -> int:
    if text[at : at + 1] != sign:
        raise ValueError(f"{sign} was expected")
    return at + 1
