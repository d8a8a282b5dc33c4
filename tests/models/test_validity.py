"""The validator: silent about what a provider takes, one sentence about each thing it refuses."""

import json
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone.core.clock import ManualClock
from hone.core.messages import (
    Attachment,
    Image,
    Message,
    Part,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    assistant,
    told,
    unreminded,
    untold,
    user,
)
from hone.core.prefix import Prefix
from hone.models.anthropic import AnthropicMessages
from hone.models.endpoint import Endpoint, WireModel
from hone.models.fake_provider.intake import parse
from hone.models.fake_provider.shapes import Format
from hone.models.http import Http
from hone.models.openai import OpenAIChat
from hone.models.responses import OpenAIResponses
from tests.doubles.requests import problems
from tests.given import begun, conversations, prefixes, sendable, transcript
from tests.tier import fewer

CALL = {"id": "c1", "type": "function", "function": {"name": "read_file", "arguments": '{"path":"a"}'}}
CHAT: dict[str, Any] = {
    "model": "m",
    "stream": True,
    "stream_options": {"include_usage": True},
    "tools": [{"type": "function", "function": {"name": "read_file", "parameters": {"type": "object"}}}],
    "messages": [
        {"role": "system", "content": ""},
        {"role": "user", "content": [{"type": "text", "text": "look"}]},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": ""},
        {"role": "assistant", "content": "done"},
        {"role": "user", "content": "thanks"},
    ],
}
USE = {"type": "tool_use", "id": "c1", "name": "read_file", "input": {"path": "a"}}
RESULT = {"type": "tool_result", "tool_use_id": "c1", "content": "text"}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "seal"}
MARK = {"cache_control": {"type": "ephemeral"}}
MESSAGES: dict[str, Any] = {
    "model": "m",
    "max_tokens": 100,
    "system": [{"type": "text", "text": "You help.", **MARK}],
    "tools": [{"name": "read_file", "description": "d", "input_schema": {"type": "object"}}],
    "messages": [
        {"role": "user", "content": "look"},
        {"role": "assistant", "content": [THOUGHT, {"type": "text", "text": "I look."}, USE]},
        {"role": "user", "content": [RESULT | MARK]},
        {"role": "user", "content": [{"type": "text", "text": "and?"}]},
    ],
}


def changed(base: dict[str, Any], path: str, value: object) -> bytes:
    """The request with one thing at `path` replaced, or taken away."""
    body = deepcopy(base)
    *way, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    place: Any = body
    for step in way:
        place = place[step]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return json.dumps(body).encode()


def with_call(**fields: object) -> object:
    return [CALL | {"function": CALL["function"] | fields}]  # type: ignore[operator]


