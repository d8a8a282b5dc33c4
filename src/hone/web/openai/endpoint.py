"""Serve /v1 chat completions, streamed or whole. Each conversation is a session, and Hone learns from it."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from functools import partial
from secrets import token_hex
from typing import Any

import msgspec
from msgspec import Struct
from starlette.responses import Response, StreamingResponse

from hone.core.errors import HoneError, Missing, Occupied, Refused
from hone.core.events import CallStarted, Event, Heard
from hone.core.histories import HistoryNote
from hone.core.ids import SessionId
from hone.core.messages import Image, Message, Role, digest, sound
from hone.core.model import Restart, TextPiece, total
from hone.core.regex import regex
from hone.core.trust import Trust
from hone.core.turn import Stop, Turn
from hone.core.visible import visible
from hone.runtime.pictures import check_vision
from hone.runtime.returning import extract
from hone.runtime.session import Session
from hone.web.answers import answer, failure, problem, told
from hone.web.callers import ApiCaller, is_foreign, may_continue
from hone.web.open_sessions import OpenSession, Overtaken, Words
from hone.web.openai import shapes
from hone.web.openai.matching import BETWEEN, Pairs, Places, key, merged, seen
from hone.web.openai.shapes import HONE, BadRequest, Completion
from hone.web.operation import STREAM, Nothing, Operation, OperationCall
from hone.web.state import ServerState

SESSION = "x-hone-session"
VOICE = "x-hone-voice"
AGENT = "hone"
"""How Hone's own HTTP client calls itself."""
NAME = regex(r"[A-Za-z0-9._:-]{1,128}")
ALIVE = 10.0
"""Seconds of silence before a stream says that it lives, or a client is looked after."""
Call = OperationCall[Nothing, Completion]
FINISH = {Stop.ANSWERED: "stop", Stop.BUDGET: "length", Stop.STUCK: "stop"}


class Turned(Struct, frozen=True):
    """A request with its turn, and the conversation it belongs to. `pairs` is what the client has seen, its
    last words included."""

    open_session: OpenSession
    task: asyncio.Task[Turn]
    teller: "Teller"
    pairs: Pairs
    model: str
    created: int
    counted: bool
    id: str
    caller: ApiCaller
    state: ServerState
    before: str
    """The head before the turn."""


