"""Pictures: what is not the picture goes, whatever the bytes are, and the picture itself stays."""

import struct
import zlib
from base64 import b64decode
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone.core.errors import Refused
from hone.core.images import LARGEST, read_image

FOLDER = Path(__file__).parents[1] / "images"
"""Files that Pillow 13 wrote, each with what is left of it. Pillow decoded both to the same pixels."""
FILES = {path.name: path.read_bytes() for path in sorted(FOLDER.iterdir()) if ".clean." not in path.name}
TYPES = {"jpg": "image/jpeg", "png": "image/png", "gif": "image/gif", "webp": "image/webp"}
CANARY = b"CANARY"


def cleaned(data: bytes) -> bytes:
    return b64decode(read_image(data).data)


@pytest.mark.parametrize("name", FILES)
def test_only_the_picture_is_left(name: str) -> None:
    stem, _, suffix = name.partition(".")
    assert CANARY in FILES[name]
    image = read_image(FILES[name], name)
    assert image.media_type == TYPES[suffix]
    assert b64decode(image.data) == (FOLDER / f"{stem}.clean.{suffix}").read_bytes()
    assert CANARY not in b64decode(image.data)
    assert cleaned(cleaned(FILES[name])) == cleaned(FILES[name])


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def additions(name: str) -> list[tuple[int, bytes]]:
    """Where somebody can put words into a file so that it stays one, and what."""
    match name.partition(".")[2]:
        case "png":
            return [
                (33, chunk(kind, CANARY)) for kind in (b"tEXt", b"eXIf", b"iTXt", b"abCd", b"tIME", b"prVt")
            ]
        case "jpg":
            numbers = (0xFE, *range(0xE0, 0xF0))
            return [(2, bytes((0xFF, number)) + struct.pack(">H", 8) + CANARY) for number in numbers]
        case "gif":
            start = 13 + (3 << ((FILES[name][10] & 7) + 1) if FILES[name][10] & 0x80 else 0)
            return [(start, b"!" + bytes((kind, 6)) + CANARY + b"\0") for kind in (0x01, 0xFE, 0xFF, 0x77)]
    return []


@pytest.mark.parametrize("name", FILES)
def test_words_that_are_put_into_a_file_do_not_stay(name: str) -> None:
    for at, words in additions(name):
        assert cleaned(FILES[name][:at] + words + FILES[name][at:]) == cleaned(FILES[name])


@given(
    name=st.sampled_from(list(FILES)),
    edits=st.lists(st.tuples(st.integers(0, 2_000), st.binary(max_size=9), st.integers(0, 20)), max_size=4),
)
def test_damaged_bytes_are_cleaned_or_refused_and_never_grow(
    name: str, edits: list[tuple[int, bytes, int]]
) -> None:
    data = FILES[name]
    for at, put, cut in edits:
        data = data[:at] + put + data[at + cut :]
    with suppress(Refused):
        result = cleaned(data)
        assert len(result) <= len(data) + 40
        assert cleaned(result) == result


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_was_cut_anywhere_is_refused(name: str) -> None:
    whole = (
        len(FILES[name])
        if name not in ("photo.jpg", "drawing.png", "moving.gif")
        else FILES[name].rfind(CANARY)
    )
    for end in range(1, whole - 8, 7):
        with pytest.raises(Refused):
            read_image(FILES[name][:end])


@pytest.mark.parametrize("data", [b"", b"%PDF-1.7", b"<svg/>", b"BM" + b"\0" * 60, b"RIFF\x04\0\0\0WAVE"])
def test_what_is_no_picture_is_refused(data: bytes) -> None:
    with pytest.raises(Refused, match=r"Use PNG, JPEG, GIF or WebP|damaged"):
        read_image(data, "x.png")


def test_a_picture_that_is_too_large_is_refused_by_what_is_left_of_it() -> None:
    small = FILES["drawing.png"]
    noise = chunk(b"IDAT", bytes(LARGEST))
    read_image(small[:33] + chunk(b"tEXt", bytes(LARGEST)) + small[33:])
    with pytest.raises(Refused, match=r"big.png has 3.8 MB, and a model takes at most 3.75 MB"):
        read_image(small[:33] + noise + small[33:], "big.png")


def test_bytes_that_are_made_to_be_slow_are_not() -> None:
    with pytest.raises(Refused):
        read_image(FILES["photo.jpg"][:700] + b"\xff" * 1_000_000)
    deep = b"VP8 " + struct.pack("<I", 0)
    for _ in range(1_500):
        deep = b"ANMF" + struct.pack("<I", len(deep) + 16) + bytes(16) + deep
    body = b"WEBP" + deep
    with pytest.raises(Refused):
        read_image(b"RIFF" + struct.pack("<I", len(body) + 2) + body)
