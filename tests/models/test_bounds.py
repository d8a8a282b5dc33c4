"""The bounds of a reply, and the watch that measures it."""

import json
from itertools import chain

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hone.core.clock import ManualClock, SystemClock
from hone.core.errors import Overlong, Unreachable
from hone.core.model import TextPiece
from hone.core.prefix import Prefix
from hone.core.transcript import Transcript
from hone.models.anthropic import AnthropicAssembly
from hone.models.endpoint import Endpoint, Events
from hone.models.http import LOCAL, REMOTE, Http, ReplyBounds, ReplyWatch
from hone.models.openai import ChatAssembly, OpenAIChat
from hone.models.responses import ResponsesAssembly
from hone.runtime.model_factory import bound
from hone.settings import Settings
from hone.settings.sections import BoundSettings
from tests.models.loopback import HELLO, STREAM, Reader, Writer, answering, request, serving

BOUNDS = ReplyBounds(first_byte=10, first_content=100, silence=20, reply=1_000, size=5_000)


def test_each_part_of_a_reply_has_its_deadline() -> None:
    watch = ReplyWatch(BOUNDS, "it")
    watch.wait(4)
    assert watch.left() == 6
    watch.read(1)
    assert watch.left() == 100
    watch.wait(86)
    watch.progress(0, 1)
    assert watch.left() == 14
    watch.progress(1, 1)
    assert watch.left() == 20
    watch.wait(905)
    watch.progress(2, 1)
    assert watch.left() == 5
    assert isinstance(watch.overdue(), Overlong)


def test_a_response_gets_a_moment_to_end_after_its_content() -> None:
    watch = ReplyWatch(BOUNDS, "it")
    watch.progress(1, 0)
    watch.end()
    assert 0 < watch.left() < 10


def test_many_empty_blocks_meet_the_bound_on_size() -> None:
    watch = ReplyWatch(LOCAL, "it")
    watch.progress(0, 1_000)
    with pytest.raises(Overlong, match="more than 4,000,000 characters"):
        watch.progress(0, 100_000)


def test_long_reasoning_in_small_details_is_no_large_reply() -> None:
    """Each word comes in 120 bytes of JSON, and counts as a word."""
    assembly = ChatAssembly(Endpoint("it", "", returns="reasoning_details"))
    detail = {"type": "reasoning.text", "text": "word ", "format": "unknown", "index": 0}
    event = json.dumps({"choices": [{"delta": {"reasoning_details": [detail]}}]}).encode()
    for _ in range(1_000):
        assert list(assembly.feed(event)) == []
    assert (assembly.content, assembly.opened) == (5_000, 1)


async def test_a_reader_who_is_busy_elsewhere_loses_nothing() -> None:
    clock = ManualClock()

    async def script(reader: Reader, writer: Writer) -> None:
        await request(reader)
        writer.write(STREAM + HELLO)
        await reader.read()

    async with serving(script) as site:
        http = Http(clock, BOUNDS)
        async with http.post(site.url, {}, b"") as exchange:
            clock.advance(5_000)
            assert await anext(exchange) == b"hello"
        await http.close()


async def test_an_answer_that_did_not_end_leaves_no_connection_to_the_next_request() -> None:
    """The announced length was reached, so what still comes could pass for the next answer."""
    half = b'data: {"choices":[{"delta":{"content":"half"}}]}\n\n'
    answer = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(half), half)
    prefix = Prefix("it/model", "")
    async with serving(answering(answer)) as site:
        http = Http(SystemClock(), BOUNDS)
        model = OpenAIChat(http, SystemClock(), Endpoint("it", site.url))
        for _ in range(2):
            pieces = model.stream(prefix, Transcript(prefix.digest))
            assert await anext(pieces) == TextPiece("half")
            with pytest.raises(Unreachable, match="broke off in the middle"):
                await anext(pieces)
        assert site.accepted == 2
        await http.close()


