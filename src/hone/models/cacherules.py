"""Cache rules: how long and from what size a provider keeps a prompt, how to ask for it, and at what price.

One table serves everything that depends on them: the marks in requests, when a review is due, whether it
reads the conversation or a digest, and what a call costs. The figures come from the providers' documentation
of November 2026; a newer release of a model family is assumed to follow its family.
"""

from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from itertools import islice

from msgspec import Struct

from hone.core.messages import Role
from hone.core.transcript import Node, Transcript
from hone.core.value import replace

AS_OF = "November 2026"
MARKER = b',"cache_control":{"type":"ephemeral"}'
BREAKPOINT = b',"prompt_cache_breakpoint":{"mode":"explicit"}'
EXPLICIT = b',"prompt_cache_options":{"mode":"explicit"}'


class CacheMarking(StrEnum):
    """How a request tells the provider what to cache."""

    AUTOMATIC = "nothing is marked"
    KEY = "prompt_cache_key"
    BREAKPOINTS = "prompt_cache_key and prompt_cache_breakpoint"
    CONTROL = "cache_control"


class LongerWindow(Struct, frozen=True):
    """A longer window that the provider sells for the system text and the tools. `name` is its name in a
    mark."""

    name: str
    seconds: float
    write: float


class CacheRule(Struct, frozen=True):
    """`window`: seconds a prompt is kept after its last use. `minimum`: the fewest tokens that are cached.
    `write` and `read` are factors of the price of fresh input; None: unknown. `sticky`: seconds for which a
    router stays with the server that has the prompt. `extended`: the longer window is bought."""

    window: float
    minimum: int = 0
    marking: CacheMarking = CacheMarking.AUTOMATIC
    write: float = 1.0
    read: float | None = None
    sticky: float | None = None
    longer: LongerWindow | None = None
    extended: bool = False

    @property
    def lasts(self) -> float:
        """Return for how many seconds a conversation stays in the cache. Messages never get the longer
        window: each turn writes new ones, and twice the price is more than most of them save."""
        return self.window if self.sticky is None else min(self.window, self.sticky)

    @property
    def marks_parts(self) -> bool:
        return self.marking in (CacheMarking.BREAKPOINTS, CacheMarking.CONTROL)


UNKNOWN = CacheRule(300.0)
"""An undocumented endpoint. Five minutes is the shortest window in the table."""
LOCAL = CacheRule(300.0)
"""A server on this machine. It keeps its cache while the model is loaded: five minutes with Ollama."""
_HOUR = LongerWindow("1h", 3_600.0, 2.0)
_CLAUDE = CacheRule(300.0, 1_024, CacheMarking.CONTROL, 1.25, 0.1, longer=_HOUR)
_GPT = CacheRule(300.0, 1_024, CacheMarking.KEY, 1.0, 0.1)
_NEWEST_GPT = CacheRule(1_800.0, 1_024, CacheMarking.BREAKPOINTS, 1.25, 0.1)

RULES: dict[str, Sequence[tuple[tuple[str, ...], CacheRule]]] = {
    "anthropic": (
        (("claude-opus-5", "claude-fable-5", "claude-mythos-5"), replace(_CLAUDE, minimum=512)),
        (("claude-opus-4-7",), replace(_CLAUDE, minimum=2_048)),
        (("claude-opus-4-6", "claude-opus-4-5", "claude-haiku-4-5"), replace(_CLAUDE, minimum=4_096)),
        (("",), _CLAUDE),
    ),
    "openai": (
        (("gpt-5.6", "gpt-5.7", "gpt-5.8", "gpt-5.9", "gpt-6", "gpt-7"), _NEWEST_GPT),
        (("gpt-4.1", "o3", "o4"), replace(_GPT, read=0.25)),
        (("gpt-4o", "o1"), replace(_GPT, read=0.5)),
        (("",), _GPT),
    ),
    "google": ((("",), CacheRule(300.0, 4_096)),),
}
"""By vendor: the prefix of a model's name, and its rule. The first match counts."""
STICKY = 600.0
"""Seconds for which OpenRouter stays with a server. A shorter window of the vendor's own comes first."""


