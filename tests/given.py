"""Strategies: messages and whole conversations as a model and its user could have had them."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime

from hypothesis import strategies as st

from hone.core.ids import SessionId
from hone.core.messages import (
    Attachment,
    Image,
    Message,
    Part,
    Reminder,
    Role,
    SystemNote,
    Text,
    Thinking,
    ToolCall,
    answer,
    assistant,
    user,
)
from hone.core.prefix import Prefix
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from hone.core.value import replace
from hone.features.templates.seeding import seeded
from hone.features.templates.values import Example, Template, WorkKind

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
words = texts.filter(str.strip)
names = st.from_regex(r"[a-z_]{1,12}", fullmatch=True)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
arguments = st.dictionaries(texts, json_values, max_size=3).map(
    lambda value: json.dumps(value, ensure_ascii=False)
)
images = st.builds(Image, st.sampled_from(["image/png", "image/jpeg"]), st.just("aGk="))
thoughts = st.builds(Thinking, texts, words) | st.builds(Thinking, st.just(""), sealed=words)
notes = st.builds(SystemNote, texts, st.integers(0, 10**6), st.integers(0, 10**6))
reminders = st.builds(Reminder, texts, st.sampled_from([each.name.lower() for each in Trust]))
attachments = st.builds(Attachment, texts, words, st.sampled_from([each.name.lower() for each in Trust]))
user_messages = st.builds(
    lambda note, memory, text, attached, pictures: user(*note, *memory, text, *attached, *pictures),
    st.lists(notes, max_size=1),
    st.lists(reminders, max_size=1),
    words,
    st.lists(attachments, max_size=2),
    st.lists(images, max_size=1),
)
trusts = st.sampled_from(Trust)


@st.composite
def replies(draw: st.DrawFn, number: int, *, calls: bool) -> Message:
    """One reply; its call ids are unique in the conversation because `number` is."""
    thinking = draw(st.lists(thoughts, max_size=1))
    if not calls:
        return assistant(*thinking, draw(words))
    text = draw(st.lists(words.map(Text), max_size=1))
    made = [
        ToolCall(f"call_{number}_{index}", name, draw(arguments))
        for index, name in enumerate(draw(st.lists(names, min_size=1, max_size=3)))
    ]
    return assistant(*thinking, *text, *made)


def marked(messages: Iterable[Message], origin: str) -> list[Message]:
    """The same conversation as a provider hands it out that wants something back with each part."""
    return [
        Message(
            said.role, tuple(_marked(part, f"{at}_{index}", origin) for index, part in enumerate(said.parts))
        )
        if said.role is Role.ASSISTANT and not said.template
        else said
        for at, said in enumerate(messages)
    ]


def _marked(part: Part, name: str, origin: str) -> Part:
    match part:
        case Thinking(text):
            summary = [{"type": "summary_text", "text": text}]
            item = {"id": f"rs_{name}", "type": "reasoning", "summary": summary, "encrypted_content": "x=="}
            return replace(part, opaque=json.dumps(item), origin=origin)
        case Text():
            return replace(part, opaque='"commentary"', origin=origin)
        case ToolCall():
            signature = {"google": {"thought_signature": name}}
            return replace(part, opaque=json.dumps(signature), origin=origin)
    return part


@st.composite
def conversations(draw: st.DrawFn, turns: int = 3) -> list[Message]:
    """Whole turns: a user's words, replies with calls and their results, words that were said meanwhile, and
    an answer."""
    said: list[Message] = []
    for _ in range(draw(st.integers(1, turns))):
        said.append(draw(user_messages))
        for _ in range(draw(st.integers(0, 2))):
            reply = draw(replies(len(said), calls=True))
            said.append(reply)
            said += [answer(call, draw(texts), failed=draw(st.booleans())) for call in reply.calls]
            said += draw(st.lists(user_messages, max_size=1)) if reply.calls else []
        said.append(draw(replies(len(said), calls=False)))
    return said


labels = st.sampled_from([Trust.FOREIGN, Trust.LOCAL, Trust.AGENT])
objects = st.dictionaries(texts, texts | st.integers(-9, 9), max_size=2).map(json.dumps)
tool_names = st.sampled_from(["read_file", "a", "x-1", "n" * 64])
examples = st.builds(Example, tool_names, objects, texts, st.integers(0, 10**6), labels, labels)
templates = st.builds(
    Template,
    st.sampled_from(["rows", "a-1", "n" * 64]),
    st.sampled_from(WorkKind),
    st.just(SessionId("0a1b2c3d4e")),
    st.just(NOON),
    texts,
    st.lists(words, max_size=2).map(tuple),
    st.lists(examples, min_size=1, max_size=4).map(tuple),
    st.lists(st.sampled_from("abcdef").map(SessionId), max_size=2, unique=True).map(tuple),
    st.none() | st.floats(-1, 1),
)


@st.composite
def begun(draw: st.DrawFn) -> list[Message]:
    """A conversation that begins with a template."""
    return [*seeded(draw(templates), "root", NOON), *draw(conversations())]


prefixes = st.builds(
    Prefix,
    st.sampled_from(["openai/m", "anthropic/m"]),
    texts,
    st.just(('{"description":"d","name":"a","parameters":{"properties":{},"type":"object"}}',)),
    st.sampled_from(["{}", '{"max_tokens":100}', '{"thinking":{"budget_tokens":1024,"type":"enabled"}}']),
)


def transcript(prefix: Prefix, messages: Iterable[Message]) -> Transcript:
    chain = Transcript(prefix.digest)
    for message in messages:
        chain = chain.then(message, Trust.OWNER if message.role is Role.USER else Trust.AGENT, NOON)
    return chain


def sendable(messages: list[Message]) -> list[int]:
    """The lengths at which a request goes out: after a user's words or the last result of a reply."""
    return [
        end
        for end in range(1, len(messages) + 1)
        if messages[end - 1].role is not Role.ASSISTANT
        and (end == len(messages) or messages[end].role is not Role.TOOL)
    ]
