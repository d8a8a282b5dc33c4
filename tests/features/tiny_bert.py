"""A BERT of a few numbers: its files, an ONNX file of it written by hand, and a slow forward pass of plain
Python to compare with."""

from collections.abc import Mapping, Sequence
from math import erf, exp, sqrt
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

Tensors = dict[str, NDArray[np.float32]]
Row = list[float]

HIDDEN, WIDE, HEADS, LAYERS, PLACES = 8, 12, 2, 2, 32
WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "use", "tabs", "spaces", "the", "server", "restart", "cat")


def make_tensors(seed: int = 1) -> Tensors:
    """Numbers as large as in real weights, or larger."""
    random = np.random.default_rng(seed)

    def draw(*shape: int) -> NDArray[np.float32]:
        return random.normal(0, 0.7, shape).astype(np.float32)

    made = {
        "embeddings.word_embeddings.weight": draw(len(WORDS), HIDDEN),
        "embeddings.position_embeddings.weight": draw(PLACES, HIDDEN),
        "embeddings.token_type_embeddings.weight": draw(2, HIDDEN),
        "embeddings.LayerNorm.weight": draw(HIDDEN),
        "embeddings.LayerNorm.bias": draw(HIDDEN),
    }
    for layer in (f"encoder.layer.{index}" for index in range(LAYERS)):
        shapes = {f"attention.self.{each}": (HIDDEN, HIDDEN) for each in ("query", "key", "value")}
        shapes |= {"attention.output.dense": (HIDDEN, HIDDEN), "intermediate.dense": (WIDE, HIDDEN)}
        shapes |= {"output.dense": (HIDDEN, WIDE)}
        for name, (outputs, inputs) in shapes.items():
            made[f"{layer}.{name}.weight"] = draw(outputs, inputs)
            made[f"{layer}.{name}.bias"] = draw(outputs)
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            made[f"{layer}.{name}.weight"], made[f"{layer}.{name}.bias"] = draw(HIDDEN), draw(HIDDEN)
    return made


def write_tokenizer(path: Path) -> None:
    tokenizer = Tokenizer(WordLevel({word: at for at, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.normalizer = Lowercase()
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    path.write_text(tokenizer.to_str(), "utf-8")


def write_safetensors(path: Path, tensors: Tensors) -> None:
    save_file(tensors, path)


def write_onnx(path: Path, tensors: Tensors) -> None:
    """As PyTorch exports it: matrices are turned around and lose their names, which their nodes keep."""
    graph = b""
    for number, (name, tensor) in enumerate(tensors.items()):
        is_matrix = name.startswith("encoder.") and tensor.ndim == 2
        stored = f"onnx::MatMul_{number}" if is_matrix else name
        value = tensor.T if is_matrix else tensor
        if is_matrix:
            node = f"/{name.removesuffix('.weight').replace('layer.', 'layer#').replace('.', '/')}/MatMul"
            graph += _field(1, _node(["/before", stored], node.replace("layer#", "layer.")))
        graph += _field(5, _tensor(stored, value, packed=bool(number % 2)))
    graph += _field(5, _numbers("embeddings.position_ids"))
    path.write_bytes(b"\x08\x06" + _field(2, b"pytorch") + _field(7, graph))


def _node(inputs: Sequence[str], name: str) -> bytes:
    return (
        b"".join(_field(1, each.encode()) for each in inputs)
        + _field(3, name.encode())
        + _field(4, b"MatMul")
    )


def _tensor(name: str, value: NDArray[np.float32], *, packed: bool) -> bytes:
    sizes = [_varint(size) for size in value.shape]
    dims = _field(1, b"".join(sizes)) if packed else b"".join(b"\x08" + size for size in sizes)
    return dims + b"\x10\x01" + _field(8, name.encode()) + _field(9, np.ascontiguousarray(value).tobytes())


def _numbers(name: str) -> bytes:
    """A tensor of int64, as real files have one."""
    return b"\x08\x02\x10\x07" + _field(8, name.encode()) + _field(9, np.arange(2).tobytes())


def _field(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    made = b""
    while value > 0x7F:
        made, value = made + bytes([value & 0x7F | 0x80]), value >> 7
    return made + bytes([value])


def slow_forward(tensors: Mapping[str, NDArray[np.float32]], ids: Sequence[int]) -> Row:
    """BERT as the paper writes it, one number at a time, with the exact GELU; the mean of the last states."""
    get = {name: tensor.astype(float).tolist() for name, tensor in tensors.items()}
    states = [
        _norm(
            [
                word + place + kind
                for word, place, kind in zip(
                    get["embeddings.word_embeddings.weight"][token],
                    get["embeddings.position_embeddings.weight"][at],
                    get["embeddings.token_type_embeddings.weight"][0],
                    strict=True,
                )
            ],
            get,
            "embeddings.LayerNorm",
        )
        for at, token in enumerate(ids)
    ]
    for layer in (f"encoder.layer.{index}" for index in range(LAYERS)):
        states = _block(states, get, layer)
    return [sum(column) / len(states) for column in zip(*states, strict=True)]


def _block(states: list[Row], get: Mapping[str, list[Row]], layer: str) -> list[Row]:
    query, key, value = (
        [_dense(state, get, f"{layer}.attention.self.{each}") for state in states]
        for each in ("query", "key", "value")
    )
    width = HIDDEN // HEADS
    mixed: list[Row] = []
    for one in query:
        row: Row = []
        for start in range(0, HIDDEN, width):
            part = slice(start, start + width)
            weights = _softmax([_dot(one[part], other[part]) / sqrt(width) for other in key])
            row += [_dot(weights, [each[at] for each in value]) for at in range(start, start + width)]
        mixed.append(row)
    done = []
    for state, row in zip(states, mixed, strict=True):
        gathered = _dense(row, get, f"{layer}.attention.output.dense")
        attended = _norm(_add(state, gathered), get, f"{layer}.attention.output.LayerNorm")
        wide = [
            each * (1 + erf(each / sqrt(2))) / 2
            for each in _dense(attended, get, f"{layer}.intermediate.dense")
        ]
        done.append(
            _norm(
                _add(attended, _dense(wide, get, f"{layer}.output.dense")), get, f"{layer}.output.LayerNorm"
            )
        )
    return done


def _dense(row: Row, get: Mapping[str, list[Row]], name: str) -> Row:
    bias: Row = get[f"{name}.bias"]  # type: ignore[assignment]
    return [_dot(row, weights) + extra for weights, extra in zip(get[f"{name}.weight"], bias, strict=True)]


def _norm(row: Row, get: Mapping[str, list[Row]], name: str) -> Row:
    mean = sum(row) / len(row)
    spread = sqrt(sum((each - mean) ** 2 for each in row) / len(row) + 1e-12)
    weight: Row = get[f"{name}.weight"]  # type: ignore[assignment]
    bias: Row = get[f"{name}.bias"]  # type: ignore[assignment]
    return [
        (each - mean) / spread * scale + extra for each, scale, extra in zip(row, weight, bias, strict=True)
    ]


def _softmax(row: Row) -> Row:
    powers = [exp(each - max(row)) for each in row]
    return [each / sum(powers) for each in powers]


def _dot(one: Row, other: Row) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


def _add(one: Row, other: Row) -> Row:
    return [a + b for a, b in zip(one, other, strict=True)]
