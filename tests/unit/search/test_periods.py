"""Which periods a question names."""

from __future__ import annotations

import numpy as np
import pytest

from perdure.search.periods import DAY_MS, Period, named_periods, within


@pytest.mark.parametrize(
    ("question", "named"),
    [
        ("What happened in May 2023?", ["2023-05"]),
        ("On 8 May, 2023", ["2023-05-08"]),
        ("on May 8th 2023 or 2023-06-01", ["2023-06-01", "2023-05-08"]),
        ("in 2022", ["2022"]),
        ("during June", ["--06"]),
        ("on 3rd of January", ["--01-03"]),
        ("Sept. 4", ["--09-04"]),
        ("in Sept", []),
        ("What may I do?", []),
        ("May I come?", []),
        ("we march on", []),
        ("last March", ["--03"]),
        ("30 February 2023", ["2023-02"]),
        ("29 February", ["--02-29"]),
        ("2023-13", ["2023"]),
        ("number 12023 and 20234", []),
        ("", []),
    ],
)
def test_a_question_names_these_periods(question, named):
    assert [str(period) for period in named_periods(question)] == named


def test_times_in_a_period_and_in_its_tail_are_within_and_no_others():
    start = int(np.datetime64("2023-05-01", "ms").astype(np.int64))
    end = int(np.datetime64("2023-06-01", "ms").astype(np.int64))
    times = np.array([start - 1, start, end - 1, end, end + 38 * DAY_MS - 1, end + 38 * DAY_MS])
    assert within(times, [Period(2023, 5, None)], 38).tolist() == [False, True, True, True, True, False]
    assert within(times, [Period(2023, 5, None)], 0).tolist() == [False, True, True, False, False, False]


def test_a_month_without_a_year_is_that_month_of_every_year_and_the_tail_of_the_year_before():
    times = np.array(
        [int(np.datetime64(day, "ms").astype(np.int64)) for day in ("2021-12-05", "2022-01-20", "2022-03-01")]
    )
    assert within(times, [Period(None, 12, None)], 38).tolist() == [True, True, False]


def test_a_day_that_a_year_does_not_have_is_in_no_such_year():
    times = np.array([int(np.datetime64("2023-03-01", "ms").astype(np.int64))])
    assert within(times, [Period(None, 2, 29)], 0).tolist() == [False]


def test_the_first_and_the_last_year_have_bounds():
    edges = np.array([-62_135_596_800_000, 253_402_300_799_999])
    assert within(edges, [Period(None, 12, 31), Period(9999, None, None)], 38).tolist() == [True, True]
    assert within(np.array([], dtype=np.int64), [Period(None, 1, None)], 38).tolist() == []
