"""What a call cost: a wrapper of a Model that fills in the price, and a small table of prices."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from msgspec import Struct

from hone.core.model import Model, Piece, Reply, Usage
from hone.core.prefix import Prefix
from hone.core.transcript import Transcript
from hone.core.value import replace


class Price(Struct, frozen=True):
    """US dollars for a million tokens: fresh input, output, read from the cache, written to the cache."""

    input: float
    output: float
    cached: float
    written: float

    def of(self, usage: Usage) -> float:
        fresh = usage.input - usage.cached - usage.written
        parts = (
            (fresh, self.input),
            (usage.output, self.output),
            (usage.cached, self.cached),
            (usage.written, self.written),
        )
        return sum(tokens * price for tokens, price in parts) / 1_000_000


PRICES = {
    "anthropic/claude-opus-5-5": Price(4.0, 20.0, 0.4, 5.0),
    "anthropic/claude-sonnet-5-5": Price(2.0, 10.0, 0.2, 2.5),
    "anthropic/claude-sonnet-5": Price(2.0, 10.0, 0.2, 2.5),
    "anthropic/claude-haiku-4-5": Price(1.0, 5.0, 0.1, 1.25),
    "openai/gpt-5.4": Price(2.5, 15.0, 0.25, 2.5),
    "openai/gpt-5.4-mini": Price(0.75, 4.5, 0.075, 0.75),
}
"""As published in autumn 2026. Settings override them; a model that is in neither has no known cost."""

FREE = Price(0.0, 0.0, 0.0, 0.0)
"""What a model on this machine costs."""


class Priced:
    """An unknown price leaves the cost unknown, not 0; a cost the provider reported stands."""

    def __init__(self, model: Model, price: Price | None) -> None:
        self._model = model
        self._price = price

    async def stream(self, prefix: Prefix, transcript: Transcript) -> AsyncGenerator[Piece, None]:
        async with aclosing(self._model.stream(prefix, transcript)) as pieces:
            async for piece in pieces:
                yield self._priced(piece)

    def _priced(self, piece: Piece) -> Piece:
        if not isinstance(piece, Reply) or self._price is None or piece.usage.cost is not None:
            return piece
        return replace(piece, usage=replace(piece.usage, cost=self._price.of(piece.usage)))
