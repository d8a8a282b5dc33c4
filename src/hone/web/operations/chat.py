"""The chat of the page: a message begins a turn, the stream of the conversation shows it."""

from typing import Annotated, Any

import msgspec

from hone.core.errors import Refused
from hone.core.tool_context import Answer
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


async def begin(asked: OperationCall[Nothing, OpenRequest]) -> dict[str, Any]:
    """A new conversation. Its turn goes on after this answer; follow it at /api/sessions/{session}/events."""
    talk = await asked.house.talks.begin(asked.body.model)
    return await _say(asked.house, talk, asked.body.text, asked.body.skills)


async def say(asked: OperationCall[Nothing, ChatMessage]) -> dict[str, Any]:
    """One more message in a conversation, once its last turn has ended."""
    house = asked.house
    talk = await house.talks.enter(await house.hone.sessions.find(asked.path["session"]))
    return await _say(house, talk, asked.body.text, asked.body.skills)


async def _say(house: ServerState, talk: OpenSession, text: str, skills: list[str]) -> dict[str, Any]:
    if not text.strip():
        raise Refused("A message needs words.")
    aside = await house.hone.library.use(skills, talk.session.id) if skills else ""
    await house.talks.start(talk, Words(text, aside=aside, watched=True))
    return {"session": talk.session.id, "messages": len(talk.session.transcript)}


async def interrupt(asked: OperationCall[Nothing, Nothing]) -> dict[str, Any]:
    """Stops the model or the tool at once. The conversation can go on."""
    talk = asked.house.talks.find(await asked.house.hone.sessions.find(asked.path["session"]))
    return {"interrupted": bool(talk and asked.house.talks.interrupt(talk))}


async def reply(asked: OperationCall[Nothing, AnswerRequest]) -> dict[str, Any]:
    """Answers a question that the agent asks before something dangerous."""
    id = await asked.house.hone.sessions.find(asked.path["session"])
    asked.house.board.answer(id, asked.body.question, asked.body.answer)
    return {"answer": asked.body.answer}


OPERATIONS = (
    Operation("POST", "/api/sessions", begin, body=OpenRequest, status=202),
    Operation("POST", "/api/sessions/{session}/messages", say, body=ChatMessage, status=202),
    Operation("POST", "/api/sessions/{session}/interrupt", interrupt),
    Operation("POST", "/api/sessions/{session}/answers", reply, body=AnswerRequest),
)
