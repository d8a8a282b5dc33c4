"""The stage: a real server that says what its script says, keeps what it got and leaves nothing behind."""

import asyncio
import gc
import json
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone.core.messages import Message, Part, Text, Thinking, ToolCall, assistant, user
from hone.core.model import Finish, Reply, Usage
from hone.models.fake_provider import FakeProvider
from hone.models.fake_provider.caching import BLOCK
from hone.models.fake_provider.shapes import Format
from hone.models.scripted import call, echo, lines
from tests.conftest import Figures
from tests.given import replies
from tests.models.caller import PATHS, Got, anthropic_parts, dial, openai_parts, post, question

FORMATS: list[Format] = ["openai", "anthropic"]
HELLO = lines("Good morning to you.")
both = pytest.mark.parametrize("format", FORMATS)


def parts_of(format: Format, got: Got) -> tuple[list[Part], str]:
    return openai_parts(got) if format == "openai" else anthropic_parts(got)


def plain(parts: Sequence[Part]) -> list[Part]:
    """As OpenAI's format has it: one piece of reasoning, without seals."""
    thought = "".join(part.text for part in parts if isinstance(part, Thinking))
    return [*([Thinking(thought)] if thought else []), *(p for p in parts if not isinstance(p, Thinking))]


@both
@given(message=st.booleans().flatmap(lambda calls: replies(1, calls=calls)))
def test_the_stream_says_what_the_script_says(format: Format, message: Message) -> None:
    async def heard() -> Got:
        async with FakeProvider(lines(message)) as stage:
            return await post(stage, format, question(format))

    got = asyncio.run(heard())
    parts, finish = parts_of(format, got)
    assert (got.status, got.complete) == (200, True)
    assert parts == (plain(message.parts) if format == "openai" else list(message.parts))
    ends = {"openai": ("stop", "tool_calls"), "anthropic": ("end_turn", "tool_use")}[format]
    assert finish == ends[bool(message.calls)]


async def test_openai_streams_in_the_provider_s_shape() -> None:
    message = assistant(Thinking("hm"), "Let me look.", call("read_file", "c1", path="a/long/path/README.md"))
    async with FakeProvider(lines(message)) as stage:
        got = await post(stage, "openai", question("openai"))
        bare = await post(
            stage, "openai", b'{"model":"m","stream":true,"messages":[{"role":"user","content":"x"}]}'
        )
    *chunks, usage, done = got.events
    assert got.headers["content-type"].startswith("text/event-stream")
    assert done == "[DONE]"
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
    assert {chunk["usage"] for chunk in chunks} == {None}
    assert chunks[0]["choices"][0]["delta"]["role"] == "assistant"
    deltas = [chunk["choices"][0]["delta"].get("tool_calls") for chunk in chunks]
    assert len([each for each in deltas if each]) > 3
    assert usage["choices"] == []
    details = usage["usage"]["prompt_tokens_details"]
    assert details == {"cached_tokens": 0, "cache_write_tokens": 0, "audio_tokens": 0}
    assert "usage" not in bare.events[-2]
    assert bare.events[-2]["choices"][0]["finish_reason"] == "tool_calls"


async def test_anthropic_streams_in_the_provider_s_shape() -> None:
    message = assistant(
        Thinking("hm"), Thinking("", sealed="xx"), "Look.", call("f", "c1", path="some/long/path")
    )
    async with FakeProvider(lines(message)) as stage:
        got = await post(stage, "anthropic", question("anthropic"))
    kinds = [event["type"] for event in got.events]
    assert kinds[:2] == ["message_start", "ping"]
    assert kinds[-2:] == ["message_delta", "message_stop"]
    assert kinds.count("content_block_start") == kinds.count("content_block_stop") == 4
    assert [line[7:] for line in got.body.decode().split("\n") if line.startswith("event: ")] == kinds
    assert got.events[0]["message"]["usage"]["cache_read_input_tokens"] == 0
    deltas = [event["delta"]["type"] for event in got.events if event["type"] == "content_block_delta"]
    assert deltas.count("input_json_delta") > 2
    parts, _ = anthropic_parts(got)
    assert isinstance(parts[0], Thinking)
    assert parts[0].signature
    assert parts[1] == Thinking("", sealed="xx")