class ChatEndpoint:
    """Each user has the conversations of their own clients."""

    async def complete(self, call: Call) -> Response:
        """An answer to the last message, in the conversation that the others belong to."""
        try:
            _check_client(call)
            shapes.check(call.body)
            turned = await self._turned(call)
        except BadRequest as error:
            kind, status = "invalid_request_error", 404 if error.code == "model_not_found" else 400
            return failure(status, kind, str(error), code=error.code, param=error.param)
        headers = {SESSION: turned.open_session.session.id}
        if call.body.stream:
            chunks = self._chunks(turned)
            return StreamingResponse(chunks, media_type=STREAM, headers=headers)
        response = await self._whole(call, turned)
        response.headers.update(headers)
        return response

    async def _turned(self, call: Call) -> Turned:
        """Starts the turn in the same step in which its conversation was found, so that nobody else does."""
        body, state = call.body, call.state
        form = shapes.read_form(body)
        messages = [shapes.read(each) for each in body.messages if each.role not in ("system", "developer")]
        *history, last = messages
        model = "" if body.model == HONE else body.model
        name = call.headers.get(SESSION)
        if name is not None:
            open_session = await self._named(call, name, model)
        else:
            open_session = await self._matching(call, history, model)
        aside = "" if len(open_session.session.transcript) else _aside(shapes.system(body.messages))
        shown = any(isinstance(part, Image) for part in last.parts)
        if shown:
            _check_vision(call, open_session)
        passed_on = shown or call.headers.get(VOICE) == "foreign"  # nobody says where a picture comes from
        voice = Trust.FOREIGN if passed_on or call.caller.is_program else None
        counted = bool(body.stream_options and body.stream_options.include_usage)
        created = int(state.clock.now().timestamp())
        id = f"chatcmpl-{open_session.session.id}-{len(open_session.session.transcript) + 1}"
        teller = Teller(whole=form is not None)
        before = open_session.session.transcript.head
        words = Words(last, voice, aside, form=form, patient=name is not None, exact=name is None)
        task = state.open_sessions.send(open_session, words, teller.hear)
        if words.exact and await teller.is_overtaken(task):
            open_session = await self._branch(call, open_session.session)
            task = state.open_sessions.send(open_session, words, teller.hear)
        task.add_done_callback(lambda _: teller.queue.put_nowait(None))
        return Turned(
            open_session,
            task,
            teller,
            seen(messages),
            body.model,
            created,
            counted,
            id,
            call.caller,
            state,
            before,
        )

    async def _named(self, call: Call, name: str, model: str) -> OpenSession:
        """A session's own id, or a name of the client's choice that always means the same one. To a program
        the id of somebody else's is just a name."""
        state, who = call.state, call.caller
        if not NAME.fullmatch(name):
            raise BadRequest(
                f"{SESSION} takes letters, digits and . _ : - (at most 128).", SESSION, "invalid_session"
            )
        with suppress(Missing):
            if await state.hone.sessions.find(name) == name and await _may_continue(call, name):
                return await state.open_sessions.patiently(name, lambda: state.open_sessions.enter(name))
        id = who.session_id(name) if who.is_program else digest(f"{SESSION} {name}".encode())[:16]
        entering = partial(state.open_sessions.enter_or_begin, id, model)
        open_session = await state.open_sessions.patiently(id, entering)
        if who.is_program and not is_foreign(open_session.session.transcript):
            raise BadRequest(
                "A person has joined this conversation. Choose another name to begin a new one.",
                SESSION,
                "conversation_taken",
            )
        return open_session

    async def _matching(self, call: Call, history: list[Message], model: str) -> OpenSession:
        state, own = call.state, _new_id(call.caller)
        if not any(each.role is Role.ASSISTANT for each in history):
            return await state.open_sessions.begin(model, own, told=merged(history))
        may = partial(_may_continue, call)
        place = await _places_of(state, call.caller).find(seen(history), state.places, may)
        if place is None:
            return await state.open_sessions.begin(model, own, told=merged(history))
        id, count = place
        with suppress(Occupied):  # another server answers there
            open_session = await state.open_sessions.enter(id)
            if not open_session.is_busy and len(open_session.session.transcript) < count:
                await state.open_sessions.renew(open_session)  # another server answered there
            if not open_session.is_busy and len(open_session.session.transcript) == count:
                return open_session
        return await state.open_sessions.enter(await state.hone.branch(id, count))

    async def _branch(self, call: Call, overtaken: Session) -> OpenSession:
        """Continue beside a conversation that another server continued in the same moment."""
        state, count = call.state, len(overtaken.transcript)
        return await state.open_sessions.enter(await state.hone.branch(overtaken.id, count))

    async def _whole(self, call: Call, turned: Turned) -> Response:
        task = turned.task
        try:
            while not task.done():
                await asyncio.wait([task], timeout=ALIVE)
                if not task.done() and await call.gone():
                    turned.open_session.give_up(task)
            turn = task.result()
        finally:
            turned.open_session.give_up(task)
        if turn.stop not in FINISH:
            return failure(502 if turn.stop is Stop.FAILED else 503, "model_error", turn.error)
        text = extract(turn.text) if turned.teller.whole else BETWEEN.join(_texts(turn))
        self._remember(turned, text)
        spent = total(turn.usage)
        return answer(
            shapes.completion(turned.id, turned.created, turned.model, text, FINISH[turn.stop], spent)
        )

    async def _chunks(self, turned: Turned) -> AsyncGenerator[bytes, None]:
        try:
            yield _line(turned, {"role": "assistant", "content": ""})
            async for text in turned.teller.texts():
                yield _line(turned, {"content": text}) if text else b": working\n\n"
            for line in self._closing(turned):
                yield line
        finally:
            turned.open_session.give_up(turned.task)

    def _closing(self, turned: Turned) -> list[bytes]:
        try:
            turn = turned.task.result()
        except HoneError as error:
            return [_data(problem(told(error)[1], str(error)))]
        if turn.stop not in FINISH:
            return [_data(problem("model_error", turn.error))]
        text = extract(turn.text) if turned.teller.whole else turned.teller.said
        self._remember(turned, text)
        lines = [_line(turned, {"content": text})] if turned.teller.whole else []
        lines.append(_line(turned, {}, FINISH[turn.stop]))
        if turned.counted:
            last = shapes.chunk(turned.id, turned.created, turned.model, {})
            lines.append(_data({**last, "choices": [], "usage": shapes.usage(total(turn.usage))}))
        return [*lines, b"data: [DONE]\n\n"]

    def _remember(self, turned: Turned, text: str) -> None:
        session = turned.open_session.session
        pairs = (*turned.pairs, (Role.ASSISTANT.value, visible(sound(text)).strip()))
        count, head = len(session.transcript), session.transcript.head
        _places_of(turned.state, turned.caller).remember(pairs, (session.id, count))
        turned.state.places.note(HistoryNote(session.id, turned.before, head, count, key(pairs)))

    async def models(self, call: OperationCall[Nothing, Nothing]) -> dict[str, Any]:
        """Hone, and the model it asks."""
        names = [HONE]
        with suppress(HoneError):
            names.append(await call.state.hone.model())
        data = [{"id": name, "object": "model", "created": 0, "owned_by": "hone"} for name in names]
        return {"object": "list", "data": data}

    @property
    def operations(self) -> tuple[Operation, ...]:
        return (
            Operation(
                "POST", "/v1/chat/completions", self.complete, body=Completion, for_programs=True, spends=True
            ),
            Operation("GET", "/v1/models", self.models, for_programs=True),
        )


