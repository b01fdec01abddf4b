"""A database that went back in its history under stores that stay open: a standby that lagged, a copy that was put back."""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bench.postgres_server import Server

from effort import examples
from perdure import Busy, ManualClock, Memory, NewFact, Store, Unavailable
from postgres_server import ROLE, await_replay, fresh_database, standby_of
from scenarios.stores import NOW

PATIENCE_S = 60


def put_through(work: Any) -> Any:
    """Return what the work returns once the database is there; a fail-over takes its time."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return work()
        except (Busy, Unavailable):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


class Pair:
    """A primary, and a standby that it does not wait for."""

    def __init__(self) -> None:
        self.primary = Server({"fsync": "off"})
        self.database = fresh_database(self.primary)
        self.standby = standby_of(self.primary, {"fsync": "off"})

    def address(self) -> str:
        hosts = f"{self.primary.root},{self.standby.root}"
        return f"postgresql://{ROLE}@/{self.database}?host={hosts}&target_session_attrs=read-write"

    def cut(self) -> None:
        """Have the standby hold what was committed until now, and get no more."""
        await_replay(self.primary, self.standby, PATIENCE_S)
        self.standby.execute("ALTER SYSTEM SET primary_conninfo = ''")
        self.standby.execute("SELECT pg_reload_conf()")
        deadline = time.monotonic() + PATIENCE_S
        while self.primary.execute("SELECT 1 FROM pg_stat_replication"):
            assert time.monotonic() < deadline, "the standby still follows"
            time.sleep(0.01)

    def fail_over(self) -> None:
        self.primary.kill()
        self.standby.execute("SELECT pg_promote()")

    def stop(self) -> None:
        self.standby.stop()
        self.primary.stop()


@pytest.fixture
def pair() -> Iterator[Pair]:
    made = Pair()
    yield made
    made.stop()


def answers(memory: Memory) -> tuple[Any, ...]:
    hits = [(hit.fact.id, hit.fact.text, hit.score) for hit in memory.recall("heron lake stork", k=100)]
    changes = [(change.kind, change.ids) for change in memory.changes(limit=1_000).items]
    return hits, [(fact.id, fact.text) for fact in memory.list(limit=1_000).items], changes


@pytest.mark.slow
@pytest.mark.parametrize("number", range(examples(1)))
def test_after_a_fail_over_to_a_standby_that_lagged_open_stores_answer_as_one_that_is_opened_then(
    pair, tmp_path, caplog, number
):
    how = {"keystore": tmp_path / "keys", "clock": ManualClock(NOW)}
    ahead, other, idle = (Store.open(pair.address(), timeout_s=25 + n, **how) for n in range(3))
    with ahead, other, idle:
        facts = [NewFact(text=f"heron {n} by the lake", id=f"h{n}") for n in range(30)]
        ahead.memory("ann").remember_many(facts)
        ahead.memory("ann").forget(ids=["h3"])
        assert answers(other.memory("ann")) == answers(idle.memory("ann"))
        pair.cut()
        # Lost: these are on the primary alone.
        told = {"id": "h-lost", "idempotency_key": "once"}
        assert ahead.memory("ann").remember("a heron that is lost", **told).created
        ahead.memory("ann").end("h5")
        ahead.memory("ben").remember("a memory that is lost", id="b")
        assert other.memory("ann").get("h-lost") is not None
        assert other.memory("ben").get("b") is not None
        pair.fail_over()
        # Others write as many records, and more, in their place; one erases as well.
        assert put_through(lambda: idle.memory("ann").remember("a stork came instead", id="s1")).created
        assert idle.memory("ann").forget(ids=["h7"]).forgotten == ("h7",)
        assert idle.memory("ann").remember("and another stork", id="s2").created
        for store in (ahead, other):
            memory = store.memory("ann")
            assert put_through(lambda memory=memory: memory.get("h-lost")) is None
            assert memory.get("h5").valid_to is None
            assert answers(memory) == answers(idle.memory("ann"))
            assert store.memory("ben").list().total == 0
        # A write that was lost is written when it is sent again, once.
        assert ahead.memory("ann").remember("a heron that is lost", **told).created
        again = other.memory("ann").remember("a heron that is lost", **told)
        assert again.id == "h-lost"
        assert [fact.id for fact in other.memory("ann").list(limit=100).items].count("h-lost") == 1
        with Store.open(pair.address(), timeout_s=28, **how) as fresh:
            expected = answers(fresh.memory("ann"))
            assert [answers(store.memory("ann")) for store in (ahead, other, idle)] == [expected] * 3
            assert fresh.verify().ok
        told = [record.message for record in caplog.records if "put back" in record.message]
        assert told
        assert not any("heron" in one or "stork" in one for one in told)


@pytest.mark.slow
def test_after_a_copy_of_the_database_was_put_back_open_stores_answer_from_it(tmp_path):
    server = Server({"fsync": "off"})
    try:
        address = server.address(fresh_database(server), ROLE)
        how = {"tenant": "ada", "keystore": tmp_path / "keys", "clock": ManualClock(NOW)}
        with Store.open(address, **how) as one, Store.open(address, timeout_s=29, **how) as other:
            one.memory().remember("a heron by the lake", id="h0")
            other.memory().list()
            _shut_down(server)
            copy = server.root / "copy"
            shutil.copytree(server.data, copy, copy_function=shutil.copy2)
            server.start()
            for number in range(4):
                put_through(
                    lambda number=number: one.memory().remember(f"heron {number}", id=f"lost {number}")
                )
            other.memory().list()
            _shut_down(server)
            _put_back(server, copy)
            server.start()
            put_through(lambda: other.memory().remember("a stork by the lake", id="s"))
            expected = [("h0", "a heron by the lake"), ("s", "a stork by the lake")]
            for store in (one, other):
                assert [(f.id, f.text) for f in store.memory().list().items] == expected
            assert answers(one.memory()) == answers(other.memory())
            assert one.verify().ok
    finally:
        server.stop()


def _shut_down(server: Server) -> None:
    server.signal(signal.SIGINT)
    assert server.process is not None
    server.process.wait(PATIENCE_S)


def _put_back(server: Server, copy: Path) -> None:
    shutil.rmtree(server.data)
    copy.rename(server.data)
    for path in (server.data, *server.data.rglob("*")):
        server.give(path)
