"""What is sent, what comes back, and which connections are used again."""

import asyncio
import gc
import socket
from contextlib import suppress

import pytest

from hone.core.clock import ManualClock, SystemClock
from hone.core.errors import Rejected, Unreachable
from hone.models.http import Http
from tests.models import loopback
from tests.models.loopback import (
    HELLO,
    OK,
    STREAM,
    Reader,
    Writer,
    answering,
    client,
    fetch,
    linger,
    once,
    request,
    serving,
    until,
)

quiet = loopback.quiet


async def test_a_post_is_exactly_these_bytes() -> None:
    seen: list[bytes] = []

    async def script(reader: Reader, writer: Writer) -> None:
        while True:
            seen.append(await request(reader))
            writer.write(OK)

    async with serving(script) as site, client() as http:
        headers = {"Authorization": " Bearer key\n", "User-Agent": "test"}
        async with http.post(f"{site.url}?a=1", headers, b'{"a":1}') as exchange:
            assert await exchange.read() == b"hello"
            assert exchange.response.status == 200
            assert exchange.response.headers == {"content-length": "5"}
        async with http.get(site.url, {}) as exchange:
            await exchange.read()
    start = f"Host: 127.0.0.1:{site.port}\r\nAccept-Encoding: identity\r\n"
    post = (
        f"POST /v1?a=1 HTTP/1.1\r\n{start}Content-Length: 7\r\nAuthorization: Bearer key\r\nUser-Agent: test"
    )
    assert seen == [
        f'{post}\r\n\r\n{{"a":1}}'.encode(),
        f"GET /v1 HTTP/1.1\r\n{start}User-Agent: hone\r\n\r\n".encode(),
    ]


@pytest.mark.parametrize(
    "wire",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello world",
        STREAM + b"5;ext=1\r\nhello\r\n6\r\n world\r\n0\r\ntrailer: x\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\nhello world",
        b"HTTP/1.0 200 OK\r\n\r\nhello world",
    ],
)
async def test_an_answer_that_comes_byte_by_byte_is_the_same_answer(wire: bytes) -> None:
    async def script(reader: Reader, writer: Writer) -> None:
        await request(reader)
        for at in range(len(wire)):
            writer.write(wire[at : at + 1])
            await asyncio.sleep(0)
        writer.close()
        await writer.wait_closed()

    async with serving(script) as site, client() as http:
        assert await fetch(http, site.url) == b"hello world"


async def test_a_chunk_is_handed_over_before_the_next_one_is_sent() -> None:
    taken = asyncio.Semaphore(0)

    async def script(reader: Reader, writer: Writer) -> None:
        await request(reader)
        writer.write(STREAM)
        for _ in range(3):
            writer.write(HELLO)
            await taken.acquire()
        writer.write(b"0\r\n\r\n")
        await reader.read()

    chunks = []
    async with serving(script) as site, client() as http, http.post(site.url, {}, b"") as exchange:
        async for chunk in exchange:
            chunks.append(chunk)
            taken.release()
    assert chunks == [b"hello"] * 3


@pytest.mark.parametrize("status", [b"204 No Content", b"304 Not Modified", b"302 Found"])
async def test_an_answer_without_body_and_a_redirect_are_handed_back_as_they_are(status: bytes) -> None:
    answer = b"HTTP/1.1 " + status + b"\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n"
    async with serving(answering(answer)) as site, client() as http:
        for _ in range(2):
            async with http.get(site.url, {}) as exchange:
                assert exchange.response.status == int(status[:3])
                assert exchange.response.headers["location"] == "http://127.0.0.1:1/"
                assert await exchange.read() == b""
        assert site.accepted == 1


async def test_reading_stops_at_the_limit() -> None:
    async with serving(answering(STREAM + HELLO * 3 + b"0\r\n\r\n")) as site, client() as http:
        async with http.post(site.url, {}, b"") as exchange:
            assert await exchange.read(7) == b"hellohe"
        async with http.post(site.url, {}, b"") as exchange:
            assert await exchange.read(15) == b"hello" * 3
        async with http.post(site.url, {}, b"") as exchange:
            assert await exchange.read(0) == b""


