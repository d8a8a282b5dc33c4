"""The connected editor: updates are sent to it in order, and questions are answered by it."""

import asyncio
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

import msgspec
from msgspec import Struct

from hone.core.errors import HoneError, Refused
from hone.core.messages import ToolCall, sound
from hone.core.permissions import Answer, Question
from hone.core.regex import regex
from hone.core.visible import one_line, visible
from hone.features.acp.shapes import EditorCapabilities, PermissionReply
from hone.rpc.messages import ConnectionLost, RpcError
from hone.rpc.peer import Peer

Update = Mapping[str, Any]
KINDS = {
    "once": "allow_once",
    "session": "allow_always",
    "any-host": "allow_always",
    "always": "allow_always",
}
"""The protocol's names for the answers of `core.permissions`."""
MARKS = regex(r"`+")
LONGEST = 300
"""The most characters of a rule in the name of an answer."""


class EditorSession(Struct, frozen=True):
    """The session and the editor that a turn belongs to."""

    editor: "Editor"
    session: str


class CallAtWork(Struct, frozen=True):
    """A running call, and what an editor shows for it, such as a diff."""

    call: ToolCall
    content: tuple[Update, ...] = ()


current_session: ContextVar[EditorSession | None] = ContextVar("current_session", default=None)
"""Set for the tasks of a turn: the editor that its tools may ask."""
current_call: ContextVar[CallAtWork | None] = ContextVar("current_call", default=None)
"""Set by the event that begins a call, in the task that makes it, so that a question names its call."""


class Editor:
    """Sends from one queue, so that updates keep their order. Until `connect` nothing is sent."""

    def __init__(self) -> None:
        self.capabilities = EditorCapabilities()
        self._peer: Peer | None = None
        self._queue: asyncio.Queue[tuple[str, Update]] = asyncio.Queue()
        self._group: asyncio.TaskGroup | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def connect(self, peer: Peer) -> None:
        self._peer = peer

    def work_in(self, group: asyncio.TaskGroup) -> None:
        """Run the tasks of `start` in this group."""
        self._group = group

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Do work beside the requests, until `stop`."""
        if self._group is None:
            work.close()
            return
        task = self._group.create_task(_quietly(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def stop(self) -> None:
        self._group = None
        for task in self._tasks:
            task.cancel()

    def update(self, session: str, update: Update) -> None:
        self._queue.put_nowait((session, _clean(update)))

    async def flush(self) -> None:
        """Wait until everything in the queue is sent."""
        await self._queue.join()

    async def run(self) -> None:
        """Send updates until cancelled. A disconnected editor gets nothing; its turns end normally."""
        while True:
            session, update = await self._queue.get()
            try:
                if self._peer:
                    await self._peer.notify("session/update", {"sessionId": session, "update": update})
            except ConnectionLost:
                self._peer = None
            finally:
                self._queue.task_done()

    async def request(self, method: str, params: Update) -> bytes:
        """Return the editor's reply as JSON. Raises HoneError."""
        if self._peer is None:
            raise Refused("No editor is connected.")
        return await self._peer.request(method, _clean(params))

    async def ask(self, question: Question) -> Answer:
        """Ask for permission. A request that the editor cancels or answers oddly counts as no."""
        place, about = current_session.get(), current_call.get()
        if place is None:
            return Answer.NOBODY
        params = {
            "sessionId": place.session,
            "toolCall": {
                "toolCallId": about.call.id if about else "question",
                "title": one_line(question.text, LONGEST),
                "status": "pending",
                "content": [_text(question), *(about.content if about else ())],
            },
            "options": [_option(choice, question) for choice in question.choices],
        }
        await self.flush()
        try:
            reply = msgspec.json.decode(
                await self.request("session/request_permission", params), type=PermissionReply
            )
        except (RpcError, ConnectionLost, Refused):
            return Answer.NOBODY
        except msgspec.DecodeError:
            return Answer.NO
        chosen = reply.outcome
        known = chosen.outcome == "selected" and chosen.option_id in question.choices
        return Answer(chosen.option_id) if known else Answer.NO


def _clean(value: Any) -> Any:
    """Return the same value without what JSON cannot hold: file names may not be valid text."""
    if isinstance(value, str):
        return sound(value)
    if isinstance(value, Mapping):
        return {name: _clean(each) for name, each in value.items()}
    return [_clean(each) for each in value] if isinstance(value, list | tuple) else value


async def _quietly(work: Coroutine[Any, Any, None]) -> None:
    """Ignore errors: a list that cannot be made now must not end the connection."""
    with suppress(HoneError):
        await work


def _text(question: Question) -> Update:
    """Return the exact question: nothing in it can close the frame around it."""
    parts = [visible(question.text), fence(visible(question.detail))]
    if question.pattern:
        parts += ["An answer for longer adds:", fence(visible(question.pattern))]
    return {"type": "content", "content": {"type": "text", "text": "\n\n".join(parts)}}


def fence(text: str) -> str:
    """Return text as a code block, within a fence longer than any in it."""
    longest = max((len(each) for each in MARKS.findall(text)), default=0)
    marks = "`" * max(3, longest + 1)
    return f"{marks}\n{text}\n{marks}"


def _option(choice: str, question: Question) -> Update:
    covered = one_line(question.pattern.replace("\n", "; "), LONGEST)
    names = {
        "once": "Yes",
        "session": f"Yes, for this session: {covered}",
        "any-host": "Yes, any host for this session",
        "always": f"Always in this folder: {covered}",
        "no": "No",
    }
    return {"optionId": choice, "name": names[choice], "kind": KINDS.get(choice, "reject_once")}


async def request_value(method: str, params: Update, type: type[Any]) -> Any:
    """Ask the editor of the current turn for a value. Raises HoneError if there is none."""
    place = current_session.get()
    if place is None:
        raise Refused("No editor is connected to this conversation.")
    if not place.editor.capabilities.serves(method):
        raise Refused(f"This editor does not offer {method}.")
    reply = await place.editor.request(method, {"sessionId": place.session, **params})
    try:
        return msgspec.json.decode(reply, type=type)
    except msgspec.DecodeError as error:
        raise HoneError(f"The editor's reply to {method} does not fit: {error}.") from None
