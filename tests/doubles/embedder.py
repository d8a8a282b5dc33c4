"""An embedder for tests: words, some of which mean the same, as places in a short vector."""

import re
from collections.abc import Mapping, Sequence
from hashlib import sha256

from hone.core.embedding import Purpose, pack
from hone.core.errors import ModelError

SAME = {"arzt": "doctor", "kaufte": "bought", "haus": "home"}
SIZE = 64


class WordEmbedder:
    """`fails` counts the calls that fail before one succeeds; `refused` is a word that no text may hold."""

    host = ""

    def __init__(
        self, id: str = "words", *, fails: int = 0, refused: str = "", same: Mapping[str, str] = SAME
    ) -> None:
        self.id = id
        self.calls: list[tuple[str, ...]] = []
        self.fails = fails
        self._refused = refused
        self._same = same

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> Sequence[bytes]:
        self.calls.append(tuple(texts))
        if self.fails:
            self.fails -= 1
            raise ModelError("The embedder is away.")
        if self._refused and any(self._refused in text for text in texts):
            raise ModelError("The embedder refuses a text.")
        return [self._vector(text) for text in texts]

    async def close(self) -> None:
        """There is nothing to let go of."""

    def _vector(self, text: str) -> bytes:
        values = [0.0] * SIZE
        for word in re.findall(r"\w+", text.lower()):
            name = f"{self.id} {self._same.get(word, word)}"
            digest = sha256(name.encode()).digest()
            for place in digest[:4]:
                values[place % SIZE] += 1.0 if place < 128 else -1.0
        return pack(values)