async def test_a_large_request_arrives_whole() -> None:
    async def script(reader: Reader, writer: Writer) -> None:
        got = await request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + got[-len(body) :])
        await reader.read()

    body = bytes(range(256)) * (8 * 1024)
    async with serving(script) as site, client() as http:
        assert await fetch(http, site.url, body) == body


async def test_a_server_that_is_faster_than_the_reader_has_to_wait() -> None:
    piece, pieces = bytes(1024 * 1024), 64
    sent = 0

    async def script(reader: Reader, writer: Writer) -> None:
        nonlocal sent
        await request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % (pieces * len(piece)))
        while sent < pieces:
            writer.write(piece)
            await writer.drain()
            sent += 1
        await reader.read()

    async with serving(script) as site, client() as http, http.post(site.url, {}, b"") as exchange:
        for _ in range(1000):
            await asyncio.sleep(0)
        assert sent < pieces / 2
        assert sum([len(part) async for part in exchange]) == pieces * len(piece)
        assert sent == pieces


@pytest.mark.parametrize(
    "headers",
    [
        {"x-api-key": "secret\nHost: evil"},
        {"x-api-key": "secret\rx"},
        {"x-api-key": "secret\0"},
        {"x-api-key": "secret\u2026"},
        {"x api key": "secret"},
        {"x-key\r\n": "secret"},
        {"Content-Length": "secret"},
        {"transfer-encoding": "chunked"},
    ],
)
async def test_a_header_that_cannot_be_sent_is_refused_and_its_value_not_repeated(
    headers: dict[str, str],
) -> None:
    async with client() as http:
        with pytest.raises(Rejected, match=r"^The header .*\.$") as refusal:
            async with http.post("http://127.0.0.1:1/", headers, b""):
                pass
    assert "secret" not in str(refusal.value)


async def test_a_server_is_reached_by_its_ipv6_number() -> None:
    if not socket.has_dualstack_ipv6():
        pytest.skip("no IPv6 here")
    async with serving(answering(OK), host="::1") as site, client() as http:
        assert await fetch(http, f"http://[::1]:{site.port}/") == b"hello"


async def test_requests_in_a_row_share_one_connection_and_parallel_ones_have_their_own() -> None:
    gate = asyncio.Event()

    async def script(reader: Reader, writer: Writer) -> None:
        while True:
            await request(reader)
            await gate.wait()
            writer.write(OK)

    async with serving(script) as site, client() as http:
        gate.set()
        for _ in range(5):
            assert await fetch(http, site.url) == b"hello"
        assert site.accepted == 1
        gate.clear()
        asks = [asyncio.create_task(fetch(http, site.url)) for _ in range(3)]
        await until(lambda: site.accepted == 3)
        gate.set()
        assert await asyncio.gather(*asks) == [b"hello"] * 3
        await asyncio.gather(*(fetch(http, site.url) for _ in range(3)))
        assert site.accepted == 3


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 5\r\n\r\nhello",
        b"HTTP/1.0 200 OK\r\ncontent-length: 5\r\n\r\nhello",
        OK + b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil",
        b"HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil",
    ],
)
async def test_a_connection_that_is_not_fit_for_it_is_not_used_again(answer: bytes) -> None:
    async with serving(answering(answer)) as site, client() as http:
        for _ in range(2):
            assert await fetch(http, site.url) in (b"hello", b"")
        assert site.accepted == 2


async def test_a_connection_is_kept_if_the_body_was_read_and_only_then_an_exception_came() -> None:
    async with serving(answering(STREAM + HELLO + b"0\r\n\r\n")) as site, client() as http:
        for _ in range(2):
            with suppress(KeyError):
                async with http.post(site.url, {}, b"") as exchange:
                    await exchange.read()
                    raise KeyError
        assert site.accepted == 1
        async with http.post(site.url, {}, b""):
            pass
        await fetch(http, site.url)
        assert site.accepted == 2


async def test_a_connection_the_server_closed_at_rest_is_replaced_without_a_word() -> None:
    async with serving(once(OK)) as site, client() as http:
        for _ in range(3):
            assert await fetch(http, site.url) == b"hello"
            await until(site.tasks[-1].done)
        assert site.accepted == 3


