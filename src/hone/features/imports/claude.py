"""Read conversations of Claude Code: one JSON object per line, and one line per block of a reply."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hone.core.messages import Part, Text, Thinking, ToolCall, canonical
from hone.core.trust import Trust
from hone.features.imports import conversation as talk
from hone.features.imports.conversation import Conversation, ImportReport, RawMessage, Row

NAME = "claude-code"
_TITLES = {"custom-title": "customTitle", "ai-title": "aiTitle"}
_SPEAKERS = ("user", "assistant")
_SYNTHETIC = "<synthetic>"
"""Stands for a model: the program itself has answered."""
_PROGRAM = (
    *("agent_listing_delta", "deferred_tools_delta", "skill_listing", "todo_reminder", "task_reminder"),
    *("tool_search_usage_reminder", "plan_mode", "plan_mode_exit", "plan_mode_reentry", "auto_mode"),
    *("auto_mode_exit", "date_change", "output_style", "token_usage", "output_token_usage", "budget_usd"),
)
"""Kinds of attachments in which the program itself speaks."""


@dataclass(slots=True)
class _Line:
    """The content of a line, its session, and the line that it follows."""

    uuid: str
    parent: str
    own: str
    folder: str
    messages: Sequence[RawMessage] = ()
    mixed: bool = False


def read(rows: Iterable[tuple[int, Row]], name: str, report: ImportReport) -> Iterator[Conversation]:
    """Yield the conversations of a file. A file that began with the lines of another session holds those
    under that session's name. A turn that was undone stays in its place."""
    lines: list[_Line] = []
    seen: set[str] = set()
    titles: dict[str, str] = {}
    for number, row in rows:
        with report.guard(f"{name}, line {number}"):
            kind = row.get("type")
            if kind == "summary":
                titles[talk.string(row, "leafUuid")] = talk.string(row, "summary")
            elif kind in _TITLES:
                titles[f"session {talk.string(row, 'sessionId')}"] = talk.string(row, _TITLES[str(kind)])
            else:
                lines.append(_line(row, name, seen, report))
    yield from _conversations(lines, titles)


def _conversations(lines: Sequence[_Line], titles: dict[str, str]) -> Iterator[Conversation]:
    found: dict[str, Conversation] = {}
    where = {line.uuid: line.own for line in lines}
    for line in _followed(lines):
        if line.messages or line.mixed:
            conversation = found.setdefault(line.own, Conversation(line.own))
            conversation.folder = conversation.folder or line.folder
            conversation.take(line.messages, mixed=line.mixed)
    for leaf, title in titles.items():
        own = leaf.removeprefix("session ") if leaf.startswith("session ") else where.get(leaf, "")
        if own in found:
            found[own].title = title
    yield from found.values()


def _followed(lines: Sequence[_Line]) -> Iterator[_Line]:
    """Yield lines in file order, but none before the one it follows: they are written as they get ready, and
    a reply may be ready before its question is on disk."""
    coming = {line.uuid for line in lines if line.uuid}
    held: dict[str, list[_Line]] = {}
    for line in lines:
        if line.parent in coming and line.parent != line.uuid:
            held.setdefault(line.parent, []).append(line)
            continue
        due = [line]
        while due:
            ready = due.pop()
            coming.discard(ready.uuid)
            yield ready
            due += reversed(held.pop(ready.uuid, ()))
    for rest in held.values():  # they follow each other in a cycle
        yield from rest


def _line(row: Row, name: str, seen: set[str], report: ImportReport) -> _Line:
    line = _Line(
        talk.string(row, "uuid"),
        talk.string(row, "parentUuid"),
        talk.string(row, "sessionId") or name,
        talk.string(row, "cwd"),
    )
    kind = row.get("type")
    if kind in _SPEAKERS or kind == "attachment":
        if _is_fresh(row, seen, report):
            line.messages = list(_raw_messages(row, report))
            line.mixed = _is_mixed(row)
            seen.add(line.uuid)
    else:
        report.left[talk.NOTES if kind else talk.UNKNOWN] += 1
    return line


def _is_fresh(row: Row, seen: set[str], report: ImportReport) -> bool:
    if row.get("isSidechain"):
        report.left[talk.HELPERS] += 1
        return False
    if row.get("isMeta") or row.get("isApiErrorMessage"):
        report.left[talk.NOTES] += 1
        return False
    uuid = talk.string(row, "uuid")
    if uuid and uuid in seen:
        report.left[talk.REPEATED] += 1
        return False
    return True


def _raw_messages(row: Row, report: ImportReport) -> Iterator[RawMessage]:
    if row["type"] == "attachment":
        yield from _queued(row, report)
        return
    message = row["message"]
    content = message["content"]
    if row["type"] == "user":
        yield from _said(row, content, report)
    elif message.get("model") == _SYNTHETIC:
        report.left[talk.NOTES] += 1
    else:
        parts = [part for block in _blocks(content) for part in _part(block, report)]
        if parts:
            yield talk.assistant(parts, talk.moment(row.get("timestamp")))


def _is_mixed(row: Row) -> bool:
    """Tell whether it added words that nobody here said and that are not imported."""
    if row["type"] == "attachment":
        return row["attachment"].get("type") not in ("queued_command", *_PROGRAM)
    return row["type"] == "user" and talk.outside(talk.words(row["message"]["content"], ImportReport()))


def _queued(row: Row, report: ImportReport) -> Iterator[RawMessage]:
    """Yield what was typed while the agent was working. The program wrote any other attachment."""
    attached = row["attachment"]
    if attached.get("type") != "queued_command" or attached.get("isMeta"):
        report.left[talk.NOTES] += 1
        return
    kept = {"origin": attached.get("origin"), "timestamp": row.get("timestamp")}
    if attached.get("commandMode") not in (None, "prompt"):
        kept["origin"] = {"kind": attached["commandMode"]}
    yield from _said(kept, attached["prompt"], report)


def _blocks(content: Any) -> list[Any]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        raise TypeError(content)
    return content


def _part(block: Row, report: ImportReport) -> Iterator[Part]:
    match block.get("type"):
        case "text":
            yield Text(talk.string(block, "text"))
        case "thinking":
            yield Thinking(talk.string(block, "thinking"))
        case "redacted_thinking":
            report.left["thoughts that nobody may read"] += 1
        case "tool_use":
            arguments = block.get("input")
            yield ToolCall(
                talk.string(block, "id"),
                talk.string(block, "name"),
                canonical(arguments if arguments else {}),
            )
        case _:
            report.left[talk.UNKNOWN] += 1


def _said(row: Row, content: Any, report: ImportReport) -> Iterator[RawMessage]:
    """Yield the parts, results first, since they answer what came before."""
    at = talk.moment(row.get("timestamp"))
    texts: list[object] = []
    for block in _blocks(content):
        if isinstance(block, dict) and block.get("type") == "tool_result":
            text = talk.words(block.get("content"), report)
            yield talk.result(
                talk.string(block, "tool_use_id"), text, at, failed=block.get("is_error") is True
            )
        else:
            texts.append(block)
    best = Trust.OWNER if _is_human(row) else Trust.FOREIGN
    yield from talk.heard(talk.words(texts, report), report, at, best)


def _is_human(row: Row) -> bool:
    """Tell whether a person speaks. Newer versions say so; older ones mark a model's text as a summary."""
    origin = row.get("origin")
    kind = origin.get("kind") if isinstance(origin, dict) else None
    return kind in (None, "human") and not row.get("isCompactSummary")
