"""Where an answer ends, however its bytes are cut."""

from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone.models.http.framing import (
    HEAD_LIMIT,
    LINE_LIMIT,
    Body,
    Chunked,
    Garbled,
    Head,
    Response,
    ResponseStart,
    Sized,
    Unsized,
    body_of,
)

Framed = tuple[Callable[[], Body], bytes, bytes]

NAMES = st.text("abcdefghijklmnopqrstuvwxyz-", min_size=1, max_size=12)
VALUES = st.text(st.characters(min_codepoint=0x21, max_codepoint=0xFF, exclude_characters="\x7f\x85\xa0"))


@st.composite
def chunked(draw: st.DrawFn) -> Framed:
    payload = b""
    wire = b""
    for piece in draw(st.lists(st.binary(min_size=1, max_size=40))):
        size = draw(st.sampled_from(["%x", "%X", "%04x"])) % len(piece)
        extension = draw(st.sampled_from(["", ";a", " ; a=1", ';a="\n0"']))
        wire += f"{size}{extension}\r\n".encode() + piece + b"\r\n"
        payload += piece
    trailers = draw(st.sampled_from([b"", b"a: 1\r\n", b"a: 1\r\nb: 2\r\n"]))
    return Chunked, wire + b"0\r\n" + trailers + b"\r\n", payload


@st.composite
def sized(draw: st.DrawFn) -> Framed:
    payload = draw(st.binary(max_size=100))
    return (lambda: Sized(len(payload))), payload, payload


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in pairwise(edges)]


PLACES = st.lists(st.integers(min_value=0, max_value=10_000), max_size=30)


@given(chunked() | sized(), PLACES)
def test_any_split_of_a_body_gives_the_same_payload(framed: Framed, places: list[int]) -> None:
    make, wire, payload = framed
    body = make()
    assert b"".join(b"".join(body.feed(part)) for part in cut(wire, places)) == payload
    assert body.done
    assert not body.surplus
    assert body.end() == []


@given(chunked() | sized(), st.integers(min_value=0))
def test_a_body_that_is_cut_is_not_done(framed: Framed, place: int) -> None:
    make, wire, payload = framed
    if not wire:
        return
    body = make()
    got = b"".join(body.feed(wire[: place % len(wire)]))
    assert not body.done
    assert payload.startswith(got)
    with pytest.raises(Garbled, match="in the middle"):
        body.end()


@given(chunked() | sized(), st.binary(min_size=1), PLACES)
def test_bytes_after_the_end_are_noticed_and_not_handed_out(
    framed: Framed, extra: bytes, places: list[int]
) -> None:
    make, wire, payload = framed
    body = make()
    assert b"".join(b"".join(body.feed(part)) for part in cut(wire + extra, places)) == payload
    assert body.done
    assert body.surplus


@given(st.lists(st.binary()))
def test_a_body_without_a_length_is_all_that_comes(parts: list[bytes]) -> None:
    body = Unsized()
    assert b"".join(b"".join(body.feed(part)) for part in parts) == b"".join(parts)
    assert not body.done
    body.end()
    assert body.done


SCRAPS = st.lists(
    st.sampled_from(
        [b"\r\n", b"0", b"5", b"ffffffffffffffff", b";", b"HTTP/1.1 200 OK", b": ", b"-1", b"0x1"]
    )
    | st.binary(max_size=8)
).map(b"".join)


@given(SCRAPS, PLACES)
def test_fuzzed_bytes_raise_nothing_but_garbled(data: bytes, places: list[int]) -> None:
    for reader in (Chunked(), ResponseStart()):
        with suppress(Garbled):
            for part in cut(data, places):
                reader.feed(part)
            reader.end()


@pytest.mark.parametrize(
    "wire",
    [
        b"x\r\n",
        b"\r\n",
        b"-1\r\n",
        b"0x5\r\nhello\r\n",
        b"1_0\r\n",
        b"+5\r\n",
        b"5\nhello\r\n",
        b"5\r\nhelloX",
        b"5\r\nhello\nX",
        b"5\r\nhelloworld\r\n",
        b"f" * 16 + b"\r\n",
        b"1;" + b"a" * LINE_LIMIT + b"\r\n",
        b"1;" + b"a" * LINE_LIMIT,
        b"0\r\n" + b"a: b\r\n" * HEAD_LIMIT,
    ],
)
def test_chunks_that_do_not_keep_their_word_are_refused(wire: bytes) -> None:
    for parts in ([wire], [wire[at : at + 1] for at in range(len(wire))]):
        body = Chunked()
        with pytest.raises(Garbled):
            list(map(body.feed, parts))


