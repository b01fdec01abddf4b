"""Asking several memories of one store: their hits by rank, each naming its memory, and no memory made by asking."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from perdure import InvalidRequest, ManualClock, Namespace, Store
from perdure.policies import combined_score
from unit.memory.refusals import MARKER, refused

WORDS = ("red", "green", "blue", "boat")
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)


@pytest.fixture
def store():
    with Store.open(":memory:", clock=ManualClock("2026-01-01")) as opened:
        opened.memory("ann", "work").remember("a red boat at work", id="w")
        opened.memory("ann", "home").remember("a red boat at home", id="h")
        opened.memory("bob", "home").remember("Bob's red boat", id="b")
        yield opened


def test_a_hit_names_the_memory_that_it_comes_from_and_a_plain_recall_names_none(store):
    memory = store.memory("ann", "work")
    (alone,) = memory.recall("boat")
    assert alone.space is None
    found = memory.recall("boat", spaces=["home", {"principal": "bob", "scope": "home"}])
    assert [(hit.id, hit.space) for hit in found] == [
        ("w", Namespace("ann", "work")),
        ("h", Namespace("ann", "home")),
        ("b", Namespace("bob", "home")),
    ]
    assert memory.recall("boat", spaces=[])[0].space == Namespace("ann", "work")


def test_asking_a_memory_that_is_not_there_finds_nothing_in_it_and_does_not_make_it(store):
    before = store.spaces()
    found = store.memory("ann", "work").recall("boat", spaces=["nowhere", {"principal": "eve", "scope": ""}])
    assert [hit.id for hit in found] == ["w"]
    assert store.spaces() == before


def test_a_memory_that_is_named_twice_or_is_the_callers_own_is_asked_once(store):
    own = {"principal": "ann", "scope": "work"}
    found = store.memory("ann", "work").recall("boat", spaces=["home", "work", own, "home"])
    assert [hit.id for hit in found] == ["w", "h"]


@given(st.lists(st.lists(texts, max_size=6), min_size=2, max_size=4), texts, st.integers(1, 12))
@settings(max_examples=examples(24), deadline=None)
def test_hits_are_merged_by_rank_with_ties_in_the_order_asked(spaces, query, k):
    with Store.open(":memory:", clock=ManualClock(0)) as store:
        names = [f"s{place}" for place in range(len(spaces))]
        for name, told in zip(names, spaces, strict=True):
            for number, text in enumerate(told):
                store.memory("p", name).remember(text, id=f"{name}-{number}")
        alone = [store.memory("p", name).recall(query, k=k) for name in names]
        ranked = [
            (-1.0 / (10 + rank), place, hit.id)
            for place, hits in enumerate(alone)
            for rank, hit in enumerate(hits, 1)
        ]
        expected = sorted(ranked)[:k]
        merged = store.memory("p", names[0]).recall(query, k=k, spaces=names[1:])
        assert [(-hit.score, hit.id) for hit in merged] == [(score, id_) for score, _, id_ in expected]


@given(st.lists(texts, min_size=2, max_size=8), texts)
@settings(max_examples=examples(16), deadline=None)
def test_the_parts_of_a_merged_hit_make_its_score_and_the_rest_is_what_its_own_memory_says(told, query):
    with Store.open(":memory:", clock=ManualClock(0)) as store:
        for number, text in enumerate(told):
            store.memory("p", "ab"[number % 2]).remember(text, id=f"f{number}")
        for hit in store.memory("p", "a").recall(query, spaces=["b"], explain=True):
            why = hit.explanation
            assert combined_score(why.parts) == why.final_score == hit.score
            own = store.memory("p", hit.space.scope).explain(query, hit.id)
            assert (why.rank, why.retrieval_score, why.lexical_score, why.matched_terms) == (
                own.rank, own.final_score, own.lexical_score, own.matched_terms,
            )  # fmt: skip


def test_a_floor_counts_within_each_memory(store):
    memory = store.memory("ann", "work")
    memory.remember("one two three four five six seven eight", id="other")
    score = memory.recall("boat")[0].score
    home = store.memory("ann", "home").recall("boat")[0].score
    assert home < score
    found = memory.recall("boat", spaces=["home"], min_score=(home + score) / 2)
    assert [hit.id for hit in found] == ["w"]


def test_every_memory_is_asked_as_of_and_as_known_at_the_same_moments(store):
    store.memory("ann", "home").remember("an old red boat", id="old", valid_to="2020-01-01")
    memory = store.memory("ann", "work")
    ids = {hit.id for hit in memory.recall("boat", spaces=["home"], as_of="2019-01-01")}
    assert ids == {"w", "h", "old"}
    assert memory.recall("boat", spaces=["home"], known_at="2020-01-01") == []


def test_malformed_spaces_are_refused_by_name(store):
    memory = store.memory("ann", "work")
    for value in (
        "home",
        5,
        [5],
        [None],
        [{"principal": "x", "tenant": MARKER}],
        [{"principal": 5}],
        [MARKER * 100],
        [f"s{number}" for number in range(65)],
    ):
        with pytest.raises(InvalidRequest) as caught:
            memory.recall("boat", spaces=value)
        assert caught.value.field in ("spaces", "principal", "scope")
        assert MARKER not in str(caught.value)


def test_explain_and_trace_look_into_one_memory_and_say_so(store):
    memory = store.memory("ann", "work")
    for option in ({"spaces": ["home"]}, {"max_bytes": 100}):
        (name,) = option
        refused(memory, lambda option=option: memory.explain("boat", "w", **option), name)
        refused(memory, lambda option=option: memory.trace("boat", **option), name)
