"""A mask flips signs and changes no score; what is no vector is refused before it is sent."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure import InvalidRequest
from perdure.client.vectors import VectorMask, plain_vector

numbers = st.floats(allow_nan=False, allow_infinity=False, width=32)
keys = st.binary(min_size=32, max_size=32)


@st.composite
def pairs(draw):
    size = draw(st.integers(1, 48))
    one = st.lists(numbers, min_size=size, max_size=size)
    return draw(one), draw(one)


def bits(value: float) -> bytes:
    return np.float64(value).tobytes()


def dot(left, right) -> float:
    total = 0.0
    for one, other in zip(left, right, strict=True):
        total += one * other
    return total


@given(keys, pairs())
def test_the_dot_product_of_masked_vectors_is_that_of_the_plain_ones_bit_for_bit(key, vectors):
    left, right = vectors
    mask = VectorMask(key)
    assert bits(dot(mask.flipped(left), mask.flipped(right))) == bits(dot(left, right))


@given(keys, pairs())
def test_the_dot_product_in_single_precision_stays_too(key, vectors):
    left, right = (np.array(vector, np.float32) for vector in vectors)
    mask = VectorMask(key)
    masked = [np.array(mask.flipped(vector.tolist()), np.float32) for vector in (left, right)]
    with np.errstate(over="ignore", invalid="ignore"):
        found, wanted = np.dot(*masked), np.dot(left, right)
    assert found.tobytes() == wanted.tobytes() or (math.isnan(found) and math.isnan(wanted))


@given(keys, st.lists(numbers, min_size=1, max_size=48))
def test_a_mask_is_its_own_inverse_and_keeps_every_size(key, vector):
    mask = VectorMask(key)
    masked = mask.flipped(vector)
    assert [bits(number) for number in mask.flipped(masked)] == [bits(number) for number in vector]
    assert [abs(number) for number in masked] == [abs(number) for number in vector]


@given(keys, st.integers(1, 2_000), st.integers(1, 2_000))
def test_the_sign_of_a_dimension_does_not_depend_on_how_many_there_are(key, size, other):
    short, long = sorted((size, other))
    assert VectorMask(key).flipped([1.0] * long)[:short] == VectorMask(key).flipped([1.0] * short)


def test_about_half_of_all_signs_are_flipped_and_other_ones_under_another_key():
    one, other = (VectorMask(bytes([key]) * 32).flipped([1.0] * 4_096) for key in (1, 2))
    assert 1_900 < one.count(-1.0) < 2_196
    assert 1_900 < sum(a != b for a, b in zip(one, other, strict=True)) < 2_196


def test_the_stream_of_a_key_stays_what_it_is_so_that_stored_vectors_stay_of_use():
    flipped = VectorMask(bytes(range(32))).flipped([1.0] * 24)
    assert "".join("-" if number < 0 else "+" for number in flipped) == "----+++---+----+--+---+-"


@pytest.mark.parametrize("key", [b"", b"x" * 31, b"x" * 33, "x" * 32, 5])
def test_a_key_is_32_bytes(key):
    with pytest.raises(InvalidRequest) as refused:
        VectorMask(key)
    assert refused.value.field == "vector_mask"


def test_a_mask_does_not_show_its_key():
    assert repr(VectorMask(b"secret-secret-secret-secret-1234")) == "<VectorMask>"


@pytest.mark.parametrize(
    "value", [[1, 2.5], (1, 2.5), np.array([1, 2.5]), np.array([1, 2.5], np.float32), iter([1, 2.5])]
)
def test_any_list_of_numbers_is_a_vector(value):
    assert plain_vector(value) == [1.0, 2.5]


@pytest.mark.parametrize(
    "value",
    [5, "12", b"12", None, [True], ["1"], [None], [[1.0]], [math.nan], [math.inf], [10**400], np.array(1.0)],
)
def test_what_is_no_list_of_finite_numbers_is_refused(value):
    with pytest.raises(InvalidRequest) as refused:
        plain_vector(value)
    assert refused.value.field == "embedding"


def test_other_kinds_of_numbers_are_taken_for_what_they_are():
    assert plain_vector([Decimal("0.5"), np.float32(0.25), np.int64(2)]) == [0.5, 0.25, 2.0]
