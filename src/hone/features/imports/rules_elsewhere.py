"""Translate permission rules of other agents into Hone's. A rule without a counterpart is reported, not
guessed."""

import ast
import json
import re
from collections.abc import Iterator, Sequence
from itertools import islice, product
from typing import Any, Literal

from msgspec import Struct

from hone.core.regex import regex
from hone.core.visible import one_line

MOST = 64
"""The most rules that one rule with alternatives may stand for."""
_CALL = regex(r"([A-Za-z_]+)(?:\((.*)\))?", re.DOTALL)
_WRITES = ("Edit", "Write", "MultiEdit", "NotebookEdit")
_READS = ("Read", "Grep", "Glob")


class RuleProposal(Struct, frozen=True):
    """A rule that would apply everywhere. One that allows is asked about separately."""

    kind: Literal["allow", "deny"]
    rule: str
    source: str


def read_claude_rules(data: bytes, source: str, problems: list[str]) -> Iterator[RuleProposal]:
    """Read `permissions` of a settings.json of Claude Code."""
    try:
        found = json.loads(data)["permissions"]
        lists = {kind: _list(found.get(kind)) for kind in ("deny", "allow", "ask")}
    except KeyError:
        return
    except (ValueError, TypeError, AttributeError, RecursionError):
        problems.append(f"{source}: its permissions cannot be read.")
        return
    if lists["ask"]:
        problems.append(f"{source}: rules that ask ({len(lists['ask'])}); Hone asks by its own rules.")
    for text in (*lists["deny"], *lists["allow"]):
        rule = translate(text) if isinstance(text, str) else ""
        if rule:
            yield RuleProposal("deny" if text in lists["deny"] else "allow", rule, source)
        else:
            problems.append(f"{source}: {one_line(str(text), 100)} has no counterpart in Hone.")


def _list(value: object) -> Sequence[Any]:
    if value is not None and not isinstance(value, list):
        raise TypeError(value)
    return value or []


def translate(text: str) -> str:
    """Return a rule of Claude Code as one of Hone's; empty if none means the same."""
    found = _CALL.fullmatch(text.strip())
    if not found or "\n" in text:
        return ""
    tool, inner = found[1], (found[2] or "").strip()
    if tool == "Bash":
        command = re.sub(r":\*$", " *", inner)
        wild = "*" in command.removesuffix(" *")
        return "terminal: *" if not inner or inner == "*" else "" if wild else f"terminal: {command}"
    if tool == "WebFetch":
        host = inner.removeprefix("domain:")
        return f"web_fetch: {host}" if inner.startswith("domain:") and host else ""
    family = "write_file" if tool in _WRITES else "read_file" if tool in _READS else ""
    place = inner[1:] if inner.startswith("//") else "" if inner.startswith("/") else inner.removeprefix("./")
    return f"{family}: {place}" if family and place else ""


def read_codex_rules(data: bytes, source: str, problems: list[str]) -> Iterator[RuleProposal]:
    """Read the calls of `prefix_rule` in a rules file of Codex. The file is read, never run."""
    try:
        tree = ast.parse(data.decode())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        problems.append(f"{source} cannot be read.")
        return
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            continue
        try:
            given = {each.arg: ast.literal_eval(each.value) for each in call.keywords if each.arg in _KEYS}
            patterns = list(islice(_expand(given["pattern"]), MOST + 1))
        except (ValueError, TypeError, KeyError, RecursionError):
            problems.append(f"{source}: the rule on line {call.lineno} cannot be read.")
            continue
        kind = _DECISIONS.get(given.get("decision", "allow"))
        if kind is None or len(patterns) > MOST:
            problems.append(f"{source}: the rule on line {call.lineno} has no counterpart in Hone.")
            continue
        yield from (RuleProposal(kind, f"terminal: {each} *", source) for each in patterns)


_KEYS = ("pattern", "decision")
_DECISIONS: dict[Any, Literal["allow", "deny"]] = {"allow": "allow", "forbidden": "deny"}


def _expand(pattern: list[Any]) -> Iterator[str]:
    """Yield the command prefixes of a pattern: an inner list has alternatives."""
    words = [[each] if isinstance(each, str) else each for each in pattern]
    for chosen in product(*words):
        if not chosen or not all(re.fullmatch(r"[\w./:=@+-]+", each) for each in chosen):
            raise ValueError(chosen)
        yield " ".join(chosen)
