"""Count how much of a prompt a provider has cached: four bytes per token, by the rule of each provider."""

import hashlib
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from hone.core.clock import Clock
from hone.core.regex import regex
from hone.models.cacherules import CacheMarking, CacheRule, find_rule
from hone.models.fake_provider.shapes import Format

# Inside a string the quotes would be escaped, so these only match as keys.
_MARKER = regex(rb'"(?:cache_control|prompt_cache_breakpoint)"\s*:\s*\{[^{}]*\}')
_KEY = regex(rb'"prompt_cache_key"\s*:\s*"([^"]*)"')
_EXPLICIT = regex(rb'"prompt_cache_options"\s*:\s*\{[^{}]*"mode"\s*:\s*"explicit"')
_TTL = regex(rb'"ttl"\s*:\s*"1h"')
_COMMA = regex(rb"\s*,")
_BRACE = regex(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}]', re.DOTALL)
_END = regex(rb"\]\s*\}\s*\Z")
BLOCK = 128
"""OpenAI's older models read the cache in units of this many tokens."""
MOST = 4
"""The most places where one request can write to a cache."""


class Tokens(Struct, frozen=True):
    """`total` is the whole prompt, `cached` was read from the cache, `written` was written to it, and
    `extended` is the part written for the longer window."""

    total: int
    cached: int = 0
    written: int = 0
    extended: int = 0


