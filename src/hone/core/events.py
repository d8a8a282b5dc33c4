"""All that a screen could want to show, in one union. Whoever listens gets plain values and no callbacks."""

from collections.abc import Callable

from hone.core.curation import CuratorRun
from hone.core.jobs import Job
from hone.core.ledger import Entry
from hone.core.messages import ToolCall
from hone.core.model import Restart, TextPiece, ThinkingPiece, Usage
from hone.core.tool import Outcome
from hone.core.turn import Turn
from hone.core.value import dataclass


@dataclass(frozen=True, slots=True)
class Heard:
    """The user's words are stored, as the last of so many messages; the turn begins."""

    messages: int


@dataclass(frozen=True, slots=True)
class CallStarted:
    call: ToolCall


@dataclass(frozen=True, slots=True)
class CallEnded:
    call: ToolCall
    outcome: Outcome
    seconds: float


@dataclass(frozen=True, slots=True)
class Spent:
    """One model call was answered."""

    usage: Usage


@dataclass(frozen=True, slots=True)
class Notice:
    """One plain sentence for the user, not for the model."""

    text: str


@dataclass(frozen=True, slots=True)
class TurnEnded:
    turn: Turn


@dataclass(frozen=True, slots=True)
class Learned:
    """A review has ended: what it changed, and what waits for the owner."""

    job: Job
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Curated:
    """The curator has ended a round: what it changed, and what waits for the owner."""

    round: CuratorRun
    entries: tuple[Entry, ...]


Event = (
    Heard
    | TextPiece
    | ThinkingPiece
    | Restart
    | CallStarted
    | CallEnded
    | Spent
    | Notice
    | TurnEnded
    | Learned
    | Curated
)
Emit = Callable[[Event], None]
