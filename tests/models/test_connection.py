"""Failures, deadlines and cancellation: each ends in a sentence or at once, and nothing stays open."""

import asyncio
import socket
from contextlib import ExitStack, suppress

import pytest

from hone.core.clock import ManualClock
from hone.core.errors import Silent, Unreachable
from hone.models.http import Http, ReplyWatch
from tests.models import loopback
from tests.models.loopback import (
    HELLO,
    OK,
    STREAM,
    Certificate,
    Reader,
    Writer,
    answering,
    client,
    fetch,
    free_port,
    linger,
    once,
    request,
    resolving,
    serving,
    turn,
    until,
)

quiet = loopback.quiet
certificate = loopback.certificate
certified = loopback.certified


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (b"", "closed the connection without an answer."),
        (b"HTTP/1.1 20", "closed the connection in the middle of its answer."),
        (
            b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhello",
            "closed the connection in the middle of its answer.",
        ),
        (STREAM + HELLO, "closed the connection in the middle of its answer."),
        (STREAM + b"9\r\nhello", "closed the connection in the middle of its answer."),
        (STREAM + HELLO + b"0\r\n", "closed the connection in the middle of its answer."),
        (STREAM + b"zz\r\nhello\r\n", "sent a chunk without a size."),
        (STREAM + b"4\r\nhello\r\n", "sent a chunk that does not end where it said."),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "did not answer in HTTP/1.1."),
        (b"<html>nonsense</html>", "did not answer in HTTP/1.1."),
        (b"HTTP/1.1 OK\r\n\r\n", "did not answer in HTTP/1.1."),
        (b"HTTP/1.1 200 OK\r\nnonsense\r\n\r\n", "sent a header that has no name."),
        (b"HTTP/1.1 200 OK\r\na: " + b"b" * 70_000 + b"\r\n\r\n", "sent headers without end."),
        (b"HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n", "announced an answer of impossible length."),
        (
            b"HTTP/1.1 200 OK\r\ncontent-encoding: br\r\n\r\n",
            "compressed its answer (br) although it was asked not to.",
        ),
    ],
)
async def test_an_answer_that_is_cut_or_nonsense_ends_in_a_sentence(answer: bytes, sentence: str) -> None:
    async with serving(once(answer)) as site, client() as http:
        with pytest.raises(Unreachable) as failure:
            await fetch(http, site.url)
        assert str(failure.value) == f"127.0.0.1:{site.port} {sentence}"
        assert site.accepted == 1


@pytest.mark.parametrize("start", [b"", STREAM + HELLO])
async def test_a_reset_ends_in_a_sentence(start: bytes) -> None:
    async def script(reader: Reader, writer: Writer) -> None:
        await request(reader)
        writer.write(start)
        await writer.drain()
        linger(writer)

    async with serving(script) as site, client() as http:
        with pytest.raises(
            Unreachable, match=f"127.0.0.1:{site.port} broke off before the answer was complete"
        ):
            await fetch(http, site.url)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_a_port_where_nobody_listens_is_named(host: str) -> None:
    port = free_port()
    async with client() as http:
        with pytest.raises(Unreachable) as failure:
            await fetch(http, f"http://{host}:{port}/v1")
    assert str(failure.value) == f"Nothing answers at {host}:{port}."


def test_a_name_without_address_is_named_and_a_dead_address_among_several_does_not_matter() -> None:
    async def story() -> None:
        async with serving(answering(OK), host="127.0.0.2") as site, client() as http:
            assert await fetch(http, f"http://two.test:{site.port}/") == b"hello"
            with pytest.raises(Unreachable, match=r"^No address is known for absent\.test\.$"):
                await fetch(http, "http://absent.test/")
        async with client() as http:
            with pytest.raises(Unreachable, match=rf"^Nothing answers at two\.test:{site.port}\.$"):
                await fetch(http, f"http://two.test:{site.port}/")

    resolving(story)


def test_localhost_needs_no_name_service() -> None:
    async def story() -> None:
        async with serving(answering(OK)) as site, client() as http:
            assert await fetch(http, f"http://localhost:{site.port}/") == b"hello"

    resolving(story)


async def find_two(host: str, port: int) -> list[str]:
    return ["127.0.0.1", "127.0.0.2"]


def test_an_address_that_swallows_packets_is_given_up_for_the_next_one() -> None:
    """A server that accepts nobody and whose queue is full does not even refuse."""

    async def story() -> None:
        clock = ManualClock()
        http = Http(clock, resolve=find_two)
        async with serving(answering(OK), host="127.0.0.2") as site:
            with socket.create_server(("127.0.0.1", site.port), backlog=0), ExitStack() as queue:
                for _ in range(3):
                    waiting = queue.enter_context(socket.socket())
                    waiting.setblocking(False)
                    waiting.connect_ex(("127.0.0.1", site.port))
                task = asyncio.create_task(fetch(http, f"http://two.test:{site.port}/"))
                await turn()
                assert site.accepted == 0
                clock.advance(2)
                assert await task == b"hello"
                await http.close()

    resolving(story)


async def test_a_server_that_hangs_up_during_the_request_ends_in_a_sentence() -> None:
    async def script(reader: Reader, writer: Writer) -> None:
        await reader.read(1)
        writer.write_eof()
        await until(task.done)

    async with serving(script) as site, client() as http:
        task = asyncio.create_task(fetch(http, site.url, bytes(64 * 1024 * 1024)))
        with pytest.raises(Unreachable, match="closed the connection without an answer"):
            await task


