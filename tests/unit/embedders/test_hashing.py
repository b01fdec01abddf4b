"""The hashing embedder."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.embedders.hashing import HashingEmbedder
from perdure.errors import InvalidRequest

EMBEDDER = HashingEmbedder()


@given(st.text(max_size=80))
def test_every_text_has_a_unit_vector_or_zeros(text):
    vector = EMBEDDER.embed_query(text)
    assert vector.shape == (256,)
    assert vector.dtype == np.float32
    assert np.linalg.norm(vector) == pytest.approx(0 if not vector.any() else 1, abs=1e-6)


@given(st.lists(st.text(max_size=40), max_size=5))
def test_a_text_has_the_same_vector_alone_and_in_a_batch(texts):
    rows = EMBEDDER.embed_documents(texts)
    assert [row.tobytes() for row in rows] == [EMBEDDER.embed_query(text).tobytes() for text in texts]


def test_a_misspelt_word_is_nearer_than_another():
    right, wrong, other = EMBEDDER.embed_documents(["restaurant", "restuarant", "television"])
    assert right @ wrong > right @ other + 0.2


def test_case_and_width_make_no_difference():
    assert np.array_equal(EMBEDDER.embed_query("ＣＡＦÉ"), EMBEDDER.embed_query("café"))


def test_a_text_without_letters_has_zeros():
    assert not EMBEDDER.embed_documents(["", "?! …", "\ud800"]).any()


def test_the_vector_of_a_text_is_the_same_in_every_release():
    vector = HashingEmbedder(dimension=8).embed_query("perdure")
    assert [round(float(x), 6) for x in vector] == [
        -0.57735,
        0.288675,
        -0.288675,
        0.288675,
        -0.288675,
        0.57735,
        0.0,
        0.0,
    ]


@pytest.mark.parametrize("dimension", [0, 7, 65_537, 8.0, True, None])
def test_a_dimension_out_of_range_is_refused(dimension):
    with pytest.raises(InvalidRequest, match="dimension"):
        HashingEmbedder(dimension=dimension)


def test_embedders_of_other_dimensions_are_other_models():
    assert HashingEmbedder(dimension=64).model != EMBEDDER.model
    assert HashingEmbedder(dimension=64).dimension == 64
