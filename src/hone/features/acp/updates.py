"""Turn the events of one turn into updates for an editor."""

from pathlib import Path
from typing import Any

from hone.core.events import CallEnded, CallStarted, Event, Notice, Spent, Steered, TurnEnded
from hone.core.messages import ToolCall
from hone.core.model import Restart, TextPiece, ThinkingPiece
from hone.core.turn import Stop, Turn
from hone.core.visible import visible
from hone.features.acp import tool_calls
from hone.features.acp.editor import CallAtWork, Editor, Update, current_call

TEXT, THOUGHT, USER = "agent_message_chunk", "agent_thought_chunk", "user_message_chunk"
LAST_WORDS = (Stop.ANSWERED, Stop.BUDGET, Stop.STUCK)


def chunk(update: str, text: str, message: str = "", /, **more: Any) -> Update:
    """Return one piece of a message. `more` tells programs what it is."""
    named = {"messageId": message} if message else {}
    meta = {"_meta": {"hone": more}} if more else {}
    return {"sessionUpdate": update, "content": {"type": "text", "text": text}, **named, **meta}


def notice(text: str) -> Update:
    """Return a sentence of Hone's own, beside the answer."""
    return chunk(THOUGHT, f"{visible(text)}\n", kind="notice")


class TurnUpdates:
    """Sends an editor the events of one turn. It is called with each event, in the task of the event. `begun`
    is the number of earlier messages: message ids must not repeat when a session is resumed."""

    def __init__(self, editor: Editor, session: str, folder: Path, begun: int) -> None:
        self._editor = editor
        self._session = session
        self._folder = folder
        self._begun = begun
        self._reply = 0
        self._spoken = False
        self._held = ""
        self._before: dict[str, tool_calls.FileBefore | None] = {}

    def __call__(self, event: Event) -> None:
        match event:
            case TextPiece(text):
                self._say(text)
            case ThinkingPiece(text):
                self._tell(chunk(THOUGHT, visible(text), f"{self._message}-thought"))
            case CallStarted(call):
                self._start(call)
            case CallEnded(call, outcome, _):
                self._end(call, outcome.text, failed=outcome.failed)
            case Restart(reason, _):
                self._begin_reply()
                self._tell(notice(f"↻ {reason} Starting over."))
            case Spent():
                self._begin_reply()
            case Notice(text):
                self._tell(notice(text))
            case Steered(text):
                self._tell(chunk(USER, visible(text)))
            case TurnEnded(turn):
                self._close(turn)
            case _:
                pass  # events outside a turn are reported elsewhere

    @property
    def _message(self) -> str:
        return f"{self._begun}-{self._reply}"

    def _tell(self, update: Update) -> None:
        self._editor.update(self._session, update)

    def _begin_reply(self) -> None:
        self._reply += 1
        self._held = ""

    def _say(self, text: str) -> None:
        """Send text. Half a line ending at the end of a piece waits for the next one, which shows what it
        is."""
        whole, self._held = self._held + text, ""
        if whole.endswith("\r"):
            whole, self._held = whole[:-1], "\r"
        if whole:
            self._spoken = True
            self._tell(chunk(TEXT, visible(whole), self._message))

    def _start(self, call: ToolCall) -> None:
        self._spoken = False
        before = self._before[call.id] = tool_calls.read_before(call, self._folder)
        content = tool_calls.propose(call, before)
        current_call.set(CallAtWork(call, content))
        self._tell(tool_calls.start_call(call, self._folder, content))

    def _end(self, call: ToolCall, text: str, *, failed: bool) -> None:
        before = self._before.pop(call.id, None)
        content = () if failed else tool_calls.read_change(call, before, self._folder)
        self._tell(tool_calls.end_call(call, text, failed=failed, content=content))
        if not failed and (plan := tool_calls.plan_update(call)):
            self._tell(plan)

    def _close(self, turn: Turn) -> None:
        """Send what was not streamed: a summary, or the answer of a model that does not stream."""
        if turn.stop in LAST_WORDS and not self._spoken and turn.text:
            self._say(turn.text)
        if turn.error and turn.stop in LAST_WORDS:
            self._tell(notice(turn.error))
        for id in list(self._before):  # calls that were cut off never ended
            del self._before[id]
            failed = {"toolCallId": id, "status": "failed"}
            self._tell({"sessionUpdate": "tool_call_update", **failed})
