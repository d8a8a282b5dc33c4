"""Leave one item out of what the model was given, and nothing else."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from hone.core.errors import Refused
from hone.core.messages import Message, Part, Reminder, Role, SystemNote, Text, ToolResult
from hone.core.prefix import Prefix
from hone.core.transcript import Node
from hone.core.value import replace
from hone.features.attribution.items import VIEW, list_calls
from hone.features.attribution.values import AnsweredTurn, ItemKind, ItemPlace, PromptItem
from hone.prompt.compose import (
    find_described,
    find_noted,
    leave_out_entry,
    leave_out_instructions,
    leave_out_skill,
    to_plain,
)
from hone.prompt.matches import leave_out_match
from hone.prompt.news import leave_out_news


class GivenTurn(Struct, frozen=True):
    """The start of a run: the prefix, the messages before, and the request with its additions. `skill` is the
    one left out."""

    prefix: Prefix
    before: tuple[Node, ...]
    request: Message
    skill: str = ""


def give(answer: AnsweredTurn) -> GivenTurn:
    """Return a turn as it was. What the user said while the agent worked directly follows the request; an
    empty note keeps Hone from adding another one."""
    request = answer.request
    note = (request.note or SystemNote(""),)
    parts = [part for part in request.parts if not isinstance(part, SystemNote)]
    later = (node.message for node in answer.turn[1:] if node.message.role is Role.USER)
    parts += [Text(f"\n\n{message.text}") for message in later if message.text]
    return GivenTurn(answer.prefix, answer.before, Message(Role.USER, (*note, *parts)))


def leave_out(given: GivenTurn, item: PromptItem) -> GivenTurn:
    """Return the same turn without an item. Raises Refused if the conversation itself holds it."""
    match item.kind:
        case ItemKind.ENTRY if item.place is not ItemPlace.CONVERSATION:
            return _without_entry(given, item)
        case ItemKind.SKILL:
            return _without_skill(given, item.name)
        case ItemKind.MEMORY if item.place is ItemPlace.NOTE:
            return _change(given, lambda message: _without_memory(message, item))
        case ItemKind.TEMPLATE:
            kept = tuple(node for node in given.before if node.message.template != item.name)
            return replace(given, before=kept)
        case ItemKind.INSTRUCTIONS:
            return replace(given, prefix=leave_out_instructions(given.prefix))
        case ItemKind.TEAM:
            raise Refused("It is shared by your team and is not left out here.")
    raise Refused("It stands in the conversation itself, so it cannot be left out.")


def _without_entry(given: GivenTurn, item: PromptItem) -> GivenTurn:
    noted = find_noted(given.prefix.system).get(item.name, ())
    if item.text in map(to_plain, noted):
        given = replace(given, prefix=leave_out_entry(given.prefix, item.name, item.text))
    return _change_notes(given, lambda note: leave_out_news(note, item.name, item.text))


def _without_skill(given: GivenTurn, name: str) -> GivenTurn:
    """Return the turn without a skill. A call that read it answers that there is no such skill."""
    if name in find_described(given.prefix.system):
        given = replace(given, prefix=leave_out_skill(given.prefix, name))
    given = _change_notes(
        given, lambda note: _without_body(leave_out_match(leave_out_news(note, skill=name), name), name)
    )
    calls = list_calls(given.before)
    viewed = {made.call.id for made in calls if made.call.name == VIEW and made.get("name") == name}

    def change(message: Message) -> Message:
        result = message.result
        if result is None or result.call not in viewed:
            return message
        return Message(message.role, (ToolResult(result.call, f"There is no skill {name}.", failed=True),))

    return replace(_change(given, change), skill=name)


def _without_body(note: SystemNote, name: str) -> SystemNote:
    """Remove the text of a skill that the user asked for, up to the next heading."""
    kept: list[str] = []
    inside = False
    for line in note.text.split("\n"):
        if line.startswith("# "):
            inside = line == f"# The user asked for the skill {name}" or line.startswith(
                f"# Files of {name} "
            )
        if not inside:
            kept.append(line)
    return replace(note, text="\n".join(kept))


def _without_memory(message: Message, item: PromptItem) -> Message:
    parts: list[Part] = []
    for part in message.parts:
        if not isinstance(part, Reminder):
            parts.append(part)
            continue
        items = f"\n{part.text}".split("\n- ")[1:]
        kept = [f"- {each}" for each in items if each.partition(": ")[0] != item.name]
        if kept:
            parts.append(replace(part, text="\n".join(kept)))
    return Message(message.role, tuple(parts), message.template)


def _change_notes(given: GivenTurn, act: Callable[[SystemNote], SystemNote]) -> GivenTurn:
    def change(message: Message) -> Message:
        if message.note is None:
            return message
        return Message(message.role, (act(message.note), *message.parts[1:]), message.template)

    return _change(given, change)


def _change(given: GivenTurn, act: Callable[[Message], Message]) -> GivenTurn:
    nodes: Sequence[Node] = [_renew(node, act(node.message)) for node in given.before]
    return replace(given, before=tuple(nodes), request=act(given.request))


def _renew(node: Node, message: Message) -> Node:
    return node if message is node.message else Node.make(node.parent, message, node.trust, node.at)
