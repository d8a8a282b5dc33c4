"""Models that wrap a model: add prices, retry, meter, monitor, yield to other work, limit the window."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from datetime import datetime, timedelta

from msgspec import Struct

from hone.core.agent import Agent
from hone.core.clock import Clock
from hone.core.errors import Crowded, ModelError, Overloaded, Rejected, Unusable
from hone.core.model import Model, Piece, Reply, Restart, Usage
from hone.core.monitor import ModelEnd, ModelStep, Monitors, plain_model
from hone.core.prefix import Prefix
from hone.core.transcript import Transcript
from hone.core.value import replace
from hone.models.cacherules import UNKNOWN, CacheRule, find_rule

_REMEMBERED = 1_000


class Price(Struct, frozen=True):
    """US dollars per million tokens: fresh input, output, read from the cache, written to the cache, and
    written there for the provider's longer window. None: that costs the same."""

    input: float
    output: float
    cached: float
    written: float
    extended: float | None = None

    def of(self, usage: Usage, extended: int = 0) -> float:
        """Return the cost in US dollars. `extended` of the written tokens are for the longer window."""
        extended = min(extended, usage.written)
        fresh = usage.input - usage.cached - usage.written
        longer = self.written if self.extended is None else self.extended
        tokens = (fresh, usage.output, usage.cached, usage.written - extended, extended)
        prices = (self.input, self.output, self.cached, self.written, longer)
        return sum(count * price for count, price in zip(tokens, prices, strict=True)) / 1_000_000


def price_by(rule: CacheRule, input: float, output: float) -> Price:
    """Return the price of a model whose provider charges for its cache by this rule."""
    read = 1.0 if rule.read is None else rule.read
    longer = round(input * rule.longer.write, 6) if rule.longer else None
    return Price(input, output, round(input * read, 6), round(input * rule.write, 6), longer)


PRICES = {
    f"{provider}/{model}": price_by(find_rule(provider, model, provider), input, output)
    for provider, model, input, output in (
        ("anthropic", "claude-opus-5-5", 4.0, 20.0),
        ("anthropic", "claude-sonnet-5-5", 2.0, 10.0),
        ("anthropic", "claude-sonnet-5", 2.0, 10.0),
        ("anthropic", "claude-haiku-4-5", 1.0, 5.0),
        ("openai", "gpt-5.4", 2.5, 15.0),
        ("openai", "gpt-5.4-mini", 0.75, 4.5),
    )
}
"""Fresh input and output as published in autumn 2026, the rest by the cache rule. Settings override them. A
model in neither has no known cost."""


class ModelTerms(Struct, frozen=True):
    """How a model's prompts are cached, and its price; None if no price is known."""

    rule: CacheRule = UNKNOWN
    price: Price | None = None

    @property
    def read(self) -> float | None:
        """The price of reading from the cache, as a share of fresh input; None if it is unknown."""
        if self.price is None or not self.price.input:
            return self.rule.read
        return self.price.cached / self.price.input


FREE = Price(0.0, 0.0, 0.0, 0.0)
"""The price of a model on this machine."""


class Priced:
    """Adds the cost to replies. An unknown price leaves the cost unknown, not 0; a cost that the provider
    reported stays."""

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
        return replace(piece, usage=replace(piece.usage, cost=self._price.of(piece.usage, piece.extended)))


class Patience(Struct, frozen=True):
    """Waits `first`, twice that, four times that … seconds, or what the provider asks for up to `longest`."""

    tries: int = 4
    first: float = 1.0
    longest: float = 60.0


PATIENT = Patience()
YEAR = 366 * 86_400.0
"""In seconds. A provider's request for a longer wait is ignored."""


class Retrying:
    def __init__(self, model: Model, clock: Clock, patience: Patience = PATIENT) -> None:
        self._model = model
        self._clock = clock
        self._patience = patience

    async def stream(self, prefix: Prefix, transcript: Transcript) -> AsyncGenerator[Piece, None]:
        for attempt in range(1, self._patience.tries + 1):
            try:
                async with aclosing(self._model.stream(prefix, transcript)) as pieces:
                    async for piece in pieces:
                        yield _spoken(piece)
                return
            except ModelError as error:
                delay = find_delay(self._patience, error, attempt)
                if delay is None:
                    raise say_when(self._patience, error, self._clock.now()) from error
                yield Restart(str(error), delay)
                await self._clock.sleep(delay)


def find_delay(patience: Patience, error: ModelError, attempt: int) -> float | None:
    """Return how long to wait after a failed attempt, or None if waiting is no use."""
    if not error.transient or attempt == patience.tries:
        return None
    asked = error.retry_after if isinstance(error, Overloaded) else None
    if asked is not None and asked > patience.longest:
        return None
    return patience.first * 2 ** (attempt - 1) if asked is None else asked


def say_when(patience: Patience, error: ModelError, now: datetime) -> ModelError:
    """Return the error. If the wait is too long, add the time when the provider accepts requests again."""
    asked = error.retry_after if isinstance(error, Overloaded) else None
    if asked is None or not patience.longest < asked < YEAR:
        return error
    at = (now + timedelta(seconds=asked)).astimezone()
    minutes = round(asked / 60)
    length = f"{round(minutes / 60)} hours" if minutes >= 120 else f"{minutes} minute{'s'[: minutes != 1]}"
    return Overloaded(f"{error} Try again in about {length}, at {at:%Y-%m-%d %H:%M}.", asked)


