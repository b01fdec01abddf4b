"""A log that was put back to an earlier moment, met at any moment of a read or a write; and logs that were not."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from perdure import Corrupt, ManualClock, NewFact, Store
from perdure.base.haste import WouldWait, hurried
from perdure.log.protocol import Batch, Head
from perdure.space import keeping
from scenarios.putting_back import PutBackLog, SharedPutBackLog
from scenarios.stores import NOW, ids, texts
from unit.space.logs import together

CALLS_MAX = 40


def opened(log: PutBackLog, **options: Any) -> Store:
    return Store.open(log=log, clock=ManualClock(NOW), audit="off", **options)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if record.name == "perdure.space"]


def test_that_the_log_went_back_is_said_once_without_what_anybody_told(caplog):
    log = PutBackLog()
    store = opened(log)
    store.memory("ann").remember("the canary sings", id="canary 1")
    copy = log.copy()
    store.memory("ann").remember("the canary flies", id="canary 2")
    log.put_back(copy)
    for _ in range(3):
        assert ids(store.memory("ann").list().items) == ["canary 1"]
    [told] = warnings(caplog)
    assert "earlier moment" in told
    assert "canary" not in told
    assert "ann" not in told


def test_a_lost_write_is_written_when_it_is_sent_again_and_no_writer_fails():
    log = PutBackLog()
    one, other = opened(log), opened(log)
    one.memory().remember("the first", id="first")
    copy = log.copy()
    told = {"id": "once", "idempotency_key": "key"}
    one.memory().remember("sent again", **told)
    other.memory().list()
    log.put_back(copy)
    assert other.memory().remember("sent again", **told).created
    assert one.memory().remember("sent again", **told).id == "once"
    assert one.memory().remember("another", id="another").created
    assert texts(other.memory().list().items) == ["the first", "sent again", "another"]


def test_nothing_is_lost_of_a_memory_that_was_begun_after_the_moment():
    log = PutBackLog()
    store = opened(log)
    store.memory("ann").remember("the first", id="first")
    copy = log.copy()
    store.memory("ben").remember("lost", id="lost")
    log.put_back(copy)
    assert store.memory("ben").list().total == 0
    opened(log).memory("cid").remember("has the number of the lost one", id="kept")
    assert store.memory("ben").list().total == 0
    assert store.memory("ben").remember("begun anew", id="anew").created
    assert ids(store.memory("cid").list().items) == ["kept"]
    assert store.verify().ok


class MeddledLog(PutBackLog):
    """Calls `meanwhile` after the n-th call of the thread that made it."""

    def __init__(self) -> None:
        super().__init__()
        self.thread, self.left = threading.get_ident(), 0
        self.meanwhile: Callable[[], None] = lambda: None

    def _passed(self, reply: Any) -> Any:
        if threading.get_ident() == self.thread and self.left > 0:
            self.left -= 1
            if self.left == 0:
                self.meanwhile()
        return reply

    def head(self, space: int) -> Head:
        return self._passed(super().head(space))

    def read(self, space: int, after: int, upto: int) -> Any:
        return self._passed(super().read(space, after, upto))

    def get(self, space: int, seqs: Any, head: Head) -> Any:
        return self._passed(super().get(space, seqs, head))

    def find_space(self, name: bytes) -> int | None:
        return self._passed(super().find_space(name))

    def append(self, space: int, expected: Head, batch: Batch) -> Head:
        return self._passed(super().append(space, expected, batch))


def read(store: Store) -> object:
    return texts(store.memory().list().items), texts(store.memory().recall("fact", k=100))


def write(store: Store) -> object:
    return store.memory().remember("fact of the one who was overtaken", id="own").outcome


@pytest.mark.parametrize("loaded", [True, False])
@pytest.mark.parametrize("work", [read, write])
def test_at_whatever_moment_of_a_call_that_happens_the_next_one_is_right_and_none_is_told_of_damage(
    work, loaded
):
    for moment in range(1, CALLS_MAX):
        log = MeddledLog()
        store = opened(log)
        store.memory().remember_many([NewFact(text=f"fact {n}", id=f"f{n}") for n in range(4)])
        copy = log.copy()
        store.memory().remember_many([NewFact(text=f"fact that is lost {n}", id=f"l{n}") for n in range(3)])
        if not loaded:
            store = opened(log)

        elsewhere = PutBackLog()  # what the one who took the log's place went on with
        elsewhere.put_back(copy)
        other = opened(elsewhere).memory()
        other.remember_many([NewFact(text=f"fact that came instead {n}", id=f"i{n}") for n in range(5)])
        other.forget(ids=["f1"])
        log.meanwhile = partial(log.put_back, elsewhere.copy())
        log.left = moment
        work(store)
        came, log.left = log.left == 0, 0
        assert read(store) == read(opened(log))
        assert store.verify().ok
        if not came:
            return
    raise AssertionError("the call asks more of the log than this looks at")


def test_reads_in_a_hurry_that_share_a_look_are_served_by_what_was_written_since_and_not_by_what_is_no_more():
    log = PutBackLog()
    store = opened(log)
    memory = store.memory()
    memory.remember("one", id="1")
    copy = log.copy()
    memory.remember("two", id="2")

    def read() -> list[str]:
        return ids(memory.list().items)

    seen: dict[Any, Any] = {}
    assert hurried(read, seen) == ["1", "2"]
    memory.remember("three", id="3")
    assert hurried(read, seen) == ["1", "2", "3"]
    log.put_back(copy)
    with pytest.raises(WouldWait):
        hurried(read, {})
    assert read() == ["1"]
    assert hurried(read, {}) == ["1"]


def test_many_writers_and_readers_of_two_processes_never_take_each_other_for_a_log_that_was_put_back(caplog):
    caplog.set_level(logging.WARNING)
    log = PutBackLog()
    stores = [opened(log), opened(log)]
    stores[0].memory().remember("the first", id="first")
    assert [store.memory().list().total for store in stores] == [1, 1]

    def work(index: int) -> None:
        memory = stores[index % 2].memory()
        for turn in range(30):
            if index < 6:
                memory.remember(f"fact {index} {turn}", id=f"{index} {turn}")
                if turn % 5 == 4:
                    memory.forget(ids=[f"{index} {turn}"])
            else:
                memory.list(limit=1)
                assert len(memory.recall("fact", k=5)) <= 5

    together(10, work)
    assert stores[0].memory().list().total == stores[1].memory().list().total == 1 + 6 * 24
    assert warnings(caplog) == []
    assert [store.counters().misses for store in stores] == [1, 1], "each has loaded it once"


def test_a_snapshot_of_what_is_no_more_is_not_believed_and_another_takes_its_place(monkeypatch):
    monkeypatch.setattr(keeping, "SNAPSHOT_MIN", 5)
    log = SharedPutBackLog()
    store = opened(log, fold=False)
    store.memory().remember_many([NewFact(text=f"fact {n}", id=f"f{n}") for n in range(10)])
    copy = log.copy()
    store.memory().remember_many([NewFact(text=f"lost {n}", id=f"l{n}") for n in range(10)])
    store.close()
    assert log.get_cache(1, "state").head.seq == 21
    log.put_back(copy)
    other = opened(log)
    other.memory().remember_many([NewFact(text=f"kept {n}", id=f"k{n}") for n in range(30)])
    other.close()
    assert log.get_cache(1, "state").head.seq == 41
    found = opened(log).memory().list(limit=100).items
    assert sorted(fact.id for fact in found) == sorted(
        [f"f{n}" for n in range(10)] + [f"k{n}" for n in range(30)]
    )


class LyingLog(PutBackLog):
    """Says of a space that it adds up to what it does not."""

    def head(self, space: int) -> Head:
        found = super().head(space)
        return found._replace(digest=bytes(32)) if found.seq else found


def test_records_that_do_not_add_up_although_nothing_was_put_back_are_damage():
    log, lying = PutBackLog(), LyingLog()
    opened(log).memory().remember("one", id="1")
    lying.put_back(log.copy())
    with pytest.raises(Corrupt, match="do not add up"):
        opened(lying).memory().list()
