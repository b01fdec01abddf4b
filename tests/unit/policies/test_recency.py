"""How much an older fact weighs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from perdure.errors import InvalidRequest
from perdure.model.status import Status
from perdure.policies import ExponentialRecency, NoRecency, RecencyContext, age, checked_factor

DAY = 86_400_000


def context(age_ms: int | None) -> RecencyContext:
    return RecencyContext(
        as_of=0,
        age_ms=age_ms,
        event_time=None,
        valid_from=None,
        valid_to=None,
        ingest_time=None,
        importance=None,
        kind=None,
        status=Status.CURRENT,
    )


def test_the_weight_halves_with_every_half_life():
    policy = ExponentialRecency(30 * DAY)
    assert [policy.factor(context(days * DAY)) for days in (0, 30, 60, 90)] == [1.0, 0.5, 0.25, 0.125]


def test_the_weight_never_falls_below_the_floor():
    assert ExponentialRecency(DAY, floor=0.2).factor(context(1000 * DAY)) == 0.2


def test_a_document_without_any_time_keeps_its_weight():
    policy = ExponentialRecency(DAY)
    assert policy.factor(context(None)) == 1.0
    assert policy.factors(np.array([math.nan])).tolist() == [1.0]


def test_an_age_beyond_every_float_weighs_nothing_and_raises_nothing():
    assert ExponentialRecency(1).factor(context(300_000_000_000_000)) == 0.0


def test_only_the_policies_that_change_nothing_are_identities():
    assert NoRecency().is_identity
    assert ExponentialRecency(DAY, floor=1.0).is_identity
    assert not ExponentialRecency(DAY, floor=0.999).is_identity
    assert NoRecency().factor(context(5)) == 1.0


@pytest.mark.parametrize(
    ("basis", "event_time", "valid_from", "ingest_time", "expected"),
    [
        ("event", 10, 20, 30, 90),
        ("event", None, 20, 30, 80),
        ("event", None, None, 30, 70),
        ("event", None, None, None, None),
        ("event", 0, 20, 30, 100),  # an instant of 0 is told, not absent
        ("ingest", 10, 20, 30, 70),
        ("ingest", 10, 20, None, None),
    ],
)
def test_age_counts_from_the_first_time_that_the_basis_finds(
    basis, event_time, valid_from, ingest_time, expected
):
    found = age(basis, 100, event_time=event_time, valid_from=valid_from, ingest_time=ingest_time)
    assert found == expected


def test_a_fact_of_the_future_has_age_0():
    assert age("event", 100, event_time=101, valid_from=None, ingest_time=5) == 0


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"half_life_ms": 0}, "half_life_ms"),
        ({"half_life_ms": -1}, "half_life_ms"),
        ({"half_life_ms": True}, "half_life_ms"),
        ({"half_life_ms": 1.0}, "half_life_ms"),
        ({"half_life_ms": 10**5000}, "half_life_ms"),
        ({"half_life_ms": 1, "basis": "known"}, "basis"),
        ({"half_life_ms": 1, "basis": 1}, "basis"),
        ({"half_life_ms": 1, "floor": 1.01}, "floor"),
        ({"half_life_ms": 1, "floor": -0.1}, "floor"),
        ({"half_life_ms": 1, "floor": math.nan}, "floor"),
        ({"half_life_ms": 1, "floor": True}, "floor"),
    ],
)
def test_a_wrong_parameter_is_refused_by_name(arguments, field):
    with pytest.raises(InvalidRequest, match=rf"^{field} must be") as caught:
        ExponentialRecency(**arguments)
    assert caught.value.field == field


def test_a_floor_given_as_an_integer_is_the_same_policy():
    assert ExponentialRecency(5, floor=0) == ExponentialRecency(5, floor=0.0)
    assert str(ExponentialRecency(5, floor=-0.0).floor) == "0.0"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -1e-300, -1, 10**400])
def test_a_factor_that_is_not_finite_or_negative_is_an_error_and_no_silent_clamp(value):
    with pytest.raises(InvalidRequest, match="finite and at least 0") as caught:
        checked_factor(value)
    assert caught.value.field == "recency"


@pytest.mark.parametrize("value", [None, "1", True, [1.0], 1j])
def test_a_factor_that_is_no_number_is_an_error(value):
    with pytest.raises(InvalidRequest, match="must return a number"):
        checked_factor(value)


@pytest.mark.parametrize(("value", "expected"), [(0, 0.0), (2, 2.0), (0.25, 0.25), (np.float32(0.5), 0.5)])
def test_every_finite_factor_of_at_least_0_is_taken(value, expected):
    assert checked_factor(value) == expected