@pytest.mark.parametrize(
    ("start", "seconds"),
    [
        (b"", 60),
        (b"HTTP/1.1 200", 300),
        (b"HTTP/1.1 102 Processing\r\n\r\n", 300),
        (STREAM, 300),
        (STREAM + HELLO + b"5\r\nhe", 300),
    ],
)
async def test_silence_ends_at_its_deadline_and_not_before(start: bytes, seconds: int) -> None:
    clock = ManualClock()
    told = asyncio.Event()
    closed = asyncio.Event()

    async def script(reader: Reader, writer: Writer) -> None:
        await request(reader)
        writer.write(start)
        await turn()
        clock.advance(seconds - 1)
        await turn()
        assert not task.done()
        told.set()
        clock.advance(1)
        await reader.read()
        closed.set()

    async with serving(script) as site:
        http = Http(clock)
        task = asyncio.create_task(fetch(http, site.url))
        with pytest.raises(Silent) as silence:
            await task
        assert told.is_set()
        what, setting = "nothing for", "first_byte"
        if start:
            what, setting = "no part of an answer within", "first_content of [bounds]"
        assert str(silence.value) == (
            f"127.0.0.1:{site.port} sent {what} {seconds} seconds. "
            f"To wait longer, raise {setting} in hone.toml."
        )
        await closed.wait()


async def test_content_starts_the_deadline_anew() -> None:
    clock = ManualClock()
    taken = asyncio.Semaphore(0)

    async def script(reader: Reader, writer: Writer) -> None:
        await request(reader)
        clock.advance(59)
        writer.write(STREAM)
        for _ in range(5):
            writer.write(HELLO)
            await taken.acquire()
            await turn()
            clock.advance(119)
        writer.write(b"0\r\n\r\n")
        await reader.read()

    async with serving(script) as site:
        http = Http(clock)
        watch, size = ReplyWatch(http.bounds, "it"), 0
        async with http.post(site.url, {}, b"", watch) as exchange:
            async for chunk in exchange:
                size += len(chunk)
                watch.progress(size, 1)
                taken.release()
        assert clock.monotonic() == 59 + 5 * 119
        await http.close()


async def test_a_request_that_is_still_moving_out_is_no_silence_of_the_server() -> None:
    clock = ManualClock()
    body = bytes(32 * 1024 * 1024)

    async def script(reader: Reader, writer: Writer) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(20 * 1024 * 1024)
        clock.advance(60)
        await reader.readexactly(12 * 1024 * 1024)
        writer.write(OK)
        await reader.read()

    async with serving(script) as site:
        http = Http(clock)
        assert await fetch(http, site.url, body) == b"hello"
        await http.close()


@pytest.mark.parametrize("through", ["", "a proxy"])
async def test_a_connection_that_does_not_get_ready_ends_at_its_deadline(
    through: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = ManualClock()
    closed = asyncio.Event()

    async def script(reader: Reader, writer: Writer) -> None:
        await reader.read(1)
        clock.advance(14)
        await turn()
        assert not task.done()
        clock.advance(1)
        await reader.read()
        closed.set()

    async with serving(script) as site:
        if through:
            monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{site.port}")
        url = "https://secure.test/" if through else f"https://127.0.0.1:{site.port}/"
        task = asyncio.create_task(fetch(Http(clock), url))
        with pytest.raises(
            Silent, match=rf"127\.0\.0\.1:{site.port} did not take .* within 15 seconds\. To wait"
        ):
            await task
        await closed.wait()


@pytest.mark.parametrize("start", [b"", b"HTTP/1.1 200", STREAM + HELLO])
@pytest.mark.parametrize("secure", [False, True])
async def test_a_cancelled_request_closes_its_connection_at_once(
    start: bytes, secure: bool, certified: Certificate
) -> None:
    waiting = asyncio.Event()
    closed = asyncio.Event()

    async def script(reader: Reader, writer: Writer) -> None:
        await request(reader)
        writer.write(start)
        await writer.drain()
        await turn()
        waiting.set()
        with suppress(ConnectionError):
            await reader.read()
        closed.set()

    async with serving(script, certified.server if secure else None) as site, client() as http:
        task = asyncio.create_task(fetch(http, site.url))
        await waiting.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await closed.wait()


async def test_a_cancelled_upload_stops_at_once() -> None:
    arrived = asyncio.Event()
    got = bytearray()

    async def script(reader: Reader, writer: Writer) -> None:
        got.extend(await reader.read(1))
        arrived.set()
        await until(task.done)
        while data := await reader.read(1024 * 1024):
            got.extend(data)

    body = bytes(64 * 1024 * 1024)
    async with serving(script) as site, client() as http:
        task = asyncio.create_task(fetch(http, site.url, body))
        await arrived.wait()
        task.cancel()
        await asyncio.wait([task, *site.tasks])
    assert 0 < len(got) < len(body)


async def test_leaving_early_closes_the_connection_at_once() -> None:
    closed = asyncio.Event()

    async def script(reader: Reader, writer: Writer) -> None:
        await request(reader)
        writer.write(STREAM + HELLO)
        await reader.read()
        closed.set()

    async with serving(script) as site, client() as http:
        async with http.post(site.url, {}, b"") as exchange:
            async for _ in exchange:
                break
        await closed.wait()


@pytest.mark.parametrize("secure", [False, True])
async def test_cancelling_at_any_step_leaves_nothing_open(secure: bool, certified: Certificate) -> None:
    """The task is cancelled after one turn of the loop, after two, and so on until it gets through."""
    script = answering(STREAM + HELLO + b"0\r\n\r\n")
    async with serving(script, certified.server if secure else None) as site:
        for steps in range(200):
            async with client() as http:
                task = asyncio.create_task(fetch(http, site.url))
                for _ in range(steps):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.wait([task])
                if not task.cancelled():
                    break
        assert steps > 5
        assert await task == b"hello"
