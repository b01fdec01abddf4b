"""Whether importance and freshness decide between equals."""

from __future__ import annotations

import math

import pytest

from perdure.errors import InvalidRequest
from perdure.policies import RankingParts, Relevance, ScoreOrder, ranking_scores

DAY = 86_400_000


def test_score_order_gives_the_retrieval_score_itself():
    order = ScoreOrder()
    assert order.is_identity
    assert order.parts(3.5, top=7.0, importance=1.0, age_ms=0) == RankingParts(3.5, 0.0, 0.0)
    assert ranking_scores(order, [3.5, 0.1], [1.0, None], [0, None]) == [3.5, 0.1]


def test_relevance_adds_up_to_a_tenth_of_the_best_match():
    best = Relevance().parts(4.0, top=4.0, importance=1.0, age_ms=0)
    assert best == pytest.approx((1.0, 0.07, 0.03))
    assert best.score == pytest.approx(1.1)


def test_untold_importance_counts_half_and_freshness_falls_to_1_over_e_in_the_decay_time():
    parts = Relevance(decay_days=10.0).parts(1.0, top=4.0, importance=None, age_ms=10 * DAY)
    assert parts == pytest.approx((0.25, 0.035, 0.03 / math.e))


def test_importance_0_is_told_and_counts_nothing():
    assert Relevance().parts(1.0, top=1.0, importance=0.0, age_ms=0).importance == 0.0


def test_a_document_without_any_time_is_as_fresh_as_a_new_fact():
    relevance = Relevance()
    assert relevance.freshness(None) == relevance.freshness(0) == relevance.freshness(-5) == 1.0


def test_where_every_score_is_0_relevance_alone_decides():
    assert Relevance().parts(0.0, top=0.0, importance=1.0, age_ms=0).base == 0.0


def test_only_the_ratio_of_the_weights_counts():
    light = Relevance(importance_weight=0.75, recency_weight=0.25)
    heavy = Relevance(importance_weight=3, recency_weight=1)
    assert light.parts(1.0, top=2.0, importance=0.3, age_ms=DAY) == heavy.parts(
        1.0, top=2.0, importance=0.3, age_ms=DAY
    )


def test_between_equal_matches_the_more_important_one_wins():
    scores = ranking_scores(Relevance(), [2.0, 2.0], [0.2, 0.9], [DAY, DAY])
    assert scores[1] > scores[0]


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"importance_weight": -0.1}, "importance_weight"),
        ({"recency_weight": math.inf}, "recency_weight"),
        ({"recency_weight": "0.3"}, "recency_weight"),
        ({"decay_days": 0}, "decay_days"),
        ({"decay_days": math.nan}, "decay_days"),
        ({"importance_weight": 0, "recency_weight": 0}, "importance_weight"),
    ],
)
def test_a_wrong_parameter_is_refused_by_name(arguments, field):
    with pytest.raises(InvalidRequest, match=field) as caught:
        Relevance(**arguments)
    assert caught.value.field == field
