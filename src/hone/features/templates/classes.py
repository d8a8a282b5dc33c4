"""Classify the work of a session and find its calls that succeeded, judging by calls and results."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping

from hone.core.messages import ToolResult
from hone.core.regex import regex
from hone.core.tool import ToolKind
from hone.features.templates.values import WorkKind

SHARE = (6, 10)
"""One kind of work names the session if it has strictly more than this share of its calls."""

_NAMES: Mapping[ToolKind, str] = {
    ToolKind.CODE: "execute_code code_execution code_interpreter python ipython execute_ipython_cell "
    "execute_python run_python run_code python_repl NotebookExecute mcp__ide__executeCode",
    ToolKind.FILE: "read_file write_file patch search_files Read Write Edit MultiEdit NotebookRead "
    "NotebookEdit "
    "Glob Grep LS apply_patch view_image list_dir grep_files read_many_files replace glob "
    "search_file_content list_directory str_replace_editor str_replace_based_edit_tool text_editor "
    "write_to_file replace_in_file apply_diff insert_content list_files list_code_definition_names "
    "edit_file create_file delete_file "
    "file_search grep_search codebase_search view edit write read grep find ls",
    ToolKind.RESEARCH: "web_fetch web_search web_extract web_crawl WebFetch WebSearch google_web_search "
    "fetch "
    "fetch_url browse browser search_web read_url brave_web_search tavily_search",
}
KNOWN: Mapping[str, ToolKind] = {name: kind for kind, names in _NAMES.items() for name in names.split()}
"""Names of such tools in other agents, and ours, for a session whose tools are not here."""
_BROWSING = regex(r"browser_[a-z_]+")


def kind_of(name: str, declared: Mapping[str, ToolKind]) -> ToolKind:
    """Return the tool's declared kind; for a missing tool, that of its name elsewhere."""
    if name in declared:
        return declared[name]
    return ToolKind.RESEARCH if _BROWSING.fullmatch(name) else KNOWN.get(name, ToolKind.OTHER)


def classify(names: Iterable[str], declared: Mapping[str, ToolKind]) -> WorkKind:
    """Classify a session by the tools that were called, once for each call."""
    counts = Counter(kind_of(name, declared) for name in names)
    part, whole = SHARE
    for kind in (ToolKind.CODE, ToolKind.FILE, ToolKind.RESEARCH):
        if counts[kind] * whole > counts.total() * part:
            return WorkKind(kind)
    return WorkKind.MIXED


_OPENING = regex(
    r"\[?(?:error|fatal|exception|failure)(?:$|:|\b[^\n]{1,40}:)|Traceback \(most recent call last\)"
    r"|<(?:tool_use_)?error>"
    r"|(?:the )?(?:tool|command|call|request) (?:failed|timed out|was (?:denied|refused))\b"
    r"|(?:permission denied|command not found|no such file or directory)\b",
    re.IGNORECASE,
)
_ENDING = regex(r"[\[(<]?(?:process )?exit(?:ed)?(?: with)?[ _](?:code|status)>?:?\s*-?[1-9]", re.IGNORECASE)
_HEAD, _TAIL = 5, 2
"""How many lines at either end of a result may say how a command ended."""
_REFUSALS = ("success", "ok", "succeeded")
_FAULTS = ("error", "errors", "exception", "is_error", "isError", "failed", "timed_out")
_CODES = ("exit_code", "exitCode", "returncode", "return_code", "exit_status")
_STATES = regex(r"error|errored|fail|failed|failure|denied|refused|cancell?ed|timeout|timed.out", re.I)
_INNER = ("metadata", "result", "data")


def succeeded(result: ToolResult) -> bool:
    """Tell whether a call succeeded. It did not if it is marked as failed, nor if its own words say so: not
    every agent marks failures."""
    return not result.failed and not _confesses(result.text)


def _confesses(text: str) -> bool:
    if text.lstrip().startswith("{"):
        try:
            return _is_bad(json.loads(text))
        except (ValueError, RecursionError):
            return False
    lines = [line.strip() for line in text.strip().splitlines()]
    ends = (*lines[:_HEAD], *lines[-_TAIL:])
    return bool(lines and _OPENING.match(lines[0])) or any(map(_ENDING.match, ends))


def _is_bad(value: object, depth: int = 2) -> bool:
    if not isinstance(value, dict) or not depth:
        return False
    states = [value[name] for name in ("status", "state") if isinstance(value.get(name), str)]
    return (
        any(value.get(name) is False for name in _REFUSALS)
        or any(value.get(name) not in (None, False, "", 0, [], {}) for name in _FAULTS)
        or any(value.get(name) not in (None, 0, "0", False) for name in _CODES)
        or any(_STATES.fullmatch(state) for state in states)
        or any(_is_bad(value.get(name), depth - 1) for name in _INNER)
    )
