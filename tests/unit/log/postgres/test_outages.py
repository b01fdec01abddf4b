"""The database is away, slow, full, locked or only to be read: every call says so by type, and goes on once it is not."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

from perdure import Busy, ManualClock, StorageFull, Store, Unavailable
from perdure.errors import PerdureError
from perdure.log.postgres.pool import Pool
from perdure.log.postgres.tenants import tenant_id
from perdure.log.protocol import Batch
from postgres_server import ROLE, Server, fresh_database, give_up_soon
from unit.space.logs import in_a_thread

PASSWORD = "Qz-canary-password"
ADA = f"(SELECT own FROM perdure.naming WHERE tenant = '{tenant_id('ada')}')"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server that these tests stop, fill and signal as they like."""
    made = Server({"fsync": "off"})  # commits outlive the server, if not the machine
    yield made
    made.stop()


@pytest.fixture
def database(server) -> str:
    return fresh_database(server)


@pytest.fixture
def soon_given_up(monkeypatch) -> None:
    give_up_soon(monkeypatch)


Open = Callable[..., Store]


@pytest.fixture
def open_store(server, database, tmp_path) -> Iterator[Open]:
    opened: list[Store] = []

    def open_(address: str | None = None, **how: Any) -> Store:
        how = {"tenant": "ada", "keystore": tmp_path / "keys", "clock": ManualClock(1_000_000)} | how
        opened.append(Store.open(address or server.address(database, ROLE), **how))
        return opened[-1]

    yield open_
    for store in opened:
        store.close()


@pytest.fixture
def store(open_store) -> Store:
    made = open_store(timeout_s=0.3)
    made.memory().remember("the kettle is blue", id="kettle")
    return made


def held(server: Server, database: str, statement: str) -> psycopg.Connection:
    """Return a transaction of somebody else's in which this was done; it ends when it is closed."""
    connection = psycopg.connect(server.address(database))
    connection.execute(statement.encode())
    return connection


