"""`valid_during`: what was current at some instant of an interval, by validity and supersession, as known then."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from perdure import ManualClock, Memory, MemoryConfig
from properties.memory_run import CONFIGS, listed, recalled
from properties.strategies import scripts
from properties.test_memory_machine import SideBySide
from unit.memory.refusals import refused

SLOTS = MemoryConfig(supersession="latest-by-subject")
intervals = st.tuples(st.sampled_from((0, 1, 4, 97, 100, 104)), st.sampled_from((1, 2, 7))).map(
    lambda pair: (pair[0], pair[0] + pair[1])
)


@given(st.sampled_from(CONFIGS), scripts(), intervals, st.sampled_from((None, 99, 102)))
@settings(max_examples=examples(32), deadline=None)
def test_list_and_recall_give_what_some_instant_of_the_interval_makes_current(
    config, script, interval, known_at
):
    both = SideBySide(config)
    for call in script:
        both.run(call)
    expected = {
        id_
        for at in range(*interval)
        for id_, status in both.oracle.statuses(at, known_at).items()
        if status == "current"
    }
    memory, asked = both.space.memory, {"valid_during": interval, "known_at": known_at}
    assert {fact.id for fact in listed(memory, **asked)} == expected
    assert recalled(memory, **asked).keys() == expected


@pytest.fixture
def city():
    with Memory.open(":memory:", config=SLOTS, clock=ManualClock(1_000)) as memory:
        memory.remember("Alice lives in Paris", id="paris", subject="city", valid_from=10)
        memory.remember("Alice lives in Berlin", id="berlin", subject="city", valid_from=20, valid_to=30)
        yield memory


@pytest.mark.parametrize(
    ("interval", "ids"),
    [
        ((0, 10), []),
        ((0, 11), ["paris"]),
        ((19, 20), ["paris"]),
        ((20, 21), ["berlin"]),
        ((19, 21), ["berlin", "paris"]),
        ((29, 30), ["berlin"]),
        ((30, 31), []),
    ],
)
def test_the_interval_begins_with_its_first_moment_and_ends_before_its_last(city, interval, ids):
    assert sorted(hit.id for hit in city.recall("Alice", valid_during=interval)) == ids
    assert sorted(fact.id for fact in city.list(valid_during=interval).items) == ids
    for id_ in ("paris", "berlin"):
        reason = city.explain("Alice", id_, valid_during=interval).reason
        assert reason == ("returned" if id_ in ids else "not-current")


def test_a_retracted_fact_was_current_at_no_instant_but_was_so_as_known_before():
    with Memory.open(":memory:", clock=(clock := ManualClock(1_000))) as memory:
        memory.remember("Alice lives in Rome", id="rome", valid_from=12, valid_to=14)
        clock.advance(5)
        memory.retract("rome")
        assert memory.recall("Alice", valid_during=(0, 100)) == []
        assert [hit.id for hit in memory.recall("Alice", valid_during=(0, 100), known_at=1_001)] == ["rome"]


def test_pages_of_a_listing_go_on_only_with_the_same_interval(city):
    page = city.list(valid_during=(0, 100), limit=1)
    rest = city.list(valid_during=(0, 100), limit=1, cursor=page.cursor)
    assert {one.id for one in (*page.items, *rest.items)} == {"paris", "berlin"}
    refused(city, lambda: city.list(valid_during=(0, 99), cursor=page.cursor), "cursor")
    refused(city, lambda: city.list(cursor=page.cursor), "cursor")


def test_an_interval_goes_with_no_history_and_no_status_and_ends_after_it_begins(memory):
    for call in (memory.recall, memory.trace):
        for value in ((5, 5), (6, 5), (5,), (5, 6, 7), 5, "56", ("a", "b"), (None, 5), (True, 5), {1: 2}):
            refused(memory, lambda call=call, value=value: call("fact", valid_during=value), "valid_during")
        refused(memory, lambda call=call: call("fact", valid_during=(1, 2), history="all"), "valid_during")
    refused(memory, lambda: memory.list(valid_during=(1, 2), status="current"), "valid_during")
    refused(memory, lambda: memory.list(valid_during=(2, 1)), "valid_during")


def test_no_interval_is_as_if_it_were_not_named(memory):
    memory.remember("a fact", id="a")
    assert memory.recall("fact", valid_during=None, history="all") == memory.recall("fact", history="all")
