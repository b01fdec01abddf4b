"""An export with a filter holds what would be left if all else had been forgotten."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from perdure import ManualClock, MemoryConfig, Store
from properties.memory_run import CONFIGS, random_script
from properties.strategies import a_call
from properties.test_transfer import Source, body, exported, moved
from scenarios.stores import NOW

FILTERS: list[dict[str, Any]] = [
    {"team": 1},
    {"team": {"$exists": False}},
    {"deep.b[1]": True},
    {"@subject": "s"},
    {"@subject": {"$ne": "s"}},
    {"@tags": {"$contains": "red"}},
    {"@entities": {"$in": ["Ann"]}},
    {"@kind": {"$exists": True}},
    {"@importance": {"$gte": 0.5}},
    {"@validFrom": {"$lt": 5}},
    {"@validTo": {"$exists": True}},
    {"@ingestTime": {"$gt": 102}},
    {"@eventTime": {"$exists": False}},
    {"nothing": 1},
]


def left(store: Store, told: dict[str, Any]) -> bytes:
    """What an export holds of a copy in which all else was forgotten."""
    whole = moved(store, MemoryConfig())
    for name in whole.spaces():
        whole.memory(name.principal, name.scope).forget(filter={"$not": told})
    return body(exported(whole))


@pytest.mark.parametrize("seed", range(4))
def test_what_is_exported_is_what_a_forget_of_the_rest_leaves(seed):
    random = Random(seed)
    source = Source(random.choice(CONFIGS), random)
    source.live(random_script(seed, 120, a_call))
    sizes = set()
    for told in FILTERS:
        lines = body(exported(source.store, filter=told))
        assert lines == left(source.store, told), told
        sizes.add(len(lines))
    assert len(sizes) > len(FILTERS) / 2


def test_what_lies_between_two_versions_leaves_no_older_one_current():
    clock = ManualClock(NOW)
    with Store.open(":memory:", clock=clock) as store:
        memory = store.memory()
        memory.remember("a", id="a", valid_from=1, metadata={"team": "x"})
        memory.remember("b", id="b", valid_from=2, supersedes=["a"], metadata={"team": "x"})
        memory.remember("c", id="c", valid_from=3, supersedes=["b"], metadata={"team": "x"})
        memory.annotate("b", metadata={"team": "y"})
        store.documents().put("d", "a document", metadata={"team": "x"})
        memory.remember("e", id="e", metadata={"team": "x"}, idempotency_key="of e")
        memory.remember("f", id="f", metadata={"team": "y"}, idempotency_key="of f")
        memory.forget(ids=["e"], soft=True)
        told = {"team": "x"}
        assert body(exported(store, filter=told)) == left(store, told)
        with Store.open(":memory:", clock=clock) as target:
            target.import_([exported(store, filter=told)])
            there = target.memory()
            assert [fact.id for fact in there.list().items] == ["a", "c"]
            assert [fact.id for fact in there.list(hidden=True).items] == ["e"]
            assert target.documents().has("d")
            assert [there.get("a", as_of=at).status for at in (1, 2, 3)] == [
                "current",
                "current",
                "superseded",
            ]
            assert there.remember("f", id="f", idempotency_key="of f").outcome == "created"


def test_a_filter_that_nothing_matches_exports_no_memory():
    with Store.open(":memory:") as store:
        store.memory().remember("a", metadata={"team": "x"})
        assert exported(store, filter={"team": "y"}).count(b"\n") == 2  # header and total