@both
async def test_without_a_stream_the_reply_is_one_body(format: Format) -> None:
    message = assistant(Thinking("hm", "seal"), "Look.", call("f", "c1", path="a"))
    async with FakeProvider(lines(Reply(message, Finish.CALLS, Usage(9, 4, 2, 3)))) as stage:
        got = await post(stage, format, question(format, stream=False))
    assert got.headers["content-type"] == "application/json"
    if format == "openai":
        [choice] = got.json["choices"]
        assert (choice["finish_reason"], choice["message"]["content"]) == ("tool_calls", "Look.")
        assert choice["message"]["tool_calls"][0]["function"] == {"name": "f", "arguments": '{"path":"a"}'}
        assert (got.json["usage"]["prompt_tokens"], got.json["usage"]["completion_tokens"]) == (9, 3)
        assert got.json["usage"]["prompt_tokens_details"]["cached_tokens"] == 4
    else:
        assert got.json["content"] == [
            {"type": "thinking", "thinking": "hm", "signature": "seal"},
            {"type": "text", "text": "Look."},
            {"type": "tool_use", "id": "c1", "name": "f", "input": {"path": "a"}},
        ]
        usage = got.json["usage"]
        assert (usage["input_tokens"], usage["cache_creation_input_tokens"]) == (3, 2)
        assert (usage["cache_read_input_tokens"], usage["output_tokens"]) == (4, 3)


@both
async def test_half_a_surrogate_and_broken_arguments_go_out_as_they_are(format: Format) -> None:
    message = assistant("half \ud83d of it", ToolCall("c 1", "no name", '{"a": \udc00'))
    async with FakeProvider(lines(message)) as stage:
        parts, _ = parts_of(format, await post(stage, format, question(format)))
        assert (await post(stage, format, question(format, stream=False))).status == 200
    assert parts == list(message.parts)


@both
async def test_the_script_hears_the_conversation_and_the_stage_keeps_its_bytes(format: Format) -> None:
    heard: list[Sequence[Message]] = []

    def script(messages: Sequence[Message]) -> Message:
        heard.append(messages)
        return assistant("yes")

    bodies = [question(format, "one"), question(format, "one", "two", "drei ✓"), question(format, "x")]
    async with FakeProvider(script) as stage:
        async with await dial(stage) as line:
            for body in bodies:
                got = await line.ask("POST", PATHS[format] + "?beta=true", body, {"X-Own": "Value"})
                assert got.status == 200
        assert stage.bodies == bodies
        assert [request.headers["x-own"] for request in stage.requests] == ["Value"] * 3
        assert stage.requests[0].path == PATHS[format] + "?beta=true"
    assert [[message.text for message in said] for said in heard] == [
        ["one"],
        ["one", "two", "drei ✓"],
        ["x"],
    ]
    assert list(heard[1]) == [user("one"), assistant("two"), user("drei ✓")]


@both
async def test_usage_on_the_wire_knows_what_was_sent_before(format: Format) -> None:
    def marked(*texts: str) -> bytes:
        body = json.loads(question(format, *texts))
        if format == "anthropic":
            for message in body["messages"][-3::2]:
                block = {"type": "text", "text": message["content"], "cache_control": {"type": "ephemeral"}}
                message["content"] = [block]
        return json.dumps(body).encode()

    start = "a long question, worth remembering " * 900
    async with FakeProvider(HELLO) as stage:
        first, again, longer, other = [
            usage(format, await post(stage, format, marked(*texts)))
            for texts in ((start,), (start,), (start, "yes", "go on"), ("another " + start,))
        ]
    assert first.cached == 0
    assert again.cached >= again.input - BLOCK
    assert longer.input > longer.cached >= first.input - BLOCK
    assert other.cached < first.input // 2


def usage(format: Format, got: Got) -> Usage:
    if format == "openai":
        said = got.events[-2]["usage"]
        return Usage(said["prompt_tokens"], said["prompt_tokens_details"]["cached_tokens"])
    said = got.events[-2]["usage"]
    cached, written = said["cache_read_input_tokens"], said["cache_creation_input_tokens"]
    return Usage(said["input_tokens"] + cached + written, cached, written)


