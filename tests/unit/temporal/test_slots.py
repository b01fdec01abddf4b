"""Neighbours in a slot, by example."""

from perdure.temporal.slots import insert_position, neighbours

BEGINS = {0: 10, 1: 20, 2: 20, 3: 30}
ORDER = [0, 1, 2, 3]


def test_an_arrival_stands_between_the_facts_that_begin_before_and_after_it():
    assert neighbours(ORDER, BEGINS.__getitem__, (25, 4)) == (2, 3)
    assert insert_position(ORDER, BEGINS.__getitem__, (25, 4)) == 3


def test_an_arrival_succeeds_every_fact_that_begins_at_the_same_instant():
    assert neighbours(ORDER, BEGINS.__getitem__, (20, 4)) == (2, 3)


def test_a_restored_fact_goes_back_between_the_facts_told_before_and_after_it():
    assert neighbours([0, 2, 3], BEGINS.__getitem__, (20, 1)) == (0, 2)


def test_the_first_and_the_last_have_a_neighbour_on_one_side_only():
    assert neighbours(ORDER, BEGINS.__getitem__, (5, 4)) == (None, 0)
    assert neighbours(ORDER, BEGINS.__getitem__, (30, 4)) == (3, None)
    assert neighbours([], BEGINS.__getitem__, (30, 4)) == (None, None)


def test_a_fact_that_stands_in_the_order_already_is_no_neighbour_of_its_own():
    assert neighbours(ORDER, BEGINS.__getitem__, (20, 2)) == (1, 3)
    assert insert_position(ORDER, BEGINS.__getitem__, (20, 2)) == 2
