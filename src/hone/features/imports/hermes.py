"""Read sessions, memory entries and skills of Hermes Agent, from its database and its session files."""

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import apsw
import yaml

from hone.core.trust import Trust
from hone.features.imports import conversation as talk
from hone.features.imports.conversation import Conversation, ImportReport, RawMessage, Row
from hone.features.imports.openai import raw_messages, when
from hone.features.imports.reading_sqlite import BROKEN, find_columns, read_database

NAME = "hermes"
SECTION = "§"
"""Alone on a line, it separates two entries of the memory."""
WITHDRAWN = "messages that were taken back"
MOMENT = 0.0005
"""In seconds. Rows of one batch have times that are closer together."""
_OWN = ("cli", "tui", "desktop", "acp")
"""Sources where only the owner can have typed. In a messenger, the author is unknown."""
_ENCODED = ("\x00json:", "\x01json:")
_HELPERS = ("subagent", "tool")
_FOLLOWS = ("_branched_from", "_reset_from")
_ENDS = ("compression", "compaction", "branched")
Messages = Callable[[str], Iterable[Row]]
_SESSIONS = (
    *("id", "source", "parent_session_id", "started_at", "end_reason", "title", "cwd", "model_config"),
    "chat_type",
)
_MESSAGES = (
    *("id", "role", "content", "tool_call_id", "tool_calls", "timestamp", "reasoning", "reasoning_content"),
    *("active", "compacted", "_compressed_summary", "display_kind", "observed"),
)
_TABLES = {"sessions": _SESSIONS, "messages": _MESSAGES}


def read(sessions: Iterable[Row], messages: Messages, report: ImportReport) -> Iterator[Conversation]:
    """Yield the conversations of the database. Conversations that were shortened there appear in full."""
    known: dict[str, Row] = {}
    for session in sessions:
        id = talk.string(session, "id")
        known[id] = session
        config = talk.string(session, "model_config")
        if talk.string(session, "source") in _HELPERS or "_delegate_from" in config:
            report.left[talk.HELPERS] += sum(1 for _ in messages(id))
            continue
        voiced = Trust.OWNER if _is_own(session, known) else Trust.FOREIGN
        conversation = Conversation(
            id, title=talk.string(session, "title"), folder=talk.string(session, "cwd")
        )
        conversation.messages = list(_said(messages(id), voiced, f"session {id}", report))
        yield conversation


def _is_own(session: Row, known: dict[str, Row]) -> bool:
    """Tell whether a session is the agent's own: a child without a sign that the user continued it may be."""
    if talk.string(session, "source") not in _OWN or talk.string(session, "chat_type") == "group":
        return False
    parent = talk.string(session, "parent_session_id")
    follows = any(mark in talk.string(session, "model_config") for mark in _FOLLOWS)
    return not parent or follows or talk.string(known.get(parent, {}), "end_reason") in _ENDS


def _said(rows: Iterable[Row], voiced: Trust, where: str, report: ImportReport) -> Iterator[RawMessage]:
    seen: set[tuple[Any, ...]] = set()
    for row, written in _together(rows):
        if row.get("active") == 0 and not row.get("compacted"):
            report.left[WITHDRAWN] += 1
            continue
        words = tuple(row.get(name) for name in ("role", "content", "tool_call_id", "tool_calls"))
        same = (*words, row.get("timestamp"))
        if same in seen or (written and words in seen):
            report.left[talk.REPEATED] += 1
            continue
        seen |= {words, same}
        with report.guard(where, f"message {row.get('id')}"):
            owned = not any(row.get(name) for name in ("_compressed_summary", "observed", "display_kind"))
            yield from _raw_messages(row, report, voiced if owned else Trust.FOREIGN)


def _together(rows: Iterable[Row]) -> Iterator[tuple[Row, bool]]:
    """Yield each row, and whether it was written in one batch with a neighbor: when a conversation is
    shortened, the kept part is written once more, with other times."""
    given = list(rows)
    if not given:
        return
    times = [row.get("timestamp") for row in given]
    near = [
        isinstance(one, float) and isinstance(other, float) and abs(other - one) < MOMENT
        for one, other in pairwise(times)
    ]
    for row, before, after in zip(given, [False, *near], [*near, False], strict=True):
        yield row, before or after


def _raw_messages(row: Row, report: ImportReport, voiced: Trust) -> Iterator[RawMessage]:
    failed = row.get("role") == "tool" and _is_failure(row.get("content"))
    for raw in raw_messages(_message(row), report, voiced=voiced):
        answered = raw.message.result
        yield talk.result(answered.call, answered.text, raw.at, failed=failed) if answered else raw


