"""Processes that search by meaning while others tell and forget."""

from __future__ import annotations

import numpy as np
import pytest

from perdure import NewFact, Store
from processes.running import Child, servant

pytestmark = pytest.mark.slow  # each process takes most of a second to start

SEARCHER = """
import sys, threading
import numpy as np
from perdure import Busy, Store

def vector_of(id_):
    return np.random.default_rng(list(id_.encode())).normal(size=12).astype(np.float32)

def score(query, id_):
    one, other = query.astype(float), vector_of(id_).astype(float)
    return (1 + one @ other / np.sqrt(one @ one) / np.sqrt(other @ other)) / 2

with Store.open(sys.argv[1]) as store:
    memory, query, searches = store.memory(), vector_of("kept 3"), 0
    print("ready", flush=True)
    over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    while True:
        last = over.is_set()
        try:
            hits = memory.recall("", embedding=query, k=1000)
        except Busy:  # what it had found was erased before it could be read, three times in a row
            continue
        assert all(abs(hit.score - score(query, hit.id)) < 1e-12 for hit in hits)
        assert {hit.id for hit in hits} >= {f"kept {n}" for n in range(20)}
        searches += 1
        if last:
            break
    print(searches)
"""


def vector_of(id_):
    return np.random.default_rng(list(id_.encode())).normal(size=12).astype(np.float32)


def told(id_):
    return NewFact(text=id_, id=id_, embedding=vector_of(id_))


def test_a_process_that_searches_finds_right_scores_while_another_tells_forgets_and_purges(tmp_path):
    with Store.open(tmp_path / "s") as store:
        memory = store.memory()
        memory.remember_many([told(f"kept {n}") for n in range(20)])
        with Child(SEARCHER, tmp_path / "s") as one, Child(SEARCHER, tmp_path / "s") as two:
            for child in (one, two):
                assert child.hear() == "ready"
            for turn in range(25):
                memory.remember_many([told(f"{turn} {n}") for n in range(4)])
                memory.forget(ids=[f"{turn} {n}" for n in range(3)], purge=turn % 8 == 7)
            assert [int(child.finish()) > 0 for child in (one, two)] == [True, True]
        assert store.documents().index.vectors().count == 20 + 25
        assert store.verify().ok


def test_what_one_process_does_to_a_vector_the_next_search_of_another_sees(tmp_path):
    with Store.open(tmp_path / "s") as store, servant(tmp_path / "s") as other:
        memory = store.memory()
        find = "[hit.id for hit in memory.recall('', embedding=[1.0, 0.5])]"
        memory.remember("a", id="a", embedding=[1.0, 0.5])
        memory.remember("b", id="b", embedding=[0.5, 1.0])
        assert other.ask(find) == "['a', 'b']"
        memory.forget(ids=["a"], soft=True)
        assert other.ask(find) == "['b']"
        memory.restore(["a"])
        assert other.ask("memory.remember('c', id='c', embedding=[2.0, 1.01]).outcome") == "'created'"
        assert [hit.id for hit in memory.recall("", embedding=[1.0, 0.5])] == ["a", "c", "b"]
        memory.forget(ids=["a"])
        assert other.ask(find) == "['c', 'b']"
        store.purge()
        assert other.ask(find) == "['c', 'b']"
        memory.forget(all=True)
        memory.remember("of three", id="d", embedding=[1.0, 2.0, 3.0])
        assert other.ask("[hit.id for hit in memory.recall('', embedding=[1.0, 2.0, 3.0])]") == "['d']"
        other.finish()
