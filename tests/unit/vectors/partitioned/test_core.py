"""What an index takes in, gives out and counts."""

from __future__ import annotations

import re

import numpy as np
import pytest

from perdure.errors import InvalidRequest, QueryLimit, Unavailable
from perdure.vectors import (
    BudgetExceeded,
    DimensionMismatch,
    DuplicateRecordId,
    InvalidDescriptor,
    InvalidLabel,
    InvalidPartition,
    InvalidRecordId,
    InvalidSearch,
    NonFiniteVector,
    PartitionedVectorIndex,
    RemovePartition,
    ReplacePartition,
    VectorDescriptor,
    VectorRecord,
    VectorSearchRequest,
    ZeroVector,
)
from vector_records import PLANE, found, record


@pytest.mark.parametrize(
    ("told", "field"),
    [
        ({"dimension": 0}, "dimension"),
        ({"dimension": 65_537}, "dimension"),
        ({"dimension": 3, "max_records": 0}, "max_records"),
        ({"dimension": 3, "max_bytes": 0}, "max_bytes"),
        ({"dimension": 3, "max_bytes": 11}, "max_bytes"),
        ({"dimension": 3, "metric": "euclid"}, "metric"),
        ({"dimension": 3, "normalization": "max"}, "normalization"),
        ({"dimension": 3, "normalization": "none"}, "normalization"),
        ({"dimension": 3, "model": " "}, "model"),
        ({"dimension": True}, "dimension"),
        ({"dimension": "3"}, "dimension"),
        ({"dimension": 3, "max_records": True}, "max_records"),
        ({"dimension": 3, "metric": ["cosine"]}, "metric"),
    ],
)
def test_a_descriptor_of_no_possible_index_is_refused_when_it_is_made(told, field):
    with pytest.raises(InvalidDescriptor) as refused:
        VectorDescriptor(**told)
    assert (refused.value.field, refused.value.details["kind"]) == (field, "invalid_descriptor")


@pytest.mark.parametrize(
    ("changes", "field", "message"),
    [
        (["x"], "changes[0]", r"changes\[0\] must be a ReplacePartition or a RemovePartition, got str"),
        (RemovePartition(name="a"), "changes", "changes must be a list of .*, got RemovePartition"),
        ("abc", "changes", "changes must be a list of"),
        (None, "changes", "changes must be a list of"),
        ([RemovePartition(name="a"), None], "changes[1]", "got NoneType"),
        ([RemovePartition(name=5)], "partition", "partition must be a text"),
        (
            [ReplacePartition(name="a", records=5)],
            "records",
            "records must be a list of VectorRecord, got int",
        ),
        ([ReplacePartition(name="a", records="ab")], "records", "records must be a list"),
        (
            [ReplacePartition(name="a", records=["ab"])],
            "records",
            r"records\[0\] must be a VectorRecord, got str",
        ),
        (
            [RemovePartition(name="a"), RemovePartition(name="b"), RemovePartition(name=" a")],
            "changes[2]",
            r"changes\[2\] names the partition of changes\[0\]",
        ),
    ],
)
def test_changes_that_are_none_are_refused_by_their_place(make, changes, field, message):
    index = make(PLANE)
    with pytest.raises(InvalidRequest) as refused:
        index.apply(changes)
    assert refused.value.field == field
    assert re.search(message, refused.value.message)
    assert type(refused.value) in (InvalidRequest, InvalidPartition)
    assert index.status().revision == 0
    assert repr(changes)


def test_what_is_no_request_is_refused(make):
    index = make(PLANE)
    for refused in (
        lambda: index.replace_partition("p", 5),
        lambda: index.search(5),
        lambda: index.search(VectorSearchRequest(embedding=5)),
        lambda: index.search(VectorSearchRequest(embedding=[1, 0], partitions=5)),
        lambda: index.search(VectorSearchRequest(embedding=[1, 0], labels=5)),
        lambda: index.search(VectorSearchRequest(embedding=[1, 0], min_score=True)),
        lambda: index.list(partitions=5),
        lambda: index.list(labels=[1]),
        lambda: index.list(cursor=5),
        lambda: index.get("p", 5),
    ):
        with pytest.raises(InvalidRequest):
            refused()


