"""Spaces are loaded from a standby as far as it has come, and nothing that was forgotten comes back from it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from perdure import Busy, InvalidRequest, ManualClock, NewFact, Store
from perdure.log.postgres import PostgresLog, connections, reading
from perdure.log.postgres.replica import Replica
from perdure.log.protocol import Batch
from postgres_proxy import Proxy
from postgres_server import (
    ROLE,
    Server,
    await_replay,
    fresh_address,
    fresh_database,
    shared_server,
    standby_of,
)
from scenarios.stores import NOW
from unit.server.databases import app_on, ask

PATIENCE_S = 60
FACTS = 1_500


class Pair:
    """A primary with a standby that follows it."""

    def __init__(self) -> None:
        self.primary = Server()
        self.standby = standby_of(self.primary)

    def catch_up(self) -> None:
        """Wait until the standby has replayed all that the primary has written."""
        await_replay(self.primary, self.standby, PATIENCE_S)

    def pause(self) -> None:
        """Have the standby stay where it is."""
        self.catch_up()
        self.standby.execute("SELECT pg_wal_replay_pause()")
        deadline = time.monotonic() + PATIENCE_S
        while self.standby.execute("SELECT pg_get_wal_replay_pause_state()")[0][0] != "paused":
            assert time.monotonic() < deadline, "the standby does not pause"
            time.sleep(0.01)

    def resume(self) -> None:
        self.standby.execute("SELECT pg_wal_replay_resume()")


@pytest.fixture(scope="module")
def servers() -> Iterator[Pair]:
    found = Pair()
    yield found
    found.standby.stop()
    found.primary.stop()


class Setting:
    """A tenant of the pair's, whose stores are opened with the standby as their replica."""

    def __init__(self, pair: Pair, keys: Path, tenant: str) -> None:
        self.pair, self.keys, self.tenant = pair, keys, tenant
        database = "postgres"
        self.address = pair.primary.address(database)
        self.replica = pair.standby.address(database)

    def open(self, *, replicated: bool = True, **options: Any) -> Store:
        told = {"replica": self.replica} if replicated else {}
        return Store.open(
            self.address,
            tenant=self.tenant,
            keystore=self.keys,
            clock=ManualClock(NOW),
            audit="off",
            **{**told, **options},
        )


