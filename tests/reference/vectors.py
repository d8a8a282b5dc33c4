"""Vectors in the memory of this process: the reference, which compares all contents with all vectors."""

from collections.abc import Mapping, Sequence

from hone.core.embedding import Coverage, Unembedded
from hone.core.recall import said
from hone.stores.vectors import LENGTH
from tests.reference.sessions import InMemorySessions


class InMemoryVectors:
    def __init__(self, sessions: InMemorySessions) -> None:
        self._sessions = sessions
        self._adopted = ""
        self._made: dict[str, dict[str, bytes]] = {}
        self._cached: dict[tuple[str, str], bytes] = {}

    async def adopt(self, embedder: str) -> None:
        self._adopted = embedder

    async def is_adopted(self, embedder: str) -> bool:
        return embedder == self._adopted

    async def missing(self, embedder: str, limit: int) -> Sequence[Unembedded]:
        made = self._made.get(embedder, {})
        left = [each for each in self._contents().values() if each.digest not in made]
        return left[:limit] if embedder == self._adopted else ()

    async def put(self, embedder: str, made: Sequence[tuple[Unembedded, bytes]]) -> None:
        there = self._contents()
        if embedder == self._adopted:
            kept = {each.digest: vector for each, vector in made if each.digest in there}
            self._made = {embedder: self._made.get(embedder, {}) | kept}

    async def tidy(self, embedder: str) -> bool:
        return False

    async def coverage(self, embedder: str) -> Coverage:
        there = self._contents()
        made = sum(digest in there for digest in self._made.get(embedder, {}))
        return Coverage(made, len(there) - made)

    async def cached(self, embedder: str, texts: Sequence[str]) -> Mapping[str, bytes]:
        return {text: self._cached[embedder, text] for text in texts if (embedder, text) in self._cached}

    async def cache(self, embedder: str, made: Mapping[str, bytes]) -> None:
        self._cached |= {(embedder, text): vector for text, vector in made.items()}

    def _contents(self) -> dict[str, Unembedded]:
        nodes = (node for _, stored, _ in self._sessions.lines() for node in stored.transcript.nodes)
        return {
            node.digest: Unembedded(0, node.digest, said(node.message)[:LENGTH].strip()) for node in nodes
        }
