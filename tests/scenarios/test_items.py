"""Small items with importance, tags and kind: kept, ranked, merged and pruned as a list of things worth remembering."""

from __future__ import annotations

import pytest

from perdure import Conflict, InvalidRequest, MemoryConfig, NewFact
from perdure.policies import Prune, Relevance
from perdure.policies.relevance import RELEVANCE_SHARE
from scenarios.stores import DAY_MS, EVERY_BACKEND, NOW_MS, ids, texts

RELEVANCE = MemoryConfig(ranking="relevance")
MERGING = MemoryConfig(dedup="merge-exact")


@pytest.fixture(params=EVERY_BACKEND)
def backend(request):
    return str(request.param)


def relevance(importance, days, **weights):
    """How relevant a fact is by itself: what relevance adds to a match, of the most that it can add."""
    parts = Relevance(**weights).parts(0.0, top=1.0, importance=importance, age_ms=days * DAY_MS)
    return (parts.importance + parts.recency) / RELEVANCE_SHARE


def test_an_item_is_kept_as_it_was_told_and_an_unknown_one_is_none(memory):
    memory.remember("Use ripgrep", id="a", importance=0.8, tags=["tools", "search"], kind="procedural")
    item = memory.get("a")
    assert (item.text, item.importance, item.tags, item.kind) == (
        "Use ripgrep",
        0.8,
        ("search", "tools"),
        "procedural",
    )
    assert memory.get("b") is None
    memory.remember("Nothing told of it", id="plain")
    assert (memory.get("plain").kind, memory.get("plain").importance) == (None, None)


def test_a_search_gives_matches_only_in_any_case_and_no_more_than_asked(memory):
    memory.remember_many(["The Release Provider needs a check", "the release notes", "lunch at noon"])
    assert sorted(texts(memory.recall("RELEASE"))) == [
        "The Release Provider needs a check",
        "the release notes",
    ]
    assert len(memory.recall("release", k=1)) == 1
    assert memory.recall("release provider check", k=1)[0].text == "The Release Provider needs a check"
    assert memory.recall("unheard-of") == []


def test_items_are_listed_by_tag_by_time_and_by_importance(memory, clock):
    for id_, importance, tags in (("a", 0.2, ["x"]), ("b", 0.9, ["x", "y"]), ("c", 0.7, ["y"])):
        memory.remember(f"item {id_}", id=id_, importance=importance, tags=tags)
        clock.advance(1)
    assert ids(memory.list(tags=["x"], order="ingest").items) == ["a", "b"]
    assert memory.list(tags=["unknown"]).items == ()
    assert ids(memory.list(order="-ingest", limit=2).items) == ["c", "b"]
    important = memory.list(filter={"@importance": {"$gte": 0.7}}, order="-importance")
    assert ids(important.items) == ["b", "c"]
    assert ids(memory.list(order="-importance", limit=1).items) == ["b"]


def test_deleting_takes_one_away_also_one_that_is_not_there_and_clearing_takes_all(memory):
    memory.remember_many([NewFact(text=f"item {n}", id=f"{n}") for n in range(4)])
    assert memory.list().total == 4
    memory.forget(ids=["0"])
    memory.forget(ids=["unknown"])
    assert memory.get("0") is None
    assert memory.list().total == 3
    memory.forget(all=True)
    assert memory.list().total == 0


def test_between_equal_matches_the_more_important_item_comes_first(store):
    memory = store.memory(config=RELEVANCE)
    memory.remember("memory of the boat", id="low", importance=0.2)
    memory.remember("memory of the boat today", id="other", importance=0.1)
    memory.remember("memory of the ship", id="high", importance=0.9)
    assert ids(memory.recall("memory"))[0] == "high"


def test_a_specific_phrase_of_little_importance_comes_before_a_generic_word_of_the_greatest(store):
    memory = store.memory(config=RELEVANCE)
    memory.remember("memory", id="generic", importance=1.0)
    memory.remember("the memory provider contract of the release pipeline", id="specific", importance=0.2)
    for query in ("memory provider contract", "memory provider contract of the release pipeline"):
        assert ids(memory.recall(query)) == ["specific", "generic"]


def test_how_relevant_an_item_is_falls_with_its_age_and_grows_with_its_importance():
    assert relevance(1.0, 0, importance_weight=0.9, recency_weight=0.1) > 0.95
    assert relevance(0.5, 60) < 0.45
    assert relevance(0.5, 90) < 0.40
    assert relevance(0.9, 60) > relevance(0.5, 60) > relevance(0.5, 90)