@pytest.mark.parametrize("embedding", [[True, False], [True, 0.5], (1, np.True_), np.array([True, False])])
def test_booleans_are_no_numbers(make, embedding):
    index = make(PLANE)
    with pytest.raises(InvalidRequest, match="must be a row of numbers"):
        index.replace_partition("p", [VectorRecord(id="a", embedding=embedding)])
    with pytest.raises(InvalidRequest, match="must be a row of numbers"):
        index.search(VectorSearchRequest(embedding=embedding))


def test_the_smallest_budget_that_holds_one_vector_is_taken(make):
    assert make(VectorDescriptor(dimension=3, max_bytes=12)).status().revision == 0


def test_cosine_puts_the_same_direction_first_and_the_opposite_last(make):
    index = make(PLANE)
    index.replace_partition("p", [record("far", -1, 0), record("exact", 3, 0), record("near", 1, 0.1)])
    result = index.search(VectorSearchRequest(embedding=[2.0, 0.0], limit=3))
    assert [hit.id for hit in result.hits] == ["exact", "near", "far"]
    assert result.hits[0].score == pytest.approx(1.0, abs=1e-12)
    assert result.hits[2].score == -1.0
    assert (result.searched_records, result.truncated, result.status) == (3, False, index.status())


def test_the_bytes_of_an_index_are_those_of_its_texts_and_numbers(make):
    index = make(PLANE)
    status = index.replace_partition(
        " semantic ",
        [record("alpha", 1, 0, kind="test"), record("beta", 0, 1, kind="test", scope="workspace")],
    )
    assert (status.partition_count, status.record_count, status.byte_count) == (1, 2, 63)
    [partition] = index.partitions()
    assert (partition.name, partition.revision, partition.byte_count) == ("semantic", 1, 63)


def test_texts_are_counted_in_bytes_and_what_a_vector_was_made_of_as_well(make):
    index = make(PLANE)
    one = VectorRecord(
        id="é", embedding=[1, 0], labels={"ü": "ß"}, node_id="n1", node_revision=3, content_digest="d"
    )
    assert index.replace_partition("å", [one]).byte_count == 2 + (2 + 4 + 8 + 2 + 1)


def test_every_effective_change_is_one_revision_and_removing_nothing_is_none(make):
    index = make(PLANE)
    assert index.remove_partition("p").revision == 0
    assert index.replace_partition("p", []).revision == 0
    assert index.replace_partition("p", [record("a", 1, 0)]).revision == 1
    assert index.replace_partition("p", [record("a", 1, 0)]).revision == 2
    assert index.replace_partition("q", [record("a", 1, 0)]).revision == 3
    assert index.remove_partition(" p ").revision == 4
    emptied = index.replace_partition("q", [])
    assert (emptied.revision, emptied.partition_count, emptied.record_count, emptied.byte_count) == (
        5,
        0,
        0,
        0,
    )


def test_clearing_is_one_revision_for_all_and_none_for_an_empty_index(make):
    index = make(PLANE)
    index.replace_partition("p", [record("a", 1, 0)])
    index.replace_partition("q", [record("a", 1, 0)])
    cleared = index.clear()
    assert (cleared.revision, cleared.record_count, cleared.byte_count) == (3, 0, 0)
    assert index.clear().revision == 3
    assert found(index, 1, 0) == []


def test_a_replacement_takes_the_place_of_all_that_was_there(make):
    index = make(PLANE)
    index.replace_partition("p", [record("old", 1, 0), record("both", 1, 0)])
    index.replace_partition("p", [record("both", 0, 1), record("new", 1, 0)])
    assert found(index, 1, 0) == ["new", "both"]
    assert index.get("p", "old") is None


def test_ties_are_ordered_by_partition_and_then_by_id(make):
    index = make(PLANE)
    index.replace_partition("z", [record("b", 2, 0), record("a", 1, 0)])
    index.replace_partition("a", [record("c", 1, 0)])
    result = index.search(VectorSearchRequest(embedding=[1, 0], limit=3))
    assert [f"{hit.partition}/{hit.id}" for hit in result.hits] == ["a/c", "z/a", "z/b"]


