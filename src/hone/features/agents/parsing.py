"""Read an agent file: front matter as Claude Code and others write it, and a body with the instructions."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from hone.core.agent import Helper
from hone.core.errors import Refused
from hone.core.regex import regex
from hone.knowledge.skills.front_matter import read

FENCE = "---"
EXAMPLE = "---\nname: reviewer\ndescription: Reads a change and names its faults.\n---\n\nThe instructions."
FIELDS = ("name", "description", "tools", "model")
TOOLS = {
    "Read": ("read_file",),
    "Write": ("write_file",),
    "Edit": ("patch",),
    "MultiEdit": ("patch",),
    "Grep": ("search_files",),
    "Glob": ("search_files",),
    "LS": ("search_files",),
    "Bash": ("terminal", "process"),
    "BashOutput": ("process",),
    "KillShell": ("process",),
    "WebFetch": ("web_fetch",),
    "WebSearch": ("web_search",),
    "TodoWrite": ("todo",),
}
"""Claude Code's names of tools, and our equivalents."""
_NAME = regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_LINE = regex(r"(name|description|tools|model):[ \t]*(.*)")


class AgentFile(Struct, frozen=True):
    """A helper, its file, and which parts of the file are unused."""

    helper: Helper
    source: str
    remarks: tuple[str, ...] = ()


def parse_agent(source: str, text: str) -> AgentFile:
    """Return the helper of a file. Raises Refused with advice if it describes none."""
    fields, body = _split(source, text)
    name, description = _text(fields, "name"), _text(fields, "description")
    if not _NAME.fullmatch(name):
        raise Refused(
            f"{source} has no name of letters, digits, - and _. An agent looks like this:\n{EXAMPLE}"
        )
    if not description or not body:
        lacking = "instructions below its front matter" if description else "description"
        raise Refused(f"{source} has no {lacking}. An agent looks like this:\n{EXAMPLE}")
    tools, remarks = _tools(fields.get("tools"))
    model, ignored = _model(_text(fields, "model"))
    others = sorted(key for key in fields if key not in FIELDS)
    unused = [f"not used: {', '.join(others)}"] if others else []
    return AgentFile(Helper(name, description, body, tools, model), source, (*remarks, *ignored, *unused))


def _split(source: str, text: str) -> tuple[Mapping[str, Any], str]:
    lines = text.lstrip("\ufeff").split("\n")
    ends = [number for number, line in enumerate(lines) if number and line.rstrip() == FENCE]
    if lines[0].rstrip() != FENCE or not ends:
        raise Refused(f"{source} does not begin with front matter. An agent looks like this:\n{EXAMPLE}")
    front, body = lines[1 : ends[0]], "\n".join(lines[ends[0] + 1 :]).strip()
    try:
        return read("\n".join(front), EXAMPLE), body
    except Refused:
        # Descriptions with a colon are common, but are not YAML.
        found = [match for line in front if (match := _LINE.fullmatch(line.rstrip()))]
        return {match[1]: match[2].strip().strip("\"'") for match in found}, body


def _text(fields: Mapping[str, Any], key: str) -> str:
    value = fields.get(key, "")
    return " ".join(value.replace("\\n", " ").split()) if isinstance(value, str) else ""


def _tools(value: Any) -> tuple[frozenset[str] | None, Sequence[str]]:
    """Return the names of tools, and the unused ones; None if the file leaves the tools to the parent. A tool
    with a pattern, such as Bash(git *), is left out: without its pattern it could do more than intended."""
    listed = value if isinstance(value, list) else str("*" if value is None else value).strip("[]").split(",")
    names = [name for each in listed if (name := str(each).strip().strip("\"'"))]
    if names == ["*"]:
        return None, ()
    patterns = [name for name in names if "(" in name or ")" in name]
    found = (ours for name in names if name not in patterns for ours in TOOLS.get(name, (name,)))
    remark = f"{', '.join(patterns)} is not used: write the pattern as a permission rule"
    return frozenset(found), ([remark] if patterns else [])


def _model(value: str) -> tuple[str, Sequence[str]]:
    """Return a model as provider/name. Other words name models that only another agent knows."""
    if not value or value == "inherit":
        return "", ()
    if "/" in value:
        return value, ()
    return "", (f"model {value} is no provider/name; the model of the conversation is used",)
