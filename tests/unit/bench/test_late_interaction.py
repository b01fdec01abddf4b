"""Likeness word piece by word piece, and what re-ordering by it may change."""

from __future__ import annotations

import json
import struct

import numpy as np
import pytest
from bench.late_interaction import Reranker, TokenVectors, max_similarities, read_safetensors, scaled
from hypothesis import given
from hypothesis import strategies as st

LETTERS = "abcd"
TEXTS = st.text(LETTERS, max_size=6)


def by_letter(texts):
    """A vector a letter; neighbours in the alphabet are alike."""
    table = np.array([[1, 0], [0.8, 0.6], [0.6, 0.8], [0, 1]], dtype=np.float32)
    return [table[[LETTERS.index(letter) for letter in text]].reshape(-1, 2) for text in texts]


VECTORS = TokenVectors("by letter", by_letter)


@given(TEXTS, st.lists(TEXTS, max_size=5))
def test_likeness_is_the_mean_of_the_best_cosine_of_each_piece(query, texts):
    pieces = by_letter([query])[0]
    expected = [
        np.mean([max(float(one @ other) for other in text) for one in pieces])
        if len(pieces) and len(text)
        else 0.0
        for text in by_letter(texts)
    ]
    assert max_similarities(pieces, by_letter(texts)) == pytest.approx(expected, abs=1e-6)


@given(
    st.text(LETTERS, min_size=1, max_size=4),
    st.lists(st.tuples(TEXTS, st.integers(0, 9)), max_size=8),
    st.integers(1, 5),
)
def test_the_top_is_ordered_again_and_the_rest_stays(query, told, top):
    best_first = sorted(told, key=lambda one: -one[1])
    candidates = [(str(place), text, float(score)) for place, (text, score) in enumerate(best_first)]
    ids = [id_ for id_, _, _ in candidates]
    ordered = Reranker(VECTORS, top=top).order(query, candidates)
    assert sorted(ordered[:top]) == sorted(ids[:top])
    assert ordered[top:] == ids[top:]
    assert Reranker(VECTORS, top=top, weight=0.0).order(query, candidates) == ids


def test_a_candidate_with_likelier_words_overtakes_one_of_equal_score():
    candidates = [("far", "aaa", 2.0), ("near", "cd", 2.0), ("low", "b", 1.0)]
    assert Reranker(VECTORS).order("d", candidates) == ["near", "far", "low"]


def test_kept_vectors_spare_the_work_and_tell_no_text(tmp_path):
    path = tmp_path / "pieces.npz"
    first = Reranker(VECTORS)
    first.learn(["abc", "d", ""])
    first.save(path)
    assert b"abc" not in path.read_bytes()
    asked = []
    second = Reranker(TokenVectors("counted", lambda texts: asked.extend(texts) or by_letter(texts)))
    second.load(path)
    second.learn(["abc", "d", ""])
    assert asked == []
    assert second.bytes_per_text() == pytest.approx((4 * 2 * 2) / 3)


def test_equal_values_all_scale_to_one():
    assert scaled(np.array([3.0, 3.0])).tolist() == [1.0, 1.0]
    assert scaled(np.array([1.0, 3.0, 2.0])).tolist() == [0.0, 1.0, 0.5]


def test_tensors_of_single_precision_are_read_by_name_and_shape(tmp_path):
    numbers = np.arange(6, dtype="<f4").reshape(2, 3)
    header = {
        "__metadata__": {"format": "pt"},
        "ids": {"dtype": "I64", "shape": [1], "data_offsets": [0, 8]},
        "table": {"dtype": "F32", "shape": [2, 3], "data_offsets": [8, 32]},
    }
    told = json.dumps(header).encode()
    path = tmp_path / "model.safetensors"
    path.write_bytes(struct.pack("<Q", len(told)) + told + bytes(8) + numbers.tobytes())
    found = read_safetensors(path)
    assert list(found) == ["table"]
    assert found["table"].tolist() == numbers.tolist()
