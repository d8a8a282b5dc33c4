"""The chat of the page: a message begins a turn, the stream of the conversation shows it."""

from typing import Annotated, Any

import msgspec

from hone.core.errors import Refused
from hone.core.tool_context import Answer
from hone.runtime.preload import use
from hone.web.open_sessions import OpenSession, Words
from hone.web.operation import Nothing, Operation, OperationCall
from hone.web.state import ServerState

LONGEST = 1_000_000
"""Letters of a message."""

Said = Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST)]


class OpenRequest(msgspec.Struct, frozen=True):
    """`skills` go with the message."""

    text: Said
    model: str = ""
    skills: list[str] = []


class ChatMessage(msgspec.Struct, frozen=True):
    text: Said
    skills: list[str] = []


class AnswerRequest(msgspec.Struct, frozen=True):
    question: str
    answer: Answer


async def begin(call: OperationCall[Nothing, OpenRequest]) -> dict[str, Any]:
    """A new conversation. Its turn goes on after this answer; follow it at /api/sessions/{session}/events."""
    open_session = await call.state.open_sessions.begin(call.body.model)
    return await _say(call.state, open_session, call.body.text, call.body.skills)


async def say(call: OperationCall[Nothing, ChatMessage]) -> dict[str, Any]:
    """One more message in a conversation, once its last turn has ended."""
    state = call.state
    open_session = await state.open_sessions.enter(await state.hone.sessions.find(call.path["session"]))
    return await _say(state, open_session, call.body.text, call.body.skills)


async def _say(state: ServerState, open_session: OpenSession, text: str, skills: list[str]) -> dict[str, Any]:
    if not text.strip():
        raise Refused("A message needs words.")
    aside = await use(state.hone.library, skills, open_session.session.id) if skills else ""
    await state.open_sessions.start(open_session, Words(text, aside=aside, watched=True))
    return {"session": open_session.session.id, "messages": len(open_session.session.transcript)}


async def interrupt(call: OperationCall[Nothing, Nothing]) -> dict[str, Any]:
    """Stops the model or the tool at once. The conversation can go on."""
    open_session = call.state.open_sessions.find(await call.state.hone.sessions.find(call.path["session"]))
    return {"interrupted": bool(open_session and call.state.open_sessions.interrupt(open_session))}


async def reply(call: OperationCall[Nothing, AnswerRequest]) -> dict[str, Any]:
    """Answers a question that the agent asks before something dangerous."""
    id = await call.state.hone.sessions.find(call.path["session"])
    call.state.questions.answer(id, call.body.question, call.body.answer)
    return {"answer": call.body.answer}


OPERATIONS = (
    Operation("POST", "/api/sessions", begin, body=OpenRequest, status=202),
    Operation("POST", "/api/sessions/{session}/messages", say, body=ChatMessage, status=202),
    Operation("POST", "/api/sessions/{session}/interrupt", interrupt),
    Operation("POST", "/api/sessions/{session}/answers", reply, body=AnswerRequest),
)
