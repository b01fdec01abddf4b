"""The public names of perdure.policies."""

from __future__ import annotations

import perdure.policies


def test_the_public_names_are_sorted_and_exist():
    names = perdure.policies.__all__
    assert list(names) == sorted(names)
    assert [name for name in names if not hasattr(perdure.policies, name)] == []


def test_every_protocol_and_its_default_is_public():
    assert {
        "ConsolidationPolicy",
        "EntityExtractor",
        "ExplicitOnly",
        "ForgettingPolicy",
        "KeepAll",
        "MemoryObserver",
        "NoConsolidation",
        "NoRecency",
        "RankingPolicy",
        "RecencyPolicy",
        "ScoreOrder",
        "SupersessionPolicy",
    } <= set(perdure.policies.__all__)
