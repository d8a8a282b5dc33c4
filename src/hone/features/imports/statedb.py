"""The database of Hermes Agent, read and never written."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import apsw

from hone.core.errors import Corrupt
from hone.core.visible import one_line
from hone.features.imports.conversation import Conversation, ImportReport, Row
from hone.features.imports.hermes import read

BROKEN = (apsw.Error, UnicodeDecodeError)
"""What a damaged database raises."""
_SESSIONS = (
    *("id", "source", "parent_session_id", "started_at", "end_reason", "title", "cwd", "model_config"),
    "chat_type",
)
_MESSAGES = (
    *("id", "role", "content", "tool_call_id", "tool_calls", "timestamp", "reasoning", "reasoning_content"),
    *("active", "compacted", "_compressed_summary", "display_kind", "observed"),
)


def conversations(path: Path, account: ImportReport) -> Iterator[Conversation]:
    """Raises Corrupt if it is no such database, or breaks off."""
    try:
        connection = apsw.Connection(_address(path), flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
        try:
            connection.set_busy_timeout(5_000)
            yield from _conversations(connection, account)
        finally:
            connection.close()
    except BROKEN as error:
        raise Corrupt(f"{one_line(str(path), 200)} cannot be read: {error}.") from error


def _address(path: Path) -> str:
    """If nobody has it open, it is read without the files that SQLite would put beside it."""
    quiet = "" if path.with_name(f"{path.name}-wal").exists() else "&immutable=1"
    return f"file:{quote(str(path.absolute()))}?mode=ro{quiet}"


def _conversations(connection: apsw.Connection, account: ImportReport) -> Iterator[Conversation]:
    columns = {name: _present(connection, name, wanted) for name, wanted in _TABLES.items()}
    if not all({"id"} <= set(each) for each in columns.values()):
        raise apsw.SQLError("it has no table of sessions and messages")
    order = "started_at, id" if "started_at" in columns["sessions"] else "id"

    def messages(session: str) -> Iterator[Row]:
        query = f"SELECT {', '.join(columns['messages'])} FROM messages WHERE session_id = ? ORDER BY id"
        try:
            for row in connection.execute(query, (session,)):
                yield dict(zip(columns["messages"], row, strict=True))
        except BROKEN as error:
            account.fault(f"session {session}", f"it cannot be read to its end ({error})")

    listed = connection.execute(f"SELECT {', '.join(columns['sessions'])} FROM sessions ORDER BY {order}")
    sessions = [dict(zip(columns["sessions"], row, strict=True)) for row in listed]
    yield from read(sessions, messages, account)


_TABLES = {"sessions": _SESSIONS, "messages": _MESSAGES}


def _present(connection: apsw.Connection, table: str, wanted: tuple[str, ...]) -> list[str]:
    """Of the columns we know, those that this version of it has."""
    there = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
    return [column for column in wanted if column in there]
