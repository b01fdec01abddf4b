"""Searches against plain float64, and a whole index against a plain model."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from perdure.vectors import (
    PartitionedVectorIndex,
    RemovePartition,
    ReplacePartition,
    VectorDescriptor,
    VectorRecord,
    VectorSearchRequest,
)
from perdure.vectors.partitioned.partition import Partition
from vector_records import oracle, record

METRICS = [("cosine", "unit"), ("dot_product", "unit"), ("dot_product", "none")]


@pytest.mark.parametrize(("metric", "normalization"), METRICS)
@pytest.mark.parametrize("kernel", ["compiled", "reference"])
def test_random_vectors_are_ranked_as_an_oracle_in_float64_ranks_them(
    metric, normalization, kernel, monkeypatch
):
    monkeypatch.setenv("PERDURE_KERNEL", kernel)
    rng = np.random.default_rng(257)
    vectors = rng.standard_normal((2570, 17)).astype(np.float32)
    index = PartitionedVectorIndex.in_memory(
        VectorDescriptor(dimension=17, metric=metric, normalization=normalization)
    )
    for part in range(5):
        rows = range(part, len(vectors), 5)
        index.replace_partition(
            f"p{part}", [VectorRecord(id=f"{row}", embedding=vectors[row]) for row in rows]
        )
    # What the index compares, to the bit.
    stored = [(one.partition, one.record.id, one.record.embedding) for one in _all(index)]
    for query in rng.standard_normal((5, 17)).astype(np.float32):
        result = index.search(VectorSearchRequest(embedding=query, limit=37))
        compared = query / np.linalg.norm(query) if normalization == "unit" else query
        expected = oracle(stored, compared.tolist(), metric)[:37]
        assert [(hit.partition, hit.id) for hit in result.hits] == [(part, id_) for _, part, id_ in expected]
        assert [hit.score for hit in result.hits] == pytest.approx(
            [score for score, *_ in expected], abs=2e-6
        )
        assert (result.searched_records, result.truncated) == (2570, True)


def _all(index):
    cursor = None
    while True:
        page = index.list(limit=1000, cursor=cursor)
        yield from page.items
        cursor = page.cursor
        if cursor is None:
            return


@pytest.mark.parametrize(("metric", "normalization"), METRICS)
def test_ties_at_the_last_place_are_all_looked_at(metric, normalization):
    index = PartitionedVectorIndex.in_memory(
        VectorDescriptor(dimension=8, metric=metric, normalization=normalization)
    )
    eye = np.eye(8, dtype=np.float32)
    for name in ("b", "a"):
        rows = [VectorRecord(id=f"{row:04}", embedding=eye[row % 8]) for row in range(1500, -1, -1)]
        index.replace_partition(name, rows)
    hits = index.search(VectorSearchRequest(embedding=eye[3], limit=200)).hits
    threes = [f"{row:04}" for row in range(3, 1501, 8)]
    assert [(hit.partition, hit.id) for hit in hits] == [
        *(("a", id_) for id_ in threes),
        *(("b", id_) for id_ in threes[: 200 - len(threes)]),
    ]
    assert {hit.score for hit in hits} == {1.0}


def test_products_of_very_different_lengths_are_ranked_exactly():
    rng = np.random.default_rng(3)
    vectors = (rng.standard_normal((3000, 5)) * 10.0 ** rng.integers(-30, 30, (3000, 1))).astype(np.float32)
    vectors[::7] = 0
    index = PartitionedVectorIndex.in_memory(
        VectorDescriptor(dimension=5, metric="dot_product", normalization="none")
    )
    index.replace_partition("p", [VectorRecord(id=f"{n:04}", embedding=row) for n, row in enumerate(vectors)])
    rows = [("p", f"{n:04}", row.tolist()) for n, row in enumerate(vectors)]
    for sign in (1.0, -1.0):
        query = (sign * rng.standard_normal(5)).astype(np.float32)
        hits = index.search(VectorSearchRequest(embedding=query, limit=2900)).hits
        assert [hit.id for hit in hits] == [id_ for _, _, id_ in oracle(rows, query.tolist(), "dot_product")][
            :2900
        ]


def test_the_largest_numbers_have_finite_products():
    index = PartitionedVectorIndex.in_memory(
        VectorDescriptor(dimension=2, metric="dot_product", normalization="none")
    )
    largest = float(np.finfo(np.float32).max)
    rows = [record(f"{n:04}", largest, -largest / (n + 1)) for n in range(600)]
    index.replace_partition("p", rows)
    [best, *_] = index.search(VectorSearchRequest(embedding=[largest, 0.0], limit=3)).hits
    assert (best.id, best.score) == ("0000", largest * largest)


def test_a_score_does_not_depend_on_what_else_is_stored():
    rng = np.random.default_rng(5)
    vectors, query = rng.standard_normal((400, 33)), rng.standard_normal(33)
    alone, among = (PartitionedVectorIndex.in_memory(VectorDescriptor(dimension=33)) for _ in range(2))
    among.replace_partition("p", [VectorRecord(id=str(n), embedding=row) for n, row in enumerate(vectors)])
    scores = {
        hit.id: hit.score
        for hit in among.search(VectorSearchRequest(embedding=query.tolist(), limit=400)).hits
    }
    for at in range(0, 400, 40):
        alone.replace_partition("q", [VectorRecord(id="one", embedding=vectors[at])])
        [hit] = alone.search(VectorSearchRequest(embedding=query.tolist())).hits
        assert hit.score == scores[str(at)]


def test_the_last_handle_that_goes_frees_everything():
    def kept():
        gc.collect()
        return sum(type(one) is Partition and one.name == "to be freed" for one in gc.get_objects())

    index = PartitionedVectorIndex.in_memory(VectorDescriptor(dimension=2))
    shared = index.share()
    index.replace_partition("to be freed", [record("a", 1, 0)])
    del index
    assert kept() == 1
    del shared
    assert kept() == 0


NAMES = st.sampled_from(["a", "b", "c"])
NUMBERS = st.integers(-2, 2).map(float)
RECORDS = st.lists(
    st.builds(
        lambda id_, x, y, labels: VectorRecord(id=id_, embedding=(x, y), labels=labels),
        st.sampled_from("uvwxyz"),
        NUMBERS,
        NUMBERS.filter(bool),
        st.dictionaries(st.sampled_from("kl"), st.sampled_from("12")),
    ),
    max_size=5,
    unique_by=lambda one: one.id,
)
CHANGES = st.lists(
    st.one_of(
        st.builds(lambda name, records: ReplacePartition(name=name, records=records), NAMES, RECORDS),
        st.builds(lambda name: RemovePartition(name=name), NAMES),
    ),
    max_size=3,
    unique_by=lambda one: one.name,
)
FILTERS = st.dictionaries(
    st.sampled_from("klm"),
    st.one_of(st.none(), st.sampled_from("12"), st.lists(st.sampled_from("12"), min_size=1)),
    max_size=2,
)


def _holds(labels, wanted):
    return all(
        labels.get(key) is None if value is None else labels.get(key) in tuple(value)
        for key, value in wanted.items()
    )


@given(st.lists(CHANGES, max_size=6), FILTERS, st.lists(NAMES, max_size=2))
@settings(max_examples=examples(24), deadline=None)
def test_an_index_does_what_a_dictionary_of_records_does(batches, labels, partitions):
    descriptor = VectorDescriptor(dimension=2, metric="dot_product", normalization="none")
    index, model, revision = PartitionedVectorIndex.in_memory(descriptor), {}, 0
    for batch in batches:
        effective = False
        for change in batch:
            records = getattr(change, "records", ())
            effective = effective or bool(records) or change.name in model
            model.pop(change.name, None)
            if records:
                model[change.name] = {one.id: one for one in records}
        revision += effective
        assert index.apply(batch).revision == revision
    rows = [
        (name, one.id, one.embedding)
        for name, records in model.items()
        for one in records.values()
        if _holds(one.labels, labels) and (not partitions or name in partitions)
    ]
    asked = VectorSearchRequest(embedding=(1, 2), limit=4, labels=labels, partitions=partitions)
    result = index.search(asked)
    expected = oracle(rows, (1, 2), "dot_product")
    assert [(hit.score, hit.partition, hit.id) for hit in result.hits] == expected[:4]
    assert (result.searched_records, result.truncated) == (len(rows), len(rows) > 4)
    listed = index.list(labels=labels, partitions=partitions)
    assert [(one.partition, one.record.id) for one in listed.items] == sorted(
        (name, id_) for name, id_, _ in rows
    )
    assert index.status().record_count == sum(map(len, model.values()))
