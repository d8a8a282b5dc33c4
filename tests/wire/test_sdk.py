"""The official SDKs as judges: their types accept what Hone sends, and Hone reads what their types write."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from anthropic.types import RawMessageStreamEvent
from anthropic.types.message_create_params import MessageCreateParamsStreaming
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types import responses as sdk
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
from pydantic import TypeAdapter, ValidationError

from hone.core.clock import SystemClock
from hone.core.errors import ModelError, Overloaded, Rejected
from hone.core.messages import Message, Role, Text, Thinking, ToolCall, assistant
from hone.core.model import Finish, Reply, TextPiece, ThinkingPiece, Usage
from hone.core.prefix import Prefix
from hone.models.anthropic import AnthropicMessages
from hone.models.cacherules import find_rule, marks_of
from hone.models.endpoint import Endpoint, WireModel
from hone.models.fake_provider.playback import Framing, stream, whole
from hone.models.fake_provider.returning import Returns
from hone.models.http import Http
from hone.models.marked_responses import MarkedResponses
from hone.models.responses import OpenAIResponses, ResponsesAssembly
from tests.conftest import Figures, Tier
from tests.given import begun, conversations, marked, prefixes, replies, sendable, transcript
from tests.tier import fewer

CLOCK = SystemClock()
ORIGIN = "openai:responses"
ENDPOINT = Endpoint("openai", "http://127.0.0.1:9", origin=ORIGIN)
REQUESTS: dict[str, tuple[Callable[..., WireModel], TypeAdapter[Any]]] = {
    "responses": (OpenAIResponses, TypeAdapter(ResponseCreateParamsStreaming)),
    "marked responses": (
        partial(MarkedResponses, marks=marks_of(find_rule("openai", "gpt-5.6"))),
        TypeAdapter(ResponseCreateParamsStreaming),
    ),
    "anthropic": (AnthropicMessages, TypeAdapter(MessageCreateParamsStreaming)),
}
MESSAGES: TypeAdapter[RawMessageStreamEvent] = TypeAdapter(RawMessageStreamEvent)
EVENTS: TypeAdapter[sdk.ResponseStreamEvent] = TypeAdapter(sdk.ResponseStreamEvent)


def exhausted(value: Any) -> Any:
    """What the types made of a value; iterables are validated while they are read."""
    if isinstance(value, dict):
        return {name: exhausted(each) for name, each in value.items()}
    if isinstance(value, str | int | float | bool | None):
        return value
    return [exhausted(each) for each in value]


def judged(adapter: TypeAdapter[Any], body: bytes) -> bool:
    """Whether the types accept a request, and know every key of it."""
    asked = json.loads(body)
    try:
        return bool(exhausted(adapter.validate_python(asked)) == asked)
    except ValidationError:
        return False


@pytest.mark.parametrize("format", REQUESTS)
def test_the_official_types_accept_every_request(format: str, tier: Tier, figures: Figures) -> None:
    make, adapter = REQUESTS[format]
    model, refused = make(Http(CLOCK), CLOCK, ENDPOINT), [0, 0]

    @settings(max_examples=tier.size(short=40, full=500))
    @given(prefixes, conversations() | begun(), st.data())
    def check(prefix: Prefix, messages: list[Message], data: st.DataObject) -> None:
        said = marked(messages, ORIGIN)[: data.draw(st.sampled_from(sendable(messages)))]
        if format != "anthropic":  # what is set for one provider is sent to it as it stands
            prefix = Prefix(prefix.model, prefix.system, prefix.tools, '{"max_tokens":100}')
        ok = judged(adapter, model.body(prefix, transcript(prefix, said)))
        refused[0], refused[1] = refused[0] + 1, refused[1] + (not ok)
        assert ok

    try:
        check()
    finally:
        figures.tally(refused[0], got_in=refused[1], note=f"requests that the SDK's types refused, {format}")


@pytest.mark.parametrize("format", REQUESTS)
def test_the_judge_notices_a_wrong_key_and_a_wrong_value(format: str) -> None:
    make, adapter = REQUESTS[format]
    prefix = Prefix("openai/m", "system")
    said = transcript(prefix, [Message(Role.USER, (Text("q"),))])
    body = make(Http(CLOCK), CLOCK, ENDPOINT).body(prefix, said)
    assert judged(adapter, body)
    assert not judged(adapter, body.replace(b'"role":"user"', b'"role":"nobody"'))
    assert not judged(adapter, body.replace(b'"role":"user"', b'"role":"user","roll":1'))
    assert not judged(adapter, body.replace(b'"stream":true', b'"stream":true,"max_token":1'))


def decoded(events: Iterator[bytes]) -> tuple[Reply, str, str]:
    """The reply of a stream, and what was shown of it on the way."""
    assembly = ResponsesAssembly(ENDPOINT)
    pieces = [piece for data in events for piece in assembly.feed(data)]
    text = "".join(piece.text for piece in pieces if isinstance(piece, TextPiece))
    return assembly.reply(), text, "".join(piece.text for piece in pieces if isinstance(piece, ThinkingPiece))


REASONING = sdk.ResponseReasoningItem(
    id="rs_1",
    type="reasoning",
    encrypted_content="gAAAA==",
    summary=[
        {"type": "summary_text", "text": "First."},  # type: ignore[list-item]
        {"type": "summary_text", "text": "Then."},  # type: ignore[list-item]
    ],
)
CALL = sdk.ResponseFunctionToolCall(
    id="fc_1", type="function_call", call_id="call_1", name="look", arguments='{"a": 1}', status="completed"
)
SAID = sdk.ResponseOutputMessage(
    id="msg_1",
    type="message",
    role="assistant",
    status="completed",
    phase="commentary",
    content=[sdk.ResponseOutputText(type="output_text", text="I look.", annotations=[])],
)
USAGE = {
    "input_tokens": 100,
    "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 30},
    "output_tokens": 20,
    "output_tokens_details": {"reasoning_tokens": 15},
    "total_tokens": 120,
}


def response(status: str, output: list[Any], **fields: Any) -> sdk.Response:
    made = {"id": "resp_1", "object": "response", "created_at": 0, "model": "gpt-5.4", "tools": []}
    choices = {"parallel_tool_calls": True, "tool_choice": "auto", "status": status, "output": output}
    return sdk.Response.model_validate({**made, **choices, **fields})


def recorded(*items: Any, status: str = "completed", **fields: Any) -> Iterator[bytes]:
    """A stream written by the official types."""
    numbers = iter(range(1_000))

    def event(kind: type[Any], **values: Any) -> bytes:
        made: str = kind(sequence_number=next(numbers), **values).model_dump_json(exclude_unset=True)
        return made.encode()

    opening = response("in_progress", [])
    yield event(sdk.ResponseCreatedEvent, type="response.created", response=opening)
    for index, item in enumerate(items):
        place = {"output_index": index, "item_id": item.id}
        if item is REASONING:
            for number, part in enumerate(item.summary):
                at = {**place, "summary_index": number}
                kind = "response.reasoning_summary_part.added"
                yield event(
                    sdk.ResponseReasoningSummaryPartAddedEvent, type=kind, part=part.model_dump(), **at
                )
                kind = "response.reasoning_summary_text.delta"
                yield event(sdk.ResponseReasoningSummaryTextDeltaEvent, type=kind, delta=part.text, **at)
        elif item is SAID:
            for word in ("I ", "look."):
                at = {**place, "content_index": 0, "logprobs": []}
                yield event(sdk.ResponseTextDeltaEvent, type="response.output_text.delta", delta=word, **at)
        else:
            kind = "response.function_call_arguments.delta"
            yield event(sdk.ResponseFunctionCallArgumentsDeltaEvent, type=kind, delta=item.arguments, **place)
        done = {"type": "response.output_item.done", "output_index": index, "item": item}
        yield event(sdk.ResponseOutputItemDoneEvent, **done)
    ends = {
        "completed": sdk.ResponseCompletedEvent,
        "incomplete": sdk.ResponseIncompleteEvent,
        "failed": sdk.ResponseFailedEvent,
    }
    whole = response(status, list(items), usage=USAGE, **fields)
    yield event(ends[status], type=f"response.{status}", response=whole)


def test_a_stream_written_by_the_official_types_is_read_whole() -> None:
    reply, text, thinking = decoded(recorded(REASONING, SAID, CALL))
    thought, said, call = reply.message.parts
    assert isinstance(thought, Thinking)
    assert (text, thinking, thought.text) == ("I look.", "First.\n\nThen.", "First.\n\nThen.")
    assert json.loads(thought.opaque) == REASONING.model_dump(exclude_unset=True)
    assert (said, call) == (Text("I look.", '"commentary"', ORIGIN), ToolCall("call_1", "look", '{"a": 1}'))
    assert (reply.finish, reply.usage) == (Finish.CALLS, Usage(100, 60, 30, 20))


def test_a_response_that_is_not_streamed_reads_the_same() -> None:
    streamed, _, _ = decoded(recorded(REASONING, SAID, CALL))
    body = response("completed", [REASONING, SAID, CALL], usage=USAGE).model_dump_json(exclude_unset=True)
    once, _, _ = decoded(iter([body.encode()]))
    assert once == streamed


@pytest.mark.parametrize(
    ("reason", "finish"), [("max_output_tokens", Finish.LENGTH), ("content_filter", Finish.FILTERED)]
)
def test_a_response_that_stays_incomplete_says_why(reason: str, finish: Finish) -> None:
    reply, _, _ = decoded(recorded(SAID, status="incomplete", incomplete_details={"reason": reason}))
    assert (reply.finish, reply.message.text) == (finish, "I look.")


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("server_error", Overloaded),
        ("rate_limit_exceeded", Overloaded),
        ("invalid_prompt", Rejected),
        ("image_too_large", Rejected),
    ],
)
def test_a_response_that_failed_is_an_error_with_its_reason(code: str, kind: type[ModelError]) -> None:
    with pytest.raises(kind, match="It did not work"):
        decoded(recorded(status="failed", error={"code": code, "message": "It did not work."}))
    event = sdk.ResponseErrorEvent(type="error", code=code, message="It did not work.", sequence_number=1)
    with pytest.raises(kind, match="It did not work"):
        decoded(iter([event.model_dump_json().encode()]))


def test_a_stream_without_its_end_is_broken_off() -> None:
    *events, _ = recorded(REASONING, SAID)
    with pytest.raises(ModelError, match="broke off"):
        decoded(iter(events))


@fewer(50)
@given(replies(1, calls=True) | replies(1, calls=False), st.sampled_from(Finish))
def test_what_the_scripted_server_streams_is_what_the_official_types_describe(
    message: Message, finish: Finish
) -> None:
    """Our double is held to the real thing, over Responses and Anthropic's messages."""
    said = assistant(*(Thinking(p.text) if isinstance(p, Thinking) else p for p in message.parts))
    reply = Returns("").seal("responses", Reply(said, finish, Usage(9, 3, 2, 4)), 1)
    data = [event.partition(b"data: ")[2].strip() for _, event in stream("responses", reply, Framing("m"))]
    for each in data:
        known = EVENTS.validate_json(each, strict=True)
        assert set(known.model_fields_set) == set(json.loads(each))
    sdk.Response.model_validate_json(whole("responses", reply, Framing("m")), strict=True)
    read = decoded(iter(data))[0]
    assert (read.message.text, read.message.calls, read.usage) == (said.text, said.calls, reply.usage)
    for _, event in stream("anthropic", Reply(said, finish, Usage(9, 3, 2, 4)), Framing("m")):
        if b'"type":"ping"' not in event:
            MESSAGES.validate_json(event.partition(b"data: ")[2])
