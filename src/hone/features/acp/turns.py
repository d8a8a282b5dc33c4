"""Take prompts from an editor, one turn at a time in each session, and cancel them."""

import asyncio
from dataclasses import dataclass, field

from hone.app import Hone
from hone.cli.slash import ChatState, SlashRequest, obey, parse
from hone.core.errors import HoneError
from hone.core.messages import Message, Text
from hone.core.model import total
from hone.core.trust import Trust
from hone.core.turn import Stop, Turn
from hone.core.value import replace
from hone.core.visible import one_line, text_to_path
from hone.features.acp.conversations import TITLE, Conversations
from hone.features.acp.editor import Editor, EditorSession, Update, current_session, fence
from hone.features.acp.offers import OWN
from hone.features.acp.prompts import PromptReader, ReadPrompt
from hone.features.acp.shapes import Prompt
from hone.features.acp.updates import TEXT, TurnUpdates, chunk, notice
from hone.models.wrappers import Windowed
from hone.rpc.messages import INTERNAL_ERROR, RpcError
from hone.runtime.session import Session
from hone.web.open_sessions import OpenSession, Words

STOPS = {Stop.BUDGET: "max_turn_requests", Stop.INTERRUPTED: "cancelled"}
"""The protocol's names for the end of a turn, if it is not `end_turn`."""
CANCELLED: Update = {"stopReason": "cancelled"}


@dataclass(eq=False, slots=True)
class RunningPrompt:
    """A prompt since its arrival: the task that works on it, and its `turn` as soon as that has begun."""

    work: asyncio.Task[Update] | None = None
    turn: asyncio.Task[Turn] | None = None
    cancelled: bool = False

    def cancel(self, opened: OpenSession) -> None:
        """End a turn in order. Anything before a turn simply ends."""
        self.cancelled = True
        if self.turn:
            opened.give_up(self.turn)
        elif self.work:
            self.work.cancel()


@dataclass(eq=False, slots=True)
class PromptQueue:
    """The prompts of one session. It works on one at a time, whether a message or a command."""

    prompts: list[RunningPrompt] = field(default_factory=list)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass(slots=True)
class Turns:
    """`voice` is the label of the editor's texts."""

    hone: Hone
    editor: Editor
    conversations: Conversations
    voice: Trust = Trust.OWNER
    _queues: dict[str, PromptQueue] = field(default_factory=dict)

    async def prompt(self, params: Prompt) -> Update:
        """Return how the turn ended. A prompt that arrives during a turn waits for its end. If the editor
        disconnects, the turn ends in order."""
        opened = self.conversations.find(params.session_id)
        queue = self._queues.setdefault(params.session_id, PromptQueue())
        running = RunningPrompt()
        work = running.work = asyncio.create_task(self._wait_and_take(queue, opened, params, running))
        queue.prompts.append(running)
        try:
            await asyncio.wait([work])
        except asyncio.CancelledError:
            running.cancel(opened)
            await asyncio.wait([work])
            raise
        finally:
            queue.prompts.remove(running)
            if not queue.prompts:
                self._queues.pop(params.session_id, None)
        await self.editor.flush()
        return CANCELLED if work.cancelled() else work.result()

    def cancel(self, id: str) -> None:
        """Cancel all requests of a session."""
        opened, queue = self.conversations.open.find(id), self._queues.get(id)
        for running in queue.prompts if opened and queue else ():
            assert opened
            running.cancel(opened)

    async def _wait_and_take(
        self, queue: PromptQueue, opened: OpenSession, params: Prompt, running: RunningPrompt
    ) -> Update:
        async with queue.lock:
            return await self._take(opened, params, running)

    async def _take(self, opened: OpenSession, params: Prompt, running: RunningPrompt) -> Update:
        session = opened.session
        for sentence in self.conversations.take_news(session.id):
            self.editor.update(session.id, notice(sentence))
        composed = await PromptReader(self.hone, session, self.voice).compose(params.prompt)
        composed, aside, said = await self._interpret(session, composed)
        if said:
            self.editor.update(session.id, chunk(TEXT, fence(said), kind="command"))
            return {"stopReason": "end_turn"}
        turn = await self._run(opened, Words(composed.message, composed.voice, aside), running)
        if turn is None:
            return CANCELLED
        await self._report(opened.session)
        if turn.stop is Stop.FAILED and not running.cancelled:
            raise RpcError(INTERNAL_ERROR, turn.error or "The turn failed.")
        return {"stopReason": STOPS.get(turn.stop or Stop.FAILED, "end_turn"), "usage": _usage(turn)}

    async def _run(self, opened: OpenSession, words: Words, running: RunningPrompt) -> Turn | None:
        """Return the turn; None if it was cancelled before it began."""
        session = opened.session
        folder = text_to_path(session.header.folder)
        current_session.set(EditorSession(self.editor, session.id))
        tell = TurnUpdates(self.editor, session.id, folder, len(session.transcript))
        running.turn = turn = self.conversations.open.send(opened, words, tell)
        await asyncio.wait([turn])
        return None if turn.cancelled() else turn.result()

    async def _interpret(self, session: Session, composed: ReadPrompt) -> tuple[ReadPrompt, str, str]:
        """Return what to send, what Hone adds to it, and a command's output instead of both. Only the owner's
        own words can be a command."""
        command = parse(composed.message.text) if composed.voice is Trust.OWNER else None
        if command is None or not await self._is_known(command[0]):
            return composed, "", ""
        result = await obey(ChatState(self.hone, session), *command)
        if not isinstance(result, SlashRequest):
            return composed, "", result if isinstance(result, str) else "This needs a terminal."
        return replace(composed, message=_reword(composed.message, result.words)), result.aside, ""

    async def _is_known(self, name: str) -> bool:
        try:
            return name in OWN or name in [each.name for each in await self.hone.library.listed()]
        except HoneError:
            return False

    async def _report(self, session: Session) -> None:
        """Report what fills the window, the session's cost, and its title."""
        if not len(session.transcript):
            return
        model, tell = session.agent.model, self.editor.update
        if isinstance(model, Windowed):
            used = model.estimate(session.agent.prefix, session.transcript)
            cost = await self._cost(session)
            tell(session.id, {"sessionUpdate": "usage_update", "used": used, "size": model.window, **cost})
        now = self.hone.clock.now().isoformat()
        first = next((each.message.text for each in session.transcript.nodes if each.is_owners), "")
        named = {"title": one_line(session.header.title or first, TITLE)} if first else {}
        tell(session.id, {"sessionUpdate": "session_info_update", "updatedAt": now, **named})

    async def _cost(self, session: Session) -> Update:
        try:
            spent = total(each.usage for each in await self.hone.sessions.spending(session.id))
        except HoneError:
            return {}
        return {} if spent.cost is None else {"cost": {"amount": spent.cost, "currency": "USD"}}


def _reword(message: Message, words: str) -> Message:
    """Return the message with other words, and what is attached to them."""
    return Message(
        message.role, (Text(words), *(part for part in message.parts if not isinstance(part, Text)))
    )


def _usage(turn: Turn) -> Update:
    spent = total(turn.usage)
    return {
        "totalTokens": spent.input + spent.output,
        "inputTokens": spent.input,
        "outputTokens": spent.output,
        "cachedReadTokens": spent.cached,
        "cachedWriteTokens": spent.written,
    }