def _is_failure(content: object) -> bool:
    """Tell whether a tool failed. Its tools answer with an object that says how they ended."""
    try:
        told = json.loads(content) if isinstance(content, str) and content.startswith("{") else None
    except (ValueError, RecursionError):
        return False
    if not isinstance(told, dict):
        return False
    ended = told.get("exit_code") in (0, None) and told.get("success") is not False
    return not ended or bool(told.get("error"))


def _message(row: Row) -> Row:
    """Return a row as a message of the chat endpoint."""
    content, calls = row.get("content"), row.get("tool_calls")
    if isinstance(content, str) and content.startswith(_ENCODED):
        content = json.loads(content[len(_ENCODED[0]) :])
    if isinstance(calls, str):
        calls = json.loads(calls)
    return {**row, "content": content, "tool_calls": calls}


def read_file(row: Row, name: str, report: ImportReport) -> Conversation | None:
    """Read a session file: one object with all messages. Return None if it is another kind of file."""
    messages = row.get("messages")
    if not isinstance(messages, list):
        report.left[talk.UNKNOWN] += 1
        return None
    voiced = Trust.OWNER if talk.string(row, "platform", "source") in _OWN else Trust.FOREIGN
    conversation = Conversation(talk.string(row, "session_id", "id") or name, title=talk.string(row, "title"))
    begun = when({"timestamp": row.get("session_start", row.get("started_at"))})
    for number, message in enumerate(messages, 1):
        with report.guard(name, f"message {number}"):
            conversation.messages += raw_messages(message, report, voiced=voiced, at=begun)
    return conversation


def read_lines(rows: Iterable[tuple[int, Row]], name: str, report: ImportReport) -> Iterator[Conversation]:
    """Read a transcript of the messenger gateway: one message per line."""
    conversation = Conversation(name)
    for number, row in rows:
        with report.guard(f"{name}, line {number}"):
            if row.get("role") != "session_meta":
                conversation.messages += raw_messages(row, report, voiced=Trust.FOREIGN)
    yield conversation


def entries(text: str) -> list[str]:
    """Return the entries of MEMORY.md or USER.md, each once."""
    found: list[list[str]] = [[]]
    for line in text.splitlines():
        if line.strip() == SECTION:
            found.append([])
        else:
            found[-1].append(line)
    return list(dict.fromkeys(entry for lines in found if (entry := "\n".join(lines).strip())))


def plain_skill(text: str) -> tuple[str, str, str]:
    """Return name, description and body of a SKILL.md, whose front matter may exceed the open format. Raises
    ValueError."""
    start, front, body = text.split("---", 2)
    if start.strip() or len(front) > 20_000:
        raise ValueError("it has no front matter")
    try:
        fields = yaml.load(front, yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError("its front matter cannot be read") from error
    if (
        not isinstance(fields, dict)
        or not talk.string(fields, "name")
        or not talk.string(fields, "description")
    ):
        raise ValueError("it has no name or no description")
    return talk.string(fields, "name").strip(), " ".join(talk.string(fields, "description").split()), body


def conversations(path: Path, report: ImportReport) -> Iterator[Conversation]:
    """Read the database of Hermes Agent without ever writing it. Raises Corrupt if it is another database, or
    ends early."""
    with read_database(path) as connection:
        yield from _conversations(connection, report)


def _conversations(connection: apsw.Connection, report: ImportReport) -> Iterator[Conversation]:
    columns = {name: find_columns(connection, name, wanted) for name, wanted in _TABLES.items()}
    if not all({"id"} <= set(each) for each in columns.values()):
        raise apsw.SQLError("it has no table of sessions and messages")
    order = "started_at, id" if "started_at" in columns["sessions"] else "id"

    def messages(session: str) -> Iterator[Row]:
        query = f"SELECT {', '.join(columns['messages'])} FROM messages WHERE session_id = ? ORDER BY id"
        try:
            for row in connection.execute(query, (session,)):
                yield dict(zip(columns["messages"], row, strict=True))
        except BROKEN as error:
            report.fault(f"session {session}", f"it cannot be read to its end ({error})")

    listed = connection.execute(f"SELECT {', '.join(columns['sessions'])} FROM sessions ORDER BY {order}")
    sessions = [dict(zip(columns["sessions"], row, strict=True)) for row in listed]
    yield from read(sessions, messages, report)
