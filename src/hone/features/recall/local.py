"""Embed text with weights on this machine: tokens, batches by length, one worker thread. Needs the extra
`embeddings`."""

import asyncio
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from hone.core.embedding import Purpose
from hone.core.errors import Corrupt, SettingsError
from hone.core.loading import import_object
from hone.models.weights import EmbeddingCache, EmbeddingWeights, find_lacking

if TYPE_CHECKING:
    from hone.features.recall.encoder import Encoder

OPEN_ENCODER = "hone.features.recall.encoder:open_encoder"
"""Imported with the first text: it needs the extra."""
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "TOKENIZERS_PARALLELISM")
"""What numpy and the tokenizer read when they are imported."""


class LocalEmbedder:
    """Loads the weights with the first text, and computes in one thread on one core, so that the conversation
    and its commands keep the others."""

    host = ""

    def __init__(self, cache: EmbeddingCache, weights: EmbeddingWeights) -> None:
        self._cache = cache
        self._weights = weights
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="embedder")
        self._encoder: Encoder | None = None

    @property
    def id(self) -> str:
        return f"local/{self._weights.name}:{self._weights.dimension}"

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> Sequence[bytes]:
        """Embed texts. Both purposes are the same to these models. Between batches other questions get their
        turn."""
        loop = asyncio.get_running_loop()
        encoder = await loop.run_in_executor(self._worker, self._load)
        found: dict[int, bytes] = {}
        for batch in await loop.run_in_executor(self._worker, encoder.plan, texts):
            vectors = await loop.run_in_executor(self._worker, encoder.encode, batch)
            found.update(zip(batch.places, vectors, strict=True))
        return [found[place] for place in range(len(texts))]

    async def close(self) -> None:
        self._worker.shutdown(wait=False, cancel_futures=True)

    def _load(self) -> "Encoder":
        if self._encoder is None:
            self._encoder = load(self._cache, self._weights)
        return self._encoder


def load(cache: EmbeddingCache, weights: EmbeddingWeights) -> "Encoder":
    """Load the weights. Raises Corrupt, with the command that fixes it, if the files cannot be read."""
    with _one_thread():
        open_encoder = import_object(OPEN_ENCODER)
    try:
        encoder: Encoder = open_encoder(
            cache.place(weights, weights.model), cache.place(weights, weights.tokenizer), weights
        )
        return encoder
    except (OSError, ValueError, KeyError) as error:
        name = weights.name
        raise Corrupt(
            f"The weights of local/{name} cannot be read ({error}). Fetch them again with: "
            f"hone models remove {name} && hone models add {name}"
        ) from error


def open_local(home: Path, name: str) -> LocalEmbedder:
    cache = EmbeddingCache(home / "models")
    weights = cache.ready(name)
    if lacking := find_lacking():
        raise SettingsError(lacking)
    return LocalEmbedder(cache, weights)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Let numpy start one thread only. Afterwards the environment, which commands inherit, is restored."""
    added = [name for name in _THREADS if name not in os.environ]
    os.environ.update(dict.fromkeys(added, "1"))
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)
