"""Hooks as values: where they come from, their input, and the effect of their result."""

import json
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

from msgspec import Struct

from hone.core.messages import ToolCall
from hone.core.visible import one_line
from hone.settings.sections import HookSettings

NAMES = {"before_tool": "PreToolUse", "after_tool": "PostToolUse", "turn_end": "Stop", "learned": "Learned"}
"""Names of these events in scripts for other agents."""
REFUSES = 2
"""The exit code of a hook that refuses."""
LONGEST = 4_000
"""The most characters of a hook's output to pass on."""


class Hook(Struct, frozen=True):
    """`source` is the file it is written in."""

    settings: HookSettings
    source: str

    @property
    def name(self) -> str:
        return self.settings.command

    def is_for(self, event: str, tool: str = "") -> bool:
        wanted = self.settings.tools
        return self.settings.event == event and (
            not wanted or any(fnmatchcase(tool, each) for each in wanted)
        )


class HookRun(Struct, frozen=True):
    """How a hook ended. `trouble` says why it has no exit code."""

    code: int | None
    out: str = ""
    err: str = ""
    trouble: str = ""


class HookRuling(Struct, frozen=True):
    """The effect of a hook's result. `refusal` is why a call or the end of a turn is refused, `added` is
    additional text for the model, `notice` says how the hook failed. `spoken`: the refusal quotes the
    hook."""

    hook: str
    refusal: str = ""
    added: str = ""
    notice: str = ""
    spoken: bool = False

    def report(self, said: str) -> str:
        """Return a line for the owner: how the hook failed, or what it said; empty if there is nothing."""
        return one_line(self.notice or (f"The hook `{self.hook}` says: {said}" if said else ""), 500)


def rule(hook: Hook, run: HookRun) -> HookRuling:
    """Decide by the exit code: 0 continues, 2 refuses, anything else is an error. An error refuses only
    before a tool: nobody has confirmed that the call is fine."""
    said, complaint = run.out.strip()[:LONGEST], run.err.strip()[:LONGEST]
    if run.code == 0:
        return HookRuling(hook.name, added=said)
    if run.code == REFUSES:
        reason = complaint or said
        refusal = reason or f"the hook `{hook.name}` says no"
        return HookRuling(hook.name, refusal, spoken=bool(reason))
    why = run.trouble or f"it ended with exit code {run.code}"
    notice = ". ".join(filter(None, (f"The hook `{hook.name}` of {hook.source} failed: {why}", complaint)))
    if hook.settings.event == "before_tool":
        refusal = f"the hook `{hook.name}`, which has to agree, failed: {why}"
        return HookRuling(hook.name, refusal, notice=notice)
    return HookRuling(hook.name, notice=notice)


def describe_call(call: ToolCall) -> dict[str, Any]:
    """Return a hook's input about a call. Arguments that are not JSON are passed as text."""
    try:
        given = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        given = call.arguments
    return {"tool_name": call.name, "tool_input": given}


def encode(event: str, session: str, folder: str, details: Mapping[str, Any]) -> bytes:
    """Return the standard input of a hook: one JSON object in one line."""
    told = {"event": event, "hook_event_name": NAMES[event], "session_id": session, "cwd": folder, **details}
    return json.dumps(told, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"
