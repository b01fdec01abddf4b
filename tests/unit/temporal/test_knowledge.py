"""Columns as known at an ingest time, by example."""

import numpy as np

from perdure.temporal.columns import BEGINNING, FOREVER, RETRACTED
from perdure.temporal.knowledge import EndColumns, FactColumns, LinkColumns, columns_as_known


def int64(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


FACTS = FactColumns(int64(100, 200), int64(BEGINNING, BEGINNING), int64(FOREVER, 500))
LINKS = LinkColumns(int64(1), int64(0), int64(200), int64(200))
NO_ENDS = EndColumns(int64(), int64(), int64())


def test_a_fact_and_its_links_are_known_from_their_ingest_time_inclusive():
    before = columns_as_known(FACTS, LINKS, NO_ENDS, 199)
    assert (before.visible.tolist(), before.superseded_from[0]) == ([1, 0], FOREVER)
    after = columns_as_known(FACTS, LINKS, NO_ENDS, 200)
    assert (after.visible.tolist(), after.superseded_from.tolist()) == ([1, 1], [200, FOREVER])


def test_a_link_is_not_known_before_its_own_time_though_both_its_facts_are():
    late = LinkColumns(int64(1), int64(0), int64(200), int64(300))
    assert columns_as_known(FACTS, late, NO_ENDS, 299).superseded_from[0] == FOREVER
    assert columns_as_known(FACTS, late, NO_ENDS, 300).superseded_from[0] == 200


def test_an_end_closes_validity_from_the_time_it_was_told():
    ends = EndColumns(int64(1, 1, 0), int64(400, 450, RETRACTED), int64(300, 310, 320))
    assert columns_as_known(FACTS, LINKS, ends, 299).valid_to.tolist() == [FOREVER, 500]
    assert columns_as_known(FACTS, LINKS, ends, 310).valid_to.tolist() == [FOREVER, 400]
    assert columns_as_known(FACTS, LINKS, ends, 320).valid_to.tolist() == [RETRACTED, 400]


def test_the_columns_as_told_are_left_as_they_were():
    ends = EndColumns(int64(1), int64(400), int64(300))
    columns_as_known(FACTS, LINKS, ends, 400)
    assert FACTS.valid_to.tolist() == [FOREVER, 500]


def test_a_link_is_not_known_before_both_its_facts_whatever_time_it_carries():
    early = LinkColumns(int64(1), int64(0), int64(50), int64(0))
    assert columns_as_known(FACTS, early, NO_ENDS, 199).superseded_from[0] == FOREVER
    assert columns_as_known(FACTS, early, NO_ENDS, 200).superseded_from[0] == 50
