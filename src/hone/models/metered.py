"""A model that stops at a number of tokens."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from hone.core.errors import Rejected
from hone.core.model import Model, Piece, Reply
from hone.core.prefix import Prefix
from hone.core.transcript import Transcript


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
