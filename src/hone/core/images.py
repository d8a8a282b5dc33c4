"""Recognize images by their bytes and strip all metadata: places, cameras, names, comments.

An allowlist keeps only what a decoder needs. Anything after the end of the image is cut off.
"""

import re
import struct
from base64 import b64encode
from collections.abc import Callable, Iterator

from hone.core.errors import Refused
from hone.core.messages import Image

LARGEST = 3_750_000
"""The most bytes of an image without its metadata: in base64, the 5 MB limit of the strictest provider."""
READ = 50_000_000
"""The most bytes of a file to read."""
KINDS = "PNG, JPEG, GIF or WebP"
SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".webp")

_PNG_KEPT = frozenset({b"IHDR", b"PLTE", b"IDAT", b"IEND", b"tRNS", b"gAMA", b"cHRM", b"sRGB", b"sBIT"})
_WEBP_KEPT = frozenset({b"VP8 ", b"VP8L", b"VP8X", b"ALPH", b"ANIM", b"ANMF"})
_WEBP_FRAME = frozenset({b"VP8 ", b"VP8L", b"ALPH"})
_WEBP_FLAGS = 0b0001_0010
"""Flags of VP8X for transparency and animation. The others announce a profile, Exif and XMP."""
_TABLES = frozenset({0xDB, 0xDC, 0xDD, *(set(range(0xC0, 0xD0)) - {0xC8})})
"""JPEG segments that a decoder needs."""
_ADOBE = b"Adobe"
_MARKER = re.compile(rb"\xff[^\x00\xff\xd0-\xd7]")
_ORIENTATION = 0x0112


class _Broken(Exception):
    """The bytes end too soon, or do not match their header."""


def read_image(data: bytes, name: str = "The picture") -> Image:
    """Return an image without metadata. Raises Refused if it is no image or too large; the error uses
    `name`."""
    for magic, media_type, strip in _FORMATS:
        if data.startswith(magic):
            try:
                clean = b"".join(strip(data))
            except (_Broken, struct.error, IndexError):
                raise Refused(
                    f"{name} is damaged or cut off: it is not a complete {media_type[6:].upper()}."
                ) from None
            if len(clean) > LARGEST:
                size, most = f"{len(clean) / 1e6:.1f} MB", f"{LARGEST / 1e6:.2f} MB"
                raise Refused(f"{name} has {size}, and a model takes at most {most}. Make it smaller.")
            return Image(media_type, b64encode(clean).decode())
    raise Refused(f"{name} is not a picture that models can read. Use {KINDS}.")


def _take(data: bytes, start: int, size: int) -> bytes:
    if size < 0 or start + size > len(data):
        raise _Broken
    return data[start : start + size]


def _strip_png(data: bytes) -> Iterator[bytes]:
    yield data[:8]
    at, kind = 8, b""
    while kind != b"IEND":
        length, kind = struct.unpack(">I4s", _take(data, at, 8))
        chunk = _take(data, at, length + 12)
        if kind in _PNG_KEPT:
            yield chunk
        at += length + 12


def _strip_jpeg(data: bytes) -> Iterator[bytes]:
    yield b"\xff\xd8"
    at, is_seen = 2, False
    while True:
        if _take(data, at, 1) != b"\xff":
            raise _Broken
        marker = data[at + 1]
        if marker == 0xFF:  # filling
            at += 1
            continue
        if marker == 0xD9:
            break
        (length,) = struct.unpack(">H", _take(data, at + 2, 2))
        segment = _take(data, at, length + 2)
        yield _keep_segment(marker, segment)
        at += length + 2
        if marker == 0xDA:
            end = _find_scan_end(data, at)
            yield segment + data[at:end]
            at, is_seen = end, True
    if not is_seen:
        raise _Broken
    yield b"\xff\xd9"


def _keep_segment(marker: int, segment: bytes) -> bytes:
    """Return what is kept of a segment: tables, the color type, and the orientation."""
    body = segment[4:]
    if marker in _TABLES:
        return segment
    if marker == 0xE0 and body.startswith(b"JFIF\0") and len(body) >= 14:
        return b"\xff\xe0\x00\x10" + body[:12] + b"\0\0"  # without its thumbnail
    if marker == 0xEE and body.startswith(_ADOBE) and len(body) >= 12:
        return b"\xff\xee\x00\x0e" + body[:12]
    if marker == 0xE1 and body.startswith(b"Exif\0\0"):
        return _write_orientation(_read_orientation(body[6:]))
    return b""


