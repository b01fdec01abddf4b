"""Conditions on revisions, change tokens, and what an index of another's making gets for nothing."""

from __future__ import annotations

import json
import threading

import pytest

from perdure.errors import Conflict, InvalidRequest
from perdure.vectors import (
    ConditionalMutationUnsupported,
    InvalidChangeToken,
    InvalidObservation,
    PartitionedVectorIndex,
    PartitionRevisionConflict,
    ReplacePartition,
    RevisionConflict,
    VectorChangeToken,
    VectorIndex,
    VectorObservation,
    VectorSearchResult,
    VectorStatus,
    ZeroVector,
)
from vector_records import PLANE, found, record


class Minimal(VectorIndex):
    """An index that gives what it must and no more."""

    descriptor = PLANE

    def __init__(self):
        self.revision = 0

    def replace_partition(self, name, records):
        self.revision += 1
        return self.status()

    def remove_partition(self, name):
        return self.status()

    def clear(self):
        return self.status()

    def search(self, request):
        return VectorSearchResult(hits=(), status=self.status(), searched_records=0, truncated=False)

    def status(self):
        return VectorStatus(revision=self.revision, partition_count=0, record_count=0, byte_count=0)


def test_an_index_that_does_not_know_conditions_refuses_them_and_has_no_token():
    index = Minimal()
    for call in (
        lambda: index.replace_partition_if_revision("p", 0, []),
        lambda: index.remove_partition_if_revision("p", 0),
    ):
        with pytest.raises(ConditionalMutationUnsupported) as refused:
            call()
        assert refused.value.details["kind"] == "conditional_mutation_unsupported"
    assert (index.consistency, index.change_token(), index.status().revision) == ("partition_atomic", None, 0)
    index.observe().verify()
    assert index.observe() == VectorObservation(status=index.status(), token=None)


def test_an_index_without_the_required_methods_cannot_be_made():
    class Empty(VectorIndex):
        pass

    with pytest.raises(TypeError):
        Empty()


def test_the_index_of_the_package_keeps_conditions(make):
    index = make(PLANE)
    assert isinstance(index, VectorIndex)
    assert index.consistency == "index_revision_cas"


def test_a_stale_replacement_or_removal_leaves_the_newer_content(make):
    index = make(PLANE)
    index.replace_partition_if_revision("p", 0, [record("newer", 1, 0)])
    with pytest.raises(RevisionConflict) as stale:
        index.replace_partition_if_revision("p", 0, [record("older", 1, 0)])
    assert (stale.value.expected, stale.value.actual) == (0, 1)
    assert (stale.value.kind, stale.value.code) == ("revision_conflict", "conflict")
    index.replace_partition("other", [record("x", 0, 1)])
    with pytest.raises(RevisionConflict) as unrelated:
        index.remove_partition_if_revision("p", 1)
    assert (unrelated.value.expected, unrelated.value.actual) == (1, 2)
    assert found(index, 1, 0) == ["newer", "x"]
    assert index.remove_partition_if_revision("p", 2).revision == 3


def test_a_condition_is_checked_before_the_rule_for_nothing_to_do_and_after_the_records(make):
    index = make(PLANE)
    index.replace_partition("p", [record("a", 1, 0)])
    with pytest.raises(RevisionConflict):
        index.remove_partition_if_revision("not there", 0)
    assert index.remove_partition_if_revision("not there", 1).revision == 1
    with pytest.raises(ZeroVector):
        index.replace_partition_if_revision("p", 0, [record("a", 0, 0)])


def test_a_condition_on_a_partition_lets_others_change(make):
    index = make(PLANE)
    index.replace_partition("p", [record("a", 1, 0)], expected_partition_revision=0)
    index.replace_partition("other", [record("x", 0, 1)])
    index.replace_partition("p", [record("b", 1, 0)], expected_partition_revision=1)
    with pytest.raises(PartitionRevisionConflict) as stale:
        index.replace_partition("p", [record("c", 1, 0)], expected_partition_revision=1)
    assert (stale.value.expected, stale.value.actual, stale.value.kind) == (
        1,
        3,
        "partition_revision_conflict",
    )
    with pytest.raises(PartitionRevisionConflict):
        index.replace_partition("other", [record("y", 1, 0)], expected_partition_revision=0)
    with pytest.raises(PartitionRevisionConflict):
        index.remove_partition("not there", expected_partition_revision=2)
    index.remove_partition("p", expected_partition_revision=3)
    with pytest.raises(Conflict):
        index.apply(
            [
                ReplacePartition(name="new", records=[record("n", 1, 0)]),
                ReplacePartition(name="other", records=[], expected_partition_revision=1),
            ]
        )
    assert found(index, 1, 0) == ["x"]