@given(st.dictionaries(NAMES, VALUES, max_size=6), st.binary(max_size=20), st.booleans(), PLACES)
def test_any_split_of_a_head_gives_the_same_head_and_rest(
    headers: dict[str, str], rest: bytes, interim: bool, places: list[int]
) -> None:
    lines = "".join(f"{name.title()}:  {value} \r\n" for name, value in headers.items())
    wire = f"HTTP/1.1 299 So be it\r\n{lines}\r\n".encode("latin-1")
    before = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\n" if interim else b""
    opening = ResponseStart()
    parts = cut(before + wire, places)
    heads = [opening.feed(part) for part in parts if part]
    assert heads[:-1] == [None] * (len(heads) - 1)
    head = heads[-1]
    assert head is not None
    assert head.response == Response(299, headers)
    assert ResponseStart().feed(before + wire) == head
    whole = ResponseStart()
    whole.feed(before + wire + rest)
    assert whole.rest == rest


def head(text: str) -> Head:
    parsed = ResponseStart().feed(text.replace("\n", "\r\n").encode())
    assert parsed is not None
    return parsed


@pytest.mark.parametrize(
    ("text", "persistent"),
    [
        ("HTTP/1.1 200 OK\n\n", True),
        ("HTTP/1.1 200\n\n", True),
        ("HTTP/1.1 200 OK\nConnection: Close\n\n", False),
        ("HTTP/1.0 200 OK\n\n", False),
        ("HTTP/1.0 200 OK\nconnection: Keep-Alive\n\n", True),
    ],
)
def test_a_head_says_whether_the_connection_lasts(text: str, persistent: bool) -> None:
    assert head(text).persistent is persistent


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("HTTP/1.1 200 OK\ncontent-length: 5\n\n", Sized),
        ("HTTP/1.1 200 OK\ncontent-length: 5\nContent-Length: 5\n\n", Sized),
        ("HTTP/1.1 200 OK\ncontent-length: 5\ntransfer-encoding: Chunked\n\n", Chunked),
        ("HTTP/1.1 200 OK\n\n", Unsized),
        ("HTTP/1.1 204 No Content\n\n", Sized),
        ("HTTP/1.1 304 Not Modified\ncontent-length: 5\n\n", Sized),
        ("HTTP/1.1 500 No\ncontent-encoding: gzip\n\n", Unsized),
    ],
)
def test_a_head_says_how_its_body_ends(text: str, kind: type) -> None:
    response = head(text).response
    body = body_of(response)
    assert type(body) is kind
    assert body.done == (response.status in (204, 304))


@pytest.mark.parametrize(
    "text",
    [
        "SSH-2.0-OpenSSH",
        "HTTP/2 200 OK\n\n",
        "HTTP/1.1 20 OK\n\n",
        "HTTP/1.1 2000 OK\n\n",
        "HTTP/1.1 abc\n\n",
        "HTTP/1.9 200 OK\n\n",
        "HTTP/1.1 101 Switching\n\n",
        "HTTP/1.1 200 OK\nno colon\n\n",
        "HTTP/1.1 200 OK\n: no name\n\n",
        "HTTP/1.1 200 OK\ncontent-length: 5, 6\n\n",
        "HTTP/1.1 200 OK\ncontent-length: -5\n\n",
        "HTTP/1.1 200 OK\ncontent-length: ٥\n\n",
        "HTTP/1.1 200 OK\ncontent-length: " + "9" * 5000 + "\n\n",
        "HTTP/1.1 200 OK\ntransfer-encoding: gzip, chunked\n\n",
        "HTTP/1.1 200 OK\ncontent-encoding: gzip\n\n",
        "HTTP/1.1 200 OK\na: " + "b" * HEAD_LIMIT + "\n\n",
        "HTTP/1.1 200 OK\na: " + "b" * HEAD_LIMIT,
        "HTTP/1.1 100 Continue\n\n" * 4000,
    ],
)
def test_a_head_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(Garbled):
        body_of(head(text).response)
