"""Vectors of documents: one a unit, found by the best, looked at through the index, gone with the document."""

from __future__ import annotations

import numpy as np
import pytest

from perdure import Conflict, InvalidRequest, MemoryConfig
from perdure.embedders import HashingEmbedder

LONG = "filler " * 10_000  # three units
EAST, NORTH, UP = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]
AXES = np.eye(8)


def test_the_index_shows_how_many_units_have_vectors_and_what_made_them(store, documents, memory):
    index = documents.index
    assert (index.vectors().count, index.vectors().dimension, index.vectors().models) == (0, None, {})
    memory.remember("a fact", id="f", embedding=AXES[0])
    documents.put("long", LONG, embedding=AXES[:3])
    documents.put("plain", "without a vector")
    assert index.vectors().models == {"": 4}
    assert (index.vectors().count, index.vectors().missing, index.vectors().dimension) == (4, 1, 8)
    embedder = HashingEmbedder(dimension=8)
    store.memory(config=MemoryConfig(embedder=embedder)).embed_missing()
    assert index.vectors().models == {"": 4, embedder.model: 1}
    memory.forget(ids=["long"], soft=True)
    memory.forget(ids=["plain"], soft=True)
    assert (index.vectors().count, index.vectors().missing, index.vectors().models) == (1, 0, {"": 1})
    memory.forget(ids=["f"])
    assert (index.vectors().count, index.vectors().dimension) == (0, 8)
    memory.forget(ids=["long", "plain"])
    assert index.vectors().dimension is None


def test_the_index_gives_each_units_vector_as_it_is_stored(documents, memory):
    memory.remember("a fact", id="f", embedding=[0.1, -2, 3e-5])
    documents.put("long", LONG, embedding=[EAST, NORTH, UP])
    documents.put("plain", "without a vector")
    index = documents.index
    assert index.vector("f").dtype == np.float32
    assert index.vector("f").tolist() == np.array([0.1, -2, 3e-5], dtype=np.float32).tolist()
    assert [index.vector("long", unit).tolist() for unit in range(3)] == [EAST, NORTH, UP]
    assert [index.vector("long", 3), index.vector("f", 1), index.vector("plain"), index.vector("no")] == [
        None
    ] * 4
    memory.forget(ids=["f"], soft=True)
    assert index.vector("f") is None
    memory.restore(["f"])
    assert index.vector("f") is not None
    with pytest.raises(InvalidRequest, match="unit must be 0"):
        index.vector("f", -1)
    with pytest.raises(InvalidRequest, match="unit must be a whole number"):
        index.vector("f", True)


def test_what_is_done_to_a_vector_that_was_returned_changes_nothing_in_the_store(documents):
    documents.put("a", "text", embedding=EAST)
    documents.search("", embedding=EAST)
    documents.index.vector("a")[:] = 9
    assert documents.index.vector("a").tolist() == EAST
    assert documents.search("", embedding=EAST)[0].score == 1.0


def test_a_long_document_is_found_once_by_its_most_similar_unit(documents):
    documents.put("long", LONG, embedding=[EAST, NORTH, UP])
    documents.put("other", "words", embedding=[0.6, 0.8, 0.0])
    for place, query in enumerate((EAST, NORTH, UP)):
        hits = documents.search("", embedding=query, mode="semantic")
        assert (hits[0].id, hits[0].unit, hits[0].score) == ("long", place, 1.0)
        assert [hit.id for hit in hits] == ["long", "other"]


@pytest.mark.parametrize(
    "wrong",
    [
        [EAST],
        [EAST, NORTH, UP, UP],
        [EAST, NORTH, [1.0, 2.0]],
        [EAST, [1.0], UP],
        [EAST, NORTH, None],
        [EAST, NORTH, [0.0, 0.0, 0.0]],
        [[EAST], [NORTH], [UP]],
        [[[1.0], [2.0, 3.0]], NORTH, UP],
        [EAST, NORTH, "abc"],
        EAST,
        [],
        "abc",
        {"0": EAST},
        5,
        np.zeros((3, 3)),
        np.eye(3)[0],
        np.eye(3)[:2],
        np.eye(3) * np.nan,
        np.array(EAST, dtype=object),
    ],
    ids=str,
)
def test_vectors_that_do_not_fit_the_units_are_refused_by_name_and_nothing_is_stored(documents, wrong):
    documents.put("first", "text", embedding=EAST)
    with pytest.raises(InvalidRequest) as refused:
        documents.put("long", LONG, embedding=wrong)
    assert refused.value.field == "embedding"
    assert not documents.has("long")


@pytest.mark.parametrize("kind", [list, tuple, iter, np.array])
def test_vectors_of_units_may_come_in_any_list(documents, kind):
    documents.put("long", LONG, embedding=kind([EAST, NORTH, UP]))
    assert [documents.index.vector("long", unit).tolist() for unit in range(3)] == [EAST, NORTH, UP]


@pytest.mark.parametrize("told", [EAST, [EAST], np.array(EAST), np.array([EAST]), tuple(EAST)])
def test_a_short_text_takes_its_vector_alone_or_in_a_list(documents, told):
    assert documents.put("a", "text", embedding=told).outcome == "created"
    assert documents.put("a", "text", embedding=[np.array(EAST, dtype=np.float32)]).outcome == "existing"


def test_another_vector_makes_another_version_and_the_same_one_does_not(documents):
    assert documents.put("a", "text", embedding=EAST).version == 1
    assert documents.put("a", "text", embedding=EAST).outcome == "existing"
    assert documents.put("a", "text", embedding=NORTH).outcome == "replaced"
    assert documents.index.vector("a").tolist() == NORTH
    assert documents.put("a", "text").version == 3
    assert documents.index.vectors().count == 0
    assert documents.put("long", LONG, embedding=[EAST, NORTH, UP]).version == 1
    assert documents.put("long", LONG, embedding=[EAST, NORTH, UP]).outcome == "existing"
    assert documents.put("long", LONG, embedding=[EAST, UP, NORTH]).version == 2


def test_a_key_stands_for_the_vectors_too(documents):
    documents.put("a", "text", embedding=EAST, idempotency_key="key")
    assert documents.put("a", "text", embedding=EAST, idempotency_key="key").outcome == "created"
    for other in (NORTH, None):
        with pytest.raises(Conflict) as refused:
            documents.put("a", "text", embedding=other, idempotency_key="key")
        assert refused.value.kind == "idempotency"


def test_an_embedder_makes_a_vector_for_each_unit_and_the_text_alone_is_the_identity(store):
    embedder = HashingEmbedder(dimension=16)
    documents = store.documents(config=MemoryConfig(embedder=embedder))
    text = "puffin " * 5_000 + "lantern " * 5_000
    assert documents.put("long", text).outcome == "created"
    assert documents.index.vectors().models == {embedder.model: 3}
    assert documents.put("long", text).outcome == "existing"
    assert documents.search("lantern", mode="semantic")[0].unit == 2
    assert store.documents().put("long", text).outcome == "existing"  # by a caller without an embedder
    given = np.eye(16, dtype=np.float32)[:3]
    assert documents.put("long", text, embedding=given).outcome == "replaced"
    assert documents.index.vectors().models == {"": 3}
