"""Compare Hone's transport with HTTP libraries: start, and CPU per streamed request, 1 and 100 at once.

Libraries that are not installed are left out. Hone does not depend on them, so use a separate environment:
`pip install -e . aiohttp pyreqwest 'httpx2[http2]'`.
"""

import argparse
import asyncio
import math
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from importlib import import_module
from importlib.util import find_spec

from hone.core.clock import SystemClock
from hone.models.http import Http

BODY = b'{"model":"scripted","messages":[]}'
EVENTS, PACE, DEADLINE = 20, 0.002, 60
EVENT = b'data: {"choices":[{"delta":{"content":"word"}}]}\n\n'
CHUNK, END = b"%x\r\n%b\r\n" % (len(EVENT), EVENT), b"0\r\n\r\n"
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
HEADERS = {"content-type": "application/json", "authorization": "Bearer none"}
BESIDE = "import asyncio, ssl, msgspec, urllib.parse, ipaddress"
"""What Hone has imported before it needs a transport."""

Ask = Callable[[], Awaitable[int]]
Client = Callable[[str, int, AsyncExitStack], Awaitable[list[Ask]]]


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(len(BODY))
            writer.write(HEAD)
            for _ in range(EVENTS):
                writer.write(CHUNK)
                await asyncio.sleep(PACE)
            writer.write(END)
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def serve() -> None:
    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=256)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def streams(url: str, clients: int, stack: AsyncExitStack) -> list[Ask]:
    """The floor: no parsing beyond the end of the answer, no deadline, one connection per client."""
    host, port = url.removeprefix("http://").rstrip("/").split(":")
    lines = "".join(f"{name}: {value}\r\n" for name, value in HEADERS.items())
    request = f"POST / HTTP/1.1\r\nHost: {host}\r\n{lines}Content-Length: {len(BODY)}\r\n\r\n".encode() + BODY

    async def client() -> Ask:
        reader, writer = await asyncio.open_connection(host, int(port))
        stack.callback(writer.close)

        async def ask() -> int:
            writer.write(request)
            data = await reader.readuntil(b"\r\n\r\n")
            while not data.endswith(END):
                data += await reader.read(65536)
            return data.count(EVENT) * len(EVENT)

        return ask

    return [await client() for _ in range(clients)]


async def hone(url: str, clients: int, stack: AsyncExitStack) -> list[Ask]:
    http = Http(SystemClock())
    stack.push_async_callback(http.close)

    async def ask() -> int:
        async with http.post(url, HEADERS, BODY) as exchange:
            return sum([len(chunk) async for chunk in exchange])

    return [ask] * clients


async def pyreqwest(url: str, clients: int, stack: AsyncExitStack) -> list[Ask]:
    builder = import_module("pyreqwest.client").ClientBuilder()
    client = await stack.enter_async_context(builder.no_proxy().follow_redirects(False).build())

    async def ask() -> int:
        size = 0
        request = client.post(url).headers(HEADERS).body_bytes(BODY).build_streamed()
        async with request as response:
            while True:
                async with asyncio.timeout(DEADLINE):
                    chunk = await response.body_reader.read_chunk()
                if not chunk:
                    return size
                size += len(chunk)

    return [ask] * clients


async def aiohttp(url: str, clients: int, stack: AsyncExitStack) -> list[Ask]:
    library = import_module("aiohttp")
    connector = library.TCPConnector(limit=0)
    client = await stack.enter_async_context(library.ClientSession(connector=connector))

    async def ask() -> int:
        size = 0
        async with client.post(url, data=BODY, headers=HEADERS) as response:
            while True:
                async with asyncio.timeout(DEADLINE):
                    chunk = await response.content.readany()
                if not chunk:
                    return size
                size += len(chunk)

    return [ask] * clients


async def httpx2(url: str, clients: int, stack: AsyncExitStack) -> list[Ask]:
    library = import_module("httpx2")
    limits = library.Limits(max_connections=None, max_keepalive_connections=None)
    made = library.AsyncClient(limits=limits, timeout=60, trust_env=False)
    client = await stack.enter_async_context(made)

    async def ask() -> int:
        size = 0
        async with client.stream("POST", url, content=BODY, headers=HEADERS) as response:
            chunks = response.aiter_bytes()
            while True:
                async with asyncio.timeout(DEADLINE):
                    chunk = await anext(chunks, b"")
                if not chunk:
                    return size
                size += len(chunk)

    return [ask] * clients


CLIENTS: Mapping[str, tuple[Client, str, str]] = {
    "asyncio streams": (streams, "asyncio", ""),
    "hone": (
        hone,
        "hone",
        "from hone.core.clock import SystemClock; from hone.models.http import Http; Http(SystemClock())",
    ),
    "pyreqwest": (
        pyreqwest,
        "pyreqwest",
        "from pyreqwest.client import ClientBuilder; ClientBuilder().no_proxy().build()",
    ),
    "aiohttp": (aiohttp, "aiohttp", "import aiohttp"),
    "httpx2": (httpx2, "httpx2", "import httpx2; httpx2.AsyncClient()"),
}
"""Each client, its module, and a program's preparation for its first request."""


async def measure(client: Client, url: str, clients: int, rounds: int) -> float:
    """Return milliseconds of CPU per request, on all threads, with open connections."""
    async with AsyncExitStack() as stack:
        asks = await client(url, clients, stack)
        await asyncio.gather(*(ask() for ask in asks))
        begun = time.process_time()
        for _ in range(rounds):
            sizes = await asyncio.gather(*(ask() for ask in asks))
            if set(sizes) != {EVENTS * len(EVENT)}:
                raise SystemExit(f"{client.__name__} lost bytes: {sorted(set(sizes))}")
        return (time.process_time() - begun) * 1000 / (rounds * clients)


def starting(statement: str, rounds: int) -> float:
    """Return the milliseconds in which a new interpreter makes a client, beyond its usual imports."""
    code = f"{BESIDE}, time; t = time.perf_counter(); {statement or 0}; print(time.perf_counter() - t)"
    took = (subprocess.check_output([sys.executable, "-c", code], text=True) for _ in range(rounds))
    return min(map(float, took)) * 1000


def report(url: str, rounds: int) -> None:
    """Print the best of five, measured in turn, so that a busy machine slows all of them alike."""
    found = {name: each for name, each in CLIENTS.items() if find_spec(each[1])}
    best = {name: [math.inf, math.inf, math.inf] for name in found}
    for _ in range(5):
        for name, (client, _, statement) in found.items():
            one = asyncio.run(measure(client, url, 1, 10 * rounds))
            many = asyncio.run(measure(client, url, 100, rounds))
            best[name] = list(map(min, best[name], (one, many, starting(statement, 3))))
    print(f"{EVENTS} events a reply, {PACE * 1000:g} ms apart, best of 5; in brackets: times Hone's figure")
    print(f"{'':16}{'CPU ms, 1 at once':>22}{'CPU ms, 100 at once':>22}{'start ms':>12}")
    for name, (one, many, load) in best.items():
        ours = best["hone"]
        cells = f"{one:.2f} ({one / ours[0]:.2f})", f"{many:.2f} ({many / ours[1]:.2f})"
        print(f"{name:16}{cells[0]:>22}{cells[1]:>22}{load:12.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.transport", description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve())
        return
    command = [sys.executable, "-m", "benchmarks.transport", "--serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            url = f"http://127.0.0.1:{int(server.stdout.readline())}/"
            report(url, options.rounds)
        finally:
            server.terminate()


if __name__ == "__main__":
    main()
