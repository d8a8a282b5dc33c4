"""Check a request body for what a real provider would refuse. Each problem is one sentence."""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Struct

from hone.core.regex import regex
from hone.models.fake_provider import shapes
from hone.models.fake_provider.intake import InputItem, ParsedRequest

MARKERS = 4
_NAME = regex(r"[A-Za-z0-9_-]{1,64}")
_ID = regex(r"[A-Za-z0-9_-]+")
_LONGEST_ID, _LONGEST_CALL_ID = 40, 64
"""OpenAI refuses longer ids of calls, in chat completions and in Responses."""
_UNFORMED = frozenset({"allOf", "oneOf", "not", "prefixItems", "minLength", "maxLength", "uniqueItems"})
"""Some of the keywords that no provider accepts in the schema of an answer."""
_read_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class RequestFacts(Struct, frozen=True):
    """The relevant facts about one message: what is wrong with it alone, and which calls it makes and
    answers."""

    wrong: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    markers: int = 0


def objections(asked: ParsedRequest) -> list[str]:
    if not asked.items:
        return ["messages: at least one message is needed"]
    forms = [*_about_form(*asked.head.form)] if asked.head.form else []
    if isinstance(asked.head, shapes.Respond):
        return [*forms, *_about_respond(asked.head), *_about_input(asked.head, asked.items)]
    if isinstance(asked.head, shapes.Chat):
        return [*forms, *_about_chat(asked.head), *_about_dialogue(asked.items)]
    return [*forms, *_about_messages(asked.head, asked.items), *_about_entries(asked.items)]


def _about_form(schema: Any, whole: bool, place: str = "schema") -> Iterator[str]:
    """Check the schema of an answer: the root is an object, objects are closed, and if the schema is enforced
    no property is optional."""
    if place == "schema" and schema.get("type") != "object":
        yield "Invalid schema for response_format: the schema must be of type object"
    if isinstance(schema, list):
        for index, each in enumerate(schema):
            yield from _about_form(each, whole, f"{place}[{index}]")
    if not isinstance(schema, dict):
        return
    if unknown := schema.keys() & _UNFORMED:
        yield f"Invalid schema for response_format: {place} must not have {', '.join(sorted(unknown))}"
    if schema.get("type") == "object":
        if schema.get("additionalProperties") is not False:
            yield f"Invalid schema for response_format: {place}.additionalProperties must be false"
        if whole and set(schema.get("required", ())) != set(schema.get("properties", ())):
            yield f"Invalid schema for response_format: {place}.required must name every property"
    for keyword in ("properties", "$defs"):
        for name, each in schema.get(keyword, {}).items():
            yield from _about_form(each, whole, f"{place}.{name}")
    for keyword in ("items", "anyOf"):
        if keyword in schema:
            yield from _about_form(schema[keyword], whole, f"{place}.{keyword}")


def _about_respond(head: shapes.Respond) -> Iterator[str]:
    if head.tools is not None and not head.tools:
        yield "tools: an empty list is not allowed"
    for index, offer in enumerate(head.tools or ()):
        yield from _about_offer(f"tools[{index}]", offer.name, offer.parameters)
    if head.max_output_tokens is not None and head.max_output_tokens < 16:
        yield "max_output_tokens: must be at least 16"
    if head.prompt_cache_options and head.prompt_cache_retention:
        yield "prompt_cache_options and prompt_cache_retention exclude each other"


def _about_input(head: shapes.Respond, items: Sequence[InputItem]) -> Iterator[str]:
    """Check the order: each output follows its call, each call precedes its output, and each reasoning item
    precedes what it led to."""
    called: list[str] = []
    answered: list[str] = []
    following = [*(item.sent for item in items[1:]), None]
    for index, (item, after) in enumerate(zip(items, following, strict=True)):
        place, sent = f"input[{index}]", item.sent
        match sent:
            case shapes.CallItem(identity, name, arguments):
                called.append(identity)
                if not 0 < len(identity) <= _LONGEST_CALL_ID:
                    yield f"{place}: the id {identity!r} of a call must have 1 to {_LONGEST_CALL_ID} letters"
                yield from _about_call(name, arguments.encode())
            case shapes.ResultItem(identity):
                answered.append(identity)
                if identity not in called:
                    yield f"No tool call found for function call output with call_id {identity}."
            case shapes.ReasoningItem(identity):
                yield from _about_reasoning(head, sent, after)
            case shapes.MessageItem():
                yield from (f"{place}: {sentence}" for sentence in _about_message(sent))
    yield from (f"No tool output found for function call {each}." for each in called if each not in answered)
    yield from _about_repeats("ids of calls", called)
    yield from _about_repeats("outputs of calls", answered)


