"""Change single values in hone.toml. Comments, order and everything else stay as the owner wrote them.

A change is made line by line and then checked: the new text must equal the old one except for these values,
or nothing is written.
"""

import copy
import os
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hone.core.errors import SettingsError
from hone.core.regex import regex
from hone.files.atomic import write

Scalar = str | bool | int | float
Value = Scalar | tuple[Scalar, ...]
Changes = Mapping[tuple[str, ...], Value | None]
"""By table and key, such as ("providers", "mine", "url"). None removes a key."""

_LINE = regex(r"[^\n]*\n|[^\n]+")
_HEADER = regex(r"\s*\[([^\[\]\n]+)\]\s*(?:#.*)?")
_BARE = regex(r"[A-Za-z0-9_-]+")


def write_settings(file: Path, changes: Changes) -> None:
    """Write changes to hone.toml, creating it if it is missing. Raises SettingsError; then the file is
    unchanged."""
    target = Path(os.path.realpath(file))  # the file itself, if the owner keeps it elsewhere
    try:
        before = target.read_text("utf-8") if target.exists() else ""
        after = change_text(before, changes)
        if after != before:
            write(target, after.encode())
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file} cannot be changed: {error}. {_by_hand(changes)}") from error
    except ValueError as error:
        raise SettingsError(
            f"{file} is written in a way that Hone cannot change safely. {_by_hand(changes)}"
        ) from error


def load_changed(file: Path, changes: Changes) -> str:
    """Return the changed text of the file. Raises ValueError if that is impossible line by line."""
    return change_text(file.read_text("utf-8") if file.exists() else "", changes)


def find_written(file: Path, path: tuple[str, ...]) -> object:
    """Return the value of a key in a settings file; None if it has none. Raises SettingsError."""
    try:
        values: object = tomllib.loads(file.read_text("utf-8")) if file.exists() else {}
    except (OSError, ValueError) as error:
        raise SettingsError(f"{file} cannot be read: {error}. hone config check says more.") from error
    for name in path:
        values = values.get(name) if isinstance(values, dict) else None
    return values


def change_text(text: str, changes: Changes) -> str:
    """Return a TOML text with these values in it. Raises ValueError if that is impossible line by line."""
    expected = copy.deepcopy(tomllib.loads(text))
    lines = _LINE.findall(text)
    ending = "\r\n" if lines and lines[0].endswith("\r\n") else "\n"
    for path, value in changes.items():
        if value is None:
            _take_out(expected, path)
            _remove(lines, path, expected)
            continue
        _set(expected, path, value)
        _place(lines, path, value, ending)
    changed = "".join(lines)
    if tomllib.loads(changed) != expected:
        raise ValueError("the text does not mean what it should")
    return changed


def _set(values: dict[str, Any], path: tuple[str, ...], value: Value) -> None:
    for name in path[:-1]:
        values = values.setdefault(name, {})
    values[path[-1]] = list(value) if isinstance(value, tuple) else value


def _take_out(values: dict[str, Any], path: tuple[str, ...]) -> None:
    for name in path[:-1]:
        values = values.get(name, {})
    values.pop(path[-1], None)


def _remove(lines: list[str], path: tuple[str, ...], expected: Mapping[str, Any]) -> None:
    """Remove the lines of a key: all lines of its value, with its comment. Raises ValueError."""
    *table, key = path
    start, end = _find_table(lines, tuple(table)) or (0, 0)
    at = next((at for at in range(start, end) if _names(lines[at], key)), end)
    for last in range(at + 1, end + 1):
        try:
            if tomllib.loads("".join([*lines[:at], *lines[last:]])) == expected:
                del lines[at:last]
                return
        except tomllib.TOMLDecodeError:
            continue  # a value in the middle
    if tomllib.loads("".join(lines)) != expected:
        raise ValueError("the key is written in another way")


def _names(line: str, key: str) -> bool:
    name, _, rest = line.partition("=")
    return bool(rest) and name.strip() in (key, _spell_key(key))


def _place(lines: list[str], path: tuple[str, ...], value: Value, ending: str) -> None:
    """Replace the line of a key, or add one, and its table if necessary."""
    *table, key = path
    found = _find_table(lines, tuple(table))
    if found is None:
        _finish_last(lines, ending)
        spelled = ".".join(map(_spell_key, table))
        lines += [ending] * bool(lines) + [f"[{spelled}]{ending}"]
        found = len(lines), len(lines)
    start, end = found
    for at in range(start, end):
        name, _, rest = lines[at].partition("=")
        if _names(lines[at], key):
            lines[at] = f"{name}= {_spell(value)}{_comment(rest)}{ending}"
            return
    at = _find_room(lines, start, end) if table else _find_example(lines, end, key)
    if at == len(lines):
        _finish_last(lines, ending)
    lines.insert(at, f"{_spell_key(key)} = {_spell(value)}{ending}")


def _find_table(lines: Sequence[str], table: tuple[str, ...]) -> tuple[int, int] | None:
    """Return where the lines of a table begin and end; None if it is not there."""
    heads = [at for at, line in enumerate(lines) if _HEADER.fullmatch(line.rstrip("\r\n"))]
    starts = [(-1, ()), *((at, _read_header(lines[at])) for at in heads)]
    ends = [*heads, len(lines)]
    return next(((at + 1, end) for (at, name), end in zip(starts, ends, strict=True) if name == table), None)


def _read_header(line: str) -> tuple[str, ...]:
    """Return the path that a header names, whatever the quotes."""
    try:
        values = tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return ("",)
    names = []
    while values:
        name, values = next(iter(values.items()))
        names.append(name)
    return tuple(names)


def _find_room(lines: Sequence[str], start: int, end: int) -> int:
    """Return the line after the last value of a table."""
    used = [at for at in range(start, end) if lines[at].strip() and not lines[at].lstrip().startswith("#")]
    return used[-1] + 1 if used else start


def _find_example(lines: Sequence[str], end: int, key: str) -> int:
    """Return the line after a key's example that `hone config init` writes, or else the first line."""
    examples = (at for at in range(end) if lines[at].replace(" ", "").startswith(f"#{key}="))
    return next(examples, -1) + 1


def _finish_last(lines: list[str], ending: str) -> None:
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += ending


def _comment(rest: str) -> str:
    """Return the comment after a value, with the space before it."""
    line = rest.rstrip("\r\n")
    for at in (at for at, letter in enumerate(line) if letter == "#"):
        try:
            tomllib.loads(f"x = {line[:at]}")
        except tomllib.TOMLDecodeError:
            continue
        return line[len(line[:at].rstrip()) :]
    return ""


def _spell(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, tuple):
        return f"[{', '.join(map(_spell, value))}]"
    return "".join(['"', *(_spell_letter(letter) for letter in value), '"'])


def _spell_letter(letter: str) -> str:
    if letter in ("\\", '"'):
        return f"\\{letter}"
    return letter if letter.isprintable() else f"\\U{ord(letter):08x}"


def _spell_key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _spell(key)


def _by_hand(changes: Changes) -> str:
    """Return what the owner can write by hand."""
    lines: list[str] = []
    for path, value in changes.items():
        if value is None:
            return f"Take {'.'.join(map(_spell_key, path))} out of it yourself."
        _place(lines, path, value, "\n")
    return "Write this into it yourself:\n\n" + "".join(lines).rstrip()
