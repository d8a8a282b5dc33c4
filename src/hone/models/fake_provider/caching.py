"""Count how much of a prompt a provider has cached: four bytes per token, by the rule of each provider."""

import hashlib
import re
from collections import deque

from msgspec import Struct

from hone.core.regex import regex

# Inside a string the quotes would be escaped: this is found as a key and nowhere else.
_MARKER = regex(rb'"cache_control"\s*:\s*\{[^{}]*\}')
_COMMA = regex(rb"\s*,")
_BRACE = regex(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}]', re.DOTALL)
_END = regex(rb"\]\s*\}\s*\Z")


class Tokens(Struct, frozen=True):
    """`total` is the whole prompt, `cached` was read from the cache, `written` put into it."""

    total: int
    cached: int = 0
    written: int = 0


class Prefixes:
    """OpenAI: whatever a request has in common with the beginning of one of the last `recall`."""

    def __init__(self, recall: int) -> None:
        self._past: deque[bytes] = deque(maxlen=recall)

    def count(self, body: bytes) -> Tokens:
        """What this request finds in the cache; from then on it is there itself."""
        prompt = unclosed(body)
        best, opening = 0, prompt[:1]
        for past in reversed(self._past):
            if past.startswith(opening):
                best = shared(prompt, past, best)
                opening = prompt[: best + 1]
            if best == len(prompt):
                break
        self._past.append(prompt)
        return Tokens(len(prompt) // 4, best // 4)


class Breakpoints:
    """Anthropic: what an earlier request wrote at a marker is read by one with a marker at the same place,
    over the same bytes. The real one also looks at 20 blocks before a marker; here a client must be exact."""

    def __init__(self, recall: int) -> None:
        self._past: deque[frozenset[bytes]] = deque(maxlen=recall)

    def count(self, body: bytes) -> Tokens:
        prompt, ends = unmarked(body)
        running = hashlib.sha256()
        at = cached = 0
        digests: set[bytes] = set()
        for end in ends:
            running.update(prompt[at:end])
            at = end
            seal = running.copy().digest()
            digests.add(seal)
            if any(seal in past for past in self._past):
                cached = end
        self._past.append(frozenset(digests))
        return Tokens(len(prompt) // 4, cached // 4, at // 4 - cached // 4)


def unclosed(body: bytes) -> bytes:
    """The body without its last brackets, so that a longer conversation can begin with a shorter one."""
    end = _END.search(body, max(0, len(body) - 64))
    return body[: end.start()] if end else body


def shared(one: bytes, other: bytes, known: int = 0) -> int:
    """The length of the common beginning, of which `known` bytes are known."""
    low, high = known, min(len(one), len(other))
    if one.startswith(other) or other.startswith(one):
        return high
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def unmarked(body: bytes) -> tuple[bytes, list[int]]:
    """The prompt without its cache markers, and where in it each marked block ends."""
    pieces: list[bytes] = []
    places: list[int] = []
    at = length = 0
    for found in _MARKER.finditer(body):
        start, end = found.span()
        comma, brace = body.rfind(b",", at, start), body.rfind(b"{", at, start)
        if comma > brace:
            start = comma
        elif following := _COMMA.match(body, end):
            end = following.end()
        pieces.append(body[at:start])
        length += start - at
        places.append(length)
        at = end
    plain = unclosed(b"".join((*pieces, body[at:])))
    return plain, sorted(_closing(plain, place) for place in places)


def _closing(plain: bytes, place: int) -> int:
    """Where the object ends that `place` is in."""
    depth = 0
    for found in _BRACE.finditer(plain, place):
        if found[0] == b"{":
            depth += 1
        elif found[0] == b"}":
            depth -= 1
            if depth < 0:
                return found.end()
    return len(plain)