def _about_reasoning(head: shapes.Respond, item: shapes.ReasoningItem, after: object) -> Iterator[str]:
    if not item.encrypted_content and not head.store:
        yield f"Item with id '{item.id}' not found. Items are not persisted when `store` is set to false."
    is_reply = isinstance(after, shapes.CallItem | shapes.ReasoningItem) or (
        isinstance(after, shapes.MessageItem) and after.role == "assistant"
    )
    if not is_reply:
        yield f"Item '{item.id}' of type 'reasoning' was provided without its required following item."


def _about_message(item: shapes.MessageItem) -> Iterator[str]:
    if not item.content:
        yield "the message is empty"
    if item.phase and item.role != "assistant":
        yield "phase belongs to the assistant"
    own = shapes.OutputText if item.role == "assistant" else shapes.InputText | shapes.InputImage
    for part in item.content if isinstance(item.content, list) else ():
        if not isinstance(part, own):
            yield f"a part of {item.role} cannot be of type {type(part).__name__}"
        if isinstance(part, shapes.InputText | shapes.OutputText) and not part.text:
            yield "a text part must not be empty"


def _facts(item: InputItem) -> RequestFacts:
    return _gather.__wrapped__(item) if item.large else _gather(item)


@lru_cache(maxsize=4096)
def _gather(item: InputItem) -> RequestFacts:
    sent = item.sent
    if isinstance(sent, shapes.Given):
        return RequestFacts()
    if isinstance(sent, shapes.Entry):
        blocks = sent.blocks
        return RequestFacts(
            wrong=tuple(_about_entry(sent)),
            calls=tuple(block.id for block in blocks if isinstance(block, shapes.UseBlock)),
            results=tuple(block.tool_use_id for block in blocks if isinstance(block, shapes.ResultBlock)),
            markers=sum(map(_markers, blocks)),
        )
    calls = tuple(call.id for call in sent.tool_calls or ()) if isinstance(sent, shapes.AssistantSaid) else ()
    results = (sent.tool_call_id,) if isinstance(sent, shapes.ToolSaid) else ()
    return RequestFacts(tuple(_about_said(sent)), calls, results)


def _about_chat(chat: shapes.Chat) -> Iterator[str]:
    if chat.stream_options and not chat.stream:
        yield "stream_options: only allowed with stream"
    if chat.tools is not None and not chat.tools:
        yield "tools: an empty list is not allowed"
    for index, offer in enumerate(chat.tools or ()):
        yield from _about_offer(f"tools[{index}]", offer.function.name, offer.function.parameters)


def _about_dialogue(items: Sequence[InputItem]) -> Iterator[str]:
    """Check that the tool messages that answer a reply's calls follow it directly."""
    waiting: list[str] = []
    for index, facts in enumerate(map(_facts, items)):
        for sentence in facts.wrong:
            yield f"messages[{index}]: {sentence}"
        for result in facts.results:
            if result in waiting:
                waiting.remove(result)
            else:
                yield f"messages[{index}]: {result!r} is answered, but was not called just before"
        if not facts.results:
            if waiting:
                yield f"messages[{index}]: before it, no tool message answers {', '.join(waiting)}"
            waiting = list(facts.calls)
    if waiting:
        yield f"messages: at the end, no tool message answers {', '.join(waiting)}"


def _about_said(said: shapes.Said) -> Iterator[str]:
    calls = said.tool_calls if isinstance(said, shapes.AssistantSaid) else None
    if calls is not None:
        if not calls:
            yield "an empty list of tool_calls is not allowed"
        yield from _about_repeats("ids of calls", [call.id for call in calls])
        for call in calls:
            if not 0 < len(call.id) <= _LONGEST_ID:
                yield f"the id {call.id!r} of a call must have 1 to {_LONGEST_ID} letters"
            yield from _about_call(call.function.name, call.function.arguments.encode())
    if isinstance(said.content, list):
        if not said.content:
            yield "an empty list of parts is not allowed"
        if any(isinstance(part, shapes.TextPart) and not part.text for part in said.content):
            yield "a text part must not be empty"
    if not said.content and not calls and not isinstance(said, shapes.SystemSaid | shapes.ToolSaid):
        yield "the message is empty"


def _about_offer(place: str, name: str, schema: dict[str, object]) -> Iterator[str]:
    if not _NAME.fullmatch(name):
        yield f"{place}: {name!r} is not a name for a function"
    if schema.get("type") != "object":
        yield f"{place}: the schema must be of type object"


