"""The model that answers of servers are held against finds what it is there for."""

from __future__ import annotations

from contextlib import closing
from types import SimpleNamespace

import pytest

from perdure import ManualClock, Store
from processes.server_model import Held
from processes.server_writers import Recalled, Write

PLACE = ("acme", "ann")
TOLD = [
    Write(1, 2, "a", "w drinks tea"),
    Write(3, 4, "b", "w drinks tea and tea", ("a",)),
    Write(5, 6, "c", "w drinks milk and tea"),
    Write(7, 8, "d", "w drinks tea and tea", ("b",)),
    Write(9, 10, "b", None),
    Write(11, 12, "d", None),
]


def recalled(began, ended, writes, **other):
    """What a store of the first writes answers, asked at that time."""
    with Store.open(":memory:", clock=ManualClock(1_000)) as store:
        memory = store.memory()
        for write in TOLD[:writes]:
            if write.text is None:
                memory.forget(ids=[write.id])
            else:
                memory.remember(write.text, id=write.id, supersedes=write.supersedes)
        found = memory.recall("tea", k=100)
    hits = tuple((hit.fact.id, hit.score, hit.status.value) for hit in found)
    told = {"hits": hits, "recorded": tuple(1_000 for _ in hits), **other}
    return Recalled(PLACE, "tea", began, ended, **told)


def problems(*recalls):
    writer = SimpleNamespace(writes={PLACE: TOLD}, recalls=recalls)
    with closing(Held(PLACE, [writer])) as held:
        return held.problems()


@pytest.mark.parametrize(("at", "writes"), [(0, 0), *((number * 2 + 0.5, number) for number in range(1, 7))])
def test_a_recall_of_what_was_acknowledged_is_right_and_any_other_is_not(at, writes):
    for other in range(len(TOLD) + 1):
        assert (problems(recalled(at, at + 0.1, other)) == []) == (other == writes)


def test_a_recall_while_something_is_written_may_see_it_or_not():
    assert (
        problems(recalled(4.5, 7.5, 2))
        == problems(recalled(4.5, 7.5, 3))
        == problems(recalled(4.5, 7.5, 4))
        == []
    )
    assert len(problems(recalled(4.5, 7.5, 1))) == 1


def test_what_one_recall_saw_every_later_one_sees():
    early, late = recalled(5.1, 5.2, 3), recalled(5.3, 5.4, 2)
    assert problems(late) == []
    assert len(problems(early, late)) == 1


def test_a_score_that_differs_in_its_last_bit_and_an_order_that_is_not_by_score_are_found():
    right = recalled(8.5, 8.6, 4)
    (id_, score, status), *others = right.hits
    assert len(problems(recalled(8.5, 8.6, 4, hits=((id_, score * (1 + 2**-52), status), *others)))) == 1
    assert len(problems(recalled(8.5, 8.6, 4, hits=right.hits[::-1]))) == 1
    assert (
        len(problems(recalled(8.5, 8.6, 4, hits=(*right.hits, right.hits[-1]), recorded=(1_000,) * 3))) == 1
    )