def test_a_search_is_narrowed_to_partitions_and_labels(make):
    index = make(PLANE)
    index.replace_partition("one", [record("a", 1, 0, lang="en", kind="x"), record("b", 1, 0, lang="de")])
    index.replace_partition("two", [record("c", 1, 0, lang="en"), record("d", 1, 0)])
    asked = VectorSearchRequest(embedding=[1, 0], partitions=["one", "not there"], labels={"lang": "en"})
    assert index.search(asked).searched_records == 1
    assert found(index, 1, 0, partitions=["one"], labels={"lang": "en"}) == ["a"]
    assert found(index, 1, 0, labels={"lang": "en"}) == ["a", "c"]
    assert found(index, 1, 0, labels={"lang": ["de", "en", "fr"]}) == ["a", "b", "c"]
    assert found(index, 1, 0, labels={"lang": None}) == ["d"]
    assert found(index, 1, 0, labels={"lang": "en", "kind": None}) == ["c"]
    assert found(index, 1, 0, labels={"lang": "fr"}) == []
    assert found(index, 1, 0, partitions=[" one "]) == [], "names in a search are compared as they are"


def test_min_score_keeps_what_reaches_it_and_truncated_counts_only_that(make):
    index = make(PLANE)
    index.replace_partition("p", [record("a", 1, 0), record("b", 1, 1), record("c", 0, 1)])
    result = index.search(VectorSearchRequest(embedding=[1, 0], limit=2, min_score=0.5))
    assert [hit.id for hit in result.hits] == ["a", "b"]
    assert (result.searched_records, result.truncated) == (3, False)
    assert index.search(VectorSearchRequest(embedding=[1, 0], limit=1, min_score=0.5)).truncated
    exactly = index.search(VectorSearchRequest(embedding=[0, 1], min_score=1.0))
    assert [hit.id for hit in exactly.hits] == ["c"]


def test_a_hit_carries_what_the_record_was_told_with_and_changing_it_changes_nothing_stored(make):
    index = make(PLANE)
    one = VectorRecord(
        id="a",
        embedding=[1, 0],
        labels={"k": "v"},
        node_id="node",
        node_revision=7,
        content_digest="sha256:1",
    )
    index.replace_partition("p", [one])
    [hit] = index.search(VectorSearchRequest(embedding=[1, 0])).hits
    assert (hit.labels, hit.node_id, hit.node_revision, hit.content_digest) == (
        {"k": "v"},
        "node",
        7,
        "sha256:1",
    )
    hit.labels["k"] = "changed"
    assert index.get("p", "a") == VectorRecord(
        id="a",
        embedding=(1.0, 0.0),
        labels={"k": "v"},
        node_id="node",
        node_revision=7,
        content_digest="sha256:1",
    )


def test_records_are_read_back_of_length_one_where_the_index_normalizes_and_as_told_where_not(make):
    unit, plain = make(PLANE), make(VectorDescriptor(dimension=2, metric="dot_product", normalization="none"))
    for index in (unit, plain):
        index.replace_partition("p", [record("a", 3, 4)])
    assert unit.get("p", "a").embedding == pytest.approx((0.6, 0.8), abs=1e-7)
    assert plain.get("p", "a").embedding == (3.0, 4.0)
    assert plain.get("p", "b") is None
    assert plain.get("q", "a") is None


def test_products_know_length_and_zeros(make):
    index = make(VectorDescriptor(dimension=2, metric="dot_product", normalization="none"))
    index.replace_partition("p", [record("zero", 0, 0), record("long", 10, 0), record("less", -1, 0)])
    result = index.search(VectorSearchRequest(embedding=[2, 0]))
    assert [(hit.id, hit.score) for hit in result.hits] == [("long", 20.0), ("zero", 0.0), ("less", -2.0)]
    nowhere = index.search(VectorSearchRequest(embedding=[0, 0], limit=2))
    assert [(hit.id, hit.score) for hit in nowhere.hits] == [("less", 0.0), ("long", 0.0)]
    assert nowhere.truncated


