"""I3: a request has one meaning or none, and one that never ends is dropped. Tried on raw sockets."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import h11
import pytest
import uvicorn
from hypothesis import given
from hypothesis import strategies as st
from uvicorn.server import ServerState

from hone.web.heads import LARGEST_HEAD, read_head
from hone.web.protocol import BOUNDS, ArrivalBounds, StrictProtocol, strict
from tests.conftest import Figures, Tier
from tests.web.rig import Running, running

TINY = ArrivalBounds(head=0.05, body=0.05, idle=0.05, linger=0.05)
QUICK = ArrivalBounds(linger=0.05)
PATIENCE = 30.0
ANSWER = re.compile(rb"HTTP/1\.1 (\d+) ")
CHAT = "POST /v1/chat/completions HTTP/1.1"


class Line:
    """One connection, to the byte."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def first(self) -> bytes:
        """One whole answer."""
        async with asyncio.timeout(PATIENCE):
            head = await self.reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", head.lower())
            return head + await self.reader.readexactly(int(length[1]) if length else 0)

    async def rest(self) -> bytes:
        """All that comes until the server ends the connection."""
        async with asyncio.timeout(PATIENCE):
            try:
                return await self.reader.read()
            except ConnectionResetError:
                return b""


@asynccontextmanager
async def connected(visit: Running) -> AsyncIterator[Line]:
    host, _, port = visit.url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        yield Line(reader, writer)
    finally:
        writer.close()


async def exchange(visit: Running, data: bytes) -> bytes:
    async with connected(visit) as line:
        line.writer.write(data)
        return await line.rest()


def host(visit: Running) -> str:
    return f"Host: {visit.url.removeprefix('http://')}"


def request(*lines: str, body: bytes = b"", first: str = "GET /health HTTP/1.1") -> bytes:
    return "\r\n".join((first, *lines, "", "")).encode("latin-1") + body


REFUSED: dict[str, tuple[str, ...]] = {
    "both lengths": ("Content-Length: 5", "Transfer-Encoding: chunked"),
    "both lengths, other order": ("Transfer-Encoding: chunked", "Content-Length: 5"),
    "both lengths, other case": ("content-length: 0", "TRANSFER-ENCODING: chunked"),
    "two lengths": ("Content-Length: 5", "Content-Length: 5"),
    "two unequal lengths": ("Content-Length: 5", "Content-Length: 6"),
    "a list of lengths": ("Content-Length: 5, 5",),
    "a signed length": ("Content-Length: +5",),
    "a negative length": ("Content-Length: -5",),
    "a length in hexadecimal": ("Content-Length: 0x5",),
    "a length with a space": ("Content-Length: 5 5",),
    "a length with an underscore": ("Content-Length: 1_0",),
    "a length with a fraction": ("Content-Length: 5.0",),
    "an empty length": ("Content-Length:",),
    "a length of many digits": ("Content-Length: " + "9" * 40,),
    "a length in other digits": ("Content-Length: \xb2",),
    "a folded header": ("X-A: 1", " 2"),
    "a header folded with a tab": ("X-A: 1", "\t2"),
    "a fold that hides an encoding": ("X-A: 1", " Transfer-Encoding: chunked"),
    "a first header that is folded": (" X-A: 1",),
    "a space before the colon": ("X-A : 1",),
    "a tab before the colon": ("Transfer-Encoding\t: chunked",),
    "a space in a name": ("X A: 1",),
    "no name": (": 1",),
    "no colon": ("X-A",),
    "a name with a control character": ("X-\x01A: 1",),
    "a value with a zero": ("X-A: a\x00b",),
    "a value with a bare carriage return": ("X-A: a\rTransfer-Encoding: chunked",),
    "a value with a bare line feed": ("X-A: a\nTransfer-Encoding: chunked",),
    "an unknown encoding": ("Transfer-Encoding: gzip",),
    "an encoding beside another": ("Transfer-Encoding: gzip, chunked",),
    "an encoding twice": ("Transfer-Encoding: chunked", "Transfer-Encoding: chunked"),
    "an encoding with something behind it": ("Transfer-Encoding: chunked;q=1",),
    "an encoding in quotes": ('Transfer-Encoding: "chunked"',),
    "an encoding with a strange space": ("Transfer-Encoding: \x0bchunked",),
    "identity": ("Transfer-Encoding: identity",),
    "another host": ("Host: evil.example",),
}
FIRST_LINES = (
    *("GET  /health HTTP/1.1", " GET /health HTTP/1.1", "GET /health HTTP/1.1 ", "GET /health", "GET", ""),
    *("GET /health HTTP/2.0", "GET /health HTTP/1.10", "GET /hea lth HTTP/1.1", "GET\t/health HTTP/1.1"),
    *(
        "GET /h\xe9 HTTP/1.1",
        "PRI * HTTP/2.0",
        "\x16\x03\x01\x02",
        "GET /health HTTP/1.1\nX-A: 1",
        "G(T / HTTP/1.1",
    ),
)


