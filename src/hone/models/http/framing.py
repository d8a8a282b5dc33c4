"""Parse HTTP/1.1 without doing I/O: read the head of a response and find the end of its body."""

import re
from collections.abc import Callable, Mapping
from typing import Protocol

from msgspec import Struct

from hone.core.regex import regex

HEAD_LIMIT = 64 * 1024
LINE_LIMIT = 4 * 1024

_SIGNATURE = b"HTTP/1."
_STATUS = regex(r"HTTP/1\.([01]) ([1-9][0-9]{2})(?: [^\r\n]*)?")
_LENGTH = regex(r"([0-9]{1,18})(?:, *\1)*")
_PLAIN = regex(rb"([0-9A-Fa-f]{1,7})\r\n")
"""The size of a chunk as nearly all servers write it."""
_SIZE = regex(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;.*)?", re.DOTALL)


class Garbled(Exception):
    """The bytes violate HTTP/1.1. The text is a sentence without its subject, the host."""


class Response(Struct, frozen=True):
    """The head of an answer. Header names are lowercase."""

    status: int
    headers: Mapping[str, str]


class Head(Struct, frozen=True):
    response: Response
    persistent: bool


class Body(Protocol):
    """Finds the payload in the bytes after a head. `surplus`: there were bytes after its end."""

    done: bool = False
    surplus: bool = False

    def feed(self, data: bytes) -> list[bytes]: ...

    def end(self) -> list[bytes]:
        """Handle the end of the connection. Raises Garbled if it came too early."""
        if not self.done:
            raise Garbled("closed the connection in the middle of its answer")
        return []


class ResponseStart:
    """The beginning of an answer. Feed it until its head is complete; `rest` then holds what followed."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._room = HEAD_LIMIT
        self.rest = b""

    def feed(self, data: bytes) -> Head | None:
        start = max(0, len(self._held) - 3)
        self._held += data
        while True:
            if not _SIGNATURE.startswith(self._held[: len(_SIGNATURE)]):
                raise Garbled("did not answer in HTTP/1.1")
            end = self._held.find(b"\r\n\r\n", start)
            if (end if end >= 0 else len(self._held)) > self._room:
                raise Garbled("sent headers without end")
            if end < 0:
                return None
            head = parse_head(bytes(self._held[:end]))
            del self._held[: end + 4]
            if head.response.status >= 200:
                self.rest = bytes(self._held)
                return head
            if head.response.status == 101:
                raise Garbled("changed to another protocol")
            self._room -= end
            start = 0

    def end(self) -> None:
        where = "in the middle of its answer" if self._held else "without an answer"
        raise Garbled(f"closed the connection {where}")


def parse_head(block: bytes) -> Head:
    first, *lines = block.decode("latin-1").split("\r\n")
    status = _STATUS.fullmatch(first)
    if status is None:
        raise Garbled("did not answer in HTTP/1.1")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        name, value = name.strip().lower(), value.strip()
        if not colon or not name:
            raise Garbled("sent a header that has no name")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    wish = headers.get("connection", "").lower()
    persistent = "close" not in wish and (status[1] == "1" or "keep-alive" in wish)
    return Head(Response(int(status[2]), headers), persistent)


def body_of(response: Response) -> Body:
    if response.status in {204, 304}:
        return Sized(0)
    packing = response.headers.get("content-encoding", "identity").lower()
    if packing != "identity" and response.status < 300:
        raise Garbled(f"compressed its answer ({packing[:20]}) although it was asked not to")
    coding = response.headers.get("transfer-encoding", "identity").lower()
    if coding == "chunked":
        return Chunked()
    if coding != "identity":
        raise Garbled("sent its answer in an unknown transfer coding")
    length = response.headers.get("content-length")
    if length is None:
        return Unsized()
    agreed = _LENGTH.fullmatch(length)
    if agreed is None:
        raise Garbled("announced an answer of impossible length")
    return Sized(int(agreed[1]))


class Sized(Body):
    """A body of announced length."""

    def __init__(self, length: int) -> None:
        self._left = length
        self.done = length == 0

    def feed(self, data: bytes) -> list[bytes]:
        if len(data) > self._left:
            self.surplus = True
            data = data[: self._left]
        self._left -= len(data)
        self.done = self._left == 0
        return [data] if data else []


class Unsized(Body):
    """A body that ends when the other side closes."""

    def feed(self, data: bytes) -> list[bytes]:
        return [data] if data else []

    def end(self) -> list[bytes]:
        self.done = True
        return []


class Chunked(Body):
    """A body in chunks, each after a line with its size. Extensions and trailers are skipped."""

    def __init__(self) -> None:
        self._held = b""
        self._left = 0
        self._room = HEAD_LIMIT
        self._line: Callable[[Chunked, bytes], None] = Chunked._size

    def feed(self, data: bytes) -> list[bytes]:
        data = self._held + data if self._held else data
        self._held = b""
        pieces: list[bytes] = []
        at, size = 0, len(data)
        while at < size and not self.done:
            if self._line is Chunked._size:
                at = _take_whole(data, at, pieces)
                if at == size:
                    break
            if self._left:
                piece = data[at : at + self._left]
                pieces.append(piece)
                self._left -= len(piece)
                at += len(piece)
                continue
            end = data.find(b"\r\n", at)
            if end < 0:
                self._hold(data[at:])
                return pieces
            self._line(self, data[at:end])
            at = end + 2
        self.surplus = self.surplus or at < size
        return pieces

    def _hold(self, start: bytes) -> None:
        if len(start) > LINE_LIMIT or (self._line is Chunked._gap and start != b"\r"):
            raise Garbled("sent a chunk that does not end where it said")
        self._held = start

    def _size(self, line: bytes) -> None:
        size = _SIZE.fullmatch(line)
        if size is None or len(line) >= LINE_LIMIT:
            raise Garbled("sent a chunk without a size")
        self._left = int(size[1], 16)
        self._line = Chunked._gap if self._left else Chunked._trailer

    def _gap(self, line: bytes) -> None:
        if line:
            raise Garbled("sent a chunk that does not end where it said")
        self._line = Chunked._size

    def _trailer(self, line: bytes) -> None:
        self._room -= len(line)
        self.done = not line
        if self._room < 0 or len(line) >= LINE_LIMIT:
            raise Garbled("sent headers without end")


def _take_whole(data: bytes, at: int, pieces: list[bytes]) -> int:
    """Take the complete chunks. Return where the first incomplete one begins."""
    while plain := _PLAIN.match(data, at):
        start = plain.end()
        end = start + int(plain[1], 16)
        if end == start or data[end : end + 2] != b"\r\n":
            break
        pieces.append(data[start:end])
        at = end + 2
    return at