@pytest.mark.parametrize(
    ("records", "error", "kind"),
    [
        ([record("a", 1)], DimensionMismatch, "dimension_mismatch"),
        ([record("a", float("nan"), 1)], NonFiniteVector, "non_finite_vector"),
        ([record("a", 1e39, 1)], NonFiniteVector, "non_finite_vector"),
        ([record("a", 0, 0)], ZeroVector, "zero_vector"),
        ([record("a", 1, 0), record("a", 0, 1)], DuplicateRecordId, "duplicate_record_id"),
        ([record(" ", 1, 0)], InvalidRecordId, "invalid_record_id"),
        ([record("\ud800", 1, 0)], InvalidRecordId, "invalid_record_id"),
        ([VectorRecord(id="a", embedding=[1, 0], labels={" ": "x"})], InvalidLabel, "invalid_label"),
        ([VectorRecord(id="a", embedding=[1, 0], labels={"k": 3})], InvalidLabel, "invalid_label"),
    ],
)
def test_a_wrong_record_is_refused_and_changes_nothing(make, records, error, kind):
    index = make(PLANE)
    with pytest.raises(error) as refused:
        index.replace_partition("p", records)
    assert refused.value.details["kind"] == kind
    assert isinstance(refused.value, InvalidRequest)
    assert (index.status().revision, index.status().record_count) == (0, 0)


def test_the_first_wrong_record_is_named_whatever_is_wrong_with_later_ones(make):
    index = make(PLANE)
    with pytest.raises(NonFiniteVector) as refused:
        index.replace_partition("p", [record("a", 1, 0), record("b", 1, float("inf")), record("a", 1, 0)])
    assert (refused.value.context, refused.value.element_index) == ("records[1]", 1)
    with pytest.raises(DimensionMismatch) as short:
        index.replace_partition("p", [record("a", 1, 0), record("b", 1)])
    assert (short.value.context, short.value.expected, short.value.actual) == ("records[1]", 2, 1)


@pytest.mark.parametrize("embedding", [[[1, 0]], "ab", [1, "x"], [[1], [1, 2]], [1j, 0], None])
def test_what_is_no_row_of_numbers_is_refused(make, embedding):
    with pytest.raises(InvalidRequest):
        make(PLANE).replace_partition("p", [VectorRecord(id="a", embedding=embedding)])


def test_arrays_of_numpy_are_taken_as_lists_are(make):
    index = make(PLANE)
    index.replace_partition("p", [VectorRecord(id="a", embedding=np.array([1, 2], dtype=np.int64))])
    other = make(PLANE)
    other.replace_partition("p", [record("a", 1.0, 2.0)])
    assert index.get("p", "a") == other.get("p", "a")


@pytest.mark.parametrize("name", ["", " \t", "\ud800", None, 3])
def test_a_partition_without_a_name_is_refused(make, name):
    index = make(PLANE)
    with pytest.raises(InvalidPartition):
        index.replace_partition(name, [record("a", 1, 0)])
    with pytest.raises(InvalidPartition):
        index.remove_partition(name)


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({"limit": 0}, InvalidSearch),
        ({"limit": True}, InvalidSearch),
        ({"min_score": float("nan")}, InvalidSearch),
        ({"embedding": [1]}, DimensionMismatch),
        ({"embedding": [0, 0]}, ZeroVector),
        ({"embedding": [float("inf"), 0]}, NonFiniteVector),
        ({"partitions": [" "]}, InvalidPartition),
        ({"partitions": "abc"}, InvalidPartition),
        ({"labels": {"": "x"}}, InvalidLabel),
        ({"labels": {"k": []}}, InvalidLabel),
        ({"labels": {"k": 3}}, InvalidLabel),
        ({"labels": {"k": [3]}}, InvalidLabel),
    ],
)
def test_a_search_for_what_cannot_be_is_refused(make, asked, error):
    index = make(PLANE)
    index.replace_partition("p", [record("a", 1, 0)])
    with pytest.raises(error):
        index.search(VectorSearchRequest(**{"embedding": [1, 0], **asked}))


def test_a_budget_of_records_is_kept_by_the_whole_index(make):
    index = make(VectorDescriptor(dimension=2, max_records=2))
    index.replace_partition("p", [record("a", 1, 0)])
    with pytest.raises(BudgetExceeded) as refused:
        index.replace_partition("q", [record("a", 1, 0), record("b", 1, 0)])
    assert (refused.value.resource, refused.value.limit, refused.value.required) == ("records", 2, 3)
    assert isinstance(refused.value, QueryLimit)
    with pytest.raises(BudgetExceeded):
        index.replace_partition("q", [record(str(n), 1, 0) for n in range(3)])
    assert index.status().revision == 1
    index.replace_partition("p", [record("a", 1, 0), record("b", 1, 0)])


