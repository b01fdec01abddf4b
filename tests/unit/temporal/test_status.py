"""Status at an instant, by example."""

import numpy as np
import pytest

from perdure.errors import InvalidRequest
from perdure.model.status import Status
from perdure.temporal.columns import BEGINNING, FOREVER, RETRACTED, begins_at
from perdure.temporal.status import history_mask, status_at, within_validity
from unit.temporal.simulated_space import SimulatedSpace, Told


def test_a_fact_is_current_from_valid_from_to_just_before_valid_to():
    assert status_at(10, 20, FOREVER, 9) is Status.NOT_YET_VALID
    assert status_at(10, 20, FOREVER, 10) is Status.CURRENT
    assert status_at(10, 20, FOREVER, 19) is Status.CURRENT
    assert status_at(10, 20, FOREVER, 20) is Status.EXPIRED


def test_a_fact_is_superseded_from_the_instant_its_superseder_takes_effect():
    assert status_at(BEGINNING, FOREVER, 30, 29) is Status.CURRENT
    assert status_at(BEGINNING, FOREVER, 30, 30) is Status.SUPERSEDED


@pytest.mark.parametrize("at", [5, 15, 25])
def test_superseded_comes_before_every_other_status(at):
    assert status_at(10, 20, 0, at) is Status.SUPERSEDED


@pytest.mark.parametrize("at", [5, 10, 25])
def test_a_retracted_fact_is_expired_at_every_instant(at):
    assert status_at(10, RETRACTED, FOREVER, at) is Status.EXPIRED
    assert not within_validity(10, RETRACTED, at)


def test_a_retracted_fact_is_superseded_where_something_supersedes_it():
    assert status_at(10, RETRACTED, 20, 19) is Status.EXPIRED
    assert status_at(10, RETRACTED, 20, 20) is Status.SUPERSEDED


def test_an_undated_fact_is_current_at_every_instant():
    assert status_at(BEGINNING, FOREVER, FOREVER, -62_135_596_800_000) is Status.CURRENT
    assert status_at(BEGINNING, FOREVER, FOREVER, 253_402_300_799_999) is Status.CURRENT


def test_a_superseded_plan_is_outside_its_validity_and_not_announced_as_upcoming():
    assert status_at(50, FOREVER, 40, 45) is Status.SUPERSEDED
    assert not within_validity(50, FOREVER, 45)


def test_an_expired_superseder_leaves_nothing_current():
    space = SimulatedSpace()
    old = space.tell(Told(valid_from=10), ingest=100)
    new = space.tell(Told(valid_from=20, valid_to=30), ingest=101)
    assert [space.current(at) for at in (9, 15, 20, 30)] == [set(), {old}, {new}, set()]
    assert space.status(old, 30) is Status.SUPERSEDED


def test_event_time_orders_facts_but_opens_no_interval():
    space = SimulatedSpace()
    first = space.tell(Told(event_time=1), ingest=100)
    second = space.tell(Told(event_time=3), ingest=101)
    assert space.current(2) == {first, second}
    assert space.current(3) == {second}


def test_a_fact_takes_effect_at_the_first_time_told_for_it():
    assert begins_at(4) == 4
    assert begins_at(4, event_time=3) == 3
    assert begins_at(4, event_time=3, valid_from=2) == 2
    assert begins_at(4, event_time=3, valid_from=2, effective_from=1) == 1
    assert begins_at(4, event_time=0) == 0


def test_an_unknown_history_is_refused_by_name():
    column = np.zeros(1, dtype=np.int64)
    with pytest.raises(InvalidRequest, match="history must be one of current, all, historical, got 'past'"):
        history_mask("past", column, column, column, 0)