def _about_call(name: str, arguments: bytes) -> Iterator[str]:
    if not _NAME.fullmatch(name):
        yield f"{name!r} is not a name for a function"
    try:
        _read_object(arguments)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        yield f"what {name!r} is called with is not a JSON object"


def _about_repeats(what: str, names: Sequence[str]) -> Iterator[str]:
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        yield f"{what} must be unique, these are not: {', '.join(repeated)}"


def _about_messages(head: shapes.Messages, items: Sequence[InputItem]) -> Iterator[str]:
    if head.max_tokens < 1:
        yield "max_tokens: must be at least 1"
    system = head.system if isinstance(head.system, list) else []
    if any(not block.text.strip() for block in system):
        yield "system: text blocks must contain more than white space"
    for index, offer in enumerate(head.tools):
        yield from _about_offer(f"tools.{index}", offer.name, offer.input_schema)
    yield from _about_repeats("tools: names", [offer.name for offer in head.tools])
    marked = sum(offer.cache_control is not None for offer in head.tools) + sum(map(_markers, system))
    if marked + sum(_facts(item).markers for item in items) > MARKERS:
        yield f"cache_control: at most {MARKERS} blocks may have it"


def _markers(block: shapes.Block) -> int:
    if isinstance(block, shapes.ThinkingBlock | shapes.SealedBlock):
        return 0
    inner = block.content if isinstance(block, shapes.ResultBlock) and isinstance(block.content, list) else []
    return (block.cache_control is not None) + sum(map(_markers, inner))


def _about_entries(items: Sequence[InputItem]) -> Iterator[str]:
    """Check that the next message answers all calls of a reply. Consecutive messages of one role are
    allowed."""
    if isinstance(items[0].sent, shapes.Entry) and items[0].sent.role != "user":
        yield "messages.0: the first message must be the user's"
    facts = [_facts(item) for item in items]
    yield from _about_repeats("messages: ids of calls", [each for fact in facts for each in fact.calls])
    waiting: Sequence[str] = ()
    for index, fact in enumerate(facts):
        for sentence in fact.wrong:
            yield f"messages.{index}: {sentence}"
        if fact.results or waiting:
            yield from _about_results(f"messages.{index}", fact.results, waiting)
        waiting = fact.calls
    if waiting:
        yield f"messages: at the end, no tool_result answers {', '.join(waiting)}"


def _about_results(place: str, results: Sequence[str], waiting: Sequence[str]) -> Iterator[str]:
    missing = [identity for identity in waiting if identity not in results]
    if missing:
        yield f"{place}: these calls of the message before have no tool_result in it: {', '.join(missing)}"
    for result in results:
        if result not in waiting:
            yield f"{place}: {result!r} is answered, but was not called just before"
    yield from _about_repeats(f"{place}: tool_results", results)


def _about_entry(entry: shapes.Entry) -> Iterator[str]:
    blocks = entry.blocks
    if not blocks:
        yield "the message is empty"
    elif entry.role == "assistant" and isinstance(blocks[-1], shapes.ThinkingBlock | shapes.SealedBlock):
        yield "the last block of an assistant's message cannot be thinking"
    results = sum(isinstance(block, shapes.ResultBlock) for block in blocks)
    if not all(isinstance(block, shapes.ResultBlock) for block in blocks[:results]):
        yield "tool_result blocks must come before all others"
    for block in blocks:
        yield from _about_block(entry.role, block)


def _about_block(role: str, block: shapes.Block) -> Iterator[str]:
    match block:
        case shapes.TextBlock(text) if not text.strip():
            yield "text blocks must contain more than white space"
        case shapes.UseBlock(identity, name, given):
            if role != "assistant":
                yield "tool_use belongs to the assistant"
            if not _ID.fullmatch(identity):
                yield f"{identity!r} is not an id for a call"
            yield from _about_call(name, bytes(given))
        case shapes.ThinkingBlock(_, signature):
            if role != "assistant" or not signature:
                yield "thinking belongs to the assistant and must be signed"
        case shapes.SealedBlock(data):
            if role != "assistant" or not data:
                yield "redacted_thinking belongs to the assistant and must not be empty"
        case shapes.ImageBlock(source):
            if role != "user" or not (source.url or (source.data and source.media_type)):
                yield "an image belongs to the user and must have data and a media_type"
        case shapes.ResultBlock(content=content):
            if role != "user":
                yield "tool_result belongs to the user"
            for part in content if isinstance(content, list) else ():
                yield from _about_block("user", part)
