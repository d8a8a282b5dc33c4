"""The forward pass of a small BERT in numpy: token ids in, one vector per text out. It knows no files."""

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Tensors = Mapping[str, Floats]

_EPSILON = np.float32(1e-12)
_GELU = tuple(map(np.float32, (0.797507884, 0.0370056461, -0.000351516801)))
"""Φ(x) is about (1 + tanh(x·p(x²))) / 2, with an error below 3e-5 in x·Φ(x); numpy has no erf."""
_FLAT = np.float32(60.0)
"""Beyond this x² the tanh is 1 anyway, and p would change direction."""
_MASKED = np.float32(-1e9)


class Dense(Struct, frozen=True):
    """`weight` is (inputs, outputs)."""

    weight: Floats
    bias: Floats

    def __call__(self, values: Floats) -> Floats:
        out: Floats = values @ self.weight
        out += self.bias
        return out


class Norm(Struct, frozen=True):
    weight: Floats
    bias: Floats

    def __call__(self, values: Floats) -> Floats:
        values = values - values.mean(axis=-1, keepdims=True)
        variance = np.square(values).mean(axis=-1, keepdims=True)
        values /= np.sqrt(variance + _EPSILON)
        values *= self.weight
        values += self.bias
        return values


class Layer(Struct, frozen=True):
    """`attend` makes queries, keys and values at once, the queries scaled."""

    attend: Dense
    gather: Dense
    attended: Norm
    widen: Dense
    narrow: Dense
    done: Norm


class Bert(Struct, frozen=True):
    words: Floats
    places: Floats
    start: Norm
    layers: Sequence[Layer]
    heads: int

    @property
    def size(self) -> int:
        return int(self.words.shape[1])

    def embed(self, ids: NDArray[np.int64], mask: Floats) -> Floats:
        """Return the mean of each text's last states. `mask` is 1 for a token and 0 for padding."""
        states = self.start(self.words[ids] + self.places[: ids.shape[1]])
        bias = ((1 - mask) * _MASKED)[:, None, None, :]
        for layer in self.layers:
            states = layer.attended(states + layer.gather(self._attend(layer, states, bias)))
            states = layer.done(states + layer.narrow(gelu(layer.widen(states))))
        mean: Floats = np.einsum("bth,bt->bh", states, mask) / mask.sum(axis=1, keepdims=True)
        return mean

    def _attend(self, layer: Layer, states: Floats, bias: Floats) -> Floats:
        texts, tokens, size = states.shape
        split = layer.attend(states).reshape(texts, tokens, 3, self.heads, size // self.heads)
        queries, keys, values = split.transpose(2, 0, 3, 1, 4)
        weights = queries @ keys.transpose(0, 1, 3, 2)
        weights += bias
        weights -= weights.max(axis=-1, keepdims=True)
        np.exp(weights, out=weights)
        weights /= weights.sum(axis=-1, keepdims=True)
        mixed: Floats = (weights @ values).transpose(0, 2, 1, 3).reshape(texts, tokens, size)
        return mixed


def gelu(values: Floats) -> Floats:
    """Return values·Φ(values), as BERT does between the two layers of each block."""
    square = np.minimum(np.square(values), _FLAT)
    inner = square * _GELU[2]
    inner += _GELU[1]
    inner *= square
    inner += _GELU[0]
    inner *= values
    np.tanh(inner, out=inner)
    inner += np.float32(1.0)
    inner *= values
    inner *= np.float32(0.5)
    return inner


def build(tensors: Tensors, heads: int) -> Bert:
    """Build a BERT from its tensors, under the names that its authors gave them. A weight is (outputs,
    inputs), as PyTorch stores it. Raises KeyError if one is missing."""
    words = tensors["embeddings.word_embeddings.weight"]
    kinds = tensors["embeddings.token_type_embeddings.weight"]
    places = tensors["embeddings.position_embeddings.weight"] + kinds[0]
    count = len({name.split(".")[2] for name in tensors if name.startswith("encoder.layer.")})
    size = words.shape[1] // heads
    layers = tuple(_layer(tensors, f"encoder.layer.{index}", size) for index in range(count))
    return Bert(words, places, _norm(tensors, "embeddings.LayerNorm"), layers, heads)


def _layer(tensors: Tensors, name: str, size: int) -> Layer:
    own = f"{name}.attention.self"
    query, key, value = (_dense(tensors, f"{own}.{each}") for each in ("query", "key", "value"))
    scale = np.float32(size**-0.5)
    weight = np.concatenate((query.weight * scale, key.weight, value.weight), axis=1)
    bias = np.concatenate((query.bias * scale, key.bias, value.bias))
    return Layer(
        Dense(np.ascontiguousarray(weight), bias),
        _dense(tensors, f"{name}.attention.output.dense"),
        _norm(tensors, f"{name}.attention.output.LayerNorm"),
        _dense(tensors, f"{name}.intermediate.dense"),
        _dense(tensors, f"{name}.output.dense"),
        _norm(tensors, f"{name}.output.LayerNorm"),
    )


def _dense(tensors: Tensors, name: str) -> Dense:
    return Dense(np.ascontiguousarray(tensors[f"{name}.weight"].T), tensors[f"{name}.bias"])


def _norm(tensors: Tensors, name: str) -> Norm:
    return Norm(tensors[f"{name}.weight"], tensors[f"{name}.bias"])