class Teller:
    """The texts of a turn as they come, with an empty line where one reply follows another. With `whole`,
    none of them: an answer in a form is told when it has been checked."""

    def __init__(self, *, whole: bool = False) -> None:
        self.whole = whole
        self.queue: asyncio.Queue[str | None] = asyncio.Queue()
        self.said = ""
        self._between = False
        self._heard = asyncio.Event()

    def hear(self, event: Event) -> None:
        match event:
            case Heard():
                self._heard.set()
            case TextPiece(text) if text and not self.whole:
                if self._between and self.said:
                    text = BETWEEN + text
                self._between = False
                self.said += text
                self.queue.put_nowait(text)
            case CallStarted() | Restart():
                self._between = True

    async def is_overtaken(self, task: asyncio.Task[Turn]) -> bool:
        """Wait until the words are stored. True if others said something in this conversation before that."""
        heard = asyncio.ensure_future(self._heard.wait())
        await asyncio.wait([task, heard], return_when=asyncio.FIRST_COMPLETED)
        heard.cancel()
        return task.done() and not task.cancelled() and isinstance(task.exception(), Overtaken)

    async def texts(self) -> AsyncGenerator[str, None]:
        """An empty text after a while of silence."""
        while True:
            try:
                async with asyncio.timeout(ALIVE):
                    text = await self.queue.get()
            except TimeoutError:
                yield ""
                continue
            if text is None:
                return
            yield text


def _places_of(state: ServerState, who: ApiCaller) -> Places:
    """Each program has separate places; all persons are the owner."""
    return state.remembered.setdefault(who.tag if who.is_program else "", Places())


async def _may_continue(call: Call, id: str) -> bool:
    state = call.state
    if found := state.open_sessions.find(id):
        header, transcript = found.session.header, found.session.transcript
    else:
        stored = await state.hone.sessions.load(SessionId(id))
        header, transcript = stored.header, stored.transcript
    return await may_continue(call.caller, header, transcript, state.hone.sessions)


def _new_id(who: ApiCaller) -> str:
    return who.session_id(token_hex(8)) if who.is_program else ""


def _texts(turn: Turn) -> list[str]:
    said = (node.message for node in turn.nodes)
    return [message.text for message in said if message.role is Role.ASSISTANT and message.text]


def _check_vision(call: Call, open_session: OpenSession) -> None:
    try:
        check_vision(open_session.session.agent.prefix.model, call.state.hone.settings)
    except Refused as refusal:
        raise BadRequest(str(refusal), "messages", "model_without_vision") from refusal


def _check_client(call: Call) -> None:
    """Raises BadRequest for a request that Hone sends as if this were a model: Hone would ask itself, and
    nobody would answer."""
    if call.headers.get("user-agent") == AGENT:
        raise BadRequest("Hone cannot be the model of Hone.", "model", "hone_itself")


def _aside(system: str) -> str:
    if not system:
        return ""
    lines = (f"  {line}".rstrip() for line in system.split("\n"))
    return "\n".join(("# The program that this conversation comes through says", *lines))


def _data(value: Any) -> bytes:
    return b"data: %s\n\n" % msgspec.json.encode(value)


def _line(turned: Turned, delta: dict[str, Any], finish: str | None = None) -> bytes:
    return _data(shapes.chunk(turned.id, turned.created, turned.model, delta, finish))
