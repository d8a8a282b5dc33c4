"""Packed vectors: the cosine of two is that of the numbers they were made from."""

from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone.core.embedding import pack, similarity

NUMBERS = st.floats(-10, 10).map(lambda value: round(value, 3))
VECTORS = st.lists(NUMBERS, min_size=8, max_size=64)


def cosine(one: list[float], other: list[float]) -> float:
    lengths = sqrt(sum(x * x for x in one)) * sqrt(sum(x * x for x in other))
    return sum(x * y for x, y in zip(one, other, strict=True)) / lengths if lengths else 0.0


@given(st.integers(8, 64).flatmap(lambda n: st.tuples(*[st.lists(NUMBERS, min_size=n, max_size=n)] * 2)))
def test_a_packed_pair_has_nearly_the_cosine_of_its_numbers(pair: tuple[list[float], list[float]]) -> None:
    one, other = pair
    assert similarity(pack(one), pack(other)) == pytest.approx(cosine(one, other), abs=0.06)


@given(VECTORS, VECTORS)
def test_vectors_of_different_lengths_have_nothing_in_common(one: list[float], other: list[float]) -> None:
    if len(one) != len(other):
        assert similarity(pack(one), pack(other)) == 0.0


def test_a_vector_of_zeros_resembles_nothing() -> None:
    assert similarity(pack([0.0] * 8), pack([1.0] * 8)) == 0.0
