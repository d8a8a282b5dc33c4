"""CPU per streamed request: Hone's transport beside bare asyncio streams and httpx2, against one server."""

import argparse
import asyncio
import math
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

from httpx2 import AsyncClient, Limits

from hone.core.clock import SystemClock
from hone.models.http import Http

CLIENTS, WAIT, BODY = 100, 0.05, b'{"model":"scripted","messages":[]}'
EVENT = b'data: {"choices":[{"delta":{"content":"word"}}]}\n\n'
ANSWER = [b"%x\r\n%b\r\n" % (len(EVENT), EVENT)] * 6 + [b"0\r\n\r\n"]
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
HEADERS = {"content-type": "application/json", "authorization": "Bearer none"}

Ask = Callable[[], Awaitable[int]]
Client = Callable[[str, AsyncExitStack], Awaitable[list[Ask]]]


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(len(BODY))
            await asyncio.sleep(WAIT)
            writer.write(HEAD)
            for part in ANSWER:
                writer.write(part)
                await asyncio.sleep(0)
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def serve() -> None:
    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=2 * CLIENTS)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def streams(url: str, stack: AsyncExitStack) -> list[Ask]:
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
            while not data.endswith(b"0\r\n\r\n"):
                data += await reader.read(65536)
            return data.count(EVENT) * len(EVENT)

        return ask

    return [await client() for _ in range(CLIENTS)]


async def hone(url: str, stack: AsyncExitStack) -> list[Ask]:
    http = Http(SystemClock())
    stack.push_async_callback(http.close)

    async def ask() -> int:
        async with http.post(url, HEADERS, BODY) as exchange:
            return sum([len(chunk) async for chunk in exchange])

    return [ask] * CLIENTS


async def httpx2(url: str, stack: AsyncExitStack) -> list[Ask]:
    limits = Limits(max_connections=None, max_keepalive_connections=None)
    client = await stack.enter_async_context(AsyncClient(limits=limits, timeout=60, trust_env=False))

    async def ask() -> int:
        async with client.stream("POST", url, content=BODY, headers=HEADERS) as response:
            return sum([len(chunk) async for chunk in response.aiter_bytes()])

    return [ask] * CLIENTS


async def measure(client: Client, url: str, rounds: int) -> tuple[float, float]:
    """Milliseconds of CPU and of wall clock per request, connections already open."""
    async with AsyncExitStack() as stack:
        asks = await client(url, stack)
        await asyncio.gather(*(ask() for ask in asks))
        cpu, wall = time.process_time(), time.perf_counter()
        for _ in range(rounds):
            sizes = await asyncio.gather(*(ask() for ask in asks))
            if set(sizes) != {6 * len(EVENT)}:
                raise SystemExit(f"{client.__name__} lost bytes: {sorted(set(sizes))}")
        scale = 1000 / (rounds * CLIENTS)
        return (time.process_time() - cpu) * scale, (time.perf_counter() - wall) * scale


def report(url: str, rounds: int) -> None:
    """The best of five, taken in turn, so that a busy machine troubles all alike."""
    clients: dict[str, Client] = {"asyncio streams": streams, "hone": hone, "httpx2": httpx2}
    best = dict.fromkeys(clients, (math.inf, math.inf))
    for _ in range(5):
        for name, client in clients.items():
            best[name] = min(best[name], asyncio.run(measure(client, url, rounds)))
    print(f"{CLIENTS} clients x {rounds} requests, 6 chunks each after {WAIT * 1000:g} ms, best of 5")
    print(f"{'':16}{'CPU ms/request':>16}{'wall ms/request':>17}")
    for name, (cpu, wall) in best.items():
        print(f"{name:16}{cpu:16.3f}{wall:17.3f}")


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
