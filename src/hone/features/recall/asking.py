"""Search by meaning as well as by words: embed the question first, if that is quick enough."""

from hone.core.recall import Query, Recall, SearchResult
from hone.core.value import replace
from hone.features.recall.meanings import StoredMeanings


class MeaningRecall:
    def __init__(self, recall: Recall, meanings: StoredMeanings) -> None:
        self._recall = recall
        self._meanings = meanings

    async def search(self, query: Query) -> SearchResult:
        embedder, vector = await self._meanings.embed_question(query.words)
        return await self._recall.search(replace(query, embedder=embedder, vector=vector))
