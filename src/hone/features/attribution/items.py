"""List exactly what the model saw when it answered, from the stored prefix and messages."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from hone.core.messages import Message, Role, ToolCall
from hone.core.regex import regex
from hone.core.transcript import Node
from hone.features.attribution.values import AnsweredTurn, ItemKind, ItemPlace, PromptItem
from hone.prompt.compose import find_described, find_instructions, find_noted, to_plain
from hone.prompt.matches import find_named
from hone.prompt.news import read_news
from hone.prompt.shared import PREFIX, find_shared, find_shared_in

VIEW, NOTE, BACKEND, SEARCH = "skill_view", "memory", "memory_backend", "session_search"
_ASKED = regex(r"^# The user asked for the skill ([^\n]+)$", re.MULTILINE)
_SAVED = regex(r"Saved \(change ")
_LOOKING = ("retrieve", "query")


class RecordedCall(Struct, frozen=True):
    """A successful call. Its number is that of its message."""

    number: int
    call: ToolCall
    result: str

    @property
    def arguments(self) -> Mapping[str, object]:
        try:
            value = json.loads(self.call.arguments)
        except (ValueError, RecursionError):
            return {}
        return value if isinstance(value, dict) else {}

    def get(self, name: str) -> str:
        value = self.arguments.get(name)
        return value if isinstance(value, str) else ""


def list_items(answer: AnsweredTurn) -> list[PromptItem]:
    """Return each item once, in the order of its first appearance."""
    nodes = (*answer.before, *answer.turn[:-1])
    items = [*_from_prefix(answer), *_examples(nodes)]
    withdrawn: dict[tuple[str, str], int] = {}
    for number, node in enumerate(nodes, 1):
        message = node.message
        if message.role is Role.USER and not message.template:
            items += _told(number, message)
            for key in read_news(message.note).removed if message.note else ():
                withdrawn[key] = number
    items += _written(nodes)
    return [_renew(each, withdrawn) for each in _once(items)]


def _renew(item: PromptItem, withdrawn: Mapping[tuple[str, str], int]) -> PromptItem:
    """Note that an entry was withdrawn after it had appeared."""
    gone = withdrawn.get((item.name, item.text), 0) if item.kind is ItemKind.ENTRY else 0
    if gone <= item.message:
        return item
    return PromptItem(item.kind, item.name, item.text, item.place, item.message, gone)


def _once(items: Sequence[PromptItem]) -> Iterator[PromptItem]:
    """Yield each item once. One that was told again after its withdrawal counts from there."""
    last: dict[tuple[str, str, str], PromptItem] = {}
    for each in items:
        key = each.kind, each.name, "" if each.kind is ItemKind.SKILL else each.text
        if each.kind is not ItemKind.ENTRY and key in last:
            continue
        last[key] = each
    yield from last.values()


def _from_prefix(answer: AnsweredTurn) -> Iterator[PromptItem]:
    system = answer.prefix.system
    for part, entries in find_noted(system).items():
        yield from (PromptItem(ItemKind.ENTRY, part, to_plain(each)) for each in entries)
    for name, about in find_described(system).items():
        yield PromptItem(ItemKind.SKILL, name, about)
    yield from (_from_team(each) for each in find_shared(system))
    name, text = find_instructions(system)
    if name:
        yield PromptItem(ItemKind.INSTRUCTIONS, name, text)


def _from_team(line: str, place: ItemPlace = ItemPlace.PROMPT, number: int = 0) -> PromptItem:
    """Return what the team shares from a line about it: an entry with its sharer, or a skill."""
    name, _, text = line.partition(": ")
    kind = ItemKind.SKILL if name.startswith(PREFIX) else ItemKind.TEAM
    return PromptItem(kind, name, text, place, number)


def _examples(nodes: Sequence[Node]) -> Iterator[PromptItem]:
    for name in dict.fromkeys(node.message.template for node in nodes if node.message.template):
        shown = [node.message for node in nodes if node.message.template == name]
        text = "\n".join(describe_calls(each) or each.text for each in shown)
        yield PromptItem(ItemKind.TEMPLATE, name, text, ItemPlace.EXAMPLES, 1)


def _told(number: int, message: Message) -> Iterator[PromptItem]:
    """Yield what a message carried besides the user's words."""
    if note := message.note:
        told = read_news(note)
        for part, entry in told.added:
            yield PromptItem(ItemKind.ENTRY, part, entry, ItemPlace.NOTE, number)
        yield from (_from_team(each, ItemPlace.NOTE, number) for each in find_shared_in(note.text))
        named = {**dict(told.skills), **dict.fromkeys(find_named(message), "")}
        named |= dict.fromkeys(_ASKED.findall(note.text), "")
        for name, about in named.items():
            yield PromptItem(ItemKind.SKILL, name, about, ItemPlace.NOTE, number)
    if reminder := message.reminder:
        for text in f"\n{reminder.text}".split("\n- ")[1:]:
            key, _, value = text.partition(": ")
            yield PromptItem(ItemKind.MEMORY, key, value.replace("\n  ", "\n"), ItemPlace.NOTE, number)


def _written(nodes: Sequence[Node]) -> Iterator[PromptItem]:
    """Yield what the agent wrote down, read or looked up in the conversation itself."""
    for made in list_calls(nodes):
        number, name = made.number, made.call.name
        if name == NOTE and _SAVED.match(made.result):
            batch = made.arguments.get("batch")
            edits = batch if isinstance(batch, list) else [made.arguments]
            for edit in (each for each in edits if isinstance(each, dict)):
                part, text = edit.get("target", "memory"), edit.get("text", "")
                if isinstance(text, str) and text and edit.get("action") != "remove":
                    yield PromptItem(ItemKind.ENTRY, str(part), text.strip(), ItemPlace.CONVERSATION, number)
        elif name == VIEW and made.get("name"):
            yield PromptItem(ItemKind.SKILL, made.get("name"), "", ItemPlace.CONVERSATION, number)
        elif name == BACKEND and made.get("action") in _LOOKING:
            key = made.get("key") or made.get("query")
            yield PromptItem(ItemKind.MEMORY, key, made.result, ItemPlace.CONVERSATION, number)
        elif name == SEARCH:
            key = made.get("query") or made.get("session")
            yield PromptItem(ItemKind.MEMORY, key, made.result, ItemPlace.CONVERSATION, number)


def list_calls(nodes: Sequence[Node], start: int = 1) -> Iterator[RecordedCall]:
    """Yield the successful calls among messages, each with the number of its message. Examples of a template
    were never called here."""
    results = {node.message.result.call: node.message.result for node in nodes if node.message.result}
    for number, node in enumerate(nodes, start):
        for each in node.message.calls if not node.message.template else ():
            result = results.get(each.id)
            if result and not result.failed:
                yield RecordedCall(number, each, result.text)


def describe_calls(message: Message) -> str:
    return "\n".join(f"{call.name} {call.arguments}" for call in message.calls)


def find_asked(message: Message) -> Sequence[str]:
    """Return the skills that the user asked for with a message."""
    return _ASKED.findall(message.note.text) if message.note else ()
