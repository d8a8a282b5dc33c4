"""H1, H2: what kind of work a session did, and whether a call really succeeded."""

import pytest

from hone import Hone
from hone.core.messages import ToolResult
from hone.core.tool import ToolKind
from hone.features.templates.classes import classify, succeeded
from hone.features.templates.values import WorkKind
from hone.models.scripted import Scripted, lines

DECLARED = {
    "execute_code": ToolKind.CODE,
    "read_file": ToolKind.FILE,
    "web_fetch": ToolKind.RESEARCH,
    "terminal": ToolKind.OTHER,
}

SESSIONS = {
    "no calls": ("", WorkKind.MIXED),
    "only others": ("terminal terminal todo", WorkKind.MIXED),
    "one call": ("execute_code", WorkKind.CODE),
    "exactly 60 %": ("execute_code execute_code execute_code terminal terminal", WorkKind.MIXED),
    "exactly 60 % of files": ("read_file read_file read_file web_fetch execute_code", WorkKind.MIXED),
    "just above 60 %": ("read_file " * 61 + "terminal " * 39, WorkKind.FILE),
    "60 of 100": ("read_file " * 60 + "terminal " * 40, WorkKind.MIXED),
    "two of three": ("web_fetch web_fetch todo", WorkKind.RESEARCH),
    "half and half": ("read_file execute_code", WorkKind.MIXED),
    "others count in the total": ("execute_code terminal", WorkKind.MIXED),
    "Claude Code at files": ("Read Edit Grep Bash", WorkKind.FILE),
    "Claude Code at the web": ("WebSearch WebFetch WebFetch Task", WorkKind.RESEARCH),
    "Codex": ("apply_patch apply_patch shell", WorkKind.FILE),
    "Hermes at the web": ("web_search web_extract browser_navigate terminal", WorkKind.RESEARCH),
    "an interpreter": ("code_interpreter python", WorkKind.CODE),
    "Gemini at files": ("read_many_files replace run_shell_command", WorkKind.FILE),
    "names that nobody knows": ("frobnicate frobnicate", WorkKind.MIXED),
}


@pytest.mark.parametrize("name", SESSIONS)
def test_a_session_is_what_strictly_more_than_60_percent_of_its_calls_are(name: str) -> None:
    calls, work = SESSIONS[name]
    assert classify(calls.split(), DECLARED) is work


def test_what_a_tool_declares_is_worth_more_than_what_its_name_means_elsewhere() -> None:
    assert classify(["Read"], {"Read": ToolKind.CODE}) is WorkKind.CODE
    assert classify(["Read"], {"Read": ToolKind.OTHER}) is WorkKind.MIXED


async def test_the_tools_that_come_with_hone_declare_their_kind() -> None:
    async with Hone(model=Scripted(lines("hi"))) as hone:
        toolbox = (await hone.session()).agent.toolbox
    kinds = {name: tool.spec.kind for name, tool in toolbox.items()}
    assert {name for name, kind in kinds.items() if kind is ToolKind.CODE} == {"execute_code"}
    assert {name for name, kind in kinds.items() if kind is ToolKind.FILE} == {
        "read_file",
        "write_file",
        "patch",
        "search_files",
    }
    assert {name for name, kind in kinds.items() if kind is ToolKind.RESEARCH} == {"web_fetch"}


FAILURES = [
    "Error: no such thing",
    "error",
    "[Error reading file: gone]",
    "fatal: not a git repository",
    "Traceback (most recent call last):\n  File x\nValueError: y",
    "<tool_use_error>File has not been read yet.</tool_use_error>",
    "Tool failed.",
    "command timed out after 120 s",
    "Permission denied",
    "Exit code: 1\nWall time: 0.1 seconds\nOutput:\nno",
    "Chunk ID: a\nWall time: 1\nProcess exited with code 127\nOutput:\nno",
    "some output\n[exit code 2; 0.1 s]",
    "some output\n(exit status 1)",
    '{"success": false, "output": ""}',
    '{"error": "not found"}',
    '{"status": "error"}',
    '{"output": "no", "metadata": {"exit_code": 1}}',
    '{"exit_code": 2, "output": "x"}',
    '{"result": {"ok": false}}',
]
SUCCESSES = [
    "",
    "done",
    "0 errors found",
    "12 rows\n[exit code 0; 0.1 s]",
    "Exit code: 0\nOutput:\nfine",
    '{"success": true, "error": null}',
    '{"error": "", "exit_code": 0}',
    '{"status": "ok"}',
    "{not json",
    '[{"error": "a row of a table"}]',
    "The text speaks of an Error: in the middle.",
]


@pytest.mark.parametrize("text", FAILURES)
def test_a_result_that_says_it_failed_has_failed(text: str) -> None:
    assert not succeeded(ToolResult("1", text))


@pytest.mark.parametrize("text", SUCCESSES)
def test_any_other_result_counts_unless_it_is_marked(text: str) -> None:
    assert succeeded(ToolResult("1", text))
    assert not succeeded(ToolResult("1", text, failed=True))
