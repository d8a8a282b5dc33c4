"""A model that fails when a test says so."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from hone.core.errors import ModelError
from hone.core.model import Model, Piece
from hone.core.prefix import Prefix
from hone.core.transcript import Transcript

Fault = Callable[[int, int], ModelError | None]
"""(number of the call, number of pieces already passed on) → the error to raise, if any."""


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
