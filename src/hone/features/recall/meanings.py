"""Vectors of questions and of short texts (skills, lessons, templates), within the time that a caller
waits."""

from collections.abc import Awaitable, Callable, Sequence

from hone.core.clock import Clock
from hone.core.embedding import Embedder, Purpose, Vectors
from hone.core.errors import HoneError

WAIT, LOADING = 2.0, 10.0
"""Seconds that a search or a turn waits for vectors; then it uses words alone. Weights on this machine may
have to be loaded before they answer a question."""
CHUNK = 16
"""How many texts to embed and store at once."""
MOST = 10_000
"""How many texts to remember for later."""


class StoredMeanings:
    """`embedder` returns what makes vectors, None if nothing does. Questions are embedded each time and never
    stored. What could not be made in time is made later, after `wake`."""

    def __init__(
        self,
        vectors: Vectors,
        embedder: Callable[[], Awaitable[Embedder | None]],
        clock: Clock,
        say: Callable[[str], None],
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        self._vectors = vectors
        self._embedder = embedder
        self._clock = clock
        self._say = say
        self._wake = wake
        self._later: dict[str, None] = {}

    async def vectors(self, texts: Sequence[str], purpose: Purpose = "passage") -> Sequence[bytes]:
        wait = WAIT
        try:
            embedder = await self._embedder()
            if embedder is None:
                return ()
            wait = LOADING if purpose == "question" and not embedder.host else WAIT
            async with self._clock.timeout(wait):
                if purpose == "question":
                    return await embedder.embed(texts, purpose)
                return await self._passages(embedder, texts)
        except TimeoutError:
            self._wake()
            if purpose == "question":
                self._say(f"Search went by words alone: the embedder did not answer within {wait:g} seconds.")
        except HoneError as error:
            self._say(f"Search goes by words alone for now: {error}")
        return ()

    async def embed_question(self, text: str) -> tuple[str, bytes]:
        """Return the embedder's id and the vector, both empty if they are not ready in time."""
        found = await self.vectors([text], "question") if text.strip() else ()
        embedder = await self._embedder() if found else None
        return (embedder.id, found[0]) if embedder and found else ("", b"")

    async def make_later(self, embedder: Embedder) -> bool:
        """Make some vectors that were not ready in time. Tell whether there were any."""
        texts = list(self._later)[:CHUNK]
        for text in texts:
            del self._later[text]
        if texts:
            await self._make(embedder, texts)
        return bool(texts)

    async def _passages(self, embedder: Embedder, texts: Sequence[str]) -> Sequence[bytes]:
        known = dict(await self._vectors.cached(embedder.id, texts))
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        self._later |= dict.fromkeys(missing[: max(0, MOST - len(self._later))])
        for at in range(0, len(missing), CHUNK):
            chunk = missing[at : at + CHUNK]
            known |= await self._make(embedder, chunk)
            for text in chunk:
                self._later.pop(text, None)
        return [known[text] for text in texts]

    async def _make(self, embedder: Embedder, texts: Sequence[str]) -> dict[str, bytes]:
        made = dict(zip(texts, await embedder.embed(texts, "passage"), strict=True))
        await self._vectors.cache(embedder.id, made)
        return made