OPENAI_REFUSES = {
    "a result without its call": ("messages.2.tool_calls", ..., "not called just before"),
    "a result for another call": ("messages.3.tool_call_id", "c2", "not called just before"),
    "two results for one call": (
        "messages.4",
        {"role": "tool", "tool_call_id": "c1", "content": ""},
        "not called",
    ),
    "a call without its result": ("messages.3", ..., "no tool message answers c1"),
    "a user between call and result": (
        "messages.3",
        {"role": "user", "content": "?"},
        "no tool message answers",
    ),
    "one result for two calls": ("messages.2.tool_calls", [CALL, CALL | {"id": "c2"}], "answers c2"),
    "the same id twice": ("messages.2.tool_calls", [CALL, CALL], "unique"),
    "an id that is too long": ("messages.2.tool_calls", [CALL | {"id": "c" * 41}], "1 to 40"),
    "an empty id": ("messages.2.tool_calls", [CALL | {"id": ""}], "1 to 40"),
    "no calls in a list of calls": ("messages.2.tool_calls", [], "empty list of tool_calls"),
    "a bad name of a call": ("messages.2.tool_calls", with_call(name="read file"), "not a name"),
    "arguments that are not JSON": ("messages.2.tool_calls", with_call(arguments="{"), "not a JSON object"),
    "arguments that are a list": ("messages.2.tool_calls", with_call(arguments="[]"), "not a JSON object"),
    "no arguments": ("messages.2.tool_calls", with_call(arguments=""), "not a JSON object"),
    "arguments with NaN": ("messages.2.tool_calls", with_call(arguments='{"a":NaN}'), "not a JSON object"),
    "arguments that are no text": ("messages.2.tool_calls", with_call(arguments={}), "messages[2]"),
    "an unknown role": ("messages.1.role", "owner", "messages[1]"),
    "an empty user's message": ("messages.1.content", "", "the message is empty"),
    "an empty list of parts": ("messages.1.content", [], "an empty list of parts"),
    "an empty part": ("messages.1.content", [{"type": "text", "text": ""}], "must not be empty"),
    "an empty reply": ("messages.4.content", "", "the message is empty"),
    "a reply of nothing": ("messages.4.content", None, "the message is empty"),
    "an unknown part": ("messages.1.content", [{"type": "sound"}], "messages[1]"),
    "no messages": ("messages", [], "at least one message"),
    "no list of messages": ("messages", ..., "`messages`"),
    "no model": ("model", ..., "`model`"),
    "an empty list of tools": ("tools", [], "empty list"),
    "a bad name of a tool": ("tools.0.function.name", "a" * 65, "not a name"),
    "a schema that is no object": ("tools.0.function.parameters", {"type": "array"}, "of type object"),
    "stream options without a stream": ("stream", False, "stream_options"),
}
ANTHROPIC_REFUSES = {
    "a result without its call": (
        "messages.1.content",
        [{"type": "text", "text": "x"}],
        "not called just before",
    ),
    "a result for another call": ("messages.2.content.0.tool_use_id", "c2", "not called just before"),
    "two results for one call": ("messages.2.content", [RESULT, RESULT], "tool_results must be unique"),
    "a call without its result": ("messages.2", ..., "no tool_result in it: c1"),
    "a call at the end": ("messages.3", {"role": "assistant", "content": [USE | {"id": "c2"}]}, "at the end"),
    "results in two messages": ("messages.1.content", [USE, USE | {"id": "c2"}], "no tool_result in it: c2"),
    "a result after other words": (
        "messages.2.content",
        [{"type": "text", "text": "x"}, RESULT],
        "before all",
    ),
    "the same id twice": ("messages.1.content", [USE, USE], "ids of calls must be unique"),
    "an id used again later": (
        "messages",
        [*MESSAGES["messages"][:3], *MESSAGES["messages"][1:3]],
        "ids of calls must be unique",
    ),
    "a bad id": ("messages.1.content.2.id", "c:1", "not an id"),
    "a bad name of a call": ("messages.1.content.2.name", "read file", "not a name"),
    "an input that is a list": ("messages.1.content.2.input", [], "not a JSON object"),
    "an input that is text": ("messages.1.content.2.input", '{"path":"a"}', "not a JSON object"),
    "an unknown role": ("messages.0.role", "system", "messages[0]"),
    "an empty message": ("messages.0.content", [], "the message is empty"),
    "an empty text": ("messages.0.content", "", "white space"),
    "a blank text": ("messages.1.content.1.text", " \n", "white space"),
    "a blank text in a result": (
        "messages.2.content.0.content",
        [{"type": "text", "text": ""}],
        "white space",
    ),
    "a blank system text": ("system.0.text", "", "white space"),
    "thinking without a signature": ("messages.1.content.0.signature", "", "signed"),
    "thinking at the end of a reply": (
        "messages.3",
        {"role": "assistant", "content": [THOUGHT]},
        "last block",
    ),
    "a marker on thinking": ("messages.1.content.0", THOUGHT | MARK, "cache_control"),
    "thinking of the user": ("messages.0.content", [THOUGHT], "belongs to the assistant"),
    "a call of the user": ("messages.3.content", [USE | {"id": "c2"}], "belongs to the assistant"),
    "a result of the assistant": ("messages.2.role", "assistant", "belongs to the user"),
    "a reply at the beginning": ("messages.0", ..., "the first message"),
    "five markers": ("messages.3.content", [{"type": "text", "text": "x", **MARK}] * 3, "at most 4"),
    "five markers, some within a result": (
        "messages.2.content.0.content",
        [{"type": "text", "text": "x", **MARK}] * 3,
        "at most 4",
    ),
    "a marker of unknown type": ("system.0.cache_control", {"type": "forever"}, "cache_control"),
    "no max_tokens": ("max_tokens", ..., "`max_tokens`"),
    "max_tokens of nothing": ("max_tokens", 0, "max_tokens"),
    "no messages": ("messages", [], "at least one message"),
    "an unknown field": ("messages.0.name", "me", "`name`"),
    "two tools of one name": ("tools", MESSAGES["tools"] * 2, "unique"),
    "a bad name of a tool": ("tools.0.name", "", "not a name"),
    "a schema that is no object": ("tools.0.input_schema", {}, "of type object"),
    "an image without data": (
        "messages.0.content",
        [{"type": "image", "source": {"type": "base64", "media_type": "image/png"}}],
        "an image",
    ),
}


