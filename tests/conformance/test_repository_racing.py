"""Writers that race on one node, and change sets that are told again long after, on every log."""

from __future__ import annotations

import threading

import pytest

from governed import BACKENDS, change, corroborate, create, create_active, opened, revise
from perdure.errors import PerdureError
from perdure.model.node import Relation
from perdure.model.node_limits import CLOSURE_MAX, OPERATIONS_MAX, RELATIONS_MAX
from perdure.repository_errors import LimitExceeded, RevisionConflict

WRITERS, ROUNDS = 16, 4
UNRELATED = 10_000


@pytest.fixture(params=BACKENDS)
def store(request, tmp_path):
    with opened(tmp_path, request.param) as store:
        yield store


def test_of_sixteen_writers_one_wins_each_revision_and_the_others_are_told_the_current_one(store):
    repository = store.repository("alice")
    repository.apply(change("first", create_active("n", "content 1")))
    start = threading.Barrier(WRITERS)
    won, lost, odd = [], [], []

    def write(writer):
        for round_ in range(ROUNDS):
            seen = repository.get("n").revision
            start.wait(timeout=60)
            try:
                told = change(f"{round_} of {writer}", revise("n", seen, f"of {writer} in {round_}"))
                won.append((repository.apply(told).nodes[0].revision, writer, round_))
            except RevisionConflict as conflict:
                lost.append((seen, conflict.expected, conflict.actual))
            except PerdureError as error:
                odd.append(error)
            start.wait(timeout=60)

    threads = [threading.Thread(target=write, args=(n,)) for n in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert odd == []
    assert sorted(revision for revision, _, _ in won) == list(range(2, 2 + ROUNDS))
    assert len(lost) == (WRITERS - 1) * ROUNDS
    assert all(expected == seen and actual == seen + 1 for seen, expected, actual in lost)
    kept = repository.revisions("n").items
    assert [node.revision for node in kept] == list(range(1, 2 + ROUNDS))
    assert [node.content for node in kept[1:]] == [
        f"of {writer} in {round_}" for _, writer, round_ in sorted(won)
    ]
    assert store.verify().ok


@pytest.mark.slow  # 10,000 nodes on each log take some seconds
def test_a_change_set_told_again_after_ten_thousand_others_gives_its_first_answer(store):
    repository = store.repository("alice")
    told = change("k", create_active("n", "the first content"))
    first = repository.apply(told)
    for start in range(0, UNRELATED, OPERATIONS_MAX):
        some = range(start, min(UNRELATED, start + OPERATIONS_MAX))
        repository.apply(change(f"others {start}", *(create(f"other {n}") for n in some)))
    repository.apply(change("later", revise("n", 1, "another content")))
    before = repository.change_token()
    assert repository.apply(told) == first
    assert repository.change_token() == before
    assert (repository.get("n").revision, repository.get("n").content) == (2, "another content")


def test_a_change_set_that_touches_too_many_nodes_is_refused_whole(store, monkeypatch):
    repository = store.repository("alice")
    ends = [create(f"end {n}", relations=[Relation("related_to", "hub")]) for n in range(4)]
    hub = create("hub", relations=[Relation("related_to", f"end {n}") for n in range(4)])
    repository.apply(change("k", hub, *ends))
    monkeypatch.setattr("perdure.repository.graph.CLOSURE_MAX", 5)
    with pytest.raises(LimitExceeded) as refused:
        repository.apply(change("l", create("other"), corroborate("hub", 1)))
    assert (refused.value.limit, refused.value.actual) == (5, 6)
    assert (repository.get("other"), repository.get("hub").revision) == (None, 1)
    assert repository.apply(change("l", corroborate("hub", 1))).nodes[0].revision == 2


def test_no_change_set_within_the_other_limits_joins_too_many_nodes():
    """Each operation changes one node, which has so many relations and may gain or lose one."""
    assert OPERATIONS_MAX * (1 + RELATIONS_MAX + 1) <= CLOSURE_MAX