@pytest.mark.parametrize("revision", [-1, 1.0, True, "0", 1 << 60])
def test_an_expected_revision_is_a_whole_number(make, revision):
    index = make(PLANE)
    with pytest.raises(InvalidRequest):
        index.replace_partition_if_revision("p", revision, [])
    with pytest.raises(InvalidRequest):
        index.replace_partition("p", [], expected_partition_revision=revision)


def test_of_two_racing_writers_one_succeeds_and_one_is_told_of_the_other(make):
    index = make(PLANE)
    start, outcomes = threading.Barrier(2), []

    def write(name):
        start.wait()
        try:
            outcomes.append(index.replace_partition_if_revision("p", 0, [record(name, 1, 0)]).revision)
        except RevisionConflict as conflict:
            outcomes.append((conflict.expected, conflict.actual))

    threads = [threading.Thread(target=write, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes, key=str) == [(0, 1), 1]
    assert index.status().revision == 1


def test_the_token_changes_with_every_effective_change_and_with_nothing_else(make):
    index = make(PLANE)
    first = index.change_token()
    first.verify()
    assert (first.profile, first.revision) == ("perdure.vector-index-change-token.v1", 0)
    index.remove_partition("p")
    index.clear()
    found(index, 1, 0)
    index.list()
    with pytest.raises(RevisionConflict):
        index.remove_partition_if_revision("p", 4)
    assert index.change_token() == first
    index.replace_partition("p", [record("a", 1, 0)])
    second = index.change_token()
    assert (second.history_id, second.revision) == (first.history_id, 1)
    assert second.head_digest != first.head_digest
    observation = index.observe()
    observation.verify()
    assert (observation.status, observation.token) == (index.status(), second)


def test_equal_content_at_one_revision_has_one_head_digest_whatever_the_order_of_records(make):
    index, other = make(PLANE), make(PLANE)
    records = [record("a", 1, 0, k="v"), record("b", 0, 1)]
    index.replace_partition("p", records)
    other.replace_partition("p", records[::-1])
    assert index.change_token().head_digest == other.change_token().head_digest
    assert index.change_token().history_id != other.change_token().history_id
    other.replace_partition("p", records)
    assert index.change_token().head_digest != other.change_token().head_digest


def test_a_shared_handle_has_the_same_token_and_sees_the_same():
    with PartitionedVectorIndex.in_memory(PLANE) as index:
        other = index.share()
        other.replace_partition("p", [record("a", 1, 0)])
        assert index.change_token() == other.change_token()
        assert found(index, 1, 0) == ["a"]


def test_a_token_goes_through_json_and_holds_no_text(make):
    index = make(PLANE)
    index.replace_partition("canary", [record("canary", 1, 0, canary="canary")])
    token = index.change_token()
    assert VectorChangeToken.from_json(token.to_json()) == token
    assert b"canary" not in token.to_json()


DIGEST = "sha256:" + "0" * 64


@pytest.mark.parametrize(
    "change",
    [
        {"profile": "other"},
        {"history_id": ""},
        {"history_id": DIGEST[:-1]},
        {"history_id": "sha256:" + "A" * 64},
        {"head_digest": "0" * 64},
        {"revision": -1},
        {"revision": "1"},
        {"more": 1},
    ],
)
def test_what_is_no_token_is_refused(change):
    told = {"profile": "perdure.vector-index-change-token.v1", "history_id": DIGEST, "head_digest": DIGEST}
    VectorChangeToken.from_json(json.dumps({**told, "revision": 0}))
    with pytest.raises(InvalidChangeToken):
        VectorChangeToken.from_json(json.dumps({**told, "revision": 0, **change}))


def test_an_observation_of_two_moments_is_refused(make):
    token = make(PLANE).change_token()
    status = VectorStatus(revision=4, partition_count=0, record_count=0, byte_count=0)
    with pytest.raises(InvalidObservation):
        VectorObservation(status=status, token=token).verify()


def test_searches_see_one_generation_while_it_is_replaced(make):
    index = make(PLANE)
    generation = lambda n: [record(f"{n}-{at}", 1, at) for at in range(8)]  # noqa: E731
    index.replace_partition("p", generation(0))
    done, mixed = threading.Event(), []

    def search():
        while not done.is_set():
            ids = found(index, 1, 0, limit=8)
            if len(ids) != 8 or len({one.split("-")[0] for one in ids}) != 1:
                mixed.append(ids)

    searcher = threading.Thread(target=search)
    searcher.start()
    for number in range(1, 51):
        index.replace_partition("p", generation(number))
    for _ in range(200):
        assert found(index, 1, 0, limit=1) == ["50-0"]
    done.set()
    searcher.join()
    assert mixed == []
    assert index.status().revision == 51
