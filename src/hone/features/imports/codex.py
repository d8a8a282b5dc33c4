"""Read rollout files of Codex CLI: each line is an item sent to the model or received from it."""

import json
import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from hone.core.messages import Text, Thinking, ToolCall, canonical
from hone.core.regex import regex
from hone.features.imports import conversation as talk
from hone.features.imports.conversation import Conversation, ImportReport, RawMessage, Row

NAME = "codex"
_COPIES = ("event_msg", "turn_context", "compacted", "world_state", "token_usage_record")
"""Lines that repeat an item, or that describe its settings."""
_HELPERS = ("subagent", "memory_consolidation")
_ENDED = regex(r"^(?:Process exited with code|Exit code:) (-?\d+)$|^aborted by user$", re.MULTILINE)
"""How a command ended, reported above its output."""


def read(rows: Iterable[tuple[int, Row]], name: str, report: ImportReport) -> Iterator[Conversation]:
    """Read one conversation, named by its first line or, without one, by its file."""
    conversation = Conversation(name)
    begun = helper = False
    for number, row in rows:
        with report.guard(f"{name}, line {number}"):
            if row.get("type") in _COPIES or "record_type" in row:
                continue
            meta = _meta(row)
            if meta is not None and not begun:
                begun = True
                conversation.own = talk.string(meta, "id", "session_id") or name
                conversation.folder = talk.string(meta, "cwd")
                helper = (
                    isinstance(meta.get("source"), dict) or talk.string(meta, "thread_source") in _HELPERS
                )
            elif meta is None:
                item = row["payload"] if row.get("type") == "response_item" else row
                at = talk.moment(row.get("timestamp"))
                conversation.take(_raw_messages(item, at, report), mixed=_is_mixed(item))
    if helper:
        report.left[talk.HELPERS] += len(conversation.messages)
    else:
        yield conversation


def _meta(row: Row) -> Row | None:
    """Return what a file says about itself. In the oldest ones this has no type."""
    if row.get("type") == "session_meta":
        payload = row["payload"]
        return payload if isinstance(payload, dict) else {}
    return row if "type" not in row and "id" in row else None


def _raw_messages(item: Any, at: datetime | None, report: ImportReport) -> Iterator[RawMessage]:
    match item.get("type"):
        case "message":
            yield from _message(item, at, report)
        case "reasoning":
            thought = talk.words([*(item.get("summary") or ()), *(item.get("content") or ())], report)
            if thought:
                yield talk.assistant([Thinking(thought)], at)
        case "function_call":
            yield talk.assistant([_call(item, talk.string(item, "arguments"))], at)
        case "custom_tool_call":
            yield talk.assistant([_call(item, canonical({"input": talk.string(item, "input")}))], at)
        case "local_shell_call":
            yield talk.assistant([_call(item, canonical(item.get("action") or {}), "shell")], at)
        case "function_call_output" | "custom_tool_call_output" | "local_shell_call_output":
            text, failed = _output(item.get("output"), report)
            yield talk.result(talk.string(item, "call_id", "id"), text, at, failed=failed)
        case _:
            report.left[talk.UNKNOWN] += 1


def _message(item: Row, at: datetime | None, report: ImportReport) -> Iterator[RawMessage]:
    text = talk.words(_own(item), report)
    match item.get("role"):
        case "user":
            if not text.strip():
                report.left[talk.NOTES] += 1
            yield from talk.heard(text, report, at)
        case "assistant":
            yield talk.assistant([Text(text)], at)
        case "system" | "developer":
            report.left[talk.INSTRUCTIONS] += 1
        case _:
            report.left[talk.UNKNOWN] += 1


def _is_mixed(item: Row) -> bool:
    return item.get("role") == "user" and talk.outside(talk.words(item.get("content"), ImportReport()))


def _own(item: Row) -> Any:
    """Return the speaker's own part, if it is marked; else everything."""
    content = item.get("content")
    if item.get("role") != "user":
        return content
    passed = item.get("internal_chat_message_metadata_passthrough")
    made = passed.get("content_item_metadata") if isinstance(passed, dict) else None
    if not isinstance(content, list) or not isinstance(made, list) or len(made) != len(content):
        return content
    sources = [each.get("provenance", {}).get("type", "user") for each in made]
    return [block for block, source in zip(content, sources, strict=True) if source == "user"]


def _call(item: Row, arguments: str, name: str = "") -> ToolCall:
    return ToolCall(talk.string(item, "call_id", "id"), talk.string(item, "name") or name, arguments)


def _output(output: Any, report: ImportReport) -> tuple[str, bool]:
    """Return the output: a text, or an object with it; the text may be that object, in JSON."""
    if isinstance(output, str) and output.startswith("{"):
        try:
            inner = json.loads(output)
        except (ValueError, RecursionError):
            return output, False
        if "output" not in inner:
            return output, False
        output = inner
    if isinstance(output, dict):
        meta = output.get("metadata")
        code = meta.get("exit_code") if isinstance(meta, dict) else 0
        failed = output.get("success") is False or code not in (0, None)
        return talk.words(output.get("output", output.get("content")), report), failed
    text = talk.words(output, report)
    head = _ENDED.search(text.partition("Output:\n")[0][:500])
    return text, head is not None and head[1] != "0"
