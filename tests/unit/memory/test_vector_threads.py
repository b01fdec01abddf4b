"""Searches by meaning while others tell and forget: each sees whole vectors, its own writes, and nothing that is gone."""

from __future__ import annotations

import threading
from contextlib import suppress

import numpy as np
import pytest

from perdure import Busy, InvalidRequest, ManualClock, NewFact, Store
from unit.space.logs import WrappedLog, together

DIMENSION = 12
TINY = 1e-12  # two ways of adding up a dozen products in float64 are closer


def vector_of(id_):
    return np.random.default_rng(list(id_.encode())).normal(size=DIMENSION).astype(np.float32)


def score(query, id_):
    one, other = query.astype(float), vector_of(id_).astype(float)
    return (1 + one @ other / np.sqrt(one @ one) / np.sqrt(other @ other)) / 2


def told(id_):
    return NewFact(text=f"text {id_}", id=id_, embedding=vector_of(id_))


def search(memory, query, k=1000):
    """Search, and hold every score and the order to the vectors that the ids have."""
    hits = memory.recall("", embedding=query, k=k)
    assert all(abs(hit.score - score(query, hit.id)) < TINY for hit in hits)
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)
    return [hit.id for hit in hits]


def test_threads_that_tell_search_hide_and_forget_find_their_own_and_nothing_that_is_gone(memory):
    def work(index):
        for turn in range(6):
            id_ = f"{index} {turn}"
            memory.remember_many([told(id_), told(f"{id_} beside")])
            assert search(memory, vector_of(id_))[0] == id_
            if turn % 2:
                memory.forget(ids=[id_], soft=True)
                assert id_ not in search(memory, vector_of(id_))
                memory.restore([id_])
                assert search(memory, vector_of(id_), k=1) == [id_]
                memory.forget(ids=[id_])
                assert id_ not in search(memory, vector_of(id_))

    together(8, work)
    kept = {f"{index} {turn}" for index in range(8) for turn in range(0, 6, 2)}
    kept |= {f"{index} {turn} beside" for index in range(8) for turn in range(6)}
    assert set(search(memory, vector_of("any"))) == kept


@pytest.mark.parametrize("backend", ["sqlite", "journal"])
def test_the_first_searches_after_an_opening_may_come_all_at_once_and_while_others_write(tmp_path, backend):
    facts = [told(str(n)) for n in range(200)]
    with Store.open(tmp_path / "store", backend=backend, durability="normal") as store:
        store.memory().remember_many(facts)
    for _ in range(3):
        with Store.open(tmp_path / "store", clock=ManualClock("2030-01-01"), durability="normal") as store:
            memory = store.memory()

            def work(index, memory=memory):
                if index == 0:
                    memory.forget(ids=["new"])
                    memory.remember_many([told("new")])
                    return ["0"]
                found = search(memory, vector_of("7"), k=300)
                assert {id_ for id_ in found if id_ != "new"} == {fact.id for fact in facts}
                return found

            assert all(found[0] in ("7", "0") for found in together(6, work))
            assert "new" in search(memory, vector_of("new"))


def test_searches_go_on_through_purges_and_reindexings(store):
    memory, over = store.memory(), threading.Event()
    memory.remember_many([told(str(n)) for n in range(50)])

    def work(index):
        if index:
            while not over.is_set():
                with suppress(Busy):
                    assert set(search(memory, vector_of("3"))) >= {str(n) for n in range(40)}
            return
        try:
            for turn in range(4):
                memory.forget(ids=[str(40 + turn)], purge=turn % 2 == 0)
                memory.reindex(b=0.1 * (turn + 1))
        finally:
            over.set()

    together(4, work)
    assert len(search(memory, vector_of("3"))) == 46


def test_when_the_last_vector_goes_and_one_of_another_length_comes_a_search_sees_one_or_the_other(memory):
    over = threading.Event()

    def work(index):
        if index:
            while not over.is_set():
                for query in ([1.0, 0.5], [1.0, 0.5, 0.25]):
                    with suppress(InvalidRequest):
                        assert len(memory.recall("", embedding=query)) <= 1
            return
        try:
            for turn in range(30):
                memory.remember("text", id="a", embedding=[1.0] * (2 + turn % 2))
                memory.forget(ids=["a"])
        finally:
            over.set()

    together(4, work)


class Overtaken(WrappedLog):
    """A log in which something is erased two times out of three that many records are asked for at once."""

    calls = 0
    erase = staticmethod(lambda: None)

    def get(self, space, seqs, head):
        if len(seqs) > 100:
            self.calls += 1
            if self.calls % 3:
                self.erase()
        return self._log.get(space, seqs, head)

    def close(self):
        """The log is another store's."""


def test_the_first_search_comes_to_its_end_though_others_forget_all_the_while():
    count = 4_500
    with Store.open(":memory:") as store:
        memory = store.memory()
        for start in range(0, count, 900):
            memory.remember_many([told(str(n)) for n in range(start, start + 900)])
        log, gone = Overtaken(store.log), iter(range(500))
        log.erase = lambda: memory.forget(ids=[str(next(gone))])
        with Store.open(log=log) as beside:
            assert search(beside.memory(), vector_of("1400"), k=1) == ["1400"]
            forgotten = next(gone)
            assert forgotten >= 2
            log.erase = lambda: None
            assert search(beside.memory(), vector_of("0"), k=1) != ["0"]
            assert beside.documents().index.vectors().count == count - forgotten
            assert search(memory, vector_of("0")) == search(beside.memory(), vector_of("0"))
