"""Notices that a conversation outgrows the model's window, before the provider does."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from hone.core.errors import Crowded
from hone.core.model import Model, Piece, Reply
from hone.core.prefix import Prefix
from hone.core.transcript import Transcript

_REMEMBERED = 1_000


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
