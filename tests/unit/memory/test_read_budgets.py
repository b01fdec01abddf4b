"""A budget that does not cover a question refuses it; whatever comes back is the whole answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from perdure import Limits, ManualClock, MemoryConfig, QueryLimit, Store

ASKING: dict[str, dict[str, Any]] = {
    "by words": {},
    "with context": {"context": True},
    "by meaning": {"mode": "semantic", "embedding": [1.0, 0.5]},
    "by both": {"embedding": [1.0, 0.5]},
    "by both with context": {"embedding": [1.0, 0.5], "context": True},
    "with a scope": {"subject": "s"},
    "with a filter": {"filter": {"n": {"$gte": 3}}},
    "with a tag": {"tags": ["t"]},
    "pinned": {"pinned": True},
    "as known then": {"known_at": 105},
    "of the past": {"history": "historical"},
    "during an interval": {"valid_during": (0, 50)},
    "by both, filtered, as known then": {
        "embedding": [1.0, 0.5],
        "filter": {"n": {"$gte": 3}},
        "known_at": 110,
    },
}
FACTS = 40
READS = {
    "recall": lambda memory, options: memory.recall("boat red", explain=True, **options),
    "explain": lambda memory, options: memory.explain("boat red", "f3", **options),
    "trace": lambda memory, options: memory.trace("boat red", **options),
}


@pytest.fixture(scope="module")
def store():
    clock = ManualClock(100)
    with Store.open(":memory:", clock=clock) as opened:
        memory = opened.memory()
        for number in range(FACTS):
            memory.remember(
                f"a {('red', 'blue')[number % 2]} boat {number}",
                id=f"f{number}",
                subject=("s", None, "o")[number % 3],
                metadata={"n": number},
                tags=["t"] if number % 3 else None,
                pinned=number < 7,
                valid_to=(None, 40)[number % 5 == 0],
                embedding=[1.0, number / 10],
                source={"uri": "u", "position": number},
            )
            clock.advance(1)
        yield opened


def refusal(call: Callable[[], Any], whole: Any) -> QueryLimit | None:
    """Return the refusal of a call, None where it gives the whole answer."""
    try:
        found = call()
    except QueryLimit as refused:
        return refused
    assert found == whole
    return None


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("asking", ASKING)
def test_the_answer_is_whole_or_refused_and_never_part_of_it(store, read, asking):
    options, whole, refused = ASKING[asking], READS[read](store.memory(), ASKING[asking]), []
    for work in (1, 2, 5, 10, 20, 39, 40, 41, 80, 200, 1_000, 10_000):
        memory = store.memory(config=MemoryConfig(limits=Limits(work=work)))
        found = refusal(lambda memory=memory: READS[read](memory, options), whole)
        if found is not None:
            refused.append((found.details["resource"], found.details["limit"] == work))
    assert set(refused) == {("work", True)}, "one unit of work is not enough for anything"
    assert len(refused) < 12


@pytest.mark.parametrize("asking", ["as known then", "of the past", "during an interval"])
def test_what_has_to_be_kept_of_the_rows_is_bounded_too(store, asking):
    options, whole = ASKING[asking], store.memory().recall("boat red", **ASKING[asking])
    for size in (1, FACTS - 1, FACTS, 10_000):
        memory = store.memory(config=MemoryConfig(limits=Limits(bytes=size)))
        found = refusal(lambda memory=memory: memory.recall("boat red", **options), whole)
        assert (found is not None) == (size < FACTS)
        assert found is None or found.details["resource"] == "bytes"


@pytest.mark.parametrize("asking", ["with a scope", "with a filter", "with a tag", "pinned"])
@pytest.mark.parametrize("mode", ["lexical", "semantic"])
def test_each_id_that_a_scope_leaves_takes_four_bytes(store, asking, mode):
    asked = {
        "k": 1,
        **ASKING[asking],
        **({"mode": mode, "embedding": [1.0, 0.5]} if mode == "semantic" else {}),
    }
    whole = store.memory().recall("boat red", **asked)
    size = 4 * store.memory().list(**ASKING[asking]).total
    assert 0 < size < 4 * FACTS
    for limit in (1, size - 1, size):
        memory = store.memory(config=MemoryConfig(limits=Limits(bytes=limit)))
        found = refusal(lambda memory=memory: memory.recall("boat red", **asked), whole)
        assert (found is not None) == (limit < size)
        assert found is None or found.details == {"resource": "bytes", "limit": limit}


def test_a_refusal_says_what_would_help(store):
    memory = store.memory(config=MemoryConfig(limits=Limits(work=FACTS - 1)))
    with pytest.raises(QueryLimit, match=r"equality of a top-level key.*raise limits\.work"):
        memory.recall("boat red", filter={"n": {"$gte": 3}})
    with pytest.raises(QueryLimit, match=r"equality of a top-level key"):
        store.memory(config=MemoryConfig(limits=Limits(work=FACTS))).list(filter={"n": {"$gte": 3}})
    with pytest.raises(QueryLimit, match=r"; raise limits\.work"):
        memory.list()
    with pytest.raises(QueryLimit, match=r"narrow it by subject"):
        memory.recall("boat red")
    assert memory.recall("boat red", filter={"n": 3})[0].id == "f3"


@pytest.mark.parametrize("call", ["list", "diff"])
def test_a_listing_and_a_difference_look_at_each_row_once(store, call):
    calls = {
        "list": lambda memory: memory.list(valid_during=(0, 50), limit=1_000),
        "diff": lambda memory: memory.diff((100, 120)),
    }
    whole = calls[call](store.memory())
    for work in (1, FACTS - 1):
        with pytest.raises(QueryLimit):
            calls[call](store.memory(config=MemoryConfig(limits=Limits(work=work))))
    assert calls[call](store.memory(config=MemoryConfig(limits=Limits(work=FACTS)))) == whole
