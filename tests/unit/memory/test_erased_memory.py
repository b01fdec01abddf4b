"""A memory that somebody holds while its principal is erased is empty from then on, and can be told anew."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("purged_before", [False, True])
@pytest.mark.parametrize("others", [(), ("somebody else",)])
def test_a_memory_that_was_erased_shows_nothing_any_more_and_takes_new_facts(store, others, purged_before):
    if purged_before:
        store.purge()
    memory = store.memory("ann")
    memory.remember("a fact of Ann", id="x", subject="s")
    for other in others:
        store.memory(other).remember("a fact of another", id="y")
    assert memory.get("x") is not None
    assert store.erase("ann").facts == 1
    assert memory.get("x") is None
    assert (memory.list().total, memory.list(subject="s").total, memory.history("x")) == (0, 0, [])
    assert memory.recall("fact", history="all") == []
    assert [store.memory(other).get("y").text for other in others] == ["a fact of another"] * len(others)
    memory.remember("a new fact of Ann", id="x")
    assert [hit.text for hit in memory.recall("fact")] == ["a new fact of Ann"]
    assert store.stats().facts == 1 + len(others)
