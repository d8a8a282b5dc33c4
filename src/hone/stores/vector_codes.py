"""Binary codes of vectors: a scan of all of them for the few that may be nearest.

A code is the signs of a vector's numbers, one bit each. The codes of 4,096 content numbers share one row, so
that a million can be read at once. A deleted content deletes its row, which is then rebuilt. Numpy scans all
codes; without it, only the latest are scanned.
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from heapq import nsmallest
from importlib import import_module
from importlib.util import find_spec
from threading import Lock
from typing import Any

import apsw
from msgspec import Struct

BLOCK_BITS = 12
BLOCK = 1 << BLOCK_BITS
"""Content numbers per row. The trigger in the migration counts with it, too."""
LOOSE = 3 * BLOCK
"""Vectors without a row of codes to scan, latest first."""
PLAIN = 50_000
"""Codes to scan without numpy, latest first."""
WORD = 8

SEALED = "SELECT block, stamp FROM vector_codes WHERE embedder = ? ORDER BY block DESC"
CODES = "SELECT contents, codes FROM vector_codes WHERE block = ?"
VECTORS = """
SELECT content, vector FROM vectors WHERE embedder = ? AND content BETWEEN ? AND ? AND length(vector) > 0
"""
EDGE = "SELECT EXISTS (SELECT 1 FROM contents WHERE id BETWEEN ? AND ?)"
SEAL = """
INSERT OR REPLACE INTO vector_codes (block, embedder, stamp, contents, codes) VALUES (?, ?, random(), ?, ?)
"""
RUN = """
SELECT (SELECT min(content) FROM vectors WHERE embedder = ?1),
    (SELECT max(content) FROM vectors WHERE embedder = ?1)
