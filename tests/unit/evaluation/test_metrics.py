"""The metrics: worked examples, and laws that hold for every answer."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.evaluation import METRICS, mean_scores, score

IDS = "abcdefghijklmn"
rankings = st.permutations(IDS).flatmap(lambda ids: st.integers(0, len(ids)).map(lambda n: tuple(ids[:n])))
wanted = st.lists(st.sampled_from(IDS), unique=True, min_size=1)


def test_the_metrics_of_an_answer_worked_out_by_hand():
    found = score(["x", "a", "y", "z", "w", "b"], ["a", "b", "c"])
    assert found["R@1"] == found["hit@1"] == 0
    assert found["R@5"] == 1 / 3
    assert found["R@10"] == 2 / 3
    assert found["hit@5"] == found["hit@10"] == 1
    assert found["MRR"] == 1 / 2
    gain = 1 / math.log2(3) + 1 / math.log2(7)
    assert found["nDCG@10"] == pytest.approx(gain / (1 + 1 / math.log2(3) + 1 / math.log2(4)))
    assert found["exact"] == 0
    assert "order" not in found
    assert "absent" not in found


def test_no_result_expected_is_right_only_if_nothing_comes_back():
    assert score([], []) == {"exact": 1, "absent": 1}
    assert score(["x"], []) == {"exact": 0, "absent": 0}


def test_only_what_must_be_absent_counts_where_nothing_else_is_said():
    assert score(["x"], None, ["y"]) == {"absent": 1}
    assert score(["x", "y"], None, ["y"]) == {"absent": 0}


def test_order_lets_others_stand_between_and_exact_does_not():
    ordered = score(["x", "a", "y", "b"], ["a", "b"], ordered=True)
    assert (ordered["order"], ordered["exact"]) == (1, 0)
    turned = score(["b", "a"], ["a", "b"], ordered=True)
    assert (turned["order"], turned["exact"]) == (0, 0)
    assert score(["b", "a"], ["a", "b"])["exact"] == 1
    assert score(["a"], ["a", "b"], ordered=True)["order"] == 0


@given(rankings, wanted)
def test_every_metric_lies_between_0_and_1_and_grows_with_the_cut(returned, expect):
    found = score(returned, expect)
    assert all(0 <= value <= 1 for value in found.values())
    assert found["R@1"] <= found["R@5"] <= found["R@10"]
    assert found["hit@1"] <= found["hit@5"] <= found["hit@10"]


@given(wanted)
def test_the_expected_facts_alone_and_in_any_order_are_perfect(expect):
    found = score(expect[::-1], expect)
    assert found["exact"] == found["MRR"] == found["hit@1"] == 1
    assert found["nDCG@10"] == pytest.approx(1)


@given(rankings, wanted, st.data())
def test_moving_an_expected_fact_up_makes_no_metric_worse(returned, expect, data):
    places = [place for place, id_ in enumerate(returned) if id_ in expect and place > 0]
    if not places:
        return
    place = data.draw(st.sampled_from(places))
    moved = list(returned)
    moved[place - 1], moved[place] = moved[place], moved[place - 1]
    before, after = score(returned, expect), score(moved, expect)
    assert all(after[name] >= before[name] - 1e-12 for name in before)


@given(rankings, wanted)
def test_the_order_in_which_ids_are_expected_does_not_count(returned, expect):
    assert score(returned, expect) == score(returned, expect[::-1])


def test_a_mean_is_taken_over_the_cases_that_have_the_metric():
    means = mean_scores([score(["a"], ["a"]), score(["b"], ["a"]), score(["b"], [])])
    assert means["R@1"] == 0.5
    assert means["exact"] == 1 / 3
    assert means["absent"] == 0
    assert list(means) == [name for name in METRICS if name in means]
