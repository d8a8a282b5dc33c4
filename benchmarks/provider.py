"""The provider of every measurement, a separate process that costs almost nothing.

It reads the last number of a body and sends a prepared answer (see talk.py). `GET /notes` reports when each
body was complete, on the clock that all processes of the machine share, and how much CPU the provider has
used. A request for its models gets one.
"""

import argparse
import asyncio
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Any, cast

from benchmarks.talk import PIECES

_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
_MARK = b"left="
_MODELS = json.dumps({"object": "list", "data": [{"id": "scripted", "object": "model"}]}).encode()


@dataclass(frozen=True, slots=True)
class Arrival:
    """A request, when its last byte was read. `at` is in nanoseconds of CLOCK_MONOTONIC."""

    at: int
    size: int


@dataclass(frozen=True, slots=True)
class Notes:
    """What has happened since the last query."""

    arrivals: tuple[Arrival, ...]
    cpu: float


@dataclass(frozen=True, slots=True)
class Provider:
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def notes(self) -> Notes:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET", "/notes")
        told = json.loads(connection.getresponse().read())
        connection.close()
        return Notes(tuple(Arrival(*each) for each in told["arrivals"]), told["cpu"])


@contextmanager
def serving(environ: Mapping[str, str], latency: float = 0.0) -> Iterator[Provider]:
    command = [sys.executable, "-m", "benchmarks.provider", "--latency", str(latency)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(environ)) as process:
        try:
            assert process.stdout is not None
            yield Provider(int(process.stdout.readline()))
        finally:
            process.terminate()


def chat(number: int, left: int) -> list[Mapping[str, Any]]:
    """Return the chunks of OpenAI's chat completions, without the last one, which is not JSON."""
    deltas: list[Mapping[str, Any]] = [{"role": "assistant", "content": piece} for piece in PIECES]
    if left:
        function = {"name": "probe", "arguments": ""}
        call = {"index": 0, "id": f"call_{number}", "type": "function", "function": function}
        deltas.append({"tool_calls": [call]})
        pieces = ('{"left": ', f"{left - 1}}}")
        deltas += [{"tool_calls": [{"index": 0, "function": {"arguments": piece}}]} for piece in pieces]
    reason = "tool_calls" if left else "stop"
    choices: list[Mapping[str, Any]] = [{"index": 0, "delta": delta} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": reason})
    usage = {"prompt_tokens": 100, "completion_tokens": 20}
    return [*({"choices": [choice]} for choice in choices), {"choices": [], "usage": usage}]


def messages(number: int, left: int) -> list[Mapping[str, Any]]:
    """Return the events of Anthropic's messages."""
    events: list[Mapping[str, Any]] = [
        {"type": "message_start", "message": {"usage": {"input_tokens": 100, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    ]
    events += [_grown(0, {"type": "text_delta", "text": piece}) for piece in PIECES]
    events.append({"type": "content_block_stop", "index": 0})
    if left:
        block = {"type": "tool_use", "id": f"call_{number}", "name": "probe", "input": {}}
        events.append({"type": "content_block_start", "index": 1, "content_block": block})
        pieces = ('{"left": ', f"{left - 1}}}")
        events += [_grown(1, {"type": "input_json_delta", "partial_json": piece}) for piece in pieces]
        events.append({"type": "content_block_stop", "index": 1})
    stop = {"stop_reason": "tool_use" if left else "end_turn"}
    events.append({"type": "message_delta", "delta": stop, "usage": {"output_tokens": 20}})
    return [*events, {"type": "message_stop"}]


def _grown(index: int, delta: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": delta}


class Can:
    """Prepared answers. Only the number of a call is filled in."""

    def __init__(self) -> None:
        self._kept: dict[tuple[bool, int], bytes] = {}

    def answer(self, path: bytes, left: int, number: int) -> bytes:
        anthropic = path.startswith(b"/v1/messages")
        kept = self._kept.get((anthropic, left))
        if kept is None:
            # Ten digits for the number, so that the sizes of the chunks fit all of them.
            events = messages(10**9, left) if anthropic else chat(10**9, left)
            datas = [json.dumps(event, separators=(",", ":")).encode() for event in events]
            if not anthropic:
                datas.append(b"[DONE]")
            kept = self._kept[anthropic, left] = _HEAD + b"".join(map(_chunk, datas)) + b"0\r\n\r\n"
        return kept.replace(b"call_1000000000", b"call_%010d" % number)


def _chunk(data: bytes) -> bytes:
    event = b"data: " + data + b"\n\n"
    return b"%x\r\n%b\r\n" % (len(event), event)


class Book:
    """The provider's log, and its answers."""

    def __init__(self, latency: float) -> None:
        self.latency = latency
        self.can = Can()
        self.count = 0
        self._arrivals: list[tuple[int, int]] = []
        self._cpu = time.process_time()

    def note(self, size: int) -> None:
        self.count += 1
        self._arrivals.append((time.monotonic_ns(), size))

    def tell(self) -> bytes:
        cpu = time.process_time()
        told = json.dumps({"arrivals": self._arrivals, "cpu": cpu - self._cpu}).encode()
        self._arrivals, self._cpu = [], cpu
        return _document(told)


def _document(data: bytes, status: bytes = b"200 OK") -> bytes:
    head = b"HTTP/1.1 %b\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
    return head % (status, len(data)) + data


def _page(path: bytearray) -> bytes:
    return _document(_MODELS) if path.endswith(b"/models") else _document(b"{}", b"404 Not Found")


class Line(asyncio.Protocol):
    """One connection. Of a request it reads only the path, the length and the last number."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self._held = bytearray()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._held += data
        end = self._held.find(b"\r\n\r\n") + 4
        if end < 4:
            return
        length = _LENGTH.search(self._held, 0, end)
        size = int(length[1]) if length else 0
        if len(self._held) < end + size:
            return
        method, path, _ = self._held.split(b" ", 2)
        if path == b"/notes":
            self._send(self._book.tell())
        elif method == b"GET" or not path.endswith((b"/completions", b"/messages")):
            self._send(_page(path))
        else:
            self._book.note(size)
            self._answer(bytes(path), _left(self._held))
        self._held.clear()

    def _answer(self, path: bytes, left: int) -> None:
        data = self._book.can.answer(path, left, self._book.count)
        if self._book.latency:
            asyncio.get_running_loop().call_later(self._book.latency, self._send, data)
        else:
            self._send(data)

    def _send(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)


def _left(body: bytearray) -> int:
    at = body.rfind(_MARK)
    digits = re.match(rb"\d+", body[at + len(_MARK) : at + len(_MARK) + 4]) if at >= 0 else None
    return int(digits[0]) if digits else 0


async def serve(latency: float) -> None:
    book = Book(latency)
    server = await asyncio.get_running_loop().create_server(lambda: Line(book), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.provider", description=__doc__)
    parser.add_argument("--latency", type=float, default=0.0)
    asyncio.run(serve(parser.parse_args().latency))


if __name__ == "__main__":
    main()
