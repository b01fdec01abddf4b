"""Laws of recall in every mode: more results begin with fewer, and what holds no more takes nobody's place."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from perdure import MemoryConfig
from properties.memory_run import Space
from properties.recall_trial import Trial

MODES: dict[str, dict[str, Any]] = {
    "lexical": {},
    "lexical with context": {"context": True},
    "semantic": {"mode": "semantic", "embedding": [1.0, 0.5, 0.25]},
    "hybrid": {"embedding": [1.0, 0.5, 0.25]},
    "hybrid by ranks": {"embedding": [1.0, 0.5, 0.25], "fusion": "rrf"},
    "hybrid with context": {"embedding": [1.0, 0.5, 0.25], "context": True},
}


@given(st.integers(100, 10_000))
@settings(max_examples=examples(16), deadline=None)
def test_the_results_for_k_begin_those_for_more_under_one_candidate_limit(seed):
    trial = Trial(seed)
    query, options = trial.question()
    options |= {"candidate_limit": 20}
    whole = trial.memory.recall(query, **options | {"k": 20})
    for k in range(1, len(whole) + 1):
        assert trial.memory.recall(query, **options | {"k": k}) == whole[:k]


@pytest.mark.parametrize("mode", MODES)
@given(current=st.integers(1, 8), stale=st.integers(1, 40))
@settings(max_examples=10, deadline=None)
def test_however_many_superseded_facts_match_better_the_current_ones_fill_k(mode, current, stale):
    space = Space(MemoryConfig(supersession="latest-by-subject"))
    for number in range(stale):
        space.memory.remember(
            "delta delta delta",
            id=f"stale {number}",
            subject="s",
            valid_from=number,
            embedding=[1.0, 0.5, 0.25],
            source={"uri": "u", "position": number},
        )
    space.memory.remember("alpha", subject="s", valid_from=stale)
    for number in range(current):
        space.memory.remember(
            f"delta and many other words {number}", id=f"current {number}", embedding=[-1.0, 0.5, 0.25]
        )
    hits = space.memory.recall("delta", k=current, candidate_limit=current, **MODES[mode])
    assert {hit.id for hit in hits} == {f"current {number}" for number in range(current)}


@pytest.mark.parametrize("mode", MODES)
@given(seed=st.integers(100, 10_000))
@settings(max_examples=8, deadline=None)
def test_a_recall_without_an_explanation_gives_the_same_bits(mode, seed):
    trial = Trial(seed)
    query, options = trial.question()
    options = {name: value for name, value in options.items() if name in ("k", "candidate_limit", "history")}
    plain = trial.memory.recall(query, **options, **MODES[mode])
    told = trial.memory.recall(query, explain=True, **options, **MODES[mode])
    assert [(hit.id, hit.score.hex()) for hit in plain] == [(hit.id, hit.score.hex()) for hit in told]