def _spoken(piece: Piece) -> Piece:
    """Reject a reply without text and calls."""
    if isinstance(piece, Reply) and not piece.message.text.strip() and not piece.message.calls:
        raise Unusable("The model sent an empty reply.")
    return piece


class Metered:
    """Limits the tokens of a model. The cost of a call is known only after its answer, so the last call may
    exceed the limit."""

    def __init__(self, model: Model, most: int) -> None:
        self.model = model
        self.spent = 0
        self._most = most

    async def stream(self, prefix: Prefix, transcript: Transcript) -> AsyncGenerator[Piece, None]:
        if self.spent >= self._most:
            raise Rejected(f"The limit of {self._most:,} tokens is reached.")
        async with aclosing(self.model.stream(prefix, transcript)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Reply):
                    self.spent += piece.usage.input + piece.usage.output
                yield piece


class Monitored:
    """Reports to monitors how each call ended and what it cost, retries included."""

    def __init__(self, model: Model, monitors: Monitors) -> None:
        self._model = model
        self._monitors = monitors

    async def stream(self, prefix: Prefix, transcript: Transcript) -> AsyncGenerator[Piece, None]:
        end = self._monitors.begin(ModelStep(plain_model(prefix.model)))
        result = ModelEnd(error="cancelled")
        try:
            async with aclosing(self._model.stream(prefix, transcript)) as pieces:
                async for piece in pieces:
                    if isinstance(piece, Restart):
                        result = replace(result, retries=result.retries + 1)
                    elif isinstance(piece, Reply):
                        result = replace(result, finish=piece.finish.value, usage=piece.usage, error="")
                    yield piece
        except Exception as error:
            result = replace(result, error=type(error).__name__)
            raise
        finally:
            end(result)


class Aside(Struct, frozen=True):
    """Lets a review give way to the user's turns. A call returns when nothing is in the way, or when the
    review cannot be asked to wait longer. `taken` returns when a turn begins. It is set for a server that
    handles one request at a time: then a running request is abandoned, and sent again afterwards."""

    wait: Callable[[], Awaitable[None]]
    taken: Callable[[], Awaitable[None]] | None = None

    def __call__(self) -> Awaitable[None]:
        return self.wait()


async def _go() -> None:
    """Return at once: there is nobody to give way to."""


unhindered = Aside(_go)
YIELDED = Restart("The user's turn comes first.")


class Polite:
    def __init__(self, model: Model, aside: Aside) -> None:
        self.model = model
        self._aside = aside

    async def stream(self, prefix: Prefix, transcript: Transcript) -> AsyncGenerator[Piece, None]:
        while True:
            await self._aside()
            async with aclosing(self.model.stream(prefix, transcript)) as pieces:
                while piece := await self._next(pieces):
                    if piece is YIELDED:
                        break
                    if self._aside.taken is None:
                        await self._aside()
                    yield piece
                else:
                    return
            yield YIELDED

    async def _next(self, pieces: AsyncGenerator[Piece, None]) -> Piece | None:
        """Return the next piece, None at the end, or a restart if a turn of the user's begins first."""
        if self._aside.taken is None:
            return await anext(pieces, None)
        piece = asyncio.ensure_future(anext(pieces, None))
        taken = asyncio.ensure_future(self._aside.taken())
        try:
            await asyncio.wait((piece, taken), return_when=asyncio.FIRST_COMPLETED)
            return piece.result() if piece.done() else YIELDED
        finally:
            for each in (piece, taken):
                each.cancel()
            await asyncio.wait((piece, taken))


def measure_filled(agent: Agent, transcript: Transcript) -> float | None:
    """Return the share of its window that a conversation fills; None if the window is unknown."""
    model = agent.model
    return model.estimate(agent.prefix, transcript) / model.window if isinstance(model, Windowed) else None


class Windowed:
    """Raises Crowded instead of sending more than `share` of a window of `window` tokens. `schemas` is as in
    Connection."""

    def __init__(self, model: Model, window: int, share: float, *, schemas: bool = False) -> None:
        self.model = model
        self.schemas = schemas
        self.window = window
        self.most = int(window * share)
        self._reported: dict[str, int] = {}

    async def stream(self, prefix: Prefix, transcript: Transcript) -> AsyncGenerator[Piece, None]:
        if self.estimate(prefix, transcript) > self.most:
            raise Crowded("The conversation fills the model's window.")
        async with aclosing(self.model.stream(prefix, transcript)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Reply) and piece.usage.input:
                    self._reported[transcript.head] = piece.usage.input
                    if len(self._reported) > _REMEMBERED:
                        del self._reported[next(iter(self._reported))]
                yield piece

    def estimate(self, prefix: Prefix, transcript: Transcript) -> int:
        """Return the tokens that the provider last reported for this conversation, plus a quarter of the
        bytes since."""
        size = 0
        for node in reversed(transcript.nodes):
            if node.hash in self._reported:
                return self._reported[node.hash] + size // 4
            size += len(node.encoded)
        return (size + len(prefix.encode())) // 4
