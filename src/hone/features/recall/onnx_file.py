"""Read the tensors of a BERT from an ONNX file, which is a protocol buffer. It does not know their meaning.

Only the required fields are read: ModelProto.graph = 7, GraphProto.node = 1 and initializer = 5,
NodeProto.input = 1 and name = 3, TensorProto.dims = 1, data_type = 2, name = 8 and raw_data = 9.
"""

import mmap
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from hone.features.recall.forward import Floats

_VARINT, _FIXED_64, _BYTES, _FIXED_32 = 0, 1, 2, 5
_FLOAT = 1
_MATRIX = "/MatMul"


def read_onnx(path: Path) -> dict[str, Floats]:
    """Return the tensors by their names in PyTorch. A matrix that the export renamed and transposed gets its
    name from the node that multiplies by it. Raises ValueError if the file is damaged."""
    with path.open("rb") as file:
        return _read_model(memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)))


def _read_model(view: memoryview) -> dict[str, Floats]:
    tensors: dict[str, Floats] = {}
    matrices: dict[str, str] = {}
    for graph in _parts(view, 7):
        for field, _, value in _fields(graph):
            if field == 5 and isinstance(value, memoryview):
                name, tensor = _tensor(value)
                tensors |= {name: tensor} if tensor is not None else {}
            elif field == 1 and isinstance(value, memoryview):
                matrices |= _named_matrix(value)
    for stored, name in matrices.items():
        if stored in tensors:
            tensors[name] = tensors.pop(stored).T
    return tensors


def _named_matrix(node: memoryview) -> dict[str, str]:
    inputs = [bytes(each).decode() for each in _parts(node, 1)]
    name = "".join(bytes(each).decode() for each in _parts(node, 3))
    if not name.endswith(_MATRIX) or len(inputs) != 2:
        return {}
    return {inputs[1]: f"{name.removeprefix('/').removesuffix(_MATRIX).replace('/', '.')}.weight"}


def _tensor(view: memoryview) -> tuple[str, Floats | None]:
    """Return name and numbers, which stay in the file; None for numbers of another type."""
    name, shape, kind, raw = "", list[int](), 0, view[:0]
    for field, wire, value in _fields(view):
        if isinstance(value, int):
            if field == 1:
                shape.append(value)
            elif field == 2:
                kind = value
        elif field == 1 and wire == _BYTES:
            shape += _packed(value)
        elif field == 8:
            name = bytes(value).decode()
        elif field == 9:
            raw = value
    if kind != _FLOAT:
        return name, None
    return name, np.frombuffer(raw, dtype="<f4").astype(np.float32, copy=False).reshape(shape)


def _parts(view: memoryview, wanted: int) -> Iterator[memoryview]:
    return (value for field, _, value in _fields(view) if field == wanted and isinstance(value, memoryview))


def _fields(view: memoryview) -> Iterator[tuple[int, int, int | memoryview]]:
    """Yield number, wire type and value of each field."""
    at = 0
    while at < len(view):
        key, at = _varint(view, at)
        field, wire = key >> 3, key & 7
        if wire == _VARINT:
            number, at = _varint(view, at)
            yield field, wire, number
            continue
        if wire == _BYTES:
            size, at = _varint(view, at)
        elif wire in (_FIXED_64, _FIXED_32):
            size = 8 if wire == _FIXED_64 else 4
        else:
            raise ValueError(f"wire type {wire} at byte {at}")
        if at + size > len(view):
            raise ValueError(f"a field of {size} bytes at byte {at} goes beyond the end")
        yield field, wire, view[at : at + size]
        at += size


def _packed(view: memoryview) -> Iterator[int]:
    at = 0
    while at < len(view):
        number, at = _varint(view, at)
        yield number


def _varint(view: memoryview, at: int) -> tuple[int, int]:
    number = shift = 0
    while at < len(view):
        byte = view[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return number, at
    raise ValueError("a number breaks off at the end")
