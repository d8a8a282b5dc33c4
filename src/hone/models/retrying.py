"""Another try, where one is worth it: a wrapper of a Model that is itself a Model."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from msgspec import Struct

from hone.core.clock import Clock
from hone.core.errors import ModelError, Overloaded, Unusable
from hone.core.model import Model, Piece, Reply, Restart
from hone.core.prefix import Prefix
from hone.core.transcript import Transcript


class Patience(Struct, frozen=True):
    """Waits `first`, twice that, four times that … seconds, or what the provider asks for up to `longest`."""

    tries: int = 4
    first: float = 1.0
    longest: float = 60.0


PATIENT = Patience()


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
                delay = self._delay(error, attempt)
                if delay is None:
                    raise
                yield Restart(str(error), delay)
                await self._clock.sleep(delay)

    def _delay(self, error: ModelError, attempt: int) -> float | None:
        """How long to wait, or None where waiting is no use."""
        if not error.transient or attempt == self._patience.tries:
            return None
        asked = error.retry_after if isinstance(error, Overloaded) else None
        if asked is not None and asked > self._patience.longest:
            return None
        return self._patience.first * 2 ** (attempt - 1) if asked is None else asked


def _spoken(piece: Piece) -> Piece:
    """A reply that says and asks nothing is no reply."""
    if isinstance(piece, Reply) and not piece.message.text.strip() and not piece.message.calls:
        raise Unusable("The model sent an empty reply.")
    return piece
