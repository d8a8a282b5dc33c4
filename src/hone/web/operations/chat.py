"""Chat on the page: a message starts a turn, and the event stream of the session shows it."""

from collections.abc import AsyncGenerator
from typing import Annotated, Any, Literal

import msgspec
from starlette.responses import StreamingResponse

from hone.core.errors import Refused
from hone.core.messages import Attachment, Message, user
from hone.core.permissions import GO_AHEAD, MEANINGS, Answer, Mode
from hone.core.secrets import redact
from hone.core.visible import one_line
from hone.web.bus import BEAT, EVERYWHERE, Bus, Signal
from hone.web.open_sessions import OpenSession, Words
from hone.web.operation import STREAM, Nothing, Operation, OperationCall
from hone.web.pictures import attach
from hone.web.state import ServerState

LONGEST = 1_000_000
"""Letters of a message."""

SHORTEST = b"retry: 1000\n: Hone\n\n"
"""How soon to come back, and a first byte, so that whoever listens knows that it does."""

Said = Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST)]


class SentFile(msgspec.Struct, frozen=True):
    """A text that goes with a message. It is nobody's words."""

    name: Annotated[str, msgspec.Meta(max_length=200)]
    text: Annotated[str, msgspec.Meta(max_length=LONGEST)]


class OpenRequest(msgspec.Struct, frozen=True):
    """`skills`, `images`, as data: addresses, and `files` go with the message. `mode` says what is done
    without a question; without it, the settings do."""

    text: Said
    model: str = ""
    skills: list[str] = []
    images: list[str] = []
    files: Annotated[list[SentFile], msgspec.Meta(max_length=20)] = []
    mode: Mode | None = None


class ChatMessage(msgspec.Struct, frozen=True):
    text: Said
    skills: list[str] = []
    images: list[str] = []
    files: Annotated[list[SentFile], msgspec.Meta(max_length=20)] = []


class AnswerRequest(msgspec.Struct, frozen=True):
    """`reason` is for a no: the model is told."""

    question: str
    answer: Literal["no", "once", "session", "any-host", "always"]
    reason: str = ""


class ModeRequest(msgspec.Struct, frozen=True):
    mode: Mode


async def begin(call: OperationCall[Nothing, OpenRequest]) -> dict[str, Any]:
    """A new conversation. Its turn goes on after this answer; follow it at /api/sessions/{session}/events."""
    open_session = await call.state.open_sessions.begin(call.body.model)
    if call.body.mode:
        open_session.session.set_mode(call.body.mode)
    return await _say(call.state, open_session, call.body)


async def say(call: OperationCall[Nothing, ChatMessage]) -> dict[str, Any]:
    """One more message in a conversation, once its last turn has ended."""
    state = call.state
    open_session = await state.open_sessions.enter(await state.hone.sessions.find(call.path["session"]))
    return await _say(state, open_session, call.body)


async def _say(
    state: ServerState, open_session: OpenSession, said: OpenRequest | ChatMessage
) -> dict[str, Any]:
    if not said.text.strip():
        raise Refused("A message needs words.")
    session, hone = open_session.session, state.hone
    message, voice = attach(said.text, said.images, session.agent.prefix.model, hone.settings)
    if said.files:
        spoken = user(message) if isinstance(message, str) else message
        message = Message(spoken.role, (*spoken.parts, *map(_attachment, said.files)))
    aside = await hone.library.use(said.skills, session.id) if said.skills else ""
    await state.open_sessions.start(open_session, Words(message, voice, aside, watched=True))
    return {"session": session.id, "messages": len(open_session.session.transcript)}


def _attachment(file: SentFile) -> Attachment:
    return Attachment(redact(file.text), f"file {one_line(file.name, 200)}")


async def interrupt(call: OperationCall[Nothing, Nothing]) -> dict[str, Any]:
    """Stops the model or the tool at once. The conversation can go on."""
    id = await call.state.hone.sessions.find(call.path["session"])
    return {"interrupted": await call.state.open_sessions.interrupt_anywhere(id)}


