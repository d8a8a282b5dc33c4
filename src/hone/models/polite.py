"""A model that lets others go first: before it asks, and before each piece of the answer."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

from hone.core.model import Model, Piece
from hone.core.prefix import Prefix
from hone.core.transcript import Transcript

Aside = Callable[[], Awaitable[None]]
"""Returns when the way is free, or nobody can be asked to wait any longer."""


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