# Stopped and started


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT, None], ids=["fast", "immediate", "killed"])
def test_an_open_store_goes_on_by_itself_when_the_server_is_there_again(soon_given_up, server, store, how):
    threads = [threading.Thread(target=store.memory().recall, args=("kettle",)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if how is None:
        server.kill()
    else:
        server.signal(how)
        server.process.wait(60)
    try:
        health = store.health(timeout_s=0)
        assert (health.status, health.writable) == ("unavailable", False)
        with pytest.raises(Unavailable):
            store.memory().remember("nowhere")
        with pytest.raises(Unavailable):
            store.memory().recall("kettle")
    finally:
        server.start()
    assert store.health().status == "ok"
    assert [hit.id for hit in store.memory().recall("kettle")] == ["kettle"]
    assert store.memory().remember("it is there again").created
    assert [fact.text for fact in store.memory().list().items] == ["the kettle is blue", "it is there again"]
    store.purge()
    assert store.verify().ok


def test_a_server_that_still_starts_is_unavailable_and_not_taken_for_anything_else(
    server, database, tmp_path
):
    # It is not there yet: the socket is missing, or refuses.
    server.signal(signal.SIGQUIT)
    server.process.wait(60)
    try:
        with pytest.raises(Unavailable, match="could not be reached"):
            Store.open(server.address(database, ROLE), keystore=tmp_path / "keys")
    finally:
        server.start()


# Locks and time


def test_who_waits_for_a_space_that_somebody_else_has_locked_is_busy_in_time(server, database, store):
    with held(server, database, f"SELECT 1 FROM perdure.space WHERE tenant = {ADA} FOR UPDATE"):
        with pytest.raises(Busy):
            store.memory().remember("waits")
        assert [hit.id for hit in store.memory().recall("kettle")] == ["kettle"], "reads do not wait"
    assert store.memory().remember("waits no more").created
    assert len(store.memory().list().items) == 2


def test_who_waits_for_the_whole_store_is_busy_in_time_and_health_says_so(server, database, store):
    with held(server, database, f"SELECT 1 FROM perdure.tenant WHERE tenant = {ADA} FOR UPDATE"):
        with pytest.raises(Busy):
            store.purge()
        with pytest.raises(Busy):
            store.memory("somebody").remember("a new space")
        health = store.health(timeout_s=0.1)
        assert (health.status, health.writable) == ("busy", False)
    assert store.health().status == "ok"
    store.purge()


@pytest.mark.usefixtures("store")
def test_a_statement_that_takes_too_long_is_busy_and_changes_nothing(
    server, database, open_store, monkeypatch
):
    monkeypatch.setattr("perdure.log.postgres.connections.STATEMENT_S", 1)  # far more than any of these takes
    slow = open_store(timeout_s=20)
    with (
        held(server, database, f"SELECT 1 FROM perdure.space WHERE tenant = {ADA} FOR UPDATE"),
        pytest.raises(Busy),
    ):
        slow.memory().remember("too late")
    assert slow.memory().remember("in time").created
    assert slow.memory().list().total == 2


def test_a_session_that_hung_with_a_lock_gives_it_back(server, database, open_store, monkeypatch):
    monkeypatch.setattr(
        "perdure.log.postgres.connections.IDLE_S", 1
    )  # far more than lies between two statements
    hung, other = open_store(timeout_s=9), open_store(timeout_s=10)
    hung.memory().remember("one", id="one")
    with hung.log.writer(space=1):
        head = hung.log.head(1)  # locks the space, and then nothing is said for long
        assert other.memory().remember("meanwhile", id="two").created
        with pytest.raises(PerdureError) as refused:
            hung.log.append(1, head, Batch([b"late"]))
        assert refused.value.code == "conflict"
    assert hung.memory().remember("three", id="three").created
    assert hung.memory().list().total == 3


# Connections


def test_a_server_that_takes_no_more_connections_is_busy(tmp_path):
    server = Server({"max_connections": "8", "superuser_reserved_connections": "2", "fsync": "off"})
    try:
        address = server.address(fresh_database(server), ROLE)
        with Store.open(address, tenant="ada", keystore=tmp_path / "keys") as store:
            store.memory().remember("one")
            others = [psycopg.connect(address) for _ in range(5)]
            with pytest.raises(Busy):
                Store.open(address, tenant="ada", keystore=tmp_path / "keys", timeout_s=7)
            assert store.memory().remember("over the one that it has").created
            for other in others:
                other.close()
        with Store.open(address, tenant="ada", keystore=tmp_path / "keys", timeout_s=7) as again:
            assert again.memory().list().total == 2
    finally:
        server.stop()


@pytest.fixture
def make_pool(server, database) -> Iterator[Callable[[float], Pool]]:
    made: list[Pool] = []

    def make(place_s: float) -> Pool:
        connect = partial(psycopg.connect, server.address(database), autocommit=True)
        made.append(Pool(connect, 2, 0.2, place_s=place_s))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def pool(make_pool) -> Pool:
    return make_pool(0.2)


def test_who_finds_all_connections_in_use_is_busy_in_time(pool):
    lent = in_a_thread(pool.take), in_a_thread(pool.take)
    with pytest.raises(Busy, match="2 other threads"):
        pool.take()
    for one in lent:
        pool.give(one)


def test_who_waits_for_a_connection_gets_the_one_that_is_given_back(make_pool):
    pool = make_pool(60)
    one, other = in_a_thread(pool.take), in_a_thread(pool.take)
    threading.Timer(0.05, pool.give, (one,)).start()
    assert pool.take() is one
    pool.give(one)
    pool.give(other)


def test_a_connection_that_has_ended_or_is_within_a_transaction_is_not_lent_again(server, pool):
    one, other = pool.take(), pool.take()
    other.connection.execute("BEGIN")
    pool.give(one)
    pool.give(other)
    assert other.connection.closed
    server.execute(f"SELECT pg_terminate_backend({one.connection.info.backend_pid}, 5000)")
    fresh = pool.take()
    assert fresh not in (one, other)
    assert fresh.connection.execute("SELECT 1").fetchone() == (1,)
    pool.give(fresh)
    assert pool.take() is fresh
    pool.give(fresh)


class Time:
    """Stands for the module of that name: only a sleep takes any."""

    def __init__(self) -> None:
        self._now = 0.0

    def monotonic(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        self._now += seconds


@pytest.fixture
def time(monkeypatch) -> Time:
    made = Time()
    monkeypatch.setattr("perdure.log.postgres.pool.time", made)
    return made


def test_a_database_that_is_away_is_waited_for_at_first_and_then_no_more(time):
    tried = []

    def connect() -> psycopg.Connection:
        tried.append(time.monotonic())
        raise psycopg.OperationalError("connection refused")

    pool = Pool(connect, 2, 0.5)
    with pytest.raises(Unavailable):
        pool.take()
    assert len(tried) > 2
    assert 0.3 < tried[-1] < 0.5
    tried.clear()
    for _ in range(4):
        with pytest.raises(Unavailable):
            pool.take()
    assert len(tried) == 4, "and no place is lost"


@pytest.mark.parametrize(
    ("told", "error", "waits"),
    [
        ('FATAL:  password authentication failed for user "ada"', "PGPASSWORD", False),
        ('FATAL:  role "ada" does not exist', "PGPASSWORD", False),
        ('FATAL:  database "acme" does not exist', "check its name", False),
        ("FATAL:  sorry, too many clients already", "busy", True),
        ("session is read-only", "may only be read", True),
        ("FATAL:  the database system is starting up", "could not be reached", True),
    ],
)
@pytest.mark.usefixtures("time")
def test_why_no_connection_came_about_is_told_by_its_words(told, error, waits):
    tried = []

    def connect() -> psycopg.Connection:
        tried.append(told)
        raise psycopg.OperationalError(f'connection to server at "::1", port 5432 failed: {told}')

    with pytest.raises((Busy, Unavailable), match=error):
        Pool(connect, 2, 0.3).take()
    assert (len(tried) > 1) == waits


# Who may not


def test_a_database_that_may_only_be_read_says_so(server, database, store, open_store):
    server.execute(f"ALTER DATABASE {database} SET default_transaction_read_only = on")
    reading = open_store(timeout_s=0.5)
    assert [hit.id for hit in reading.memory().recall("kettle")] == ["kettle"]
    with pytest.raises(Unavailable, match="may only be read"):
        reading.memory().remember("no")
    health = reading.health()
    assert (health.status, health.writable) == ("unavailable", False)
    assert "may only be read" in health.message


def test_a_database_that_there_is_not_is_named_as_the_likely_fault(server, open_store):
    with pytest.raises(Unavailable) as refused:
        open_store(server.address("nowhere", ROLE))
    assert "check its name" in refused.value.message


@pytest.fixture
def guarded(server) -> Iterator[str]:
    """A role that must give its password."""
    rules = server.data / "pg_hba.conf"
    before = rules.read_text()
    server.execute("DROP ROLE IF EXISTS guarded")
    server.execute(f"CREATE ROLE guarded LOGIN PASSWORD '{PASSWORD}' IN ROLE {ROLE}")
    rules.write_text("local all guarded scram-sha-256\n" + before)
    server.execute("SELECT pg_reload_conf()")
    yield "guarded"
    rules.write_text(before)
    server.execute("SELECT pg_reload_conf()")


def test_a_password_that_is_wrong_is_refused_and_none_is_ever_shown(
    soon_given_up, server, database, guarded, open_store, caplog
):
    host = f"?host={server.root}"
    for wrong in (f"{PASSWORD}x", ""):
        with pytest.raises(Unavailable) as refused:
            open_store(f"postgresql://guarded:{wrong}@/{database}{host}")
        assert "PGPASSWORD" in refused.value.message
        assert wrong == "" or wrong not in _all_that_is_told(refused.value)
    store = open_store(f"postgresql://guarded:{PASSWORD}@/{database}{host}", timeout_s=0.4)
    store.memory().remember("one")
    assert PASSWORD not in repr(store) + repr(store.log) + repr(store.log.inner) + repr(store.health())
    server.signal(signal.SIGQUIT)
    server.process.wait(60)
    try:
        health = store.health(timeout_s=0)
        assert health.status == "unavailable"
        with pytest.raises(Unavailable) as lost:
            store.memory().remember("two")
        assert PASSWORD not in health.message + _all_that_is_told(lost.value) + caplog.text
    finally:
        server.start()


def _all_that_is_told(error: BaseException) -> str:
    """What an error says, and every one behind it."""
    told, one = "", error
    while one is not None:
        told += f"{one!r} {one} {getattr(one, 'details', '')}"
        one = one.__cause__ or (None if one.__suppress_context__ else one.__context__)
    return told


@pytest.mark.parametrize(
    "address",
    [
        f"postgresql://ada:{PASSWORD}@localhost:nonsense/d",
        f"postgresql://ada:{PASSWORD}@localhost:1/d?connect_timeout=1",
        f"postgresql://ada:{PASSWORD}@localhost:1/d?no_such_option={PASSWORD}",
        f"postgresql://ada:{PASSWORD}@[::1/d",
        f"postgresql://ada:{PASSWORD}%zz@localhost/d",
    ],
)
def test_an_address_that_leads_nowhere_is_refused_without_its_password(tmp_path, address):
    with pytest.raises(PerdureError) as refused:
        Store.open(address, keystore=tmp_path / "keys")
    assert refused.value.code in ("unavailable", "invalid_request")
    assert PASSWORD not in _all_that_is_told(refused.value)


# A disk that is full


@pytest.fixture
def small_disk(server) -> Iterator[Path]:
    """A disk of a few megabytes of memory, for the server; what may not mount one skips."""
    place = server.root / "small"
    place.mkdir()
    if os.name != "posix" or os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root may mount a small disk")
    told = ["mount", "-t", "tmpfs", "-o", "size=4m,mode=0777", "perdure-test", str(place)]
    if subprocess.run(told, check=False, capture_output=True).returncode:
        pytest.skip("no disk may be mounted here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_disk_that_is_full_is_said_and_nothing_is_half_written(
    server, database, open_store, small_disk, monkeypatch
):
    inside = small_disk / "space"
    inside.mkdir()
    server.give(inside)
    server.execute(f"CREATE TABLESPACE small LOCATION '{inside}'")
    try:
        server.execute("ALTER TABLE perdure.record SET TABLESPACE small", database)
        store = open_store(timeout_s=2)
        memory = store.memory()
        written = 0
        with pytest.raises(StorageFull, match="disk is full"):  # noqa: PT012 - one of them, whichever
            for written in range(400):
                memory.remember(f"{written} " + "kettle " * 4_000, id=f"f{written}")
        assert written > 2
        assert memory.list(limit=1).total == written
        assert [hit.id for hit in memory.recall("1", k=1)] == ["f1"]
        with pytest.raises(StorageFull):
            memory.forget(ids=["f0"])  # its neighbours would be written anew
        assert (store.health().status, store.health().writable) == ("storage_full", False)
        assert store.verify().ok
        server.execute("ALTER TABLE perdure.record SET TABLESPACE pg_default", database)
        assert store.health().status == "storage_full"
        with monkeypatch.context() as later:
            later.setattr("perdure.log.postgres.connections.FULL_S", 0)
            assert store.health().status == "ok", "a write may find out"
        assert memory.remember("there is room again").created
        assert store.health().status == "ok"
        assert memory.forget(ids=["f0"]).forgotten == ("f0",)
        assert memory.list(limit=1).total == written
    finally:
        server.execute("ALTER TABLE perdure.record SET TABLESPACE pg_default", database)
        server.execute("DROP TABLESPACE small")
