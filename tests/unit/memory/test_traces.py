"""A trace: what recall gives, what it leaves out and why, counted whole and listed up to a limit."""

from __future__ import annotations

import pytest

from perdure import InvalidRequest, ManualClock, Memory, MemoryConfig
from unit.memory.refusals import MARKER, refused


@pytest.fixture
def boats():
    with Memory.open(":memory:", clock=ManualClock(100), config=MemoryConfig(trace_limit=3)) as memory:
        memory.remember("a red boat", id="red", tags=["sea"])
        memory.remember("a blue boat on the lake", id="blue")
        memory.remember("a boat of old", id="old", valid_to=50)
        memory.remember("a house", id="house")
        memory.remember("a boat in a bottle that is hidden", id="gone")
        memory.forget(ids=["gone"], soft=True)
        yield memory


def test_counts_and_reasons_tell_the_way_of_every_fact(boats):
    found = boats.trace("boat", k=1, as_of=100)
    assert (found.query, found.options) == ("boat", {"k": 1, "as_of": 100})
    counts = (found.seen, found.eligible, found.matched, found.scored, found.returned)
    assert counts == (4, 3, 2, 2, 1)
    assert [hit.id for hit in found.results] == ["red"]
    assert [(one.id, one.reason, one.status) for one in found.rejected] == [
        ("blue", "below-k", "current"),
        ("old", "not-current", "expired"),
        ("house", "no-match", "current"),
    ]


def test_the_filter_that_left_a_fact_out_is_named(boats):
    boats.annotate("old", metadata={"team": 1})
    found = boats.trace("boat", tags=["sea"], filter={"team": 2}, subject="s", history="all")
    assert [one.filter for one in found.rejected] == [
        ("subject", "filter"),
        ("subject", "tags", "filter"),
        ("subject", "tags", "filter"),
    ]
    assert {one.reason for one in found.rejected} == {"filtered"}


def test_the_limit_bounds_the_list_and_not_the_counts(boats):
    for number in range(20):
        boats.remember(f"a boat with number {number}", id=f"n{number}")
    found = boats.trace("boat", k=2, candidate_limit=4)
    assert (found.seen, found.matched, found.scored, found.returned) == (24, 22, 4, 2)
    assert [one.reason for one in found.rejected] == ["below-k", "below-k", "below-candidates"]


def test_a_limit_of_0_lists_nothing():
    with Memory.open(":memory:", config=MemoryConfig(trace_limit=0)) as memory:
        memory.remember("a house")
        found = memory.trace("boat")
        assert (found.seen, found.rejected) == (1, ())


@pytest.mark.parametrize("limit", [-1, 100_001, True, 1.5, "3"])
def test_the_limit_is_a_whole_number_within_its_range(limit):
    with pytest.raises(InvalidRequest, match="trace_limit"):
        MemoryConfig(trace_limit=limit)


def test_a_trace_refuses_what_recall_refuses(boats):
    for options, field in (
        ({"k": 0}, "k"),
        ({"history": "past"}, "history"),
        ({"tags": MARKER}, "tags"),
        ({"as_off": 1}, "as_off"),
        ({"mode": "semantic"}, "mode"),
    ):
        refused(boats, lambda options=options: boats.trace("boat", **options), field)
    refused(boats, lambda: boats.trace(" "), "query")


def test_a_trace_of_an_empty_memory_is_empty(memory):
    found = memory.trace("boat")
    assert (found.seen, found.eligible, found.matched, found.scored, found.returned) == (0, 0, 0, 0, 0)
    assert (found.results, found.rejected) == ((), ())


def test_a_trace_changes_nothing_and_needs_no_writable_store(boats):
    before = boats.changes().cursor
    boats.trace("boat")
    assert boats.changes().cursor == before


def test_what_a_memory_says_that_it_can_do_names_traces_and_differences(memory):
    assert {"trace", "diff"} <= set(memory.capabilities().operations)