async def test_a_request_that_could_be_read_in_two_ways_is_refused_and_the_connection_ended(
    home: Path, tmp_path: Path, figures: Figures
) -> None:
    async with running(home, tmp_path, bounds=QUICK) as visit:
        known = host(visit)
        smuggled = request(known)
        cases = {
            name: request(known, *lines, body=b"0\r\n\r\n" + smuggled) for name, lines in REFUSED.items()
        }
        cases |= {repr(each): request(known, first=each) for each in FIRST_LINES}
        cases["line feeds alone"] = request(known).replace(b"\r\n", b"\n")
        cases["a line feed alone at the end"] = request(known)[:-2] + b"\n"
        cases["an encoding in HTTP/1.0"] = request(
            known, "Transfer-Encoding: chunked", body=b"0\r\n\r\n", first="GET /health HTTP/1.0"
        )
        accepted = []
        for name, data in cases.items():
            answered = await exchange(visit, data)
            codes = ANSWER.findall(answered)
            if codes != [b"400"]:
                accepted.append(f"{name}: {codes}")
            assert b'"error"' in answered, name
        figures.tally(len(cases), got_in=len(accepted), note="malformed requests")
        assert accepted == []


async def test_a_well_formed_request_is_answered_however_it_arrives(home: Path, tmp_path: Path) -> None:
    async with running(home, tmp_path) as visit:
        known, key = host(visit), f"Authorization: Bearer {visit.key}"
        kind, body = "Content-Type: application/json", b'{"messages": [{"role": "user", "content": "hi"}]}'
        chunks = b"".join(b"%x\r\n%s\r\n" % (len(each), each) for each in (body[:9], body[9:])) + b"0\r\n\r\n"
        wanted = {
            request(known): b"200",
            request(known, "X-Empty:", "X-Tab:\tvalue\t", "x-lower: é"): b"200",
            request(known, "Content-Length:   0  "): b"200",
            request(known, first="GET /health HTTP/1.0"): b"200",
            request(known, first="GET /nothing HTTP/1.1"): b"401",
            request(known, kind, key, f"Content-Length: {len(body)}", body=body, first=CHAT): b"200",
            request(known, kind, key, "Transfer-Encoding: Chunked", body=chunks, first=CHAT): b"200",
        }
        for data, code in wanted.items():
            async with connected(visit) as line:
                line.writer.write(data)
                assert ANSWER.findall(await line.first()) == [code], data
            async with connected(visit) as line:
                for byte in data:
                    line.writer.write(bytes([byte]))
                    await line.writer.drain()
                assert ANSWER.findall(await line.first()) == [code], data
        async with connected(visit) as line:
            for data in (*wanted, *wanted):
                if b"HTTP/1.0" not in data:
                    line.writer.write(data)
                    assert ANSWER.findall(await line.first()) == [wanted[data]], data


def mutations() -> Iterator[bytes]:
    """Ways to write a header so that only some readers see it, as tools for request smuggling try them: any
    byte at any place, and the known tricks."""
    for number in range(256):
        byte = bytes([number])
        yield b"Transfer-Encoding:" + byte + b"chunked"
        yield b"Transfer-Encoding: " + byte + b"chunked"
        yield b"Transfer-Encoding" + byte + b": chunked"
        yield byte + b"Transfer-Encoding: chunked"
        yield b"Transfer-Encoding: chunked" + byte
        yield b"Transfer" + byte + b"Encoding: chunked"
        yield b"X: y" + byte + b"Transfer-Encoding: chunked"
        yield b"X: y\r" + byte + b"Transfer-Encoding: chunked"
        yield b"X: y" + byte + b"\nTransfer-Encoding: chunked"
        yield b"Content-Length" + byte + b": 5"
        yield b"Content-Length:" + byte + b"5"
        yield b"Content-Length: 5" + byte
    yield from (
        *(
            b"Transfer-Encoding: chunked, cow",
            b"Transfer-Encoding: cow, chunked",
            b"Transfer-Encoding: chunk",
        ),
        *(b"Content-Encoding: chunked", b"Transfer-Encoding:\n chunked", b"Transfer-Encoding:\r\n chunked"),
        *(b"Transfer-Encoding: cow\r\nTransfer-Encoding: chunked", b"Transfer-Encoding: cow chunked bar"),
        *(b"TrAnSFer-EnCODinG: cHuNkeD", b"Transfer-Encoding: 'chunked'", b"Transfer-Encoding: ch\x96nked"),
    )