def test_a_budget_of_bytes_counts_names_ids_and_labels(make):
    index = make(VectorDescriptor(dimension=2, max_bytes=8))
    with pytest.raises(BudgetExceeded) as refused:
        index.replace_partition("p", [record("a", 1, 0)])
    assert (refused.value.resource, refused.value.limit, refused.value.required) == ("bytes", 8, 10)
    assert index.status().revision == 0
    exact = make(VectorDescriptor(dimension=2, max_bytes=10))
    assert exact.replace_partition("p", [record("a", 1, 0)]).byte_count == 10
    with pytest.raises(BudgetExceeded):
        exact.replace_partition("q", [record("a", 1, 0)])


def test_several_partitions_change_in_one_step_or_not_at_all(make):
    index = make(PLANE)
    index.replace_partition("old", [record("a", 1, 0)])
    batch = [
        ReplacePartition(name="p", records=[record("p", 1, 0)]),
        ReplacePartition(name="q", records=[record("q", 0, 1)]),
        RemovePartition(name="old"),
    ]
    assert index.apply(batch).revision == 2
    assert [(one.name, one.revision) for one in index.partitions()] == [("p", 2), ("q", 2)]
    with pytest.raises(ZeroVector):
        index.apply([RemovePartition(name="p"), ReplacePartition(name="q", records=[record("q", 0, 0)])])
    assert found(index, 1, 0) == ["p", "q"]
    with pytest.raises(InvalidRequest):
        index.apply([RemovePartition(name="p"), RemovePartition(name=" p ")])
    assert index.apply([]).revision == 2


def test_a_listing_goes_page_by_page_over_partitions_and_labels(make):
    index = make(PLANE)
    index.replace_partition("b", [record(f"{n}", 1, n, even=str(n % 2 == 0)) for n in range(5)])
    index.replace_partition("a", [record(f"{n}", 1, n, even=str(n % 2 == 0)) for n in range(3)])
    seen, cursor = [], None
    while True:
        page = index.list(labels={"even": "True"}, limit=2, cursor=cursor)
        seen += [(one.partition, one.record.id) for one in page.items]
        assert page.total == 5
        assert page.has_more is (page.cursor is not None)
        if page.cursor is None:
            break
        cursor = page.cursor
    assert seen == [("a", "0"), ("a", "2"), ("b", "0"), ("b", "2"), ("b", "4")]
    assert index.list(partitions=["a"], limit=3).items[2].record == index.get("a", "2")


def test_a_cursor_belongs_to_its_listing_and_its_index(make):
    index, other = make(PLANE), make(PLANE)
    for one in (index, other):
        one.replace_partition("p", [record("a", 1, 0), record("b", 1, 0)])
    cursor = index.list(limit=1).cursor
    index.replace_partition("p", [record("aa", 1, 0), record("c", 1, 0)])
    assert [one.record.id for one in index.list(limit=5, cursor=cursor).items] == ["aa", "c"]
    for wrong in (lambda: index.list(partitions=["p"], cursor=cursor), lambda: other.list(cursor=cursor)):
        with pytest.raises(InvalidRequest):
            wrong()
    for broken in ("", "!", "AAAA", cursor[:-2], 3):
        with pytest.raises(InvalidRequest):
            index.list(cursor=broken)
    for limit in (0, 1001, True):
        with pytest.raises(InvalidSearch):
            index.list(limit=limit)


def test_a_closed_index_is_unavailable_and_closing_again_is_fine(make):
    index = make(PLANE)
    index.replace_partition("p", [record("a", 1, 0)])
    index.close()
    index.close()
    for call in (index.status, index.observe, index.clear, lambda: found(index, 1, 0)):
        with pytest.raises(Unavailable):
            call()


def test_what_is_shown_of_values_holds_no_text():
    canary = "XQZ-canary"
    one = VectorRecord(id=canary, embedding=[1, 0], labels={canary: canary}, node_id=canary)
    with PartitionedVectorIndex.in_memory(PLANE) as index:
        index.replace_partition(canary, [one])
        request = VectorSearchRequest(embedding=[1, 0], partitions=[canary], labels={canary: canary})
        shown = [
            *(one, request, index.search(request), index.list(), index.partitions(), index.observe()),
            *(ReplacePartition(name=canary, records=[one]), RemovePartition(name=canary)),
        ]
    assert canary not in repr(shown)
