"""The server side of HTTP/1.1 on one connection, with control over every byte that is sent."""

import asyncio
import socket
import struct
from collections.abc import Iterable, Mapping
from http import HTTPStatus

from msgspec import Struct

LARGEST = 64 * 1024 * 1024
_HEAD = 64 * 1024
_REASONS = {413: "Content Too Large", 529: "Site Overloaded"}
"""Status texts for which Python has another or none."""
STREAM = (
    b"HTTP/1.1 200 OK\r\nserver: hone-stage (scripted)\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
    b"cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n"
)
END = b"0\r\n\r\n"
_JSON = "application/json"
_NONE: Mapping[str, str] = {}


class Unacceptable(Exception):
    """The bytes are not a request that can be answered; `status` says why."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class HttpRequest(Struct, frozen=True):
    """Names of headers are in lower case; `body` is byte for byte what was sent."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class Caller:
    """The other end of a connection. `persistent` tells whether it may ask again."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.persistent = True

    async def hear(self) -> HttpRequest | None:
        """Return the next request; None when the caller has disconnected."""
        try:
            head = await self._reader.readuntil(b"\r\n\r\n")
            method, path, version, headers = _parse(head)
            self.persistent = headers.get("connection", "").lower() != "close" and version == "HTTP/1.1"
            size = _size(headers)
            if size and headers.get("expect", "").lower() == "100-continue":
                self._writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            body = await self._reader.readexactly(size) if size else b""
        except asyncio.IncompleteReadError:
            return None
        except asyncio.LimitOverrunError:
            raise Unacceptable(400, "the head of the request is too long") from None
        return HttpRequest(method, path, headers, body)

    async def send(self, *parts: bytes) -> None:
        self._writer.write(b"".join(parts))
        await self._writer.drain()

    async def answer(
        self, status: int, body: bytes, headers: Mapping[str, str] = _NONE, media_type: str = _JSON
    ) -> None:
        await self.send(opening(status, len(body), headers, media_type), body)

    @property
    def has_left(self) -> bool:
        return self._reader.at_eof() or self._writer.transport.is_closing()

    async def gone(self) -> None:
        """Return when the caller closes the connection."""
        while await self._reader.read(_HEAD):
            continue

    def reset(self) -> None:
        """Reset the connection: the caller gets an error instead of an end."""
        door: socket.socket = self._writer.get_extra_info("socket")
        door.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.abandon()

    def abandon(self) -> None:
        self.persistent = False
        self._writer.transport.abort()

    async def leave(self) -> None:
        self._writer.close()
        await self._writer.wait_closed()


def opening(status: int, size: int, headers: Mapping[str, str] = _NONE, media_type: str = _JSON) -> bytes:
    lines = [
        f"HTTP/1.1 {status} {_REASONS.get(status) or HTTPStatus(status).phrase}",
        "server: hone-stage (scripted)",
        f"content-type: {media_type}",
        f"content-length: {size}",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    return "\r\n".join((*lines, "", "")).encode("latin-1")


def chunks(parts: Iterable[bytes]) -> list[bytes]:
    """Send each part as one chunk of a response of unknown length."""
    return [b"%x\r\n%s\r\n" % (len(part), part) for part in parts if part]


def recut(parts: Iterable[bytes], size: int) -> list[bytes]:
    """The same bytes in parts of this size."""
    data = b"".join(parts)
    return [data[at : at + size] for at in range(0, len(data), size)]


def _parse(block: bytes) -> tuple[str, str, str, dict[str, str]]:
    first, *lines = block[:-4].decode("latin-1").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise Unacceptable(400, "this is not an HTTP/1.1 request")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon:
            raise Unacceptable(400, "a header has no name")
        headers[name.strip().lower()] = value.strip()
    return words[0], words[1], words[2], headers


def _size(headers: Mapping[str, str]) -> int:
    if "transfer-encoding" in headers:
        raise Unacceptable(400, "the body must come with a content-length")
    announced = headers.get("content-length", "0")
    if not (announced.isascii() and announced.isdigit()):
        raise Unacceptable(400, "the content-length is not a number")
    if int(announced) > LARGEST:
        raise Unacceptable(413, f"the request exceeds {LARGEST} bytes")
    return int(announced)