async def test_no_second_request_gets_in_with_the_body_of_the_first(
    home: Path, tmp_path: Path, tier: Tier, figures: Figures
) -> None:
    """The length says that all of it is one body; for whoever reads chunks there are two requests."""
    headers = [*mutations()]
    async with running(home, tmp_path, bounds=QUICK) as visit:
        known = host(visit).encode()
        body = b"0\r\n\r\n" + request(known.decode(), first="GET /health?smuggled HTTP/1.1")
        last = request(known.decode(), "Connection: close", first="GET /health?last HTTP/1.1")
        seen: list[int] = []
        tried = 0
        for draw in tier.draws(short=300, full=2 * len(headers)):
            header, is_first = headers[draw.index // 2], draw.index % 2
            lines = (header, b"Content-Length: %d" % len(body))
            first, second = lines if is_first else lines[::-1]
            head = b"\r\n".join((b"GET /health HTTP/1.1", known, first, second, b"", b""))
            tried += 1
            async with connected(visit) as line:
                line.writer.write(head + body)
                answered = await line.first()
                refused = b"connection: close" in answered.lower()
                line.writer.write(last)
                answered += await line.rest()
            if len(ANSWER.findall(answered)) != (1 if refused else 2):
                seen.append(draw.index)
        figures.tally(tried, got_in=len(seen), note="requests with a hidden second one", at=seen)
        assert seen == []


async def test_a_request_behind_another_is_not_read_before_that_is_answered(
    home: Path, tmp_path: Path
) -> None:
    async with running(home, tmp_path) as visit:
        known = host(visit)
        both = request(known) + request(known, first="GET /health?second HTTP/1.1")
        assert ANSWER.findall(await exchange(visit, both)) == [b"200"]
        chunked = request(known, "Transfer-Encoding: chunked", body=b"0\r\n\r\n") + request(known)
        assert ANSWER.findall(await exchange(visit, chunked)) == [b"200"]


async def test_an_answer_before_the_body_keeps_the_connection_for_a_body_that_comes(
    home: Path, tmp_path: Path
) -> None:
    async with running(home, tmp_path) as visit, connected(visit) as line:
        head = request(host(visit), "Content-Length: 5", first="POST /nothing HTTP/1.1")
        for _ in range(3):
            line.writer.write(head)
            assert ANSWER.findall(await line.first()) == [b"401"]
            line.writer.write(b"12345" + head[:20])
            line.writer.write(head[20:])
            assert ANSWER.findall(await line.first()) == [b"401"]
            line.writer.write(b"12345")


async def write_for_ever(line: Line) -> None:
    while True:
        line.writer.write(b"10000\r\n" + b"a" * 0x10000 + b"\r\n")
        await line.writer.drain()


async def test_what_is_too_long_is_refused(home: Path, tmp_path: Path) -> None:
    async with running(home, tmp_path, bounds=QUICK) as visit:
        long = request(host(visit), "X-A: " + "a" * LARGEST_HEAD)
        assert ANSWER.findall(await exchange(visit, long)) == [b"431"]
        assert ANSWER.findall(await exchange(visit, long[:-4])) == [b"431"]
        many = request(host(visit), *(f"X-{number}: a" for number in range(9999)))
        assert ANSWER.findall(await exchange(visit, many)) == [b"431"]
        key = f"Authorization: Bearer {visit.key}"
        kind = "Content-Type: application/json"
        huge = request(host(visit), key, kind, f"Content-Length: {10**12}", body=b"{", first=CHAT)
        assert ANSWER.findall(await exchange(visit, huge)) == [b"413"]
        endless = request(host(visit), key, kind, "Transfer-Encoding: chunked", first=CHAT)
        async with connected(visit) as line:
            line.writer.write(endless)
            with pytest.raises(ConnectionError):
                await write_for_ever(line)
        assert not await visit.state.hone.sessions.list()


async def test_half_open_requests_are_dropped_while_others_are_answered(
    home: Path, tmp_path: Path, figures: Figures
) -> None:
    async with running(home, tmp_path, bounds=TINY) as visit:
        known, key = host(visit), f"Authorization: Bearer {visit.key}"
        kind = "Content-Type: application/json"
        halves = {
            b"": [],
            b"G": [b"408"],
            request(known)[:-2]: [b"408"],
            request(known)[:-1]: [b"408"],
            request(known, kind, key, "Content-Length: 9", first=CHAT): [b"408"],
            request(known, kind, key, "Content-Length: 9", body=b"12345678", first=CHAT): [b"408"],
            request(known, kind, key, "Transfer-Encoding: chunked", first=CHAT): [b"408"],
            request(known, kind, key, "Transfer-Encoding: chunked", body=b"5\r\n123", first=CHAT): [b"408"],
            request(known, kind, "Content-Length: 9", first=CHAT): [b"401"],
            request(known): [b"200"],
        }
        wrong = []
        for data, codes in halves.items():
            many = await asyncio.gather(
                *(exchange(visit, data) for _ in range(20)), exchange(visit, request(known))
            )
            found = [ANSWER.findall(each) for each in many]
            wrong += [data for each in found[:-1] if each != codes]
            assert found[-1] == [b"200"]
        figures.tally(20 * len(halves), got_in=len(wrong), note="half-open connections")
        assert wrong == []
        assert not await visit.state.hone.sessions.list()


class ManualLoop:
    """A loop whose time is moved by hand. Tasks run in the real one."""

    def __init__(self) -> None:
        self.now = 0.0
        self.timers: list[tuple[float, Callable[[], None], Timer]] = []

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, act: Callable[[], None]) -> "Timer":
        timer = Timer()
        self.timers.append((self.now + delay, act, timer))
        return timer

    def create_task(self, work: Any) -> asyncio.Task[Any]:
        return asyncio.get_running_loop().create_task(work)

    def advance(self, seconds: float) -> None:
        self.now += seconds
        due = [each for each in self.timers if each[0] <= self.now]
        self.timers = [each for each in self.timers if each[0] > self.now]
        for _, act, timer in due:
            if not timer.cancelled:
                act()


