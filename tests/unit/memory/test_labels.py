"""Words of tags and kind under ranking by relevance, and what a hidden fact no longer decides."""

from __future__ import annotations

from perdure import MemoryConfig, NewFact

RELEVANCE = MemoryConfig(ranking="relevance")
NARROW = {"k": 1, "candidate_limit": 1}


def test_labels_that_match_alike_keep_the_order_of_arrival_through_hiding_and_annotating(store):
    memory = store.memory(config=RELEVANCE)
    memory.remember_many([NewFact(text=f"text {id_}", id=id_, tags=["boats"]) for id_ in "abc"])
    memory.forget(ids=["a"], soft=True)
    memory.restore(ids=["a"])
    memory.annotate("b", tags=["boats"], pinned=True)
    assert [hit.id for hit in memory.recall("boats")] == ["a", "b", "c"]
    assert [hit.id for hit in memory.recall("boats", **NARROW)] == ["a"]
    store.purge()
    assert [hit.id for hit in memory.recall("boats", **NARROW)] == ["a"]


def test_a_label_of_a_neighbour_is_no_evidence(store):
    memory = store.memory(config=RELEVANCE)
    memory.remember("the harbour", id="harbour", tags=["boats"], source={"uri": "u", "position": 1})
    memory.remember("the pier", id="pier", source={"uri": "u", "position": 2})
    assert [hit.id for hit in memory.recall("boats", context=True)] == ["harbour"]
    why = memory.explain("boats", "pier", context=True)
    assert (why.reason, why.neighbours) == ("no-match", ())


def test_an_actor_whose_facts_are_hidden_is_not_one_that_a_question_can_name(store):
    memory = store.memory()
    memory.remember("red boats", id="bob", source={"uri": "u", "position": 1, "actor": "Bob"})
    memory.remember("red boats", id="ann", source={"uri": "v", "position": 1, "actor": "Ann"})
    assert [hit.id for hit in memory.recall("boats Ann Bob", context=True, explain=True)] == ["bob", "ann"]
    memory.forget(ids=["bob"], soft=True)
    (hit,) = memory.recall("boats Ann Bob", context=True, explain=True)
    assert hit.explanation.actor == "Ann"
