"""A provider that streams a Markdown answer at a steady pace, whatever it is asked."""

import asyncio
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

RATE = 500
"""Tokens per second."""
PARAGRAPH = (
    "The parser keeps a list of **open brackets**, and the second test says that it forgets one of them when "
    "a comment follows, so `tokens` is cut before the tree is changed.\n\n"
    "- look at how the tokens are cut\n- run the tests again\n\n"
    "```python\ndef cut(line: str) -> list[str]:\n    return line.split()\n```\n\n"
)
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
_NOTHING = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


def tokens(count: int) -> list[str]:
    """Return this many pieces of text: a word each, with the space after it."""
    pieces = re.findall(r"\S+\s*", PARAGRAPH)
    return [pieces[number % len(pieces)] for number in range(count)]


async def answer(count: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer one request after the other, and send each token when it is due."""
    while head := await _head(reader):
        length = _LENGTH.search(head)
        await reader.readexactly(int(length[1]) if length else 0)
        if not head.startswith(b"POST"):
            writer.write(_NOTHING)
            continue
        writer.write(_HEAD)
        loop = asyncio.get_running_loop()
        begun = loop.time()
        for number, piece in enumerate(tokens(count)):
            await asyncio.sleep(max(0.0, begun + number / RATE - loop.time()))
            writer.write(_chunk({"choices": [{"index": 0, "delta": {"content": piece}}]}))
        writer.write(_chunk({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}))
        usage = {"prompt_tokens": 100, "completion_tokens": count}
        writer.write(_chunk({"choices": [], "usage": usage}) + b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")


async def _head(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return b""


def _chunk(event: object) -> bytes:
    data = b"data: " + json.dumps(event).encode() + b"\n\n"
    return b"%x\r\n%b\r\n" % (len(data), data)


@contextmanager
def streaming(count: int) -> Iterator[str]:
    """Serve answers of this many tokens, and yield the address."""
    loop, ready, ports = asyncio.new_event_loop(), threading.Event(), list[int]()

    async def serve() -> None:
        server = await asyncio.start_server(partial(answer, count), "127.0.0.1", 0)
        ports.append(server.sockets[0].getsockname()[1])
        ready.set()

    def run() -> None:
        loop.create_task(serve())
        loop.run_forever()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    ready.wait()
    try:
        yield f"http://127.0.0.1:{ports[0]}"
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