async def test_what_is_no_model_call_is_answered_in_the_provider_s_shape() -> None:
    async with FakeProvider(HELLO) as stage, await dial(stage) as line:
        models = await line.ask("GET", "/v1/models")
        missing = await line.ask("GET", "/v1/nothing")
        other = await line.ask("POST", "/v1/nothing", b"{}", {"anthropic-version": "2023-06-01"})
        wrong = await line.ask("GET", "/v1/messages")
    assert models.json["data"][0]["id"] == "scripted"
    assert (missing.status, missing.json["error"]["type"]) == (404, "invalid_request_error")
    assert (other.status, other.json["error"]["type"]) == (404, "not_found_error")
    assert wrong.status == 405
    assert stage.bodies == []


@both
async def test_a_key_is_asked_for_in_the_provider_s_way(format: Format) -> None:
    async with FakeProvider(HELLO, key="sesame") as stage:
        own = {"openai": {"authorization": "Bearer sesame"}, "anthropic": {"x-api-key": "sesame"}}[format]
        answers = [
            await post(stage, format, question(format), **headers)
            for headers in ({}, {"x-api-key": "no"}, own)
        ]
    assert [got.status for got in answers] == [401, 401, 200]
    kind = {"openai": "invalid_request_error", "anthropic": "authentication_error"}[format]
    assert answers[0].json["error"]["type"] == kind


@both
async def test_a_request_that_a_provider_would_refuse_is_refused_and_remembered(format: Format) -> None:
    async with FakeProvider(HELLO, fault=lambda number: "500" if number == 1 else None) as stage:
        got = [await post(stage, format, question(format, "")) for _ in range(2)]
        fine = await post(stage, format, question(format))
    assert [each.status for each in got] == [400, 500]
    assert got[0].json["error"]["type"] == "invalid_request_error"
    assert "messages" in got[0].json["error"]["message"]
    assert len(stage.invalid) == 2
    assert fine.status == 200


@both
async def test_a_stream_can_be_cut_at_any_byte(format: Format) -> None:
    async with FakeProvider(lines(assistant("Hello you.", call("f", x="ü")))) as stage:
        body = question(format)
        await post(stage, format, body)
        whole = (await post(stage, format, body)).body
        for at in range(0, len(whole), 7):
            stage.cut_at = at
            got = await post(stage, format, body)
            assert (got.body, got.complete) == (whole[:at], False)
        stage.cut_at = len(whole)
        assert (await post(stage, format, body)).complete


@both
async def test_any_bytes_can_be_sent_as_the_stream(format: Format) -> None:
    noise = bytes(range(256)) * 3
    async with FakeProvider(HELLO, raw=noise) as stage:
        whole = await post(stage, format, question(format))
        stage.cut_at = 300
        part = await post(stage, format, question(format))
    assert (whole.body, whole.complete) == (noise, True)
    assert (part.body, part.complete) == (noise[:300], False)


async def test_the_size_of_the_chunks_changes_no_byte_of_the_stream() -> None:
    bodies = []
    for chunk in (0, 1, 5):
        async with FakeProvider(HELLO, chunk=chunk) as stage:
            got = await post(stage, "openai", question("openai"))
            bodies.append((got.body, got.complete))
            assert got.wire.count(b"\r\n1\r\n") > 50 or chunk != 1
    assert bodies[0] == bodies[1] == bodies[2]


async def test_large_bodies_are_taken_and_larger_ones_refused() -> None:
    async with FakeProvider(lambda messages: assistant(f"{len(messages[0].text)} letters")) as stage:
        got = await post(stage, "openai", question("openai", "x" * 30_000_000))
        assert openai_parts(got)[0] == [Text("30000000 letters")]
        async with await dial(stage) as line:
            await line.send("POST", PATHS["openai"], b"", {"content-length": str(64 * 1024 * 1024 + 1)})
            refused = await line.read()
            assert (refused.status, await line.reader.read()) == (413, b"")


@pytest.mark.parametrize(
    "noise",
    [
        b"hello\r\n\r\n",
        b"GET / HTTP/1.1\r\nnonsense\r\n\r\n",
        b"POST / HTTP/1.1\r\ncontent-length: x\r\n\r\n",
    ],
)
async def test_what_is_not_http_is_refused(noise: bytes) -> None:
    async with FakeProvider(HELLO) as stage, await dial(stage) as line:
        line.writer.write(noise)
        assert (await line.read()).status == 400
        assert await line.reader.read() == b""