def test_the_age_of_an_item_counts_in_what_a_search_adds(store):
    memory = store.memory(config=RELEVANCE)
    for days in (0, 60, 90):
        memory.remember("the same words", event_time=NOW_MS - days * DAY_MS, id=f"{days}", importance=0.5)
    hits = memory.recall("words", explain=True)
    assert ids(hits) == ["0", "60", "90"]
    added = [sum(part.value for part in hit.explanation.parts[-2:]) / RELEVANCE_SHARE for hit in hits]
    assert added == pytest.approx([relevance(0.5, days) for days in (0, 60, 90)])


def test_an_importance_outside_its_range_is_refused_by_name(memory):
    for importance in (-0.1, 1.5):
        with pytest.raises(InvalidRequest, match="importance"):
            memory.remember("too much", importance=importance)


def test_annotating_replaces_tags(memory):
    memory.remember("an item", id="a", tags=["x", "y"])
    memory.annotate("a", tags=["z"])
    assert memory.get("a").tags == ("z",)


def test_texts_that_differ_by_case_and_space_become_one_item_with_all_that_was_said_of_it(store):
    memory = store.memory(config=MERGING)
    first = memory.remember(
        "Always run the tests before a commit", importance=0.4, tags=["a"], metadata={"supersedes": "old"}
    )
    again = memory.remember("always  run the TESTS before a commit", importance=0.8, tags=["b"])
    assert (again.outcome, again.id) == ("merged", first.id)
    item = memory.get(first.id)
    assert (item.importance, item.tags, item.metadata["supersedes"], item.merged.count) == (
        0.8,
        ("a", "b"),
        "old",
        1,
    )
    assert memory.list().total == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Always run the tests before a commit", "Always run all the tests before a commit"),
        ("Use the shared cache for every build", "Do not use the shared cache for every build"),
        ("The parser was rewritten in C++ last year", "The parser was rewritten in C last year"),
        ("Short words", "short WORDS"),
    ],
)
def test_texts_that_say_something_else_or_too_little_stay_apart(store, one, other):
    memory = store.memory(config=MERGING)
    for text in (one, other):
        assert memory.get(memory.remember(text).id).merged is None
    assert memory.list().total == 2


def test_an_id_told_again_replaces_the_item_where_it_is_allowed(store):
    with pytest.raises(Conflict):
        told_twice(store.memory())
    memory = store.memory("replacing", config=MemoryConfig(on_id_conflict="replace"))
    told_twice(memory)
    assert (memory.list().total, memory.get("a").text) == (1, "second words")


def told_twice(memory):
    memory.remember("first words", id="a")
    memory.remember("second words", id="a")


def test_pruning_keeps_what_is_pinned_used_or_in_conflict_and_takes_the_stale_one(store):
    memory = store.memory(config=MemoryConfig(forgetting=Prune(max_facts=2)))
    old = NOW_MS - 10 * DAY_MS
    memory.remember("a pinned item", id="pinned", pinned=True, event_time=old)
    memory.remember("a used item", id="used", event_time=old)
    memory.remember("a contested item", id="contested", metadata={"conflicts_with": "used"}, event_time=old)
    memory.remember("a stale item", id="stale", event_time=old)
    for context in "abc":
        memory.record_use(["used"], context_id=context)
    assert memory.apply_forgetting(dry_run=False).forgotten == ("stale",)
    assert sorted(ids(memory.list().items)) == ["contested", "pinned", "used"]


def test_uses_are_counted_when_they_are_recorded_and_outlive_the_process(open_store, backend, clock):
    store = open_store()
    memory = store.memory()
    memory.remember("an item with a tag", id="a", tags=["x"])
    memory.get("a")
    assert memory.get("a").uses == 0
    memory.record_use(["a"])
    assert (memory.get("a").uses, memory.get("a").last_used_at.timestamp() * 1000) == (1, NOW_MS)
    if backend == "memory":
        return
    store.close()
    memory = open_store().memory()
    memory.record_use(["a"])
    assert (memory.get("a").uses, memory.get("a").tags) == (2, ("x",))
    assert ids(memory.recall("item")) == ["a"]


def test_an_id_that_looks_like_a_path_is_only_a_name(open_store, tmp_path):
    outside = {one.name for one in tmp_path.parent.iterdir()}
    memory = open_store().memory()
    memory.remember("nothing leaves the store", id="../../../etc/passwd")
    assert memory.get("../../../etc/passwd").text == "nothing leaves the store"
    assert {one.name for one in tmp_path.parent.iterdir()} == outside