class Prefixes:
    """The cache of OpenAI's older models and local servers: whatever a request shares with the start of one
    of the last `recall` requests, unless that was too long ago or is too short."""

    def __init__(self, rule: CacheRule, recall: int, clock: Clock) -> None:
        self._rule = rule
        self._clock = clock
        self._past: deque[tuple[bytes, float]] = deque(maxlen=recall)

    def count(self, body: bytes) -> Tokens:
        """Return what this request finds in the cache, and add the request to it."""
        prompt, now = unclosed(body), self._clock.monotonic()
        best, opening = 0, prompt[:1]
        for past, until in reversed(self._past):
            if now <= until and past.startswith(opening):
                best = shared(prompt, past, best)
                opening = prompt[: best + 1]
            if best == len(prompt):
                break
        self._past.append((prompt, now + self._rule.lasts))
        return Tokens(len(prompt) // 4, self._billed(best // 4))

    def _billed(self, tokens: int) -> int:
        if not self._rule.minimum:
            return tokens
        return tokens - tokens % BLOCK if tokens >= self._rule.minimum else 0


class CacheEntry(Struct):
    """A cached prefix: its length in bytes, its window in seconds, its expiry, and its last user."""

    length: int
    seconds: float
    until: float
    request: int


class Breakpoints:
    """The cache of Anthropic and OpenAI's newest models. What one request wrote at a mark is read by a later
    request with a mark at the same place, over the same bytes, in time. Anthropic also looks at 20 blocks
    before a mark; clients must be exact here. Unless a request says that it sets all marks, OpenAI adds one
    at its end and looks at all earlier ones."""

    def __init__(self, rule: CacheRule, recall: int, clock: Clock) -> None:
        self._rule = rule
        self._recall = recall
        self._clock = clock
        self._entries: dict[bytes, CacheEntry] = {}
        self._requests = 0

    def count(self, body: bytes) -> Tokens:
        self._requests += 1
        self._forget()
        prompt, found = find_marks(body)
        marks = [(end, self._seconds(mark)) for end, mark in found if end // 4 >= self._rule.minimum]
        places = {end for end, _ in marks}
        if self._rule.marking is CacheMarking.BREAKPOINTS and not _EXPLICIT.search(body):
            marks = [*marks[1 - MOST :], *self._implicit(prompt)]
            places |= {len(prompt), *(entry.length for entry in self._entries.values())}
        digests = _digests(prompt, places)
        cached = self._read(digests)
        written = [(end, seconds) for end, seconds in marks[-MOST:] if end > cached]
        for end, seconds in written:
            self._keep(digests[end], end, seconds)
        return _billed(prompt, cached, written, self._rule)

    def _implicit(self, prompt: bytes) -> Iterator[tuple[int, float]]:
        if len(prompt) // 4 >= self._rule.minimum:
            yield len(prompt), self._rule.lasts

    def _seconds(self, mark: bytes) -> float:
        longer = self._rule.longer
        return longer.seconds if longer and _TTL.search(mark) else self._rule.lasts

    def _forget(self) -> None:
        now, oldest = self._clock.monotonic(), self._requests - self._recall
        kept = self._entries.items()
        self._entries = {key: each for key, each in kept if now <= each.until and each.request >= oldest}

    def _read(self, digests: dict[int, bytes]) -> int:
        """Return how far the cache reaches. Each read renews an entry."""
        found = [(end, key) for end, key in digests.items() if key in self._entries]
        for end, key in found:
            self._keep(key, end, self._entries[key].seconds)
        return max((end for end, _ in found), default=0)

    def _keep(self, key: bytes, end: int, seconds: float) -> None:
        self._entries[key] = CacheEntry(end, seconds, self._clock.monotonic() + seconds, self._requests)


def _billed(prompt: bytes, cached: int, written: Iterable[tuple[int, float]], rule: CacheRule) -> Tokens:
    """Bill new text up to the last mark with the longer window at that window's price, and the rest as
    usual."""
    ends = {end: seconds > rule.lasts for end, seconds in written}
    last = max(ends, default=cached)
    longer = max((end for end, extended in ends.items() if extended), default=cached)
    return Tokens(len(prompt) // 4, cached // 4, last // 4 - cached // 4, longer // 4 - cached // 4)


def _digests(prompt: bytes, places: Iterable[int]) -> dict[int, bytes]:
    running, at = hashlib.sha256(), 0
    found = {}
    for place in sorted(each for each in places if each <= len(prompt)):
        running.update(prompt[at:place])
        at = place
        found[place] = running.copy().digest()
    return found


class Billing:
    """The caches of all models, each by its provider's rule: Anthropic's for its format, OpenRouter's for
    names with a slash, OpenAI's for all others. `rule`, if given, applies to every model."""

    def __init__(self, recall: int, clock: Clock, rule: CacheRule | None = None) -> None:
        self._recall = recall
        self._clock = clock
        self._rule = rule
        self._caches: dict[tuple[Format, str, bytes], Prefixes | Breakpoints] = {}

    def count(self, format: Format, model: str, body: bytes) -> Tokens:
        """Count a request's tokens. Requests with different cache keys share nothing."""
        key = _KEY.search(body)
        place = (format, model, key[1] if key else b"")
        if place not in self._caches:
            rule = self._rule or _rule(format, model)
            kind = Breakpoints if rule.marks_parts else Prefixes
            self._caches[place] = kind(rule, self._recall, self._clock)
        return self._caches[place].count(body)


def _rule(format: Format, model: str) -> CacheRule:
    if format == "anthropic":
        return find_rule("anthropic", model, format)
    return find_rule("openrouter" if "/" in model else "openai", model)


def is_misordered(body: bytes) -> bool:
    """Tell whether a mark with the longer window comes after one without, which Anthropic refuses."""
    longer = [bool(_TTL.search(found[0])) for found in _MARKER.finditer(body)]
    return longer != sorted(longer, reverse=True)


def unclosed(body: bytes) -> bytes:
    """Return the body without its last brackets, so that a longer conversation can begin with a shorter
    one."""
    end = _END.search(body, max(0, len(body) - 64))
    return body[: end.start()] if end else body


def shared(one: bytes, other: bytes, known: int = 0) -> int:
    """Return the length of the common beginning, of which `known` bytes are known."""
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
    """Return the prompt without its cache marks, and where in it each marked block ends."""
    plain, marks = find_marks(body)
    return plain, [end for end, _ in marks]


def find_marks(body: bytes) -> tuple[bytes, Sequence[tuple[int, bytes]]]:
    """Return the prompt without its cache markers, and each marker with where its block ends."""
    pieces: list[bytes] = []
    places: list[tuple[int, bytes]] = []
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
        places.append((length, found[0]))
        at = end
    plain = unclosed(b"".join((*pieces, body[at:])))
    return plain, sorted((_closing(plain, place), mark) for place, mark in places)


def _closing(plain: bytes, place: int) -> int:
    """Return the end of the object around `place`."""
    depth = 0
    for found in _BRACE.finditer(plain, place):
        if found[0] == b"{":
            depth += 1
        elif found[0] == b"}":
            depth -= 1
            if depth < 0:
                return found.end()
    return len(plain)
