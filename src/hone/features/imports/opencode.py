"""Read conversations of OpenCode from its database, `opencode.db`, as versions 1.2 to 1.18 write it.

A message and each of its parts is a row with JSON. Versions before 1.2 had a file for each; a later one moves
them into the database when it first starts.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import apsw

from hone.core.messages import Text, Thinking, ToolCall, canonical
from hone.core.trust import Trust
from hone.features.imports import conversation as talk
from hone.features.imports.conversation import Conversation, ImportReport, RawMessage, Row
from hone.features.imports.reading_sqlite import BROKEN, find_columns, read_database

NAME = "opencode"
DATABASE = "opencode.db"
WITHDRAWN = "messages that were taken back"
_TABLES = {
    "session": ("id", "parent_id", "directory", "title", "revert", "time_created"),
    "message": ("id", "session_id", "data", "time_created"),
    "part": ("id", "message_id", "data"),
}
_SHOWN = ("file", "agent", "subtask")
"""Parts of the user's message that showed the agent something from elsewhere."""


def conversations(path: Path, report: ImportReport) -> Iterator[Conversation]:
    """Read the database. Raises Corrupt if it is another database, or ends early."""
    with read_database(path) as connection:
        columns = {name: find_columns(connection, name, wanted) for name, wanted in _TABLES.items()}
        if not {"id", "session_id", "data"} <= set(columns["message"]) or "data" not in columns["part"]:
            raise apsw.SQLError("it has no tables of messages and their parts")
        listed = connection.execute(f"SELECT {', '.join(columns['session'])} FROM session ORDER BY id")
        sessions = [dict(zip(columns["session"], row, strict=True)) for row in listed]
        for session in sorted(sessions, key=lambda each: (str(each.get("time_created")), str(each["id"]))):
            yield from _read(connection, session, report)


def _read(connection: apsw.Connection, session: Row, report: ImportReport) -> Iterator[Conversation]:
    id = talk.string(session, "id")
    messages = list(_messages(connection, id, report))
    if talk.string(session, "parent_id"):
        report.left[talk.HELPERS] += len(messages)
        return
    yield read(session, messages, report)


def _messages(
    connection: apsw.Connection, session: str, report: ImportReport
) -> Iterator[tuple[Row, list[Row]]]:
    """Yield each message of a session with its parts."""
    query = "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id"
    try:
        for id, data in connection.execute(query, (session,)):
            with report.guard(f"session {session}", f"message {id}"):
                parts = connection.execute("SELECT data FROM part WHERE message_id = ? ORDER BY id", (id,))
                found = {**json.loads(data), "id": id}, [json.loads(each) for (each,) in parts]
                yield found
    except BROKEN as error:
        report.fault(f"session {session}", f"it cannot be read to its end ({error})")


def read(session: Row, messages: Iterable[tuple[Row, list[Row]]], report: ImportReport) -> Conversation:
    """Return one conversation. Undone messages are left out."""
    id = talk.string(session, "id")
    conversation = Conversation(id, title=talk.string(session, "title"))
    conversation.folder = talk.string(session, "directory")
    taken_back = _reverted(session)
    for message, parts in messages:
        with report.guard(f"session {id}", f"message {message.get('id')}"):
            if taken_back and str(message.get("id", "")) >= taken_back:
                report.left[WITHDRAWN] += 1
                continue
            raw, mixed = _raw_messages(message, parts, report)
            conversation.take(raw, mixed=mixed)
    return conversation


def _reverted(session: Row) -> str:
    """Return the first message that the user undid; ids are in order."""
    try:
        found = json.loads(talk.string(session, "revert") or "null")
    except (ValueError, RecursionError):
        return ""
    return talk.string(found, "messageID") if isinstance(found, dict) else ""


def _raw_messages(message: Row, parts: list[Row], report: ImportReport) -> tuple[list[RawMessage], bool]:
    """Return what a message says, and whether it showed the agent something that is not imported."""
    time = message.get("time")
    at = talk.moment(time.get("created")) if isinstance(time, Mapping) else None
    match message.get("role"):
        case "user":
            mixed = any(part.get("synthetic") or part.get("type") in _SHOWN for part in parts)
            return list(_said(parts, at, report)), mixed
        case "assistant" if message.get("summary"):
            report.left[talk.NOTES] += 1
        case "assistant":
            return [each for part in parts for each in _answered(part, at, report)], False
        case _:
            report.left[talk.UNKNOWN] += 1
    return [], False


def _said(parts: Iterable[Row], at: datetime | None, report: ImportReport) -> Iterator[RawMessage]:
    """Yield what the user typed. The program marks its own additions."""
    for part in parts:
        if part.get("type") != "text" or part.get("ignored"):
            report.left[talk.MEDIA if part.get("type") == "file" else talk.NOTES] += 1
        elif part.get("synthetic"):
            report.left[talk.NOTES] += 1
        else:
            yield from talk.heard(talk.string(part, "text"), report, at, Trust.OWNER)


def _answered(part: Row, at: datetime | None, report: ImportReport) -> Iterator[RawMessage]:
    match part.get("type"):
        case "text":
            yield talk.assistant([Text(talk.string(part, "text"))], at)
        case "reasoning":
            yield talk.assistant([Thinking(talk.string(part, "text"))], at)
        case "tool":
            yield from _tool(part, at)
        case "step-start" | "step-finish" | "snapshot" | "patch" | "retry" | "compaction" | "agent":
            return
        case "file":
            report.left[talk.MEDIA] += 1
        case _:
            report.left[talk.UNKNOWN] += 1


def _tool(part: Row, at: datetime | None) -> Iterator[RawMessage]:
    """Yield a call and, if it has ended, its result."""
    state: dict[str, Any] = part["state"]
    id = talk.string(part, "callID")
    call = ToolCall(id, talk.string(part, "tool"), canonical(state.get("input") or {}))
    yield talk.assistant([call], at)
    meta, broken = state.get("metadata"), state.get("status") == "error"
    code = meta.get("exit") if isinstance(meta, dict) else 0
    if broken or state.get("status") == "completed":
        text = state.get("error" if broken else "output")
        failed = broken or code not in (0, None)
        yield talk.result(id, text if isinstance(text, str) else "", at, failed=failed)
