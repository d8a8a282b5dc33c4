"""What a running tool sees: the agent, the conversation so far, and a way to ask the owner."""

from collections.abc import Awaitable
from datetime import UTC, datetime
from typing import Protocol

from msgspec import Struct

from hone.core.agent import Agent, Helper
from hone.core.events import Emit
from hone.core.ids import SessionId
from hone.core.messages import ToolCall
from hone.core.permissions import Answer, NoPermissions, Permissions, Question, Request
from hone.core.ports import Header
from hone.core.transcript import Transcript
from hone.core.turn import Origin, Stop, Turn


class Spawn(Protocol):
    """Gives a task to a child of this agent: same prefix, separate conversation, separate budget, fewer
    rights. A named helper has instructions and may use another model."""

    def __call__(self, task: str, emit: Emit, helper: Helper | None = None, /) -> Awaitable[Turn]: ...


async def childless(task: str, _: Emit, __: Helper | None = None, /) -> Turn:
    return Turn(Origin.DELEGATE).ended(Stop.FAILED, f"No helper is available for this task: {task}")


UNNAMED = Header(SessionId(""), datetime.fromtimestamp(0, UTC))
"""The header of a conversation that is not kept."""
UNASKED = ToolCall("", "", "{}")


class ToolContext(Struct, frozen=True):
    """`transcript` ends with the reply that made the `call`. `header` identifies the conversation and its
    origin."""

    agent: Agent
    transcript: Transcript
    emit: Emit
    permissions: Permissions = NoPermissions()
    spawn: Spawn = childless
    header: Header = UNNAMED
    call: ToolCall = UNASKED

    async def refusal(self, request: Request) -> str:
        """Return why this may not be done, in a sentence; empty if it may be done."""
        attended = self.agent.permit.attended
        return await self.permissions.refusal(request, self.transcript, attended=attended)

    async def ask(self, question: Question) -> Answer:
        """Ask the owner something that no rule covers. The answer is no if nobody is there."""
        if not self.agent.permit.attended:
            return Answer.NO
        return await self.permissions.ask(question, self.call.name)
