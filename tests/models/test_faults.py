"""Every fault a provider can have, in the bytes it would send."""

import asyncio
import json

import pytest

from hone.core.messages import ToolCall, assistant
from hone.models.fake_provider import FakeProvider
from hone.models.fake_provider.faults import FAULTS, first, refusing
from hone.models.fake_provider.shapes import Format
from hone.models.scripted import call, lines
from tests.models.caller import PATHS, anthropic_parts, dial, openai_parts, post, question

FORMATS: list[Format] = ["openai", "anthropic"]
SCRIPT = lines(assistant("One two three four five six.", call("patch", path="README.md", text="x" * 40)))
REFUSALS = {
    "400": (400, "invalid_request_error", "invalid_request_error"),
    "401": (401, "invalid_api_key", "authentication_error"),
    "403": (403, "invalid_request_error", "permission_error"),
    "404-model": (404, "model_not_found", "not_found_error"),
    "408": (408, "timeout", "timeout_error"),
    "429-after": (429, "rate_limit_exceeded", "rate_limit_error"),
    "429-plain": (429, "rate_limit_exceeded", "rate_limit_error"),
    "500": (500, "server_error", "api_error"),
    "503": (503, "server_error", "api_error"),
    "529": (529, "server_error", "overloaded_error"),
    "overflow": (400, "context_length_exceeded", "prompt is too long"),
}
DANGERS = """400 401 403 404-model 408 429-after 429-plain 500 502-html 503 529 refused reset half-stream
cut-in-call bad-json empty overflow length filter"""


def test_the_table_holds_the_twenty_and_silence() -> None:
    assert len(DANGERS.split()) == 20
    assert {*DANGERS.split(), "silent"} <= set(FAULTS)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", REFUSALS)
async def test_a_refusal_has_the_status_and_the_shape_of_its_provider(name: str, format: Format) -> None:
    status, openai, anthropic = REFUSALS[name]
    async with FakeProvider(SCRIPT, fault=name) as stage:
        got = await post(stage, format, question(format))
    assert (got.status, got.complete, got.headers["content-type"]) == (status, True, "application/json")
    assert got.headers.get("retry-after") == ("1" if name == "429-after" else None)
    shape = got.json["error"]
    assert shape["message"]
    if format == "openai":
        assert set(got.json) == {"error"}
        assert set(shape) == {"message", "type", "param", "code"}
        assert openai in (shape["type"], shape["code"])
    else:
        assert set(got.json) == {"type", "error", "request_id"}
        assert got.json["type"] == "error"
        assert anthropic == shape["type"] or anthropic in shape["message"]


@pytest.mark.parametrize("format", FORMATS)
async def test_a_bad_gateway_answers_in_html(format: Format) -> None:
    async with FakeProvider(SCRIPT, fault="502-html") as stage:
        got = await post(stage, format, question(format))
    assert (got.status, got.headers["content-type"]) == (502, "text/html")
    assert b"<html>" in got.body


@pytest.mark.parametrize("format", FORMATS)
async def test_a_reset_comes_before_any_byte(format: Format) -> None:
    async with FakeProvider(SCRIPT, fault="reset") as stage, await dial(stage) as line:
        await line.send("POST", PATHS[format], question(format))
        with pytest.raises(ConnectionResetError):
            await line.reader.read(1)


async def test_nobody_answers_where_connections_are_refused() -> None:
    with refusing() as url, pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
    with pytest.raises(ValueError, match="refusing"):
        FakeProvider(SCRIPT, fault="refused")
    with pytest.raises(ValueError, match="lightning"):
        FakeProvider(SCRIPT, fault="lightning")


async def test_the_silent_one_takes_the_request_and_never_says_a_word() -> None:
    async with FakeProvider(SCRIPT, fault="silent") as stage:
        async with await dial(stage) as line:
            await line.send("POST", "/v1/messages", question("anthropic"))
            waiting = asyncio.create_task(line.reader.read(1))
            async with await dial(stage) as other:
                assert (await other.ask("GET", "/v1/models")).status == 200
            assert not waiting.done()
            assert len(stage.bodies) == 1
        assert await waiting == b""


