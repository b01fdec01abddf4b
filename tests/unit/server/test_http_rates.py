"""A key makes as many requests a second as its bucket gives, and not one more."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.errors import Busy
from perdure.server.rates import BUCKETS_MAX, Rates


def taken(rates: Rates, key: str, times: list[float]) -> int:
    count = 0
    for now in times:
        try:
            rates.take(key, now)
        except Busy:
            continue
        count += 1
    return count


@given(
    st.floats(0.1, 100),
    st.integers(1, 20),
    st.lists(st.floats(0, 3, allow_subnormal=False), max_size=60),
)
def test_no_run_of_requests_gets_more_than_the_burst_and_what_comes_back_in_its_time(rate, burst, gaps):
    now, times = 0.0, [0.0]
    for gap in gaps:
        now += gap
        times.append(now)
    assert taken(Rates(rate, burst), "a", times) <= burst + rate * now + 1e-6


@given(st.floats(0.5, 50), st.integers(1, 20))
def test_the_wait_that_is_told_is_enough(rate, burst):
    rates = Rates(rate, burst)
    for _ in range(burst):
        rates.take("a", 0.0)
    with pytest.raises(Busy) as caught:
        rates.take("a", 0.0)
    rates.take("a", caught.value.details["retry_after"])


def test_a_key_does_not_use_up_another_one_s():
    rates = Rates(1, 1)
    rates.take("a", 0.0)
    rates.take("b", 0.0)
    with pytest.raises(Busy):
        rates.take("a", 0.0)


def test_without_a_rate_there_is_no_limit():
    assert taken(Rates(None, 0), "a", [0.0] * 1000) == 1000


def test_a_burst_of_nothing_told_is_a_second_s_worth():
    assert taken(Rates(5, 0), "a", [0.0] * 100) == 5


def test_a_bucket_that_many_others_pushed_out_is_full_again():
    rates = Rates(1, 1)
    rates.take("a", 0.0)
    for other in range(BUCKETS_MAX):
        rates.take(str(other), 0.0)
    rates.take("a", 0.0)