REASONED = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA-scripted-1"}
RESPOND: dict[str, Any] = {
    "model": "m",
    "stream": True,
    "store": False,
    "tools": [{"type": "function", "name": "read_file", "parameters": {"type": "object"}, "strict": False}],
    "input": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "look"}]},
        REASONED,
        {"type": "function_call", "call_id": "c1", "name": "read_file", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": ""},
        {"type": "message", "role": "assistant", "content": "done", "phase": "final_answer"},
        {"type": "message", "role": "user", "content": "thanks"},
    ],
}
RESPONSES_REFUSES: dict[str, tuple[str, Any, str]] = {
    "an output without its call": ("input.2", REASONED, "No tool call found for function call output"),
    "a call without its output": (
        "input.3",
        RESPOND["input"][4],
        "No tool output found for function call c1",
    ),
    "an output before its call": ("input.0", RESPOND["input"][3], "No tool call found"),
    "a call twice": ("input.4", RESPOND["input"][2], "ids of calls must be unique"),
    "reasoning that leads to nothing": ("input.4", REASONED, "without its required following item"),
    "reasoning at the end": ("input.5", REASONED, "without its required following item"),
    "reasoning that is not there": ("input.1.encrypted_content", ..., "Items are not persisted"),
    "reasoning without an id": ("input.1.id", ..., "`id`"),
    "a parameter of chat completions": ("max_tokens", 9, "`max_tokens`"),
    "messages": ("messages", [], "`messages`"),
    "too few tokens": ("max_output_tokens", 1, "max_output_tokens"),
    "a tool of chat completions": ("tools.0", CHAT["tools"][0], "`function`"),
    "a tool that leaves strict open": ("tools.0.strict", ..., "`strict`"),
    "no tools": ("tools", [], "tools: an empty list"),
    "an item of unknown type": ("input.0.type", "thing", "type"),
    "a text of the wrong side": ("input.0.content.0.type", "output_text", "cannot be of type"),
    "an empty text": ("input.0.content.0.text", "", "must not be empty"),
    "an empty message": ("input.5.content", "", "is empty"),
    "a phase of the user's": ("input.5.phase", "commentary", "belongs to the assistant"),
    "arguments that are no JSON": ("input.2.arguments", "{", "not a JSON object"),
    "a long id": ("input.2.call_id", "c" * 65, "1 to 64 letters"),
    "no input": ("input", [], "at least one message"),
}


@pytest.mark.parametrize("name", RESPONSES_REFUSES)
def test_responses_refuse(name: str) -> None:
    path, value, sentence = RESPONSES_REFUSES[name]
    found = problems("responses", changed(RESPOND, path, value))
    assert any(sentence in problem for problem in found), found


def test_what_a_provider_takes_has_no_problems() -> None:
    assert problems("responses", json.dumps(RESPOND).encode()) == []
    assert problems("openai", json.dumps(CHAT).encode()) == []
    assert problems("anthropic", json.dumps(MESSAGES).encode()) == []
    four = [{"type": "text", "text": "x", **MARK}] * 2
    assert problems("anthropic", changed(MESSAGES, "messages.3.content", four)) == []


@pytest.mark.parametrize("name", OPENAI_REFUSES)
def test_openai_refuses(name: str) -> None:
    path, value, sentence = OPENAI_REFUSES[name]
    found = problems("openai", changed(CHAT, path, value))
    assert any(sentence in problem for problem in found), found


@pytest.mark.parametrize("name", ANTHROPIC_REFUSES)
def test_anthropic_refuses(name: str) -> None:
    path, value, sentence = ANTHROPIC_REFUSES[name]
    found = problems("anthropic", changed(MESSAGES, path, value))
    assert any(sentence in problem for problem in found), found


@pytest.mark.parametrize("format", ["openai", "anthropic", "responses"])
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{",
        b'{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"x"}],}',
        b'{"model":"m","max_tokens":1,"temperature":NaN,"messages":[{"role":"user","content":"x"}]}',
        b'{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"\xff"}]}',
        b'{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"\\ud800"}]}',
        b'{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"x"}]} {}',
        b"[" * 100_000,
    ],
)
def test_a_body_that_is_not_strict_json_is_one_problem(format: Format, body: bytes) -> None:
    assert len(problems(format, body)) == 1


