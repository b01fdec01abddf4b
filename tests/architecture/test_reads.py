"""Reading a store writes nothing to it."""

from __future__ import annotations

from datetime import datetime

import pytest

from perdure import ManualClock, MemoryConfig, Store
from perdure.log.memory import MemoryLog


class Sealable(MemoryLog):
    """A log that refuses every write once it is sealed."""

    sealed = False

    def append(self, *args, **kwargs):
        assert not self.sealed, "a read appended"
        return super().append(*args, **kwargs)

    def create_space(self, *args, **kwargs):
        assert not self.sealed, "a read created a space"
        return super().create_space(*args, **kwargs)

    def put_cache(self, *args, **kwargs):
        assert not self.sealed, "a read kept a snapshot"
        return super().put_cache(*args, **kwargs)

    def scrub(self):
        assert not self.sealed, "a read scrubbed"
        return super().scrub()


CONFIG = MemoryConfig(supersession="latest-by-subject")
QUERY = "where does Alice live"
READS = {
    "recall": lambda memory, id_: memory.recall(QUERY, history="all", explain=True),
    "recall as of and known at": lambda memory, id_: memory.recall(QUERY, as_of=1, known_at=1),
    "explain": lambda memory, id_: memory.explain(QUERY, id_),
    "get": lambda memory, id_: memory.get(id_),
    "history": lambda memory, id_: memory.history(id_),
    "list": lambda memory, id_: memory.list(),
    "changes": lambda memory, id_: memory.changes(),
    "a forget that only previews": lambda memory, id_: memory.forget(all=True, dry_run=True),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_a_read_writes_nothing_however_often_it_is_repeated(read):
    log = Sealable()
    store = Store.open(log=log, clock=ManualClock(datetime(2025, 6, 1)))
    memory = store.memory(principal="alice", config=CONFIG)
    memory.remember("Alice lives in Paris", subject="alice/city", valid_from=datetime(2020, 1, 1))
    id_ = memory.remember("Alice lives in Berlin", subject="alice/city", valid_from=datetime(2025, 1, 1)).id
    log.sealed = True
    before = store.stats().records
    assert read(memory, id_) == read(memory, id_) == read(memory, id_)
    assert store.stats().records == before


def test_asking_a_space_that_nobody_told_anything_creates_nothing():
    log = Sealable()
    store = Store.open(log=log)
    log.sealed = True
    memory = store.memory(principal="nobody")
    assert memory.recall(QUERY) == []
    assert memory.list().total == 0
    assert store.documents(principal="nobody").search(QUERY) == []
    assert store.spaces() == []
