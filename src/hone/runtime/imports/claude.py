"""Claude Code: one JSON object a line; each block of a reply has a line of its own."""

from collections.abc import Iterable, Iterator
from typing import Any

from hone.core.messages import Part, Text, Thinking, ToolCall, canonical
from hone.core.trust import Trust
from hone.runtime.imports.conversation import (
    HELPERS,
    NOTES,
    REPEATED,
    SYMPTOMS,
    UNKNOWN,
    Account,
    Conversation,
    Piece,
    Row,
    assistant,
    moment,
    result,
    string,
    user,
    words,
)
from hone.runtime.imports.wrapping import typed, voice

NAME = "claude-code"
_TITLES = {"custom-title": "customTitle", "ai-title": "aiTitle"}
_SPEAKERS = ("user", "assistant")


def read(rows: Iterable[tuple[int, Row]], name: str, account: Account) -> Iterator[Conversation]:
    """The conversations of a file, in the order of its lines: a file that was begun with the lines of another
    session holds those under that session's name. A turn that was taken back stays where it was said."""
    found: dict[str, Conversation] = {}
    where: dict[str, str] = {}
    titles: dict[str, str] = {}
    for number, row in rows:
        try:
            kind = row.get("type")
            if kind == "summary":
                titles[string(row, "leafUuid")] = string(row, "summary")
            elif kind in _TITLES:
                titles[f"session {string(row, 'sessionId')}"] = string(row, _TITLES[str(kind)])
            elif kind in _SPEAKERS and _is_fresh(row, where, account):
                own = string(row, "sessionId") or name
                where[string(row, "uuid")] = own
                _take(row, found.setdefault(own, Conversation(own)), account)
            elif kind not in _SPEAKERS:
                account.left[NOTES if kind else UNKNOWN] += 1
        except SYMPTOMS as error:
            account.fault(f"{name}, line {number}", f"it is not as it should be ({type(error).__name__})")
    for leaf, title in titles.items():
        own = leaf.removeprefix("session ") if leaf.startswith("session ") else where.get(leaf, "")
        if own in found:
            found[own].title = title
    yield from found.values()


def _is_fresh(row: Row, where: dict[str, str], account: Account) -> bool:
    if row.get("isSidechain"):
        account.left[HELPERS] += 1
        return False
    if row.get("isMeta") or row.get("isApiErrorMessage"):
        account.left[NOTES] += 1
        return False
    uuid = string(row, "uuid")
    if uuid and uuid in where:
        account.left[REPEATED] += 1
        return False
    return True


def _take(row: Row, conversation: Conversation, account: Account) -> None:
    conversation.folder = conversation.folder or string(row, "cwd")
    message = row["message"]
    content = message["content"]
    if row["type"] == "assistant":
        parts = [part for block in _blocks(content) for part in _part(block, account)]
        if parts:
            conversation.pieces.append(assistant(parts, moment(row.get("timestamp"))))
        return
    conversation.pieces += _said(row, content, account)


def _blocks(content: Any) -> list[Any]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        raise TypeError(content)
    return content


def _part(block: Row, account: Account) -> Iterator[Part]:
    match block.get("type"):
        case "text":
            yield Text(string(block, "text"))
        case "thinking":
            yield Thinking(string(block, "thinking"))
        case "redacted_thinking":
            account.left["thoughts that nobody may read"] += 1
        case "tool_use":
            arguments = block.get("input")
            yield ToolCall(
                string(block, "id"), string(block, "name"), canonical(arguments if arguments else {})
            )
        case _:
            account.left[UNKNOWN] += 1


def _said(row: Row, content: Any, account: Account) -> Iterator[Piece]:
    """Results first, as they answer what came before."""
    at = moment(row.get("timestamp"))
    texts: list[object] = []
    for block in _blocks(content):
        if isinstance(block, dict) and block.get("type") == "tool_result":
            text = words(block.get("content"), account)
            yield result(string(block, "tool_use_id"), text, at, failed=block.get("is_error") is True)
        else:
            texts.append(block)
    text = words(texts, account)
    said = typed(text)
    if said.strip():
        yield user(said, voice(said) if _is_human(row) else Trust.FOREIGN, at)
    elif text.strip():
        account.left[NOTES] += 1


def _is_human(row: Row) -> bool:
    """Newer versions say who speaks; older ones mark what a model wrote as a summary."""
    origin = row.get("origin")
    kind = origin.get("kind") if isinstance(origin, dict) else None
    return kind in (None, "human") and not row.get("isCompactSummary")