def find_rule(provider: str, model: str, format: str = "openai", *, local: bool = False) -> CacheRule:
    """Return the rule for a model. `model` is its name at the provider."""
    if provider == "openrouter":
        return _routed(model)
    if format == "anthropic":
        return _vendors("anthropic", model)
    if provider == "openai":
        return _vendors("openai", model)
    return LOCAL if local else UNKNOWN


def _vendors(vendor: str, model: str) -> CacheRule:
    return next((rule for starts, rule in RULES.get(vendor, ()) if model.startswith(starts)), UNKNOWN)


def _routed(model: str) -> CacheRule:
    """Return the vendor's rule for as long as OpenRouter stays with one server. Only Anthropic needs marks:
    the others cache without them, and with Gemini each mark would store the whole conversation for a fee."""
    vendor, _, name = model.partition("/")
    if vendor == "anthropic":
        return replace(_vendors(vendor, name.replace(".", "-")), sticky=STICKY)
    return replace(_vendors(vendor, name), marking=CacheMarking.AUTOMATIC, sticky=STICKY)


def extend(rule: CacheRule, wanted: str) -> CacheRule:
    """Return the rule with the longer window if that is wanted and the provider sells it."""
    return replace(rule, extended=True) if rule.longer and rule.longer.name == wanted else rule


class CacheMarks(Struct, frozen=True):
    """Bytes that mark the end of the system text and of a message; `options` are added to the request's
    head."""

    system: bytes = b""
    message: bytes = b""
    options: bytes = b""


def marks_of(rule: CacheRule) -> CacheMarks:
    """Return the marks that a rule puts into requests. A mark on less than the minimum does no harm: the
    provider ignores it and charges nothing. So marks do not depend on a token count, which is a guess."""
    match rule.marking:
        case CacheMarking.CONTROL if rule.extended and rule.longer:
            return CacheMarks(MARKER[:-1] + b',"ttl":"%b"}' % rule.longer.name.encode(), MARKER)
        case CacheMarking.CONTROL:
            return CONTROLLED
        case CacheMarking.BREAKPOINTS:
            return CacheMarks(BREAKPOINT, BREAKPOINT, EXPLICIT)
    return CacheMarks()


CONTROLLED = CacheMarks(MARKER, MARKER)
"""The marks of a request to Anthropic, unless the longer window is bought."""


def breakpoints(transcript: Transcript) -> list[int]:
    """Return where requests of this conversation ended: the last two; of a fork, its parent's last two and
    its own.

    With the mark on the system text that is at most four, the providers' limit. An extension always repeats
    the marks at which its parent's cache was written.
    """
    nodes, shared = transcript.nodes, transcript.shared
    inherited = list(islice(_ends(nodes, 0, shared), 2))
    own = list(islice(_ends(nodes, shared, len(nodes)), 1 if inherited else 2))
    return sorted(inherited + own)


Encode = Callable[[Node, Node | None], bytes]
"""Returns the bytes of a message, which may depend on the message before."""


def mark_ends(
    transcript: Transcript,
    settled: Callable[[Sequence[Node], Encode, int], bytes],
    encode: Encode,
    mark: Callable[[bytes], bytes],
) -> Iterator[bytes]:
    """Yield the messages of a request. Those up to the first mark are `settled`; the others are encoded
    again, because their marks move from request to request."""
    nodes, marked = transcript.nodes, breakpoints(transcript)
    first = marked[0] if marked else len(nodes)
    yield settled(nodes[:first], encode, transcript.shared)
    for index in range(first, len(nodes)):
        fragment = encode(nodes[index], nodes[index - 1] if index else None)
        yield mark(fragment) if index in marked else fragment


def _ends(nodes: Sequence[Node], start: int, stop: int) -> Iterator[int]:
    """Yield, from last to first, the indices of messages that the assistant answered or has to answer."""
    for index in reversed(range(start, stop)):
        answered = index + 1 == len(nodes) or nodes[index + 1].message.role is Role.ASSISTANT
        if answered and nodes[index].message.role is not Role.ASSISTANT:
            yield index