@pytest.fixture
def there(servers: Pair, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Setting]:
    (tmp_path / "keys").mkdir(mode=0o700)  # beside tenants that have others
    setting = Setting(servers, tmp_path / "keys", request.node.name[:100])
    with setting.open(replicated=False, fold=False) as store:
        facts = [
            NewFact(text=f"Heron {number} stood by the lake", id=f"h{number}") for number in range(FACTS)
        ]
        store.memory().remember_many(facts)
        store._registry._loaded.clear()  # closing keeps no snapshot
    servers.catch_up()
    yield setting
    if servers.standby.process is not None and servers.standby.process.poll() is None:
        servers.resume()


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What replicas answered, None where they did not."""
    found: list[Any] = []
    view = Replica.view

    def noted(self: Replica, work: Any) -> Any:
        found.append(view(self, work))
        return found[-1]

    monkeypatch.setattr(Replica, "view", noted)
    return found


def answers(store: Store) -> tuple[Any, ...]:
    memory = store.memory()
    hits = [(hit.fact.id, hit.score) for hit in memory.recall("heron 77 lake", k=20)]
    return (hits, memory.list(limit=1).total, [fact.id for fact in memory.list(limit=1_000).items])


def test_a_space_and_its_snapshot_are_read_from_the_standby(there, served):
    with there.open(replicated=False, fold=False) as primary:
        expected = answers(primary)
        primary._registry._loaded.clear()
        assert served == []
    with there.open(fold=False) as store:
        assert answers(store) == expected
        rows = [len(one[1]) for one in served if one is not None]
        assert sum(rows) == FACTS + 1
        assert None not in served
        assert store._registry.space(next(iter(store._registry._spaces)), None).save_snapshot()
    there.pair.catch_up()
    served.clear()
    with there.open() as store:
        assert answers(store) == expected
        assert [one.head.seq for one in served if one is not None] == [FACTS + 1]


def test_what_the_standby_lacks_comes_from_the_primary(there, served):
    there.pair.pause()
    with there.open(replicated=False, fold=False) as primary:
        primary.memory().remember_many([NewFact(text=f"Swan {n} by the lake", id=f"s{n}") for n in range(30)])
        expected = answers(primary)
        primary._registry._loaded.clear()
    with there.open(fold=False) as store:
        assert answers(store) == expected
    assert sum(len(one[1]) for one in served if one is not None) == FACTS + 1


def test_what_was_forgotten_never_comes_back_from_a_standby_that_lags(there, served, caplog):
    with there.open(replicated=False) as primary:
        answers(primary)  # its snapshot is on both
        primary._registry.folder.wait(PATIENCE_S)
    there.pair.pause()
    with there.open(replicated=False, fold=False) as primary:
        primary.memory().forget(ids=["h77", "h5"])
        expected = answers(primary)
        assert expected[1] == FACTS - 2
        primary._registry._loaded.clear()
    for _ in range(2):
        served.clear()
        with there.open(fold=False) as store:
            assert answers(store) == expected
            assert store.memory().get("h77") is None
            assert "h5" not in [fact.id for fact in store.memory().list(limit=1_000).items]
        assert all(one is None for one in served)
    told = [record.message for record in caplog.records if "replica" in record.message]
    assert len(told) == 1  # the second store read the snapshot that the first had left on the primary
    assert "is behind the primary" in told[0]


def test_a_purge_is_not_undone_by_a_standby_that_lags(there, served):
    there.pair.pause()
    with there.open(replicated=False, fold=False) as primary:
        primary.memory().forget(ids=["h77"])
        primary.purge()
        expected = answers(primary)
        primary._registry._loaded.clear()
    with there.open(fold=False) as store:
        assert answers(store) == expected
    assert all(one is None for one in served)


def test_a_forget_while_it_reads_from_the_standby_is_seen(there, monkeypatch):
    """Between two runs of records one is erased on the primary, which the standby has not heard of."""
    there.pair.pause()
    with there.open(replicated=False, fold=False) as primary, there.open(fold=False) as store:
        runs, view = [], Replica.view

        def meddling(self: Replica, work: Any) -> Any:
            found = view(self, work)
            runs.append(found)
            if len(runs) == 1:
                primary.memory().forget(ids=["h900"])
            return found

        monkeypatch.setattr(Replica, "view", meddling)
        assert store.memory().get("h900") is None
        assert store.memory().list(limit=1).total == FACTS - 1


def test_a_standby_that_is_down_is_passed_over_and_told_of_once(there, caplog):
    with there.open(replicated=False, fold=False) as primary:
        expected = answers(primary)
    nowhere = there.replica.replace(str(there.pair.standby.root), str(there.pair.standby.root / "none"))
    with there.open(replica=nowhere) as store:
        assert answers(store) == expected
    told = [record.message for record in caplog.records if "replica" in record.message]
    assert len(told) == 1
    assert "cannot be asked" in told[0]


def test_a_standby_that_says_nothing_is_passed_over_after_one_short_look(there, monkeypatch):
    with there.open(replicated=False, fold=False) as primary:
        expected = answers(primary)
    proxy = Proxy(there.pair.standby.root)
    with there.open(replica=there.replica.replace(str(there.pair.standby.root), str(proxy.root))) as store:
        assert store.log.place().replica.view(lambda session: session.rows("head", (session._tenant, 1)))
        proxy.hush()
        monkeypatch.setattr(connections, "CONNECT_S", 0.5)
        began = time.monotonic()
        assert answers(store) == expected
        assert time.monotonic() - began < connections.SILENCE_S / 2
        proxy.speak()
    proxy.close()


def test_one_that_holds_other_records_is_found_out_and_not_asked_again(tmp_path):
    server, how = shared_server(), {"keystore": "off", "secret": b"s" * 32, "audit": "off"}
    name = fresh_database()
    address = server.address(name, ROLE)
    with Store.open(address, clock=ManualClock(NOW), **how):
        pass
    other = server.address(server.new_database(name), ROLE)
    for at, word in ((address, "heron"), (other, "stork")):
        with Store.open(at, clock=ManualClock(NOW), **how) as store:
            store.memory().remember(f"A {word} stood by the lake", id="bird")
    told = {**how, "replica": other}
    with Store.open(address, **told) as store:
        with pytest.raises(Busy, match="other records"):
            store.memory().list()
        assert store.memory().get("bird").text == "A heron stood by the lake"


@pytest.mark.parametrize("tail_max", [10_000, 10])
def test_one_that_holds_other_records_is_found_out_where_the_space_grew_meanwhile(monkeypatch, tail_max):
    monkeypatch.setattr(reading, "TAIL_MAX", tail_max)
    server, how = shared_server(), {"secret": b"s" * 32, "keystore": None, "tenant": "ada"}
    name = fresh_database()
    PostgresLog.open(server.address(name, ROLE), **how).close()
    addresses = server.address(name, ROLE), server.address(server.new_database(name), ROLE)
    for address, word in zip(addresses, (b"heron", b"stork"), strict=True):
        log = PostgresLog.open(address, **how)
        assert log.create_space(b"b" * 16, b"first") == 1
        log.append(1, log.head(1), Batch([word]))
        log.close()
    log = PostgresLog.open(addresses[0], replica=addresses[1], **how)
    head = log.head(1)
    log.append(1, head, Batch([b"swan"] * 15))
    with pytest.raises(Busy, match="other records"):
        list(log.read(1, 0, head.seq))
    assert [entry.data for entry in log.read(1, 0, head.seq)] == [b"first", b"heron"]
    log.close()


def test_a_replica_is_the_address_of_a_database_and_of_a_store_in_one(tmp_path):
    address = fresh_address()
    for at, told in (
        (address, {"keystore": tmp_path / "keys", "replica": "standby"}),
        (address, {"keystore": tmp_path / "keys", "replica": "postgresql://a?x=secret&b"}),
        (tmp_path / "store", {"replica": address}),
    ):
        with pytest.raises(InvalidRequest) as caught:
            Store.open(at, **told)
        assert caught.value.field == "replica"
        assert "secret" not in caught.value.message


def test_a_server_loads_whole_memories_from_the_standby(there, served):
    app = app_on(there.address, there.keys, replica=there.replica)
    try:
        reply = ask(app, "memory/recall", {"query": "heron 77 lake"}, tenant=there.tenant)
        assert reply.json()["results"][0]["fact"]["id"] == "h77"
        assert sum(len(one[1]) for one in served if one is not None) == FACTS + 1
        assert None not in served
        told = ask(app, "memory/remember", {"text": "a heron flew", "id": "late"}, tenant=there.tenant)
        assert told.status_code == 200
    finally:
        app.close()
    there.pair.pause()
    with there.open(replicated=False) as primary:
        primary.memory().remember("the standby has not got this heron", id="later")
    app = app_on(there.address, there.keys, replica=there.replica)
    try:
        reply = ask(app, "memory/recall", {"query": "standby got heron"}, tenant=there.tenant)
        assert reply.json()["results"][0]["fact"]["id"] == "later"
    finally:
        app.close()
