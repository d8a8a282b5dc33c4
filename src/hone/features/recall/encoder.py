"""Texts to vectors: read tokens and weights, make batches of texts of similar length, and pack the results.

This module needs numpy, tokenizers and safetensors; load it through `hone.features.recall.local`.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from msgspec import Struct
from safetensors import SafetensorError
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from hone.core.embedding import SCALE
from hone.features.recall.forward import Bert, Floats, build
from hone.features.recall.onnx_file import read_onnx
from hone.models.weights import EmbeddingWeights

MOST_TOKENS = 2_048
"""The tokens of a batch with its padding: few enough that a question does not wait long behind one."""
_LONGEST = 12
"""The most characters of a token on average. Text beyond `tokens` of them is not read at all."""


class TokenBatch(Struct, frozen=True):
    """`places` is the position of each text."""

    places: Sequence[int]
    ids: Sequence[Sequence[int]]


class Encoder:
    def __init__(self, tokenizer: Tokenizer, bert: Bert, tokens: int) -> None:
        self._tokenizer = tokenizer
        self._bert = bert
        self._tokens = tokens

    def plan(self, texts: Sequence[str]) -> Sequence[TokenBatch]:
        """Return batches of texts of similar length, shortest first, to keep the padding small."""
        cut = [text[: self._tokens * _LONGEST] for text in texts]
        ids = [each.ids for each in self._tokenizer.encode_batch(cut)]
        order = sorted(range(len(ids)), key=lambda place: len(ids[place]))
        batches: list[list[int]] = []
        for place in order:
            if not batches or (len(batches[-1]) + 1) * len(ids[place]) > MOST_TOKENS:
                batches.append([])
            batches[-1].append(place)
        return [TokenBatch(batch, [ids[each] for each in batch]) for batch in batches]

    def encode(self, batch: TokenBatch) -> list[bytes]:
        width = max(map(len, batch.ids))
        ids = np.zeros((len(batch.ids), width), dtype=np.int64)
        mask = np.zeros((len(batch.ids), width), dtype=np.float32)
        for row, tokens in enumerate(batch.ids):
            ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        return pack_rows(self._bert.embed(ids, mask))


def pack_rows(vectors: Floats) -> list[bytes]:
    """Do what `hone.core.embedding.pack` does, for many vectors at once."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled = vectors / np.where(lengths == 0, 1, lengths) * SCALE
    return [row.tobytes() for row in np.rint(scaled).astype(np.int8)]


def open_encoder(model: Path, tokenizer: Path, weights: EmbeddingWeights) -> Encoder:
    """Return the encoder. Raises OSError, ValueError or KeyError for invalid files."""
    try:
        tensors = read_onnx(model) if model.suffix == ".onnx" else load_file(model)
    except SafetensorError as error:
        raise ValueError(str(error)) from error
    found = Tokenizer.from_str(tokenizer.read_text("utf-8"))
    found.no_padding()
    found.enable_truncation(weights.tokens)
    bert = build(tensors, weights.heads)
    if bert.size != weights.dimension:
        raise ValueError(f"vectors of {bert.size} instead of {weights.dimension} numbers")
    return Encoder(found, bert, weights.tokens)