async def reply(call: OperationCall[Nothing, AnswerRequest]) -> dict[str, Any]:
    """Answers a question that the agent asks before something dangerous."""
    id = await call.state.hone.sessions.find(call.path["session"])
    answer = Answer(call.body.answer, call.body.reason)
    await call.state.questions.answer(id, call.body.question, answer)
    return {"answer": answer.choice}


async def mode(call: OperationCall[Nothing, Nothing]) -> dict[str, Any]:
    """What is done without a question in a conversation, and what each mode means."""
    return _modes(await call.state.mode_of(await call.state.hone.sessions.find(call.path["session"])))


async def set_mode(call: OperationCall[Nothing, ModeRequest]) -> dict[str, Any]:
    """Changes it at once, also for a turn that is under way. The model is told with the next message."""
    state, mode = call.state, call.body.mode
    id = await state.hone.sessions.find(call.path["session"])
    shared = state.hone.stores.shared
    opened = state.open_sessions.find(id) if shared else await state.open_sessions.enter(id)
    if shared:
        await state.relay.board.choose_mode(id, mode)
    if opened:
        opened.session.set_mode(mode)
    state.bus.publish(id, "mode", {"mode": mode})
    return _modes(mode)


async def modes(call: OperationCall[Nothing, Nothing]) -> dict[str, Any]:
    """The mode in which conversations begin, and what each mode means."""
    return _modes(call.state.hone.mode)


def _modes(current: Mode) -> dict[str, Any]:
    known = [{"mode": each, "meaning": MEANINGS[each]} for each in Mode]
    return {"mode": current, "modes": known, "go_ahead": GO_AHEAD}


class Since(msgspec.Struct, frozen=True):
    """`since`: the id of the last event that was heard, where the header Last-Event-ID cannot be sent."""

    since: str = ""


def sent(bus: Bus, signal: Signal) -> bytes:
    if signal.kind == BEAT:
        return b": still here\n\n"
    data = msgspec.json.encode(signal.data)
    return b"id: %s\nevent: %s\ndata: %s\n\n" % (bus.mark(signal.number).encode(), signal.kind.encode(), data)


async def _events(bus: Bus, channel: str, since: str) -> AsyncGenerator[bytes, None]:
    yield SHORTEST
    async for signal in bus.listen(channel, since):
        yield sent(bus, signal)


def streamed(bus: Bus, channel: str, since: str) -> StreamingResponse:
    return StreamingResponse(_events(bus, channel, since), media_type=STREAM)


async def everything(call: OperationCall[Since, Nothing]) -> StreamingResponse:
    """News of the whole server, from now on or from where it broke off."""
    bus = call.state.bus
    since = call.headers.get("last-event-id") or call.query.since or bus.now
    return streamed(bus, EVERYWHERE, since)


async def conversation(call: OperationCall[Since, Nothing]) -> StreamingResponse:
    """What happens in one conversation: the turn that is under way from its beginning, then what follows."""
    sessions = call.state.hone.sessions
    wanted = call.path["session"]
    id = wanted if call.state.open_sessions.find(wanted) else await sessions.find(wanted)
    since = call.headers.get("last-event-id") or call.query.since
    return streamed(call.state.bus, id, since)


OPERATIONS = (
    Operation("POST", "/api/sessions", begin, body=OpenRequest, status=202, spends=True),
    Operation("POST", "/api/sessions/{session}/messages", say, body=ChatMessage, status=202, spends=True),
    Operation("POST", "/api/sessions/{session}/interrupt", interrupt),
    Operation("POST", "/api/sessions/{session}/answers", reply, body=AnswerRequest),
    Operation("GET", "/api/sessions/{session}/mode", mode),
    Operation("POST", "/api/sessions/{session}/mode", set_mode, body=ModeRequest),
    Operation("GET", "/api/modes", modes),
    Operation("GET", "/api/events", everything, query=Since, streams=True),
    Operation("GET", "/api/sessions/{session}/events", conversation, query=Since, streams=True),
)
