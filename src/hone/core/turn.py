"""The result of a run: its messages, its usage, and how it stopped."""

from enum import StrEnum
from typing import Any, Self

from msgspec import Struct

from hone.core.model import Usage
from hone.core.transcript import Node
from hone.core.value import replace

OBJECTION = "A hook of the user's objects to the end of this turn. What it printed:"
"""The start of a message that a hook sends back to the model. Its role is the user's, its label foreign."""


class Origin(StrEnum):
    """Who acts in a turn."""

    USER = "user"
    REVIEW = "review"
    CURATOR = "curator"
    DELEGATE = "delegate"
    COMPACT = "compact"
    QUESTION = "question"
    """The agent is asked about one of its answers."""


class Stop(StrEnum):
    ANSWERED = "answered"
    BUDGET = "budget"
    """The model calls were used up; the last message is a summary."""
    STUCK = "stuck"
    """The model repeated itself after refusals; the last message is a summary."""
    INTERRUPTED = "interrupted"
    FAILED = "failed"


class Turn(Struct, frozen=True):
    origin: Origin
    nodes: tuple[Node, ...] = ()
    usage: tuple[Usage, ...] = ()
    stop: Stop | None = None
    error: str = ""
    """One plain sentence, if the turn did not end with an answer."""

    @property
    def text(self) -> str:
        """Return the answer: the text of the last message."""
        return self.nodes[-1].message.text if self.nodes else ""

    def ended(self, stop: Stop, error: str = "") -> Self:
        return replace(self, stop=stop, error=error)


class Returned(Struct, frozen=True):
    """The result of a question whose answer must have a form. `json` is the answer as the model wrote it. It
    is empty if no answer fits; then the turn has an error."""

    turn: Turn
    json: str = ""
    value: Any = None
