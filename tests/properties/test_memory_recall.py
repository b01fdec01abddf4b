"""Laws of recall: its scores are those of document search, its order can be explained, its k is filled."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from perdure import MemoryConfig
from perdure.policies import ExponentialRecency, Relevance
from perdure.policies.scoring import combined_score
from properties import strategies
from properties.memory_run import CONFIGS, QUERY, Space, listed
from properties.strategies import IDS, NOW, TEXTS, Call, scripts

QUERIES = ("alpha", "beta gamma", "gamma delta", "epsilon alpha", QUERY, "red semantic", "nothing here")
WEIGHINGS: tuple[dict[str, Any], ...] = (
    {},
    {"recency": ExponentialRecency(half_life_ms=7)},
    {"recency": ExponentialRecency(half_life_ms=3, basis="ingest", floor=0.25), "historical_weight": 0.5},
    {"historical_weight": 0.0},
    {"historical_weight": 3.0},
    {"ranking": Relevance()},
    {"ranking": Relevance(importance_weight=0.1, recency_weight=5.0), "historical_weight": 0.5},
)
configs = st.sampled_from(
    [MemoryConfig(supersession="latest-by-subject", **weighing) for weighing in WEIGHINGS]
)
queries = st.sampled_from(QUERIES)
histories = st.sampled_from(("current", "all", "historical"))
times = st.fixed_dictionaries(
    {}, optional={"as_of": st.sampled_from((0, 2, 5, 101, 150)), "known_at": st.sampled_from((99, 101, 103))}
)
thorough = settings(max_examples=examples(24), deadline=None)


def lived(config: MemoryConfig, script: list[Call]) -> Space:
    space = Space(config)
    space.run_all(script)
    return space


def scores(hits: Any) -> list[tuple[str, str]]:
    """Ids and the bits of their scores, in order."""
    return [(hit.id, hit.score.hex()) for hit in hits]


# Recall and document search


@given(st.lists(st.sampled_from(TEXTS), min_size=1, max_size=12), queries, st.integers(1, 13))
@thorough
def test_without_windows_links_or_recency_recall_is_document_search_bit_for_bit(texts, query, k):
    space = Space()
    for number, text in enumerate(texts):
        space.memory.remember(text, id=f"f{number}", event_time=number)
    assert scores(space.memory.recall(query, k=k)) == scores(space.store.documents().search(query, k=k))


@given(scripts(), queries, histories, times)
@thorough
def test_what_recall_leaves_out_changes_no_bit_and_no_place_of_what_it_returns(script, query, history, asked):
    space = lived(CONFIGS[3], script)
    found = scores(space.store.documents().search(query, k=1_000))
    kept = scores(space.memory.recall(query, k=1_000, history=history, **asked))
    assert kept == [one for one in found if one in kept]


@given(st.lists(st.sampled_from(TEXTS), min_size=2, max_size=8), queries)
@thorough
def test_a_window_on_one_fact_changes_no_bit_of_the_others_scores(texts, query):
    plain, windowed = Space(), Space()
    for space, window in ((plain, {}), (windowed, {"valid_from": 1, "valid_to": 2})):
        for number, text in enumerate(texts):
            space.memory.remember(text, id=f"f{number}", **(window if number == 0 else {}))
    others = [one for one in scores(plain.memory.recall(query)) if one[0] != "f0"]
    assert scores(windowed.memory.recall(query)) == others


# k


@given(configs, scripts(), queries, histories, times)
@thorough
def test_the_results_for_k_begin_those_for_one_more(config, script, query, history, asked):
    memory = lived(config, script).memory
    whole = memory.recall(query, k=40, candidate_limit=50, history=history, **asked)
    for k in range(1, len(whole) + 1):
        assert memory.recall(query, k=k, candidate_limit=50, history=history, **asked) == whole[:k]


@given(st.integers(1, 12), st.integers(1, 60))
@settings(max_examples=examples(8), deadline=None)
def test_however_many_superseded_facts_match_better_the_current_ones_fill_k(current, stale):
    space = Space(MemoryConfig(supersession="latest-by-subject"))
    for number in range(stale):
        space.memory.remember("delta delta delta", id=f"stale {number}", subject="s", valid_from=number)
    space.memory.remember("alpha", subject="s", valid_from=stale)
    for number in range(current):
        space.memory.remember(f"delta and many other words {number}", id=f"current {number}")
    hits = space.memory.recall("delta", k=current)
    assert [hit.id for hit in hits] == [f"current {number}" for number in range(current)]


@given(configs, scripts(), queries, histories)
@thorough
def test_a_floor_cuts_the_results_off_where_scores_fall_below_it(config, script, query, history):
    memory = lived(config, script).memory
    hits = memory.recall(query, history=history)
    for floor in {hit.score for hit in hits} | {0.0}:
        above = [hit for hit in hits if hit.score >= floor]
        assert memory.recall(query, history=history, min_score=floor) == above


@given(configs, scripts(), queries, histories, times)
@thorough
def test_scores_are_finite_never_negative_and_fall(config, script, query, history, asked):
    hits = lived(config, script).memory.recall(query, history=history, **asked)
    found = [hit.score for hit in hits]
    assert all(math.isfinite(score) and score >= 0.0 for score in found)
    assert found == sorted(found, reverse=True)


# Recency and history


@given(
    st.lists(st.integers(0, 200), min_size=2, max_size=8),
    st.integers(1, 50),
    st.sampled_from((0.0, 0.25, 1.0)),
    st.integers(0, 200),
)
@thorough
def test_an_older_fact_never_weighs_more_and_no_factor_leaves_floor_to_one(events, half_life, floor, as_of):
    space = Space(MemoryConfig(recency=ExponentialRecency(half_life_ms=half_life, floor=floor)))
    for number, event in enumerate(events):
        space.memory.remember("alpha", id=f"f{number}", event_time=event, metadata={"number": number})
    factors = {}
    for hit in space.memory.recall("alpha", k=20, as_of=as_of, explain=True):
        factors[events[int(hit.id[1:])]] = hit.explanation.recency_factor
    by_event = [factor for _, factor in sorted(factors.items())]
    assert by_event == sorted(by_event)
    assert all(floor <= factor <= 1.0 for factor in by_event)
    assert all(factor == 1.0 for event, factor in factors.items() if event >= as_of)


def test_a_fact_weighs_half_after_one_half_life():
    space = Space(MemoryConfig(recency=ExponentialRecency(half_life_ms=30)))
    space.memory.remember("alpha", id="a", event_time=10)
    (young,) = space.memory.recall("alpha", as_of=10)
    (old,) = space.memory.recall("alpha", as_of=40)
    assert old.score == young.score * 0.5


@given(scripts(), queries, histories, times)
@thorough
def test_a_recency_that_changes_nothing_is_no_recency_bit_for_bit(script, query, history, asked):
    none, identity = (
        lived(MemoryConfig(recency=recency), script).memory
        for recency in ("none", ExponentialRecency(half_life_ms=1, floor=1.0))
    )
    options = {"history": history, "explain": True, **asked}
    assert none.recall(query, **options) == identity.recall(query, **options)


@given(scripts(), queries, st.sampled_from((0.0, 0.5, 2.0)))
@thorough
def test_the_historical_weight_multiplies_what_is_not_current_and_nothing_else(script, query, weight):
    plain, weighted = (
        lived(MemoryConfig(supersession="latest-by-subject", historical_weight=factor), script).memory
        for factor in (1.0, weight)
    )
    expected = {
        hit.id: hit.score * (1.0 if hit.status == "current" else weight)
        for hit in plain.recall(query, k=100, history="all")
    }
    assert {hit.id: hit.score for hit in weighted.recall(query, k=100, history="all")} == expected
    assert weighted.recall(query) == plain.recall(query)


# Explanations


@given(configs, scripts(), queries, histories, times, st.sampled_from((1, 2, 10)))
@thorough
def test_explain_says_of_every_result_what_recall_says(config, script, query, history, asked, k):
    memory = lived(config, script).memory
    options = {"k": k, "history": history, **asked}
    hits = memory.recall(query, explain=True, **options)
    assert scores(hits) == scores(memory.recall(query, **options))
    for place, hit in enumerate(hits, 1):
        explained = memory.explain(query, hit.id, **options)
        assert explained == hit.explanation
        assert (explained.reason, explained.retrieved, explained.rank) == ("returned", True, place)
        assert explained.final_score == hit.score
        assert explained.status == hit.status
        assert combined_score(explained.parts) == hit.score


@given(
    configs, scripts(), queries, histories, times, st.sampled_from((1, 2)), st.sampled_from((None, 0.1, 0.6))
)
@thorough
def test_every_fact_that_does_not_come_back_has_the_first_reason_that_applies(
    config, script, query, history, asked, k, floor
):
    memory = lived(config, script).memory
    options = {"k": k, "candidate_limit": 3, "history": history, "min_score": floor, "subject": "s", **asked}
    hits = [hit.id for hit in memory.recall(query, **options)]
    known = {fact.id for fact in listed(memory, known_at=asked.get("known_at"))}
    now = {"as_of": asked.get("as_of"), "known_at": asked.get("known_at")}
    for fact in listed(memory):
        explained = memory.explain(query, fact.id, **options)
        standing = memory.get(fact.id, **now)
        is_current = standing is not None and standing.status == "current"
        if fact.id not in known:
            expected = {"not-known"}
        elif fact.subject != "s":
            expected = {"filtered"}
        elif history != "all" and is_current != (history == "current"):
            expected = {"not-current"}
        elif fact.id in hits:
            expected = {"returned"}
        elif explained.rank is None:
            # Words of tags and kinds are searched only under a ranking by relevance.
            expected = {"no-match" if explained.lexical_score == 0.0 else "below-candidates"}
        else:
            expected = {
                "below-min-score" if floor is not None and explained.final_score < floor else "below-k"
            }
        assert {explained.reason} == expected
        assert explained.retrieved == (fact.id in hits)
        assert explained.status == (standing.status if standing is not None else None)


def test_the_reason_is_named_for_each_way_of_not_coming_back():
    space = Space()
    memory, clock = space.memory, space.clock
    for number in range(4):
        memory.remember(f"delta {'word ' * number}", id=f"d{number}")
    memory.remember("epsilon", id="other")
    memory.remember("delta", id="expired", valid_from=1, valid_to=2)
    memory.remember("delta", id="tagged", tags=["red"])
    clock.advance(10)
    memory.remember("delta", id="late")

    def reason(id_: str, **options: Any) -> str:
        return memory.explain("delta", id_, **{"k": 2, "known_at": NOW, **options}).reason  # type: ignore[no-any-return]

    assert reason("d0") == "returned"
    assert reason("d3") == "below-k"
    assert reason("d3", candidate_limit=2) == "below-candidates"
    assert reason("d3", min_score=100.0) == "below-min-score"
    assert reason("other") == "no-match"
    assert reason("expired") == "not-current"
    assert reason("late") == "not-known"
    assert reason("d0", tags=["red"]) == "filtered"
    assert reason("expired", tags=["red"]) == "filtered"
    assert reason("late", tags=["red"]) == "not-known"


@given(scripts(), times)
@thorough
def test_the_chain_of_an_explanation_is_the_history_that_the_reader_knows(script, asked):
    memory = lived(CONFIGS[2], script).memory
    for fact in listed(memory, **asked):
        chain = memory.explain("alpha", fact.id, **asked).chain
        told = [(one.id, one.text, one.status) for one in memory.history(fact.id, **asked)]
        assert [(link.id, link.text, link.status) for link in chain] == told
        by_relation = {
            relation: tuple(sorted(link.id for link in chain if link.relation == relation))
            for relation in ("self", "supersedes", "superseded-by")
        }
        assert by_relation == {
            "self": (fact.id,),
            "supersedes": fact.supersedes,
            "superseded-by": fact.superseded_by,
        }
        assert all(link.direct == (link.relation in ("supersedes", "superseded-by")) for link in chain)


@given(scripts(), times)
@thorough
def test_a_fact_is_superseded_from_the_earliest_effective_time_in_its_chain(script, asked):
    memory = lived(CONFIGS[2], script).memory
    for fact in listed(memory, **asked):
        explained = memory.explain("alpha", fact.id, **asked)
        above = [link for link in explained.chain if link.relation == "superseded-by"]
        # No effective time means: from the beginning of time.
        begun = [
            link for link in above if link.effective_time is None or link.effective_time <= explained.as_of
        ]
        assert (fact.status == "superseded") == bool(begun)


def test_matched_terms_are_the_words_of_the_query_that_the_fact_holds_once_each_in_its_order():
    memory = Space().memory
    memory.remember("the cats were running home", id="a")
    explained = memory.explain("running cat, dogs and running", "a")
    assert explained.matched_terms == ("running", "cat")


def test_ids_that_no_fact_has_cannot_be_explained():
    space = Space()
    space.memory.remember("alpha", id="a")
    space.memory.forget(ids=["a"], soft=True)
    for id_ in ("a", "b"):
        assert space.run(("explain", {"query": "alpha", "id": id_})) == "not_found"


def test_ties_come_back_in_order_of_arrival():
    space = Space()
    for id_ in reversed(IDS):
        space.memory.remember("alpha", id=id_, metadata={"id": id_})
    assert [hit.id for hit in space.memory.recall("alpha")] == list(reversed(IDS))


@pytest.mark.parametrize("weighing", WEIGHINGS, ids=str)
def test_equal_final_scores_keep_the_order_of_arrival_under_every_weighing(weighing):
    memory = Space(MemoryConfig(**weighing)).memory
    for id_ in reversed(IDS):
        memory.remember("alpha", id=id_, metadata={"id": id_})
    assert [hit.id for hit in memory.recall("alpha", history="all")] == list(reversed(IDS))


@given(scripts(), st.sampled_from(strategies.SUBJECTS[1:]), queries)
@thorough
def test_a_narrowed_recall_is_the_whole_one_without_the_rest(script, subject, query):
    memory = lived(CONFIGS[3], script).memory
    whole = memory.recall(query, k=1_000)
    for name, value, holds in (
        ("subject", subject, lambda fact: fact.subject == subject),
        ("entity", "Ann", lambda fact: "Ann" in fact.entities),
        ("tags", ["red", "blue"], lambda fact: {"red", "blue"} <= set(fact.tags)),
        ("kind", "semantic", lambda fact: fact.kind == "semantic"),
        ("filter", {"team": 1}, lambda fact: fact.metadata.get("team") == 1),
    ):
        assert memory.recall(query, k=1_000, **{name: value}) == [hit for hit in whole if holds(hit.fact)]