async def test_a_caller_that_wants_to_close_is_let_go() -> None:
    async with FakeProvider(HELLO) as stage, await dial(stage) as line:
        got = await line.ask("POST", PATHS["openai"], question("openai"), {"connection": "close"})
        assert (got.complete, await line.reader.read()) == (True, b"")


async def test_closing_leaves_nothing_behind_whatever_the_callers_do() -> None:
    async with FakeProvider(HELLO, fault=lambda number: "silent" if number == 0 else None) as stage:
        silent, idle, half, gone = [await dial(stage) for _ in range(4)]
        await silent.send("POST", PATHS["openai"], question("openai"))
        await idle.ask("POST", PATHS["openai"], question("openai"))
        await half.send("POST", PATHS["openai"], b"", {"content-length": "1000"})
        async with gone:
            await gone.send("POST", PATHS["openai"], question("openai"))
    for line in (silent, idle, half):
        async with line:
            assert line.reader.at_eof() or await line.reader.read() == b""
    with pytest.raises(ConnectionRefusedError):
        await dial(stage)
    assert asyncio.all_tasks() == {asyncio.current_task()}
    gc.collect()


async def test_an_error_in_the_script_is_raised_where_the_stage_closes() -> None:
    def script(messages: Sequence[Message]) -> Message:
        raise LookupError("no such line")

    stage = await FakeProvider(script).__aenter__()
    async with await dial(stage) as line:
        await line.send("POST", PATHS["openai"], question("openai"))
        assert await line.reader.read() == b""
    with pytest.raises(LookupError, match="no such line"):
        await stage.__aexit__(None, None, None)


async def test_a_hundred_callers_at_once_are_all_answered(figures: Figures) -> None:
    async def one(stage: FakeProvider, number: int) -> list[Part]:
        async with await dial(stage) as line:
            said: list[str] = []
            for turn in range(5):
                said.append(f"{number} asks {turn}")
                got = await line.ask("POST", PATHS["openai"], question("openai", *said))
                [part], _ = openai_parts(got)
                assert isinstance(part, Text)
                said.append(part.text)
            return [Text(text) for text in said[1::2]]

    async with FakeProvider(echo, latency=0.001) as stage:
        heard = await asyncio.gather(*(one(stage, number) for number in range(100)))
    expected = [[Text(f"A scripted model heard: {n} asks {t}") for t in range(5)] for n in range(100)]
    assert heard == expected
    assert (len(stage.bodies), stage.invalid) == (500, [])
    figures(f"{len(stage.bodies)} tried, {sum(map(len, heard))} answered")


async def launched(*arguments: str) -> tuple[asyncio.subprocess.Process, Any]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "hone.models.fake_provider", *arguments, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout
    url = (await process.stdout.readline()).decode().strip()
    assert b"scripted" in await process.stdout.readline()
    stage = FakeProvider(HELLO, port=int(url.rpartition(":")[2]))
    assert stage.url == url
    return process, stage


async def test_it_runs_as_a_process_of_its_own(tmp_path: Path) -> None:
    script, record = tmp_path / "script.json", tmp_path / "record"
    script.write_text('[{"text":"I look.","calls":[{"name":"f","arguments":{"x":1}}]},{"text":"done"}]')
    process, stage = await launched(
        "--script",
        str(script),
        "--record",
        str(record),
        "--fault",
        "500:1",
        "--latency",
        "0.001",
        "--key",
        "k",
    )
    try:
        body = question("anthropic", "hi ✓")
        failed = await post(stage, "anthropic", body, **{"x-api-key": "k"})
        got = await post(stage, "anthropic", body, **{"x-api-key": "k"})
        await post(stage, "openai", b"\xff")
        written = [json.loads(line) for line in record.read_text().splitlines()]
    finally:
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 0
    assert (failed.status, got.status) == (500, 200)
    assert anthropic_parts(got)[0] == list(assistant("I look.", call("f", x=1)).parts)
    assert [line.get("body") for line in written] == [body.decode(), body.decode(), None]
    assert written[2] == {"path": PATHS["openai"], "base64": "/w=="}


async def test_a_process_that_cannot_start_says_why() -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "hone.models.fake_provider",
        "--script",
        "absent.json",
        stderr=asyncio.subprocess.PIPE,
    )
    _, said = await process.communicate()
    assert process.returncode == 2
    assert b"absent.json cannot be used" in said