def encoded(format: Format, prefix: Prefix, messages: list[Message]) -> bytes:
    clock = ManualClock()
    endpoint = Endpoint("test", "http://127.0.0.1:9")
    kinds = {"openai": OpenAIChat, "anthropic": AnthropicMessages, "responses": OpenAIResponses}
    if format == "responses" and "thinking" in prefix.sampling:  # a word that this provider does not know
        prefix = Prefix(prefix.model, prefix.system, prefix.tools, '{"reasoning_effort":"low"}')
    client: WireModel = kinds[format](Http(clock), clock, endpoint)
    return client.body(prefix, transcript(prefix, messages))


def returned(format: Format, message: Message) -> Message:
    """What is left of a message after a trip over the wire."""
    parts = message.parts
    if message.note:
        parts = (*(note for note in [untold(told(message.note))[0]] if note), *parts[1:])
    if message.reminder:
        back, _ = unreminded(told(message.reminder))
        parts = tuple(
            part for each in parts for part in ([back] if each is message.reminder else [each]) if part
        )
    if message.attachments:
        parts = tuple(_read_back(parts, joined=format != "anthropic"))
    if format != "anthropic":
        parts = tuple(part for part in parts if not isinstance(part, Thinking) or part.opaque)
        parts = tuple(
            ToolResult(each.call, each.text) if isinstance(each, ToolResult) else each for each in parts
        )
    else:
        parts = tuple(
            ToolResult(each.call, each.text or "(no output)", each.failed)
            if isinstance(each, ToolResult)
            else each
            for each in parts
        )
    return Message(message.role, parts)


def _read_back(parts: Sequence[Part], *, joined: bool) -> list[Part]:
    """Attachments come back as text: their own, or behind the words where there is one text only."""
    sent = [Text(told(part)) if isinstance(part, Attachment) else part for part in parts]
    texts = [part.text for part in sent if isinstance(part, Text) and part.text]
    if joined and not any(isinstance(part, Image) for part in parts):
        return [*(part for part in sent if not isinstance(part, Text)), Text("\n\n".join(texts))]
    return [part for part in sent if not isinstance(part, Text) or part.text]


@pytest.mark.parametrize("format", ["openai", "anthropic", "responses"])
@fewer(40)
@given(prefix=prefixes, messages=conversations() | begun())
def test_what_hone_sends_of_any_conversation_is_valid_and_understood(
    format: Format, prefix: Prefix, messages: list[Message]
) -> None:
    for end in sendable(messages):
        body = encoded(format, prefix, messages[:end])
        assert [each for each in problems(format, body) if not each.startswith("system: ")] == []
        asked = parse(format, body)
        assert asked.system == prefix.system
        assert list(asked.messages) == [returned(format, message) for message in messages[:end]]


@given(st.sampled_from(["openai", "anthropic", "responses"]), st.binary(max_size=60))
def test_no_bytes_make_the_validator_raise(format: Format, noise: bytes) -> None:
    good = json.dumps({"openai": CHAT, "anthropic": MESSAGES, "responses": RESPOND}[format]).encode()
    middle = len(good) // 2
    for body in (noise, good[:middle] + noise + good[middle:], good[: -len(noise) - 1]):
        assert isinstance(problems(format, body), list)


def test_parts_of_every_kind_are_understood() -> None:
    source = {"type": "base64", "media_type": "image/png", "data": "aGk="}
    body = {
        "model": "m",
        "max_tokens": 1,
        "system": "You help.",
        "messages": [
            {
                "role": "user",
                "content": [{"type": "text", "text": "see"}, {"type": "image", "source": source}],
            },
            {"role": "assistant", "content": [{"type": "redacted_thinking", "data": "xx"}, THOUGHT, USE]},
            {"role": "user", "content": [RESULT | {"is_error": True}, {"type": "text", "text": "and?"}]},
        ],
    }
    asked = parse("anthropic", json.dumps(body).encode())
    assert asked.system == "You help."
    assert list(asked.messages) == [
        user("see", Image("image/png", "aGk=")),
        assistant(
            Thinking("", sealed="xx"), Thinking("hm", "seal"), ToolCall("c1", "read_file", '{"path": "a"}')
        ),
        Message(Role.TOOL, (ToolResult("c1", "text", failed=True),)),
        user("and?"),
    ]
    url = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
    chat = {
        "model": "m",
        "messages": [
            {"role": "developer", "content": "You help."},
            {"role": "user", "content": [url]},
            {"role": "assistant", "reasoning_content": "hm", "content": "ok"},
        ],
    }
    heard = parse("openai", json.dumps(chat).encode())
    assert (heard.system, list(heard.messages)) == (
        "You help.",
        [user(Image("image/png", "aGk=")), assistant(Thinking("hm"), Text("ok"))],
    )
