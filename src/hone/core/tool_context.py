"""What a tool sees while it runs: who acts, the conversation so far, and a way to ask the owner."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from enum import StrEnum

from msgspec import Struct

from hone.core.agent import Agent
from hone.core.events import Emit
from hone.core.ids import SessionId
from hone.core.messages import ToolCall
from hone.core.ports import Header
from hone.core.transcript import Transcript
from hone.core.turn import Origin, Stop, Turn


class Answer(StrEnum):
    NO = "no"
    ONCE = "once"
    SESSION = "session"
    ALWAYS = "always"


class Question(Struct, frozen=True):
    """`detail` is, to the byte, what will be done; `pattern` is what "always" would cover."""

    text: str
    detail: str
    pattern: str


Ask = Callable[[Question], Awaitable[Answer]]


Spawn = Callable[[str, Emit], Awaitable[Turn]]
"""Gives a task to a child of this agent: same prefix, own conversation, own budget, fewer rights."""


async def nobody(_: Question) -> Answer:
    """Where nobody can be asked, the answer is no."""
    return Answer.NO


async def childless(task: str, _: Emit) -> Turn:
    return Turn(Origin.DELEGATE).ended(Stop.FAILED, f"Nobody is there to take over: {task}")


UNNAMED = Header(SessionId(""), datetime.fromtimestamp(0, UTC))
"""Of a conversation that nobody keeps."""
UNASKED = ToolCall("", "", "{}")


class ToolContext(Struct, frozen=True):
    """`transcript` ends with the reply that made the `call`. `header` tells which conversation it is, and
    whose."""

    agent: Agent
    transcript: Transcript
    emit: Emit
    ask: Ask = nobody
    spawn: Spawn = childless
    header: Header = UNNAMED
    call: ToolCall = UNASKED

    async def consents(self, question: Question) -> bool:
        return self.agent.permit.attended and await self.ask(question) is not Answer.NO