"""
STATE = "SELECT count(*), max(content) FROM vectors WHERE embedder = ? AND content BETWEEN ? AND ?"

SIGNS = bytes(b"01"[0 < value < 128] for value in range(256))


class Codes(Struct, frozen=True):
    """Content numbers of 8 bytes each, and their codes in the same order: the first words of all codes, then
    the second ones. Such columns are fast to add up."""

    contents: bytes
    codes: bytes

    @property
    def size(self) -> int:
        """Bytes of one code; 0 if there are none."""
        return len(self.codes) * WORD // len(self.contents) if self.contents else 0


def encode(vector: bytes) -> bytes:
    """Return the signs of a vector, padded with zeros to whole words of 8 bytes."""
    size = -(-len(vector) // (8 * WORD)) * WORD
    bits = int(vector.translate(SIGNS).ljust(size * 8, b"0"), 2) if vector else 0
    return bits.to_bytes(size, "big")


def seal(connection: apsw.Connection, embedder: int, first: int, last: int) -> bool:
    """Make one missing row of codes, and tell whether there was one. `first` and `last` are the range of
    finished contents."""
    sealed = {block for block, _ in connection.execute(SEALED, (embedder,))}
    lowest, begin = first >> BLOCK_BITS, first >> BLOCK_BITS << BLOCK_BITS
    if connection.execute(EDGE, (begin, first - 1)).get:
        lowest += 1
    for block in range((last + 1 >> BLOCK_BITS) - 1, lowest - 1, -1):
        if block not in sealed:
            made = _read_vectors(connection, embedder, block)
            connection.execute(SEAL, (block, embedder, made.contents, made.codes))
            return True
    return False


def _read_vectors(connection: apsw.Connection, embedder: int, block: int) -> Codes:
    """Return the vectors, without those that differ in length from the first: no model makes such."""
    rows: list[Any] = connection.execute(VECTORS, (embedder, *_bounds(block))).fetchall()
    alike = [(content, vector) for content, vector in rows if len(vector) == len(rows[0][1])]
    numbers = b"".join(content.to_bytes(WORD, "little") for content, _ in alike)
    return Codes(numbers, _turn(b"".join(encode(vector) for _, vector in alike), len(alike)))


def _turn(data: bytes, rows: int) -> bytes:
    """Turn rows of words into columns; `rows` is how many there are."""
    words = array("Q", data)
    return b"".join(
        words[at :: len(words) // rows].tobytes() for at in range(len(words) // rows if rows else 0)
    )


def are_sound(connection: apsw.Connection) -> bool:
    """Tell whether each row of codes matches its vectors."""
    rows: list[Any] = connection.execute(
        "SELECT block, embedder, contents, codes FROM vector_codes"
    ).fetchall()
    return all(
        Codes(contents, codes) == _read_vectors(connection, embedder, block)
        for block, embedder, contents, codes in rows
    )


def _bounds(block: int) -> tuple[int, int]:
    return block << BLOCK_BITS, (block + 1 << BLOCK_BITS) - 1


class CodeCache:
    """Caches the codes of one embedder between two searches of a process, prepared for the scan."""

    def __init__(self, *, fast: bool | None = None) -> None:
        self._fast = find_spec("numpy") is not None if fast is None else fast
        self._lock = Lock()
        self._embedder = 0
        self._blocks: dict[int, tuple[Any, Any]] = {}

    def nearest(self, connection: apsw.Connection, embedder: int, vector: bytes, count: int) -> list[int]:
        """Return about so many contents whose codes differ least from that of the vector."""
        with self._lock:
            if embedder != self._embedder:
                self._embedder, self._blocks = embedder, {}
            blocks = list(self._read(connection, embedder, len(encode(vector))))
        return (_nearest_fast if self._fast else _nearest_plain)(blocks, encode(vector), count)

    def _read(self, connection: apsw.Connection, embedder: int, size: int) -> Iterator[Any]:
        """Yield prepared codes, latest first, and drop those of deleted rows."""
        left, known = None if self._fast else PLAIN, self._blocks
        self._blocks = {}
        for block, state in _states(connection, embedder):
            kept = known.get(block)
            if kept is None or kept[0] != state:
                kept = state, self._prepare(_read_codes(connection, embedder, block, state), size)
            self._blocks[block] = kept
            if kept[1] is not None:
                yield kept[1]
                left = left if left is None else left - len(kept[1][0])
            if left is not None and left <= 0:
                return

    def _prepare(self, codes: Codes, size: int) -> Any:
        if codes.size != size:
            return None
        return _prepare_fast(codes) if self._fast else _prepare_plain(codes)


def _states(connection: apsw.Connection, embedder: int) -> Iterable[tuple[int, object]]:
    """Yield the blocks of an embedder, latest first, each with a value that changes with its codes. A block
    without a row of codes counts only if there are few."""
    first, last = connection.execute(RUN, (embedder,)).get
    if first is None:
        return
    rows: list[Any] = connection.execute(SEALED, (embedder,)).fetchall()
    sealed: dict[int, int] = dict(rows)
    loose = 0
    for block in range(last >> BLOCK_BITS, (first >> BLOCK_BITS) - 1, -1):
        if block in sealed:
            yield block, sealed[block]
        elif loose < LOOSE:
            made, newest = connection.execute(STATE, (embedder, *_bounds(block))).get
            loose += made
            yield block, (made, newest)


def _read_codes(connection: apsw.Connection, embedder: int, block: int, state: object) -> Codes:
    if isinstance(state, tuple):
        return _read_vectors(connection, embedder, block)
    return Codes(*connection.execute(CODES, (block,)).get)


def _prepare_plain(codes: Codes) -> tuple[Sequence[int], Sequence[int]]:
    numbers, size = memoryview(codes.contents).cast("q"), codes.size
    data = _turn(codes.codes, size // WORD)
    return numbers, [int.from_bytes(data[at : at + size], "big") for at in range(0, len(data), size)]


def _nearest_plain(blocks: Iterable[Any], code: bytes, count: int) -> list[int]:
    wanted = int.from_bytes(code, "big")
    ranked = (
        ((each ^ wanted).bit_count(), number)
        for numbers, codes in blocks
        for number, each in zip(numbers, codes, strict=True)
    )
    return [number for _, number in nsmallest(count, ranked)]


def _prepare_fast(codes: Codes) -> tuple[Any, Any]:
    numpy = import_module("numpy")
    words = numpy.frombuffer(codes.codes, numpy.uint64).reshape(codes.size // WORD, -1)
    return numpy.frombuffer(codes.contents, numpy.int64), words


def _nearest_fast(blocks: Sequence[Any], code: bytes, count: int) -> list[int]:
    if not blocks:
        return []
    numpy = import_module("numpy")
    wanted = numpy.frombuffer(code, numpy.uint64).reshape(-1, 1)
    far = [numpy.bitwise_count(words ^ wanted).sum(axis=0, dtype=numpy.uint16) for _, words in blocks]
    distances, numbers = numpy.concatenate(far), numpy.concatenate([each for each, _ in blocks])
    if len(distances) > count:
        best = numpy.argpartition(distances, count)[:count]
        distances, numbers = distances[best], numbers[best]
    return [int(each) for each in numbers[numpy.argsort(distances, kind="stable")]]