def test_settings_move_a_bound_and_a_local_server_gets_more_time() -> None:
    assert bound(Settings(), REMOTE) == REMOTE
    assert bound(Settings(), LOCAL) == LOCAL
    for name in ("first_byte", "first_content", "silence", "reply"):
        assert getattr(LOCAL, name) > getattr(REMOTE, name)
    own = Settings(first_byte=1, bounds=BoundSettings(2, 3, 4, 5, 0.5))
    assert bound(own, LOCAL) == bound(own, REMOTE) == ReplyBounds(2, 1, 3, 4, 5, 500_000)
    with pytest.raises(ValueError, match=r"bounds\.silence"):
        BoundSettings(silence=-1)


@given(
    st.lists(st.text(st.characters(exclude_characters="\r\n"), min_size=1), max_size=5),
    st.lists(st.integers(1, 9)),
)
def test_events_are_the_same_however_their_bytes_are_cut(texts: list[str], sizes: list[int]) -> None:
    whole = b"".join(b": note\n\ndata: %b\r\n\r\n" % text.encode() for text in texts)
    got: list[bytes] = []
    events, at = Events(lambda _: None), 0
    for size in sizes:
        got += events.feed(whole[at : at + size])
        at += size
    got += [*events.feed(whole[at:]), *events.end()]
    assert got == [text.encode() for text in texts]


LINES = ("", "data: one", "data:", "data:two", ": note", "event: x", "retry: 3", " data: no")
ENDINGS = ("", "\n", "\n\n", "\n\n\n", "\r\n", "\r\n\r\n")


@example([("data: one", "\r\n"), ("", "\n")])
@example([("data: one", "\n"), ("event: x", "\n\n")])
@example([("data: one", "\n\n"), (": note", "\n\n")])
@example([(": note", "\n\n"), ("data: one", "\n\n")])
@example([("data: one", "\n\n"), ("event: x", "")])
@given(st.lists(st.tuples(st.sampled_from(LINES), st.sampled_from(ENDINGS)), max_size=8))
def test_events_that_come_at_once_are_those_that_come_byte_by_byte(lines: list[tuple[str, str]]) -> None:
    whole = "".join(line + ending for line, ending in lines).encode()
    at_once, slowly = Events(lambda _: None), Events(lambda _: None)
    got = [*at_once.feed(whole), *at_once.end()]
    bytewise = [slowly.feed(whole[at : at + 1]) for at in range(len(whole))]
    assert got == [*chain(*bytewise), *slowly.end()]


NAMES = ["prompt_tokens", "completion_tokens", "prompt_tokens_details", "cached_tokens", "cost"]
NAMES += ["input_tokens", "output_tokens", "cache_read_input_tokens"]
NUMBERS = st.integers() | st.integers(10**17, 10**40) | st.floats(allow_nan=False, allow_infinity=False)
ODD = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.sampled_from(["", "7", "many", "1e999"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner),
)


@given(ODD)
def test_no_report_of_usage_costs_an_answer(usage: object) -> None:
    chat, message = ChatAssembly(Endpoint("it", "")), AnthropicAssembly(Endpoint("it", ""))
    said = json.dumps({"choices": [{"delta": {"content": "yes"}, "finish_reason": "stop"}], "usage": usage})
    block = {"type": "text", "text": "yes"}
    whole = json.dumps({"content": [block], "stop_reason": "end_turn", "usage": usage})
    assert len([*chat.feed(said.encode()), *message.feed(whole.encode())]) == 2
    item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "yes"}]}
    done = {"object": "response", "status": "completed", "output": [item], "usage": usage}
    response = ResponsesAssembly(Endpoint("it", ""))
    assert list(response.feed(json.dumps(done).encode())) == []
    for reply in (chat.reply(), message.reply(), response.reply()):
        counts = reply.usage
        assert reply.message.text == "yes"
        assert min(counts.input, counts.cached, counts.written, counts.output, counts.cost or 0) >= 0
