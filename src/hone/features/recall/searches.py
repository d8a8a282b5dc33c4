"""Make the searches to measure: by words alone and, if an embedder is set, by words and meaning."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from hone.core.clock import Clock
from hone.core.embedding import Embedder
from hone.core.errors import Refused
from hone.core.recall import Query, Recall, SearchResult
from hone.core.value import replace
from hone.features.recall.evaluation import WORDS, Prepare, Searches, by_words
from hone.features.recall.making import VectorMaker
from hone.stores.home import Stores


class PatientRecall:
    """Searches by words and meaning, however long the embedder takes, so that figures do not depend on the
    load."""

    def __init__(self, recall: Recall, embedder: Embedder) -> None:
        self._recall = recall
        self._embedder = embedder

    async def search(self, query: Query) -> SearchResult:
        [vector] = await self._embedder.embed([query.words], "question")
        return await self._recall.search(replace(query, embedder=self._embedder.id, vector=vector))


def searches_of(stores: Stores, name: str, embedder: Embedder | None) -> Searches:
    """Return the searches of a home; `name` is the embedder's in the settings."""
    if embedder is None:
        return {WORDS: stores.recall}
    return {WORDS: stores.recall, name: PatientRecall(stores.recall, embedder)}


def prepare_with(name: str, embedder: Embedder | None, clock: Clock) -> Prepare:
    """Return a function that makes the vectors of a scratch home, and then its searches."""
    if embedder is None:
        return by_words
    made = embedder

    @asynccontextmanager
    async def prepare(stores: Stores) -> AsyncIterator[Searches]:
        async def give() -> Embedder:
            return made

        await VectorMaker(stores.vectors, give, stores.claims, clock, refuse).fill()
        yield searches_of(stores, name, made)

    return prepare


def refuse(sentence: str) -> None:
    raise Refused(sentence)
