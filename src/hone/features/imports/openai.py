"""Read messages in OpenAI's chat format: one conversation per line, or one message per line."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from hone.core.messages import Part, Text, Thinking, ToolCall, canonical, digest
from hone.core.trust import Trust
from hone.features.imports import conversation as talk
from hone.features.imports.conversation import Conversation, ImportReport, RawMessage, Row

NAME = "openai"
_IDS = ("conversation_id", "session_id", "thread_id", "id")
_TIMES = ("timestamp", "created_at", "create_time", "created", "ts")


def read(rows: Iterable[tuple[int, Row]], name: str, report: ImportReport) -> Iterator[Conversation]:
    """Read a file. A line with `messages` is a conversation, identified by its id or else by its content.
    Lines with a `role` are the messages of one, or of as many as they name, identified by the file name and
    their start."""
    found: dict[str, Conversation] = {}
    for number, row in rows:
        with report.guard(f"{name}, line {number}"):
            if isinstance(row.get("messages"), list):
                yield whole(row, report)
            elif isinstance(row.get("role"), str):
                key = talk.string(row, *_IDS[:-1])
                own = found.setdefault(key, Conversation(key))
                own.messages += raw_messages(row, report)
            else:
                report.left[talk.UNKNOWN] += 1
    for key, conversation in found.items():
        conversation.own = key or f"{name} {_beginning(conversation)}"
        yield conversation


def whole(row: Row, report: ImportReport, name: str = "") -> Conversation:
    at = when(row)
    conversation = Conversation(talk.string(row, *_IDS) or name, title=talk.string(row, "title"))
    conversation.folder = talk.string(row, "cwd")
    for message in row["messages"]:
        if isinstance(message, dict):
            conversation.messages += raw_messages(message, report, at=at)
        else:
            report.left[talk.UNKNOWN] += 1
    conversation.own = conversation.own or digest(canonical(row["messages"]).encode("utf-8", "replace"))
    return conversation


def _beginning(conversation: Conversation) -> str:
    first = conversation.messages[0].message if conversation.messages else None
    return digest(repr(first).encode("utf-8", "replace"))


def when(row: Row) -> datetime | None:
    return next((at for at in (talk.moment(row.get(name)) for name in _TIMES) if at), None)


def raw_messages(
    row: Row, report: ImportReport, *, voiced: Trust = Trust.OWNER, at: datetime | None = None
) -> Iterator[RawMessage]:
    """Yield one message. `voiced` is the best label for words under the user's name."""
    at = when(row) or at
    content = row.get("content")
    match row.get("role"):
        case "user":
            yield from talk.heard(talk.words(content, report), report, at, voiced)
        case "assistant":
            parts = [*_spoken(row, report), *_calls(row)]
            if parts:
                yield talk.assistant(parts, at)
        case "tool":
            yield talk.result(talk.string(row, "tool_call_id"), talk.words(content, report), at)
        case "function":
            yield talk.result(f"function {talk.string(row, 'name')}", talk.words(content, report), at)
        case "system" | "developer":
            report.left[talk.INSTRUCTIONS] += 1
        case _:
            report.left[talk.UNKNOWN] += 1


def _spoken(row: Row, report: ImportReport) -> Iterator[Part]:
    if thought := talk.string(row, "reasoning_content", "reasoning"):
        yield Thinking(thought)
    if text := talk.words(row.get("content"), report) or talk.string(row, "refusal"):
        yield Text(text)


def _calls(row: Row) -> Iterator[ToolCall]:
    calls = row.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function")
        made = function if isinstance(function, dict) else call
        yield ToolCall(talk.string(call, "id", "call_id"), talk.string(made, "name"), _arguments(made))
    former = row.get("function_call")
    if isinstance(former, dict):
        name = talk.string(former, "name")
        yield ToolCall(f"function {name}", name, _arguments(former))


def _arguments(made: Any) -> str:
    given = made.get("arguments")
    return given if isinstance(given, str) else canonical(given or {})
