"""Ask again from an earlier message, changed or as it was, and continue with another model."""

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec

from hone.core.errors import Refused
from hone.core.messages import Message, Reminder, Role, SystemNote, Text
from hone.core.transcript import Node
from hone.runtime.continuing import model_of
from hone.runtime.model_factory import KeyedEnvironment, list_providers
from hone.runtime.offers import ModelOffer, find_offers
from hone.web.open_sessions import Words
from hone.web.operation import Nothing, Operation, OperationCall
from hone.web.operations.chat import LONGEST


class AgainRequest(msgspec.Struct, frozen=True):
    """`message` is the number of a message of the user's. Without `text`, it is sent as it was."""

    message: Annotated[int, msgspec.Meta(ge=1, le=2**53)]
    text: Annotated[str, msgspec.Meta(max_length=LONGEST)] = ""


class ModelRequest(msgspec.Struct, frozen=True):
    model: Annotated[str, msgspec.Meta(min_length=1, max_length=500)]


async def again(call: OperationCall[Nothing, AgainRequest]) -> dict[str, Any]:
    """Sends a message once more, in a new conversation with what came before it. The old one is kept."""
    state, hone = call.state, call.state.hone
    stored = await hone.sessions.load(await hone.sessions.find(call.path["session"]))
    number = call.body.message
    node = find_begun(stored.transcript.nodes, number)
    mode = await state.mode_of(stored.header.id)
    if number > 1:
        opened = await state.open_sessions.enter(await hone.branch(stored.header.id, number - 1))
    else:
        opened = await state.open_sessions.begin(model_of(stored))
    opened.session.set_mode(mode)
    words = Words(reworded(node.message, call.body.text), node.trust, watched=True)
    await state.open_sessions.start(opened, words)
    return {"session": opened.session.id, "messages": len(opened.session.transcript)}


def find_begun(nodes: Sequence[Node], number: int) -> Node:
    """Return the message of the user's that began a turn. Raises Refused for any other one."""
    node = nodes[number - 1] if number <= len(nodes) else None
    if node is None or node.message.role is not Role.USER or node.message.template:
        raise Refused(f"Message {number} is not one of yours.")
    if number > 1 and nodes[number - 2].message.role is not Role.ASSISTANT:
        raise Refused(f"Message {number} was sent while an answer came. Go back to the one before it.")
    return node


def reworded(message: Message, text: str) -> Message:
    """Return a message as its user sent it, without what Hone added, or with other words."""
    own = tuple(part for part in message.parts if not isinstance(part, SystemNote | Reminder))
    if text.strip():
        own = (Text(text), *(part for part in own if not isinstance(part, Text)))
    return Message(message.role, own)


async def models(call: OperationCall[Nothing, Nothing]) -> dict[str, Any]:
    """The models that can be used now, and why others cannot."""
    hone = call.state.hone
    environ = KeyedEnvironment(hone.home, hone.settings)
    more = (*hone.settings.models, *hone.settings.prices)
    found = await find_offers(list_providers(hone.settings), hone.models, environ, hone.clock, more)
    return {"models": [_offer(each) for each in found.usable], "notes": found.notes}


def _offer(each: ModelOffer) -> dict[str, Any]:
    price = {"input": each.price.input, "output": each.price.output} if each.price else None
    return {"name": each.name, "why": each.why, "window": each.window, "price": price, "local": each.local}


async def set_model(call: OperationCall[Nothing, ModelRequest]) -> dict[str, Any]:
    """Continues a conversation with another model, from the next message on."""
    state = call.state
    id = await state.hone.sessions.find(call.path["session"])
    opened = await state.open_sessions.change_model(id, call.body.model)
    model = opened.session.agent.prefix.model
    state.bus.publish(id, "model", {"model": model})
    return {"session": id, "model": model}


OPERATIONS = (
    Operation("POST", "/api/sessions/{session}/again", again, body=AgainRequest, status=202, spends=True),
    Operation("GET", "/api/models", models),
    Operation("POST", "/api/sessions/{session}/model", set_model, body=ModelRequest),
)
