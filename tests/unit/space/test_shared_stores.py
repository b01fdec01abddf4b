"""A store that several servers share: spaces too large for one are left to others, snapshots are kept in the background."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from perdure import Busy, ManualClock, NewFact, Store, Unavailable
from perdure.log.memory import MemoryLog
from perdure.space import keeping
from postgres_server import fresh_address
from scenarios.stores import NOW
from unit.space.logs import PATIENCE_S, together

SECRET = b"s" * 32


class SharedLog(MemoryLog):
    """As if other servers had it open: counts what is read to load a space, and holds it up where that is asked for."""

    is_shared = True

    def __init__(self) -> None:
        super().__init__(SECRET)
        self.wholes = self.snapshots = self.kept = 0
        self.before_keeping = lambda: None
        self.go_on = threading.Event()
        self.go_on.set()

    def read(self, space: int, after: int, upto: int) -> Any:
        if after == 0 and upto > 1:
            self.wholes += 1
            assert self.go_on.wait(PATIENCE_S)
        return super().read(space, after, upto)

    def get_cache(self, space: int, name: str) -> Any:
        self.snapshots += 1
        return super().get_cache(space, name)

    def put_cache(self, space: int, name: str, cached: Any) -> None:
        self.before_keeping()
        super().put_cache(space, name, cached)
        self.kept += 1

    def close(self) -> None:
        """Stay: the other servers go on."""


class Measured(SharedLog):
    """One that tells how much there is to read, and lets nothing of it be read that is too large."""

    def load_bytes(self, space: int, name: str) -> int:
        return sum(len(entry.data or b"") for entry in MemoryLog.read(self, space, 0, 1 << 40))


def opened(log: SharedLog, **options: Any) -> Store:
    return Store.open(log=log, clock=ManualClock(NOW), audit="off", **options)


def fill(store: Store, name: str, count: int) -> None:
    memory = store.memory(name)
    first = memory.list(limit=1).total
    numbers = range(first, first + count)
    memory.remember_many([NewFact(text=f"{name} saw heron {n} on day {n % 9}") for n in numbers])


def folded(store: Store) -> tuple[int, int]:
    """Return how many snapshots were kept, and how many could not be, once there is nothing left to do."""
    folder = store._registry.folder  # nothing else tells when a thread has done its work
    assert folder is not None
    assert folder.wait(PATIENCE_S)
    found = store.counters()
    return found.folds, found.fold_failures


# Too large


@pytest.mark.parametrize("kind", [SharedLog, Measured])
def test_a_space_that_cannot_fit_answers_busy_and_others_stay_where_they_are(kind):
    log = kind()
    with opened(log) as store:
        fill(store, "large", 2_500)
        fill(store, "small", 5)
    with opened(log, memory_bytes=100_000) as store:
        small, large = store.memory("small"), store.memory("large")
        small.recall("heron")
        before, looks = store.counters(), log.snapshots
        for ask in (
            lambda: large.recall("heron"),
            large.list,
            lambda: large.remember("one more"),
            lambda: large.recall("heron"),
        ):
            with pytest.raises(Busy, match=r"memory_bytes allows 100000 .*--memory-bytes"):
                ask()
        assert log.snapshots - looks == (0 if kind is Measured else 1)  # looked at once, and not again
        assert len(small.recall("heron")) == 5
        after = store.counters()
        assert (
            (after.spaces_loaded, after.facts_loaded) == (before.spaces_loaded, before.facts_loaded) == (1, 5)
        )
        assert after.misses - before.misses == (0 if kind is Measured else 1)


def test_a_space_that_outgrows_its_room_keeps_what_was_acknowledged_and_is_served_again_once_it_is_smaller():
    log = SharedLog()
    with opened(log, memory_bytes=100_000) as store:
        memory = store.memory("ann")
        told = 0
        try:
            while told < 5_000:
                memory.remember_many([NewFact(text=f"heron {told + n} by the lake") for n in range(100)])
                told += 100
        except Busy as error:
            refused = error.message
        assert "memory_bytes" in refused
        with opened(log) as ample:
            assert ample.memory("ann").list(limit=1).total == told
            ids = [fact.id for fact in ample.memory("ann").list(limit=1_000).items]
            ample.memory("ann").forget(ids=ids[10:])
            ample.purge()
        assert memory.list().total == told - len(ids[10:])


def test_an_embedded_store_serves_whatever_it_holds():
    log = MemoryLog(SECRET)
    with Store.open(log=log, memory_bytes=0) as store:
        fill(store, "ann", 50)
        assert len(store.memory("ann").recall("heron", k=50)) == 50


def test_in_a_database_it_is_told_before_anything_is_read(tmp_path: Path):
    address, keystore = fresh_address(), tmp_path / "keys"
    with Store.open(address, keystore=keystore) as store:
        fill(store, "large", 1_200)
        fill(store, "small", 5)
    for expected in (Busy, None):
        with Store.open(address, keystore=keystore, memory_bytes=20_000 if expected else 1 << 30) as store:
            assert len(store.memory("small").recall("heron")) == 5
            if expected is None:
                assert store.memory("large").list(limit=1).total == 1_200
            else:
                with pytest.raises(expected, match="memory_bytes"):
                    store.memory("large").list()
                assert store.counters().misses == 1


# Single flight


def test_however_many_ask_for_a_cold_space_it_is_read_once():
    log = SharedLog()
    with opened(log) as store:
        fill(store, "ann", 200)
    with opened(log, fold=False) as store:
        before = (log.wholes, log.snapshots)
        log.go_on.clear()
        timer = threading.Timer(0.05, log.go_on.set)
        timer.start()
        found = together(12, lambda _: store.memory("ann").list(limit=1).total)
        timer.join()
        assert found == [200] * 12
        assert (log.wholes - before[0], log.snapshots - before[1]) == (1, 1)
        assert store.counters().misses == 1


# Snapshots in the background


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "perdure fold"]


def test_a_space_that_was_read_without_a_snapshot_has_one_soon_and_the_next_server_reads_it():
    log = SharedLog()
    with opened(log, fold=False) as store:
        fill(store, "ann", 3_000)
        store._registry._loaded.clear()  # as if it had been killed
    assert log.kept == 0
    with opened(log) as store:
        assert threads() == []
        assert store.memory("ann").list(limit=1).total == 3_000
        assert folded(store) == (1, 0)
        assert threads() == ["perdure fold"]
    assert threads() == []
    assert log.kept == 1
    wholes = log.wholes
    with opened(log) as store:
        assert len(store.memory("ann").recall("heron 7")) > 0
        assert folded(store) == (0, 0)
        assert threads() == []
    assert (log.wholes, log.kept) == (wholes, 1)


def test_a_space_that_has_grown_by_what_others_wrote_is_folded(monkeypatch):
    log = SharedLog()
    with opened(log) as reader, opened(log, fold=False) as writer:
        fill(writer, "ann", 1_100)
        assert reader.memory("ann").list(limit=1).total == 1_100
        assert folded(reader) == (1, 0)
        fill(writer, "ann", 400)
        reader.memory("ann").list(limit=1)
        assert folded(reader) == (1, 0)
        fill(writer, "ann", 800)
        monkeypatch.setattr(keeping, "SNAPSHOT_RECORDS", 1_000)
        reader.memory("ann").list(limit=1)
        assert folded(reader) == (2, 0)


def test_a_writer_has_it_done_and_does_not_do_it(monkeypatch):
    monkeypatch.setattr(keeping, "SNAPSHOT_RECORDS", 1_000)
    log = SharedLog()
    with opened(log) as store:
        who: list[str] = []
        log.before_keeping = lambda: who.append(threading.current_thread().name)
        fill(store, "ann", 1_100)
        assert folded(store) == (1, 0)
        assert who == ["perdure fold"]


def test_readers_and_writers_go_on_while_a_snapshot_is_on_its_way(monkeypatch):
    monkeypatch.setattr(keeping, "SNAPSHOT_RECORDS", 1_000)
    log, reached, go_on = SharedLog(), threading.Event(), threading.Event()

    def hold() -> None:
        reached.set()
        assert go_on.wait(PATIENCE_S)

    with opened(log) as store:
        log.before_keeping = hold
        fill(store, "ann", 1_100)
        assert reached.wait(PATIENCE_S)
        store.memory("ann").remember("A heron came late", id="late")
        assert store.memory("ann").get("late").text == "A heron came late"
        assert store.memory("ann").recall("late")[0].fact.id == "late"
        assert log.kept == 0
        go_on.set()
        assert folded(store) == (1, 0)


def test_a_failure_is_counted_and_the_next_growth_tries_again(monkeypatch, caplog):
    monkeypatch.setattr(keeping, "SNAPSHOT_RECORDS", 1_000)
    log = SharedLog()

    def fail() -> None:
        raise Unavailable("the heron is in the driver's text")

    with opened(log) as store:
        log.before_keeping = fail
        fill(store, "ann", 1_100)
        assert folded(store) == (0, 1)
        assert "snapshot" in caplog.text
        assert "heron" not in caplog.text
        log.before_keeping = lambda: None
        store.memory("ann").remember("One more")
        assert folded(store) == (1, 1)


@pytest.mark.parametrize("log", [SharedLog(), MemoryLog(SECRET)], ids=["told not to", "embedded"])
def test_without_it_nothing_runs_in_the_background(monkeypatch, log):
    monkeypatch.setattr(keeping, "SNAPSHOT_RECORDS", 1_000)
    with opened(log, fold=not isinstance(log, SharedLog)) as store:
        fill(store, "ann", 1_100)
        assert threads() == []
        found = store.counters()
        assert (found.folds, found.fold_failures) == (0, 0)
        assert log.get_cache(1, "state") is not None  # the writer kept it


def test_in_a_database_one_server_s_snapshot_serves_the_others(tmp_path: Path):
    address, keystore = fresh_address(), tmp_path / "keys"
    with Store.open(address, keystore=keystore) as one, Store.open(address, keystore=keystore) as other:
        fill(one, "ann", 1_500)
        assert other.memory("ann").list(limit=1).total == 1_500
        assert folded(other) == (1, 0)
        head = other.log.cache_head(1, "state")
        assert head == one.log.head(1)
        with Store.open(address, keystore=keystore) as third:
            assert third.memory("ann").list(limit=1).total == 1_500
            assert folded(third) == (0, 0)
    with Store.open(address, keystore=keystore) as last:
        assert last.log.cache_head(1, "state") == head  # closing the others wrote none that lacks as much
        last.memory("ann").forget(ids=[last.memory("ann").list(limit=1).items[0].id])
        assert last.log.cache_head(1, "state") is None
