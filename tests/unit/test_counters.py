"""What a store counts in its process: what is in memory, what had to be read, what went to the disk."""

from __future__ import annotations

import pytest

from perdure import ManualClock, Store
from perdure.log.memory import MemoryLog


@pytest.fixture(params=["sqlite", "journal", "memory"])
def open_store(request, tmp_path):
    kept = MemoryLog()

    def open_() -> Store:
        clock = ManualClock(1_772_366_400_000)
        if request.param == "memory":
            return Store.open(log=kept, clock=clock)
        return Store.open(tmp_path / "store", backend=request.param, clock=clock)

    return open_


def test_a_store_that_did_nothing_counted_nothing(open_store):
    with open_store() as store:
        found = store.counters()
    assert (found.spaces_loaded, found.facts_loaded, found.hits, found.misses, found.commits) == (
        0,
        0,
        0,
        0,
        0,
    )


def test_each_write_is_a_commit_and_no_read_is_one(open_store):
    with open_store() as store:
        memory = store.memory("ann")
        memory.remember("Ann has a kettle", id="a")
        first = store.counters()
        memory.recall("kettle")
        memory.get("a")
        assert store.counters().commits == first.commits
        memory.remember("Ann has a teapot")
        last = store.counters()
    assert last.commits == first.commits + 1
    assert 0 < first.commit_seconds < last.commit_seconds


def test_what_is_in_memory_is_counted_in_each_space_and_no_longer_when_it_is_gone(open_store):
    with open_store() as store:
        for name in ("ann", "bob"):
            store.memory(name).remember_many(
                [{"text": f"{name} has a kettle"}, {"text": f"{name} has a teapot"}]
            )
        found = store.counters()
        assert (found.spaces_loaded, found.facts_loaded) == (2, 4)
        store.erase("bob")
        assert store.counters().facts_loaded == 2


def test_a_question_hits_what_is_in_memory_and_misses_once_what_is_not(tmp_path):
    with Store.open(tmp_path / "store") as store:
        store.memory().remember("Ann has a kettle")
    with Store.open(tmp_path / "store") as store:
        for _ in range(4):
            store.memory().recall("kettle")
        found = store.counters()
        assert found.misses == 1
        assert found.hits >= 3
    assert store.counters().commits == found.commits  # also of a closed one
