"""The Protocol of a model: one method that streams the pieces of a reply and ends with the whole reply."""

from collections.abc import AsyncGenerator, Iterable
from enum import StrEnum
from io import StringIO
from typing import Protocol

from msgspec import Struct

from hone.core.messages import Message
from hone.core.prefix import Prefix
from hone.core.transcript import Transcript


class Finish(StrEnum):
    """Why the model stopped."""

    DONE = "done"
    CALLS = "calls"
    LENGTH = "length"
    FILTERED = "filtered"


class Usage(Struct, frozen=True):
    """Tokens of one call. `input` counts the whole prompt; `cached` and `written` are its parts that were
    read from and written to the provider's cache. `cost` is in US dollars, None if no price is known."""

    input: int = 0
    cached: int = 0
    written: int = 0
    output: int = 0
    cost: float | None = None


def total(usages: Iterable[Usage]) -> Usage:
    """Add up usage. One unknown cost makes the sum unknown."""
    each = list(usages)
    costs = [usage.cost for usage in each if usage.cost is not None]
    return Usage(
        sum(usage.input for usage in each),
        sum(usage.cached for usage in each),
        sum(usage.written for usage in each),
        sum(usage.output for usage in each),
        sum(costs) if len(costs) == len(each) else None,
    )


class TextBuffer:
    """A text that grows piece by piece and uses little more memory than its characters."""

    def __init__(self) -> None:
        self._held = StringIO()
        self._write = self._held.write

    def append(self, text: str) -> None:
        self._write(text)

    def __bool__(self) -> bool:
        return self._held.tell() > 0

    def __str__(self) -> str:
        return self._held.getvalue()


class TextPiece(Struct, frozen=True):
    text: str


class ThinkingPiece(Struct, frozen=True):
    text: str


SpokenPiece = TextPiece | ThinkingPiece


class Restart(Struct, frozen=True):
    """What was streamed so far is void. The reply begins again after `delay` seconds."""

    reason: str
    delay: float = 0.0


class Remark(Struct, frozen=True):
    """A sentence for the user about this reply, or about the provider that gave it."""

    text: str


class Reply(Struct, frozen=True):
    message: Message
    finish: Finish = Finish.DONE
    usage: Usage = Usage()
    extended: int = 0
    """Tokens of `usage.written` that the provider keeps in its long-lived cache, at a higher price."""


Piece = TextPiece | ThinkingPiece | Restart | Remark | Reply


class Model(Protocol):
    def stream(self, prefix: Prefix, transcript: Transcript) -> AsyncGenerator[Piece, None]:
        """Yield pieces as they arrive, and a Reply last. Raises ModelError."""
        ...


class Connection(Struct, frozen=True):
    """A model that can be asked. `window` is its context window in tokens; 0: as set in hone.toml. `plain`:
    it is a weak model, and gets a few lines and no tools. `local`: it runs on this machine. `schemas`: it
    supports `response_format` with a JSON schema among the settings of a prefix."""

    model: Model
    name: str = ""
    window: int = 0
    plain: bool = False
    local: bool = False
    schemas: bool = False
