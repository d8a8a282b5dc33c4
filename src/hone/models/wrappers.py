"""Models around models: up to a number of tokens, behind others, within a window, with faults on purpose."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

from hone.core.errors import Crowded, ModelError, Rejected
from hone.core.model import Model, Piece, Reply
from hone.core.prefix import Prefix
from hone.core.transcript import Transcript

Aside = Callable[[], Awaitable[None]]
"""Returns when the way is free, or nobody can be asked to wait any longer."""
Fault = Callable[[int, int], ModelError | None]
"""(number of the call, number of pieces already passed on) → the error to raise, if any."""
_REMEMBERED = 1_000


class Metered:
    """What a call took is known when it has been answered, so the last one may go over."""

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


async def unhindered() -> None:
    """Where there is nobody to step aside for."""


class Polite:
    def __init__(self, model: Model, aside: Aside) -> None:
        self.model = model
        self._aside = aside

    async def stream(self, prefix: Prefix, transcript: Transcript) -> AsyncGenerator[Piece, None]:
        await self._aside()
        async with aclosing(self.model.stream(prefix, transcript)) as pieces:
            async for piece in pieces:
                await self._aside()
                yield piece


class Windowed:
    """Raises Crowded instead of sending what takes more than `share` of a window of `window` tokens."""

    def __init__(self, model: Model, window: int, share: float) -> None:
        self.model = model
        self.window = window
        self._most = int(window * share)
        self._reported: dict[str, int] = {}

    async def stream(self, prefix: Prefix, transcript: Transcript) -> AsyncGenerator[Piece, None]:
        if self.is_crowded(prefix, transcript):
            raise Crowded("The conversation fills the model's window.")
        async with aclosing(self.model.stream(prefix, transcript)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Reply) and piece.usage.input:
                    self._remember(transcript.head, piece.usage.input)
                yield piece

    def is_crowded(self, prefix: Prefix, transcript: Transcript) -> bool:
        return self.estimate(prefix, transcript) > self._most

    def estimate(self, prefix: Prefix, transcript: Transcript) -> int:
        """The tokens the provider last reported for this conversation, and a quarter of the bytes since."""
        size = 0
        for node in reversed(transcript.nodes):
            if node.hash in self._reported:
                return self._reported[node.hash] + size // 4
            size += len(node.encoded)
        return (size + len(prefix.encode())) // 4

    def _remember(self, head: str, tokens: int) -> None:
        self._reported[head] = tokens
        while len(self._reported) > _REMEMBERED:
            del self._reported[next(iter(self._reported))]


class Faulty:
    def __init__(self, model: Model, fault: Fault) -> None:
        self._model = model
        self._fault = fault
        self.calls = 0

    async def stream(self, prefix: Prefix, transcript: Transcript) -> AsyncGenerator[Piece, None]:
        call, self.calls = self.calls, self.calls + 1
        passed = 0
        async with aclosing(self._model.stream(prefix, transcript)) as pieces:
            async for piece in pieces:
                error = self._fault(call, passed)
                if error:
                    raise error
                yield piece
                passed += 1
