"""Remove statements from hone.toml: secrets before a backup, and what may run before a restore.

Comments, order and everything else stay as the owner wrote them.
"""

import tomllib
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from hone.core.regex import regex
from hone.core.secrets import passwords, redact_lines

Key = tuple[str, ...]
_LINE = regex(r"[^\n]*\n|[^\n]+")


class SettingsStatement(Struct, frozen=True):
    """A value with its key, or any other line, with empty `values`."""

    text: str
    values: tuple[tuple[Key, Any], ...] = ()

    @property
    def name(self) -> str:
        return ".".join(self.values[0][0]) if self.values else ""


def decides_what_runs(key: Key, value: Any) -> bool:
    """Tell whether a setting lets something run, or reach something, without a question."""
    match key:
        case ("plugins" | "hooks" | "certificates", *_) | ("permissions", "allow", *_):
            return True
        case ("mode",):
            return bool(value == "full")
        case ("network",) | ("sandbox", "network") | ("projects", _, "sandbox", "network"):
            return bool(value == "allow")
        case ("sandbox", "read" | "write" | "env", *_):
            return True
        case ("projects", _, "sandbox", "read" | "write" | "env", *_):
            return True
    return False


def holds_secret(key: Key, value: Any) -> bool:
    """Tell whether a setting contains a password or a key."""
    if not isinstance(value, str):
        return isinstance(value, list) and any(holds_secret(key, each) for each in value)
    line = f'{key[-1]} = "{value}"'
    return bool(passwords(value)) or redact_lines(line) != line


def remove_secrets(text: str) -> tuple[str, list[str]]:
    """Return hone.toml without secrets, and the names of the removed settings. A file that is not TOML is
    redacted as text."""
    try:
        statements = split_statements(text)
    except tomllib.TOMLDecodeError:
        redacted = redact_lines(text)
        return redacted, ["lines with secrets"] if redacted != text else []
    kept, names = [], []
    for each in statements:
        if any(holds_secret(key, value) for key, value in each.values):
            kept.append(f"# {each.name} is not in the backup: it contains a secret.\n")
            names.append(each.name)
        else:
            kept.append(each.text)
    return redact_lines("".join(kept)), names


def remove_rules(text: str) -> tuple[str, list[str]]:
    """Return hone.toml with everything that decides what may run commented out, and the names of these
    settings. Raises ValueError if that is not safely possible."""
    kept, names = [], []
    for each in split_statements(text):
        if any(decides_what_runs(key, value) for key, value in each.values):
            kept += ["# Not restored:\n", *(f"# {line}\n" for line in each.text.rstrip().split("\n"))]
            names.append(each.name)
        else:
            kept.append(each.text)
    after = "".join(kept)
    if any(decides_what_runs(key, value) for key, value in leaves((), tomllib.loads(after))):
        raise ValueError("a rule would be left")
    return after, list(dict.fromkeys(names))


def split_statements(text: str) -> list[SettingsStatement]:
    """Split a text into statements. Raises TOMLDecodeError if it is not TOML."""
    tomllib.loads(text)
    lines: list[str] = _LINE.findall(text)
    found: list[SettingsStatement] = []
    table: Key = ()
    at = 0
    while at < len(lines):
        line = lines[at].strip()
        end = at + 1
        if not line or line.startswith("#"):
            found.append(SettingsStatement(lines[at]))
        elif line.startswith("["):
            table = _read_header(line)
            entry: tuple[tuple[Key, Any], ...] = ()
            if line.startswith("[["):  # an entry of a list, even without values
                entry = ((table, []),)
            found.append(SettingsStatement(lines[at], entry))
        else:
            values, end = _read_value(lines, at)
            found.append(SettingsStatement("".join(lines[at:end]), tuple(leaves(table, values))))
        at = end
    return found


def leaves(table: Key, values: dict[str, Any]) -> Iterator[tuple[Key, Any]]:
    """Yield every value with its whole key. An empty table is a value."""
    for name, value in values.items():
        if isinstance(value, dict) and value:
            yield from leaves((*table, name), value)
        else:
            yield (*table, name), value


def _read_header(line: str) -> Key:
    values = tomllib.loads(line)
    names = []
    while values:
        name, value = next(iter(values.items()))
        names.append(name)
        values = value[0] if isinstance(value, list) else value
    return tuple(names)


def _read_value(lines: list[str], at: int) -> tuple[dict[str, Any], int]:
    """Return the value that begins in a line, and the line after it: an array may take several."""
    for end in range(at + 1, len(lines) + 1):
        try:
            return tomllib.loads("".join(lines[at:end])), end
        except tomllib.TOMLDecodeError:
            continue
    raise tomllib.TOMLDecodeError(f"line {at + 1} begins a value without an end")