@pytest.mark.parametrize("reset", [False, True])
async def test_a_kept_connection_that_breaks_before_the_first_byte_is_tried_once_more(reset: bool) -> None:
    """The second request is read by the server and not answered, so that only the answer's lack can tell."""

    async def script(reader: Reader, writer: Writer) -> None:
        await request(reader)
        writer.write(OK)
        await request(reader)
        if reset:
            linger(writer)

    async with serving(script) as site, client() as http:
        assert [await fetch(http, site.url) for _ in range(3)] == [b"hello"] * 3
        assert site.accepted == 3


async def test_a_second_break_is_an_error() -> None:
    async def script(reader: Reader, writer: Writer) -> None:
        await request(reader)
        if site.accepted == 1:
            writer.write(OK)
            await request(reader)

    async with serving(script) as site, client() as http:
        await fetch(http, site.url)
        with pytest.raises(Unreachable, match="closed the connection without an answer"):
            await fetch(http, site.url)
        assert site.accepted == 2


async def test_nothing_is_sent_again_after_a_byte_of_the_answer() -> None:
    async def script(reader: Reader, writer: Writer) -> None:
        await request(reader)
        writer.write(OK)
        await once(b"H")(reader, writer)

    async with serving(script) as site, client() as http:
        await fetch(http, site.url)
        with pytest.raises(Unreachable, match="in the middle of its answer"):
            await fetch(http, site.url)
        assert site.accepted == 1


async def test_an_answer_nobody_asked_for_is_not_taken_for_the_next_one() -> None:
    farewell = asyncio.Event()

    async def script(reader: Reader, writer: Writer) -> None:
        await request(reader)
        writer.write(OK)
        if site.accepted == 1:
            await farewell.wait()
            writer.write(b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n")
        await reader.read()

    async with serving(script) as site, client() as http:
        await fetch(http, site.url)
        farewell.set()
        await until(site.tasks[0].done)
        assert await fetch(http, site.url) == b"hello"
        assert site.accepted == 2


async def test_a_connection_that_rested_long_is_not_trusted() -> None:
    clock = ManualClock()
    http = Http(clock)
    async with serving(answering(OK)) as site:
        await fetch(http, site.url)
        clock.advance(50)
        await fetch(http, site.url)
        assert site.accepted == 1
        clock.advance(60)
        await fetch(http, site.url)
        assert site.accepted == 2
        await http.close()


async def test_connections_that_many_requests_at_once_left_are_closed_when_they_have_rested_long() -> None:
    clock = ManualClock()
    http = Http(clock)
    async with serving(answering(OK)) as site:
        await asyncio.gather(*(fetch(http, site.url) for _ in range(8)))
        for _ in range(3):
            clock.advance(30)
            await fetch(http, site.url)
        assert site.accepted == 8
        await until(lambda: sum(task.done() for task in site.tasks) == 7)
        await http.close()


def test_one_transport_serves_several_event_loops_and_leaves_nothing_open() -> None:
    http = Http(SystemClock())

    async def run() -> None:
        async with serving(answering(OK)) as site:
            await asyncio.gather(*(fetch(http, site.url) for _ in range(3)))
            assert site.accepted == 3
            await fetch(http, site.url)
            assert site.accepted == 3

    for _ in range(3):
        asyncio.run(run())
        gc.collect()


async def test_event_loops_side_by_side_do_not_share_connections() -> None:
    async with serving(answering(OK)) as site, client() as http:
        await fetch(http, site.url)
        assert await asyncio.to_thread(lambda: asyncio.run(fetch(http, site.url))) == b"hello"
        assert site.accepted == 2
        await fetch(http, site.url)
        assert site.accepted == 2


async def test_a_connection_that_is_in_use_at_the_end_is_not_kept() -> None:
    async with serving(answering(OK)) as site:
        http = Http(SystemClock())
        async with http.post(site.url, {}, b"") as exchange:
            await http.close()
            assert await exchange.read() == b"hello"
        await until(site.tasks[0].done)


async def test_a_transport_that_is_dropped_closes_what_it_kept() -> None:
    http = Http(SystemClock())
    async with serving(answering(OK)) as site:
        await fetch(http, site.url)
        del http
        await until(site.tasks[0].done)
