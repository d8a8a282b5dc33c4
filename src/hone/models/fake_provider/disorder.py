"""Faults in the bytes of a response: lengths, encodings, redirects, trickles and floods.

Each is made from the events of an honest reply, so that it fits every wire format.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, repeat
from typing import Any

from hone.core.messages import Message, Part, Role, Text, Thinking, ToolCall
from hone.core.model import Finish, Reply
from hone.models.fake_provider.faults import Make, Raw
from hone.models.fake_provider.playback import Beat, Event, Framing, dump, stream
from hone.models.fake_provider.serving import END, STREAM, chunks
from hone.models.fake_provider.shapes import Format

_BURST = 32
"""Events that a flood sends in one piece."""
_PAGE = b"<!DOCTYPE html><html><head><title>Hotel Wi-Fi</title></head><body>Please log in.</body></html>"
_EMPTY: Mapping[str, bytes] = {
    "openai": b'data: {"choices":[{"index":0,"delta":{"content":""},"finish_reason":null}]}\n\n',
    "anthropic": b'event: ping\ndata: {"type": "ping"}\n\n',
}
_COMMENT = b": still here\n\n"


def head(status: str, *lines: str) -> bytes:
    return "\r\n".join((f"HTTP/1.1 {status}", *lines, "", "")).encode("latin-1")


def _plain(events: Iterable[Event]) -> list[bytes]:
    return [data for _, data in events]


def _size(data: Iterable[bytes]) -> int:
    return sum(map(len, data))


def _fixed(*pieces: bytes, pace: float = 0.0, hangs: bool = False) -> Raw:
    """Return the same bytes, whatever the script says."""
    return Raw(lambda _, __: iter(pieces), pace, hangs)


def _answer(status: str, body: bytes, *lines: str) -> Raw:
    return _fixed(head(status, *lines, f"content-length: {len(body)}"), body)


def _whole(*lines: str, length: Callable[[list[bytes]], int] = _size) -> Raw:
    """Return all events in one body, after a head with these lines."""

    def make(_: Format, events: list[Event]) -> Iterator[bytes]:
        data = _plain(events)
        yield head("200 OK", "content-type: text/event-stream", f"content-length: {length(data)}", *lines)
        yield from data

    return Raw(make)


def _part(beat: Beat, format: Format) -> tuple[list[bytes], bytes]:
    """Return the events before the first piece of a kind of content, and one more such piece."""
    parts: dict[Beat, Part] = {
        Beat.TEXT: Text("again and again and again "),
        Beat.THINKING: Thinking("over and over "),
        Beat.CALL: ToolCall("call_endless", "read_file", json.dumps({"path": "x" * 64})),
    }
    events = stream(format, Reply(Message(Role.ASSISTANT, (parts[beat],))), Framing("scripted"))
    places = [at for at, (each, _) in enumerate(events) if each is beat]
    return _plain(events[: places[0] + 1]), events[places[-2]][1]


def _flood(beat: Beat) -> Make:
    """Send a reply that never ends, as fast as it is read."""

    def make(format: Format, _: list[Event]) -> Iterator[bytes]:
        opening, more = _part(beat, format)
        return chain([STREAM, *chunks(opening)], repeat(b"".join(chunks([more] * _BURST))))

    return make


def _drip(beat: Beat) -> Make:
    """Send a reply that never ends, one event at a time."""

    def make(format: Format, _: list[Event]) -> Iterator[bytes]:
        opening, more = _part(beat, format)
        return chain([STREAM, *chunks(opening)], repeat(chunks([more])[0]))

    return make


def _calls(format: Format, _: list[Event]) -> Iterator[bytes]:
    """Send more calls than any model makes, each of them small."""
    calls = tuple(ToolCall(f"call_{number}", "todo", "{}") for number in range(20_000))
    reply = Reply(Message(Role.ASSISTANT, calls), Finish.CALLS)
    yield STREAM
    yield from chunks(_plain(stream(format, reply, Framing("scripted"))))
    yield END


def _hanging(beat: Beat | None) -> Raw:
    """Stop in the middle of this kind of content without closing; None: before any."""

    def make(format: Format, _: list[Event]) -> Iterator[bytes]:
        if beat is None:
            return iter([STREAM])
        opening, more = _part(beat, format)
        return iter([STREAM, *chunks([*opening, more])])

    return Raw(make, hangs=True)


def _after(*pieces: bytes, again: bytes = b"", pace: float = 0.0) -> Raw:
    """Send the whole reply without the end of its response, then these pieces, then more without end."""

    def make(_: Format, events: list[Event]) -> Iterator[bytes]:
        return chain([STREAM, *chunks(_plain(events)), *pieces], repeat(again) if again else ())

    return Raw(make, pace, hangs=True)


def _insert(line: bytes) -> Make:
    """Insert a line between the events of a reply."""

    def make(_: Format, events: list[Event]) -> Iterator[bytes]:
        data = _plain(events)
        return iter([STREAM, *chunks([*data[: len(data) // 2], line, *data[len(data) // 2 :]]), END])

    return make


def _slow(_: Format, events: list[Event]) -> Iterator[bytes]:
    """Send the whole response, byte by byte."""
    data = b"".join((STREAM, *chunks(_plain(events)), END))
    return (data[at : at + 1] for at in range(len(data)))


def _usage(change: Callable[[Any], Any]) -> Make:
    """Change each report of usage, wherever the format puts it."""

    def changed(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {
            key: change(each) if key == "usage" and each else changed(each) for key, each in value.items()
        }

    def event(data: bytes) -> bytes:
        return re.sub(
            rb"(?m)^data: (\{.*\})$", lambda found: b"data: " + dump(changed(json.loads(found[1]))), data
        )

    def make(_: Format, events: list[Event]) -> Iterator[bytes]:
        return iter([STREAM, *chunks(map(event, _plain(events))), END])

    return make


def _numbers(change: Callable[[int], Any]) -> Make:
    def each(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: each(inner) for key, inner in value.items()}
        return change(value) if isinstance(value, int) else value

    return _usage(each)


def _empty_deltas(format: Format, _: list[Event]) -> Iterator[bytes]:
    return chain([STREAM], repeat(chunks([_EMPTY.get(format, _COMMENT)])[0]))


_JSON, _EVENTS = "content-type: application/json", "content-type: text/event-stream"
_CHUNKED = "transfer-encoding: chunked"

DISORDER: Mapping[str, Raw] = {
    "204": _fixed(head("204 No Content")),
    "202": _answer("202 Accepted", b'{"status":"queued"}', _JSON),
    "301": _answer("301 Moved", b"", "location: https://new.example/v2/chat?token=hidden"),
    "307": _answer("307 Temporary Redirect", b"", "location: /somewhere/else"),
    "302-nowhere": _answer("302 Found", b""),
    "304": _fixed(head("304 Not Modified")),
    "511": _answer("511 Network Authentication Required", _PAGE, "content-type: text/html"),
    "portal": _answer("200 OK", _PAGE, "content-type: text/html; charset=utf-8"),
    "page-as-json": _answer("200 OK", _PAGE, _JSON),
    "page-as-events": _answer("200 OK", b"\r\n" + _PAGE, _EVENTS),
    "no-body": _answer("200 OK", b"", _EVENTS),
    "no-json": _answer("200 OK", b"", _JSON),
    "no-chunks": _fixed(STREAM, END),
    "only-comments": _fixed(STREAM, *chunks([_COMMENT] * 3), END),
    "plain-words": _answer("200 OK", b"upstream is on fire\n", "content-type: text/plain"),
    "length-too-long": _whole(length=lambda data: _size(data) + 10),
    "length-too-short": _whole(length=lambda data: _size(data[: len(data) // 2])),
    "length-nonsense": _fixed(head("200 OK", _EVENTS, "content-length: many")),
    "length-twice": _fixed(head("200 OK", _EVENTS, "content-length: 1", "content-length: 2")),
    "gzip": _whole("content-encoding: gzip"),
    "deflate": _whole("content-encoding: deflate"),
    "br": _whole("content-encoding: br"),
    "gzip-400": _answer("400 Bad Request", b"\x1f\x8b\x08\x00junk", _JSON, "content-encoding: gzip"),
    "not-http": _fixed(b"220 mail.example ESMTP ready\r\n"),
    "http2": _fixed(b"\x00\x00\x12\x04\x00\x00\x00\x00\x00" + b"\x00" * 18),
    "upgrade": _fixed(head("101 Switching Protocols", "upgrade: h2c")),
    "continue-endless": Raw(lambda _, __: repeat(head("100 Continue"))),
    "headers-endless": Raw(lambda _, __: chain([b"HTTP/1.1 200 OK\r\n"], repeat(b"x-more: and more\r\n"))),
    "headers-slow": Raw(lambda _, __: chain([b"HTTP/1.1 200 OK\r\nx-more: "], repeat(b"x")), pace=1.0),
    "chunk-nonsense": _fixed(STREAM, b"not a size\r\n"),
    "chunk-overrun": _fixed(STREAM, b"5\r\nhello and more\r\n"),
    "refusal-endless": Raw(
        lambda _, __: chain([head("500 Oops", _JSON, _CHUNKED)], repeat(b"4\r\nhelp\r\n"))
    ),
    "refusal-slow": Raw(
        lambda _, __: chain([head("500 Oops", _JSON, _CHUNKED)], repeat(b"1\r\nx\r\n")), pace=1.0
    ),
    "comments-endless": Raw(lambda _, __: chain([STREAM], repeat(b"".join(chunks([_COMMENT * 64]))))),
    "comments-slow": Raw(lambda _, __: chain([STREAM], repeat(chunks([_COMMENT])[0])), pace=1.0),
    "empty-deltas-slow": Raw(_empty_deltas, pace=1.0),
    "byte-by-byte": Raw(_slow, pace=1.0),
    "text-endless": Raw(_flood(Beat.TEXT)),
    "text-slow": Raw(_drip(Beat.TEXT), pace=30.0),
    "thinking-endless": Raw(_flood(Beat.THINKING)),
    "arguments-endless": Raw(_flood(Beat.CALL)),
    "calls-endless": Raw(_calls),
    "line-endless": Raw(lambda _, __: chain([STREAM], repeat(b"".join(chunks([b"data: " + b"x" * 4000]))))),
    "event-endless": Raw(lambda _, __: chain([STREAM], repeat(b"".join(chunks([b"data: x\n"] * 64))))),
    "json-endless": Raw(lambda _, __: chain([head("200 OK", _JSON), b'{"x":"'], repeat(b"x" * 4000))),
    "hang-at-start": _hanging(None),
    "hang-in-text": _hanging(Beat.TEXT),
    "hang-in-thinking": _hanging(Beat.THINKING),
    "hang-in-call": _hanging(Beat.CALL),
    "not-utf8": Raw(_insert(b'data: {"error":"\xff\xfe"}\n\n')),
    "deep-json": Raw(_insert(b'data: {"error":' + b"[" * 50_000 + b"\n\n")),
    "wrong-types": Raw(_insert(b'data: {"type":5,"choices":5}\n\n')),
    "array": Raw(_insert(b"data: [1,2,3]\n\n")),
    "hang-at-end": _after(),
    "comments-at-end": _after(again=b"".join(chunks([_COMMENT])), pace=0.5),
    "surplus": _after(END, b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"),
    "usage-negative": Raw(_numbers(lambda number: -number - 1)),
    "usage-strings": Raw(_numbers(lambda _: "many")),
    "usage-floats": Raw(_numbers(lambda number: number + 0.5)),
    "usage-huge": Raw(_numbers(lambda _: 10**30)),
    "usage-words": Raw(_usage(lambda _: "a lot")),
    "usage-missing": Raw(_usage(lambda _: None)),
}
"""Responses that no documentation mentions, but that proxies, gateways and broken servers send."""