def _read_orientation(tiff: bytes) -> int:
    """Return the orientation of a photo, 1 to 8; 1 if it has none."""
    order = {b"II": "<", b"MM": ">"}.get(tiff[:2])
    try:
        (start,) = struct.unpack_from(f"{order}I", tiff, 4)
        (count,) = struct.unpack_from(f"{order}H", tiff, start)
        for at in range(start + 2, start + 2 + 12 * min(count, 200), 12):
            tag, kind, number, value = struct.unpack_from(f"{order}HHIH", tiff, at)
            if (tag, kind, number) == (_ORIENTATION, 3, 1) and 1 <= value <= 8:
                return int(value)
    except struct.error:
        pass
    return 1


def _write_orientation(value: int) -> bytes:
    """Return an Exif segment with only the orientation; nothing for the usual one."""
    if value == 1:
        return b""
    tiff = b"MM\0\x2a" + struct.pack(">IHHHIHHI", 8, 1, _ORIENTATION, 3, 1, value, 0, 0)
    body = b"Exif\0\0" + tiff
    return b"\xff\xe1" + struct.pack(">H", len(body) + 2) + body


def _find_scan_end(data: bytes, at: int) -> int:
    """Return where the compressed data ends: at a marker that is neither a restart nor a stuffed byte."""
    found = _MARKER.search(data, at)
    if found is None:
        raise _Broken
    return found.start()


def _strip_gif(data: bytes) -> Iterator[bytes]:
    at = 13 + _table_size(_take(data, 0, 13)[10])
    yield _take(data, 0, at)
    is_seen = False
    while True:
        kind = _take(data, at, 1)
        if kind == b";":
            break
        start = at
        if kind == b"!":
            at = _skip_blocks(data, at + 2)
            if data[start + 1] == 0xF9:
                yield data[start:at]
        elif kind == b",":
            head = _take(data, at, 10)
            at = _skip_blocks(data, at + 10 + _table_size(head[9]) + 1)
            is_seen = True
            yield data[start:at]
        else:
            raise _Broken
    if not is_seen:
        raise _Broken
    yield b";"


def _table_size(flags: int) -> int:
    return 3 << ((flags & 7) + 1) if flags & 0x80 else 0


def _skip_blocks(data: bytes, at: int) -> int:
    while size := _take(data, at, 1)[0]:
        at += size + 1
    return at + 1


def _strip_webp(data: bytes) -> Iterator[bytes]:
    total, form = struct.unpack("<I4s", _take(data, 4, 8))
    if form != b"WEBP":
        raise _Broken
    kept = list(_list_chunks(_take(data, 12, total - 4)))
    if not any(each[:4] in (b"VP8 ", b"VP8L", b"ANMF") for each in kept):
        raise _Broken
    body = b"WEBP" + b"".join(kept)
    yield b"RIFF" + struct.pack("<I", len(body)) + body


def _list_chunks(data: bytes, kept: frozenset[bytes] = _WEBP_KEPT) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        kind, size = struct.unpack("<4sI", _take(data, at, 8))
        body = _take(data, at + 8, size)
        if kind == b"VP8X":
            body = bytes((body[0] & _WEBP_FLAGS,)) + body[1:]
        elif kind == b"ANMF" and kind in kept:
            body = _take(body, 0, 16) + b"".join(_list_chunks(body[16:], _WEBP_FRAME))
        if kind in kept:
            yield kind + struct.pack("<I", len(body)) + body + b"\0" * (len(body) % 2)
        at += 8 + size + size % 2


_Strip = Callable[[bytes], Iterator[bytes]]
_FORMATS: tuple[tuple[bytes, str, _Strip], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png", _strip_png),
    (b"\xff\xd8\xff", "image/jpeg", _strip_jpeg),
    (b"GIF87a", "image/gif", _strip_gif),
    (b"GIF89a", "image/gif", _strip_gif),
    (b"RIFF", "image/webp", _strip_webp),
)
