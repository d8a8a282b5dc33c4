"""A stored conversation as updates, for an editor that loads it."""

from collections.abc import Iterator
from pathlib import Path

from hone.core.messages import Attachment, Image, Part, Role, Text, Thinking, ToolCall
from hone.core.secrets import redact
from hone.core.transcript import Node, Transcript
from hone.core.trust import Trust
from hone.core.turn import OBJECTION
from hone.core.visible import visible
from hone.features.acp.editor import Update
from hone.features.acp.tool_calls import end_call, find_change, make_plan, start_call
from hone.features.acp.updates import TEXT, THOUGHT, USER, chunk, notice
from hone.tools.todo import todos


def replay(transcript: Transcript, folder: Path) -> Iterator[Update]:
    """Yield what an editor shows of a conversation, with secrets removed, as on the page."""
    calls: dict[str, ToolCall] = {}
    for number, node in enumerate(transcript.nodes):
        if node.message.template:
            continue
        calls.update((call.id, call) for call in node.message.calls)
        yield from _show(node, f"stored-{number}", folder, calls)
    if items := todos(transcript):
        yield make_plan(items)


def _show(node: Node, id: str, folder: Path, calls: dict[str, ToolCall]) -> Iterator[Update]:
    message = node.message
    if message.result:
        call = calls.pop(message.result.call, None)
        if call:
            text, failed = redact(message.result.text), message.result.failed
            content = () if failed else find_change(_redacted(call), text, folder)
            yield end_call(call, text, failed=failed, content=content)
        return
    for part in message.parts:
        update = _show_part(part, node, id)
        if update:
            yield update
    yield from (start_call(_redacted(call), folder) for call in message.calls)


def _show_part(part: Part, node: Node, id: str) -> Update | None:
    """Return a part as an update. A hook's objection is the user's only by its role."""
    own = node.message.role is Role.USER
    match part:
        case Text(text) if own and node.trust is not Trust.OWNER and text.startswith(OBJECTION):
            return notice(redact(text))
        case Text(text) if text:
            return chunk(USER if own else TEXT, visible(redact(text)), id)
        case Thinking(text) if text:
            return chunk(THOUGHT, visible(redact(text)), f"{id}-thought")
        case Attachment(text, name):
            resource = {"uri": f"hone:attachment/{name}", "text": redact(text)}
            content = {"type": "resource", "resource": resource}
            return {"sessionUpdate": USER, "content": content, "messageId": id}
        case Image(media_type, data):
            content = {"type": "image", "mimeType": media_type, "data": data}
            return {"sessionUpdate": USER, "content": content, "messageId": id}
    return None


def _redacted(call: ToolCall) -> ToolCall:
    return ToolCall(call.id, call.name, redact(call.arguments))