class Timer:
    cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class Recorded(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.sent = b""
        self.ended = self.closed = False

    def write(self, data: Any) -> None:
        self.sent += bytes(data)

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.ended = True

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    abort = close

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


def opened(bounds: ArrivalBounds = BOUNDS) -> tuple[StrictProtocol, Recorded, ManualLoop]:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        while (await receive()).get("more_body"):
            pass

    config = uvicorn.Config(app, log_config=None, lifespan="off", ws="none")
    loop, transport = ManualLoop(), Recorded()
    protocol = strict(bounds)(config, ServerState(), {}, cast("asyncio.AbstractEventLoop", loop))
    protocol.connection_made(transport)
    return protocol, transport, loop


async def test_one_byte_a_second_is_given_up_and_an_honest_slow_upload_is_not() -> None:
    protocol, transport, loop = opened()
    for byte in request("Host: a", "X-A: " + "a" * 100):
        protocol.data_received(bytes([byte]))
        loop.advance(1)
        if transport.ended:
            break
    assert loop.now == BOUNDS.head
    assert ANSWER.findall(transport.sent) == [b"408"]
    loop.advance(BOUNDS.linger)
    assert transport.closed

    protocol, transport, loop = opened()
    protocol.data_received(request("Host: a", "Content-Length: 1000", first="POST / HTTP/1.1"))
    while not transport.ended and loop.now < 10 * BOUNDS.body:
        protocol.data_received(b"a")
        loop.advance(1)
    assert BOUNDS.body <= loop.now <= BOUNDS.body + 1
    assert ANSWER.findall(transport.sent) == [b"408"]

    protocol, transport, loop = opened()
    size = 20 * 1024 * 1024
    protocol.data_received(request("Host: a", f"Content-Length: {size}", first="POST / HTTP/1.1"))
    for _ in range(0, size, 2 * BOUNDS.rate):
        protocol.data_received(b"a" * 2 * BOUNDS.rate)
        loop.advance(1)
    assert not transport.ended
    assert protocol.conn.their_state is h11.DONE

    protocol, transport, loop = opened()
    loop.advance(BOUNDS.idle)
    assert (transport.sent, transport.closed) == (b"", True)


@given(st.binary(max_size=200) | st.text("GET /:HTTP1.\r\n\t x-0", max_size=80).map(str.encode))
def test_no_bytes_make_the_reading_of_a_head_fail(data: bytes) -> None:
    found = read_head(data + b"\r\n\r\n")
    assert found.fault or (found.length is None or found.length >= 0)
