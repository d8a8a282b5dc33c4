"""Every event that a screen can show, in one union. Listeners get plain values and no callbacks."""

from collections.abc import Callable

from msgspec import Struct

from hone.core.curation import CuratorRun
from hone.core.jobs import Job
from hone.core.ledger import Entry, LessonText
from hone.core.messages import ToolCall
from hone.core.model import Restart, TextPiece, ThinkingPiece, Usage
from hone.core.tool import Outcome
from hone.core.turn import Turn


class Heard(Struct, frozen=True):
    """The user's words are stored as message number `messages`; the turn begins."""

    messages: int


class Steered(Struct, frozen=True):
    """Words that the user said during the turn are stored; the model reads them with its next step."""

    text: str


class CallStarted(Struct, frozen=True):
    call: ToolCall


class CallEnded(Struct, frozen=True):
    call: ToolCall
    outcome: Outcome
    seconds: float


class Spent(Struct, frozen=True):
    """One model call was answered."""

    usage: Usage


class Notice(Struct, frozen=True):
    """One plain sentence for the user, not for the model."""

    text: str


class TurnEnded(Struct, frozen=True):
    turn: Turn


class Learned(Struct, frozen=True):
    """A review has ended: what it changed, what waits for the owner, and a summary in words."""

    job: Job
    entries: tuple[Entry, ...]
    lessons: tuple[LessonText, ...] = ()


class ReviewFailed(Struct, frozen=True):
    """A review could not be completed. `job` says why, and whether it stays in the queue."""

    job: Job


class Curated(Struct, frozen=True):
    """The curator has ended a round: what it changed, what waits for the owner, and a summary in words."""

    round: CuratorRun
    entries: tuple[Entry, ...]
    lessons: tuple[LessonText, ...] = ()


Event = (
    Heard
    | Steered
    | TextPiece
    | ThinkingPiece
    | Restart
    | CallStarted
    | CallEnded
    | Spent
    | Notice
    | TurnEnded
    | Learned
    | ReviewFailed
    | Curated
)
Emit = Callable[[Event], None]