@pytest.mark.parametrize("format", FORMATS)
async def test_half_a_stream_stops_in_the_middle_of_the_text(format: Format) -> None:
    async with FakeProvider(SCRIPT, fault="half-stream") as stage:
        got = await post(stage, format, question(format))
    assert (got.status, got.complete) == (200, False)
    assert b"two" in got.body
    assert b"six" not in got.body
    assert b"[DONE]" not in got.body
    assert b"message_stop" not in got.body


@pytest.mark.parametrize("format", FORMATS)
async def test_a_stream_cut_in_a_call_leaves_half_of_its_arguments(format: Format) -> None:
    async with FakeProvider(SCRIPT, fault="cut-in-call") as stage:
        got = await post(stage, format, question(format))
    assert (got.status, got.complete) == (200, True)
    if format == "openai":
        assert got.events[-1] != "[DONE]"
        parts, finish = openai_parts(got)
    else:
        parts, finish = anthropic_parts(got)
    assert isinstance(parts[-1], ToolCall)
    assert parts[-1].arguments.startswith('{"path":"README.md"')
    assert finish == ""
    with pytest.raises(ValueError, match="Unterminated"):
        json.loads(parts[-1].arguments)


@pytest.mark.parametrize("format", FORMATS)
async def test_bad_json_is_one_event_among_good_ones(format: Format) -> None:
    async with FakeProvider(SCRIPT, fault="bad-json") as stage:
        got = await post(stage, format, question(format))
    lines_ = [line[6:] for line in got.body.decode().split("\n") if line.startswith("data: ")]
    bad = [line for line in lines_ if line != "[DONE]" and not valid(line)]
    assert (got.status, got.complete, len(bad)) == (200, True, 1)
    assert valid(lines_[0])
    assert ("[DONE]" if format == "openai" else "message_stop") in lines_[-1]


def valid(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize(
    ("name", "text", "openai", "anthropic"),
    [
        ("empty", "", "stop", "end_turn"),
        ("length", "One two three", "length", "max_tokens"),
        ("filter", "One two three", "content_filter", "refusal"),
    ],
)
async def test_a_reply_that_ends_badly_says_why(name: str, text: str, openai: str, anthropic: str) -> None:
    async with FakeProvider(SCRIPT, fault=name) as stage:
        chat = openai_parts(await post(stage, "openai", question("openai")))
        message = anthropic_parts(await post(stage, "anthropic", question("anthropic")))
    assert chat == (*message[:1], openai)
    assert message == (list(assistant(text).parts) if text else [], anthropic)


@pytest.mark.parametrize("format", FORMATS)
async def test_trouble_after_the_beginning_comes_as_an_event(format: Format) -> None:
    async with FakeProvider(SCRIPT, fault="error-event") as stage:
        got = await post(stage, format, question(format))
    assert (got.status, got.complete) == (200, True)
    assert got.events[-1]["error"]["message"] == "Overloaded"
    assert b"One" in got.body


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", ["half-stream", "cut-in-call", "bad-json"])
async def test_without_a_stream_the_same_faults_break_the_body(name: str, format: Format) -> None:
    async with FakeProvider(SCRIPT, fault=name) as stage:
        got = await post(stage, format, question(format, stream=False))
    assert got.complete is (name != "half-stream")
    assert not valid(got.body.decode())


async def test_the_first_calls_fail_and_then_it_works() -> None:
    async with FakeProvider(SCRIPT, fault=first(2, "500")) as stage, await dial(stage) as line:
        assert (await line.ask("GET", "/v1/models")).status == 200
        body = question("openai")
        statuses = [(await line.ask("POST", "/v1/chat/completions", body)).status for _ in range(3)]
    assert statuses == [500, 500, 200]
