"""A conversation as another agent wrote it down, and an account of what of it could not be taken."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from datetime import UTC, datetime
from math import isfinite
from typing import Any

from hone.core.messages import Message, Part, Role, Text, ToolResult
from hone.core.trust import Trust
from hone.core.value import dataclass

Row = Mapping[str, Any]

SYMPTOMS = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What a row raises that is not what it should be."""
FAULTS = 10
"""Rows that could not be read, of which the reason is kept."""

INSTRUCTIONS = "instructions to the other agent"
NOTES = "notes that the program wrote"
HELPERS = "messages of the other agent's helpers"
MEDIA = "pictures and files"
UNKNOWN = "entries of a kind that is not known"
REPEATED = "messages that stand there twice"


@dataclass(frozen=True, slots=True)
class RawMessage:
    """One thing that was said. `trust` is the best label it may have; `at` None: nobody says when."""

    message: Message
    trust: Trust
    at: datetime | None = None


@dataclass(slots=True)
class Conversation:
    """`own` is what its source calls it: the same conversation has the same name every time. It is `mixed` if
    the other agent was shown something from elsewhere that is not taken over, such as a file."""

    own: str
    pieces: list[RawMessage] = field(default_factory=list)
    title: str = ""
    folder: str = ""
    mixed: bool = False

    def take(self, pieces: Iterable[RawMessage], *, mixed: bool = False) -> None:
        """What the agent says after something foreign is no better, whether that is taken over or not."""
        self.mixed = self.mixed or mixed
        for piece in pieces:
            lower = self.mixed and piece.message.role is Role.ASSISTANT
            self.pieces.append(replace(piece, trust=Trust.FOREIGN) if lower else piece)


@dataclass(slots=True)
class ImportReport:
    """What was left out, by kind, and the rows that could not be read."""

    left: Counter[str] = field(default_factory=Counter)
    malformed: int = 0
    faults: list[str] = field(default_factory=list)

    def fault(self, where: str, why: str) -> None:
        self.malformed += 1
        if len(self.faults) < FAULTS:
            self.faults.append(f"{where}: {why}")


def user(text: str, trust: Trust, at: datetime | None) -> RawMessage:
    return RawMessage(Message(Role.USER, (Text(text),)), trust, at)


def assistant(parts: Iterable[Part], at: datetime | None) -> RawMessage:
    return RawMessage(Message(Role.ASSISTANT, tuple(parts)), Trust.AGENT, at)


def result(call: str, text: str, at: datetime | None, *, failed: bool = False) -> RawMessage:
    return RawMessage(Message(Role.TOOL, (ToolResult(call, text, failed),)), Trust.FOREIGN, at)


def moment(value: object) -> datetime | None:
    """A time in ISO form, or in seconds or milliseconds since 1970."""
    try:
        match value:
            case bool():
                return None
            case str():
                at = datetime.fromisoformat(value)
                return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
            case int() | float() if isfinite(value):
                return datetime.fromtimestamp(value / 1_000 if value > 1e11 else value, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return None


def words(content: object, account: ImportReport) -> str:
    """The text of a message that is a string or a list of blocks."""
    if not isinstance(content, list):
        return content if isinstance(content, str) else ""
    return "\n\n".join(filter(None, (_block(block, account) for block in content)))


def _block(block: object, account: ImportReport) -> str:
    if isinstance(block, str):
        return block
    if not isinstance(block, dict):
        account.left[UNKNOWN] += 1
        return ""
    for name in ("text", "refusal"):
        if isinstance(block.get(name), str):
            return str(block[name])
    kind = str(block.get("type", ""))
    if any(word in kind for word in ("image", "audio", "file", "document")):
        account.left[MEDIA] += 1
        return f"[{kind.removeprefix('input_').removesuffix('_url')}]"
    account.left[UNKNOWN] += 1
    return ""


def string(row: Row, *names: str) -> str:
    """The first of these fields that is a text with something in it."""
    for name in names:
        value = row.get(name)
        if isinstance(value, str) and value.strip():
            return value
    return ""
