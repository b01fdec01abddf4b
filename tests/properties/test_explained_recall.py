"""Every score and every absence is what an oracle without a pipeline says: lexical, semantic, hybrid, with context, by relevance."""

from __future__ import annotations

from collections import Counter

from properties.recall_trial import Trial

REASONS = {
    "returned",
    "below-k",
    "below-min-score",
    "below-candidates",
    "no-match",
    "no-vector",
    "not-current",
    "not-known",
    "filtered",
}


def test_two_thousand_facts_score_what_their_parts_make_and_are_absent_for_the_reason_of_the_oracle():
    counts: Counter[str] = Counter()
    for seed in range(60):
        trial = Trial(seed)
        for _ in range(6):
            trial.ask()
        counts += trial.counts
    assert counts["facts"] >= 2_000
    assert counts["scores"] >= 800
    assert all(counts[reason] for reason in REASONS)
