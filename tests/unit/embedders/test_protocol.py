"""What is taken as an embedder's answer."""

from __future__ import annotations

import numpy as np
import pytest

from perdure.embedders.protocol import checked_vectors
from perdure.errors import Unavailable


def checked(value, count=2, dimension=3):
    return checked_vectors(value, count=count, dimension=dimension, model="m")


@pytest.mark.parametrize(
    "value",
    [
        [[1, 2, 3], [4, 5, 6]],
        np.array([[1, 2, 3], [4, 5, 6]], np.float64),
        np.array([[1, 2, 3], [4, 5, 6]], np.uint8),
        np.array([[1, 4], [2, 5], [3, 6]], np.float32).T,
        [np.array([1, 2, 3], np.float32), (4, 5, 6)],
    ],
)
def test_any_rectangle_of_numbers_becomes_float32_rows(value):
    found = checked(value)
    assert found.dtype == np.float32
    assert found.flags.c_contiguous
    assert found.tolist() == [[1, 2, 3], [4, 5, 6]]


@pytest.mark.parametrize("value", [[], np.zeros((0, 3)), np.zeros((0, 0))])
def test_no_texts_have_no_rows(value):
    assert checked(value, count=0).shape == (0, 3)


def test_rows_of_zeros_pass():
    assert not checked(np.zeros((2, 3))).any()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([[1, 2, 3]], r"\(1, 3\)"),
        ([[1, 2], [3, 4]], r"\(2, 2\)"),
        ([1, 2, 3, 4, 5, 6], r"\(6,\)"),
        (5, r"shape \(\)"),
        ([[1, 2, 3], [4, 5]], "different lengths"),
        ([["a", "b", "c"], ["d", "e", "f"]], "real numbers"),
        ([[1j, 2, 3], [4, 5, 6]], "real numbers"),
        ([[True, False, True], [True, True, True]], "real numbers"),
        (None, "real numbers"),
        ([[1, 2, 3], [4, float("nan"), 6]], "text 1"),
        ([[1, 2, float("-inf")], [4, 5, 6]], "text 0"),
        ([[1, 2, 3], [4, 5, 1e39]], "text 1"),
    ],
)
def test_anything_else_is_refused_by_what_is_wrong_with_it(value, message):
    with pytest.raises(Unavailable, match=message) as caught:
        checked(value)
    assert caught.value.field == "embedder"
    assert "'m'" in caught.value.message
