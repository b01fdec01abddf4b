"""The cached embedder: what it asks for, what it keeps, and what it gives away."""

from __future__ import annotations

import threading
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.embedders.cached import CachedEmbedder
from perdure.embedders.hashing import HashingEmbedder
from perdure.errors import InvalidRequest, Unavailable

PLAIN = HashingEmbedder(dimension=16)


class Watched:
    """An embedder that notes what it is asked for, and may fail."""

    model, dimension, query_task = "watched", 16, "fact"

    def __init__(self):
        self.asked = []
        self.failing = False

    def embed_documents(self, texts):
        self._note(list(texts))
        return PLAIN.embed_documents(texts)

    def embed_query(self, text):
        self._note(text)
        return -PLAIN.embed_query(text)

    def _note(self, what):
        if self.failing:
            raise Unavailable("not there")
        self.asked.append(what)


def test_it_is_the_same_model_to_a_store():
    cached = CachedEmbedder(Watched())
    assert (cached.model, cached.dimension, cached.query_task) == ("watched", 16, "fact")


def test_what_is_kept_is_not_asked_for_again():
    watched = Watched()
    cached = CachedEmbedder(watched)
    cached.embed_documents(["a", "b", "a"])
    cached.embed_documents(["b", "c"])
    cached.embed_documents(["a", "b", "c"])
    assert watched.asked == [["a", "b"], ["c"]]


def test_queries_and_documents_are_kept_apart():
    watched = Watched()
    cached = CachedEmbedder(watched)
    document = cached.embed_documents(["abc"])[0]
    assert np.array_equal(cached.embed_query("abc"), -document)
    assert np.array_equal(cached.embed_query("abc"), -document)
    assert watched.asked == [["abc"], "abc"]


@given(
    st.integers(1, 4),
    st.lists(st.lists(st.sampled_from("abcdef"), max_size=4), max_size=12),
)
def test_vectors_are_those_of_the_embedder_and_the_oldest_go_first(size, batches):
    watched = Watched()
    cached = CachedEmbedder(watched, size=size)
    kept: OrderedDict[str, None] = OrderedDict()
    for batch in batches:
        asked = len(watched.asked)
        assert np.array_equal(cached.embed_documents(batch), PLAIN.embed_documents(batch))
        missing = [text for text in dict.fromkeys(batch) if text not in kept]
        assert watched.asked[asked:] == ([missing] if missing else [])
        for text in [text for text in batch if text in kept] + missing:
            kept[text] = None
            kept.move_to_end(text)
        while len(kept) > size:
            kept.popitem(last=False)
        assert len(cached) == len(kept) <= size


def test_changing_a_vector_that_was_given_changes_none_that_is_kept():
    cached = CachedEmbedder(PLAIN)
    right = PLAIN.embed_query("abc")
    for _ in range(3):
        found = cached.embed_query("abc")
        rows = cached.embed_documents(["abc"])
        assert np.array_equal(found, right)
        assert np.array_equal(rows[0], right)
        found[:] = 7
        rows[:] = 7


def test_a_failure_is_passed_on_and_nothing_of_it_is_kept():
    watched = Watched()
    cached = CachedEmbedder(watched)
    watched.failing = True
    with pytest.raises(Unavailable, match="not there"):
        cached.embed_documents(["a", "b"])
    assert len(cached) == 0
    watched.failing = False
    assert np.array_equal(cached.embed_documents(["a"]), PLAIN.embed_documents(["a"]))


def test_an_embedder_that_answers_wrongly_is_unavailable():
    class Short(Watched):
        def embed_documents(self, texts):
            return PLAIN.embed_documents(texts)[:-1]

    cached = CachedEmbedder(Short())
    with pytest.raises(Unavailable, match="shape"):
        cached.embed_documents(["a", "b"])
    assert len(cached) == 0


def test_clearing_drops_everything():
    cached = CachedEmbedder(PLAIN)
    cached.embed_documents(["a", "b"])
    cached.clear()
    assert len(cached) == 0


def test_no_text_is_kept_or_shown():
    cached = CachedEmbedder(PLAIN)
    cached.embed_documents(["XQZ-canary-7731"])
    cached.embed_query("XQZ-canary-7731")
    assert "canary" not in repr(vars(cached)) + repr(cached)


def test_many_threads_get_their_own_vectors_from_a_small_cache():
    cached = CachedEmbedder(PLAIN, size=3)
    texts = [f"text {n % 7}" for n in range(200)]
    ready = threading.Barrier(8)

    def run(start):
        ready.wait()
        return [cached.embed_query(text) for text in texts[start::8]]

    with ThreadPoolExecutor(8) as pool:
        for start, found in enumerate(pool.map(run, range(8))):
            assert np.array_equal(np.stack(found), PLAIN.embed_documents(texts[start::8]))
    assert len(cached) == 3


@pytest.mark.parametrize("size", [0, -1, 1.5, True, 1_000_001])
def test_a_size_out_of_range_is_refused(size):
    with pytest.raises(InvalidRequest, match="size"):
        CachedEmbedder(PLAIN, size=size)
