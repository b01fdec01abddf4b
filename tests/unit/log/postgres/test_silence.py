"""A database that hangs, or that is cut off by a network that drops all: whoever asks is told, and nothing is lost."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from perdure import Memory, PerdureError, Store, Unavailable
from perdure.databases import Lookout, delete_tenant, migrate
from perdure.log.postgres import connections
from perdure.log.postgres.connections import BRIEF_MAX, Database
from perdure.log.postgres.pool import Places
from perdure.log.postgres.wire import Wire
from postgres_proxy import Proxy
from postgres_server import ROLE, fresh_address, fresh_database, shared_server
from unit.space.logs import together

SILENCE_S = 0.5
WAIT_S = 60


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    made = Proxy(shared_server().root)
    yield made
    made.close()


@pytest.fixture
def store(proxy, tmp_path: Path) -> Iterator[Store]:
    address = f"postgresql://{ROLE}@/{fresh_database()}?host={proxy.root}"
    with Store.open(address, tenant="acme", keystore=tmp_path / "keys", audit="off", timeout_s=0.5) as made:
        yield made


@pytest.fixture
def memory(store) -> Memory:
    """Everything that the tests say was said once."""
    made = store.memory()
    made.remember("the kettle is blue", id="kettle")
    made.remember("the cup is red", id="cup")
    assert made.recall("kettle")
    return made


@pytest.fixture
def silence(memory, proxy, monkeypatch) -> Iterator[None]:
    """The server says nothing any more, and nobody waits long."""
    for name in ("SILENCE_S", "CONNECT_S"):
        monkeypatch.setattr(connections, name, SILENCE_S)
    proxy.hush()
    yield
    proxy.speak()


CALLS = {
    "recall": lambda memory: memory.recall("kettle"),
    "get": lambda memory: memory.get("kettle"),
    "list": lambda memory: memory.list(),
    "remember": lambda memory: memory.remember("the pot is green", id="pot", idempotency_key="once"),
}


@pytest.mark.parametrize("call", CALLS)
def test_what_is_asked_of_a_database_that_says_nothing_fails_and_goes_on_once_it_speaks(
    store, memory, proxy, silence, call
):
    with pytest.raises(Unavailable):
        CALLS[call](memory)
    proxy.speak()
    CALLS[call](memory)
    assert memory.recall("kettle")[0].fact.id == "kettle"
    texts = [fact.text for fact in memory.list().items]
    assert len(texts) == len(set(texts)), "a write that was not confirmed is stored once"
    assert store.verify().ok


def test_health_tells_of_a_database_that_says_nothing(store, silence, proxy):
    assert store.health(timeout_s=0).status == "unavailable"
    proxy.speak()
    assert store.health().status == "ok"


@pytest.fixture
def mute() -> Iterator[str]:
    """The address of what takes connections and says nothing."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(50)
        yield f"postgresql://{ROLE}@127.0.0.1:{listening.getsockname()[1]}/silent"


def test_opening_and_closing_waits_for_no_other_address_that_says_nothing(mute, tmp_path, monkeypatch):
    asked, goes_on, look = threading.Event(), threading.Event(), Database.open

    def opened(self: Database) -> None:
        if self.address == mute:
            asked.set()
            assert goes_on.wait(20)
        look(self)

    monkeypatch.setattr(Database, "open", opened)
    monkeypatch.setattr(connections, "CONNECT_S", 1)
    told: list[PerdureError] = []

    def ask() -> None:
        with pytest.raises(Unavailable) as caught:
            Store.open(mute, keystore=tmp_path / "others")
        told.append(caught.value)

    asking = threading.Thread(target=ask)
    asking.start()
    assert asked.wait(20)
    with Store.open(fresh_address(), keystore=tmp_path / "keys", timeout_s=7.5) as store:
        assert store.memory().remember("the kettle is blue").created
    goes_on.set()
    asking.join(20)
    assert "could not be reached: it did not answer in time" in told[0].message


def test_who_lifts_the_limits_may_take_as_long_as_it_takes(store, memory, monkeypatch):
    waited: list[float | None] = []
    ask = Wire.ask

    def asking(self, asked):
        waited.append(self.silence_s)
        ask(self, asked)

    monkeypatch.setattr(Wire, "ask", asking)
    store.purge()
    assert None in waited
    waited.clear()
    memory.remember("the pot is green")
    assert None not in waited


def test_who_waits_for_a_row_for_longer_than_a_statement_takes_is_not_given_up_before(tmp_path, monkeypatch):
    waited: list[float | None] = []
    ask = Wire.ask

    def asking(self, asked):
        if asked[-1][0] == "COMMIT":
            waited.append(self.silence_s)
        ask(self, asked)

    with Store.open(fresh_address(), keystore=tmp_path / "keys", timeout_s=200.0) as opened:
        monkeypatch.setattr(Wire, "ask", asking)
        opened.memory().remember("the kettle is blue", id="k")
        opened.memory().forget(ids=["k"])  # locks, and commits, in one round trip
    assert min(limit for limit in waited if limit is not None) > 200.0


def in_time(call: Callable[[], object]) -> PerdureError | None:
    """Return what the call raises, None where it returns; it must end."""
    found: list[PerdureError | None] = []

    def run() -> None:
        try:
            call()
        except PerdureError as error:
            found.append(error)
        else:
            found.append(None)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(WAIT_S)
    assert found, "it waits without end"
    return found[0]


LOOKS = {
    "whether it can be used": lambda look, address, keys: look.check(),
    "whether there are tenants": lambda look, address, keys: look.holds_tenants(),
    "whether a tenant is there": lambda look, address, keys: look.has_tenant("acme"),
    "another tenant": lambda look, address, keys: Store.open(
        address, tenant="beta", keystore=keys, audit="off", timeout_s=0.5
    ),
    "a time-out of its own": lambda look, address, keys: Store.open(address, tenant="acme", keystore=keys),
    "to delete": lambda look, address, keys: delete_tenant(address, "acme", keystore=keys),
    "to migrate": lambda look, address, keys: migrate(address),
}


@pytest.mark.parametrize("look", LOOKS)
def test_what_looks_at_a_database_that_says_nothing_ends_and_keeps_no_place(
    store, memory, proxy, silence, tmp_path, look
):
    address = store.log.place().database.address
    with Lookout(address, timeout_s=0.5) as lookout:
        asked = in_time(lambda: LOOKS[look](lookout, address, tmp_path / "keys"))
        assert isinstance(asked, Unavailable)
        proxy.speak()
        lookout.check()
    places = store.log.place().database._pool._places
    all_within = threading.Barrier(places.size_max)

    def enter(_: int) -> None:
        count = places.enter()  # else Busy
        all_within.wait(WAIT_S)
        places.leave(count)

    together(places.size_max, enter)


@contextmanager
def stopped(pids: Sequence[int]) -> Iterator[None]:
    """Have sessions of a server hang, while others work."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="the system stops no process")
def test_where_old_sessions_hang_and_new_ones_work_one_look_finds_out_for_all(tmp_path, monkeypatch):
    server, database = shared_server(), fresh_database()
    address, own_place = server.address(database, ROLE), threading.Barrier(5)
    with Store.open(address, keystore=tmp_path / "keys", audit="off") as store, Lookout(address) as lookout:
        log = store.log.place()

        def leave_one_idle() -> None:
            with log.database.session(log.tenant):
                own_place.wait(WAIT_S)

        together(5, lambda _: leave_one_idle())
        sessions = server.execute(f"SELECT pid FROM pg_stat_activity WHERE datname = '{database}'")
        for name in ("SILENCE_S", "CONNECT_S"):
            monkeypatch.setattr(connections, name, SILENCE_S)
        with stopped([pid for (pid,) in sessions]):
            assert isinstance(in_time(lookout.check), Unavailable)
            monkeypatch.undo()
            assert in_time(lookout.check) is None
            assert in_time(lambda: store.memory().remember("the kettle is blue")) is None


def test_health_tells_of_a_database_that_says_nothing_however_many_wait_for_it(store, silence, proxy):
    pool, has_place = store.log.place().database._pool, threading.Barrier(BRIEF_MAX + 1)
    ended = threading.Event()

    def wait_for_it() -> None:
        link = pool.take(brief=True)
        has_place.wait(WAIT_S)
        ended.wait(WAIT_S)
        pool.give(link)

    proxy.speak()
    reading = [threading.Thread(target=wait_for_it) for _ in range(BRIEF_MAX)]
    for thread in reading:
        thread.start()
    has_place.wait(WAIT_S)
    pool.give(pool.take())  # one that is idle
    proxy.hush()
    assert store.health(timeout_s=0).status == "unavailable"
    ended.set()
    for thread in reading:
        thread.join()


def test_who_looks_how_a_database_is_that_leaves_the_others_without_an_answer_is_told_so(store, memory):
    pool = store.log.place().database._pool
    pool._soon = Places(0, 0.1)
    assert "answered nobody" in store.health(timeout_s=0).message
    assert store.health(timeout_s=0).status == "unavailable"


OF_A_SESSION = {
    "client_min_messages": "warning",
    "statement_timeout": "60000",
    "lock_timeout": "7000",
    "idle_in_transaction_session_timeout": "60000",
}
OF_ITS_SOCKET = [
    "tcp_keepalives_idle",
    "tcp_keepalives_interval",
    "tcp_keepalives_count",
    "tcp_user_timeout",
]  # told as 0 of a socket that is a file


def test_a_session_says_what_it_is_to_whatever_its_role_is_set_to(tmp_path):
    server, database = shared_server(), fresh_database()
    for setting in ("client_min_messages = 'error'", "idle_in_transaction_session_timeout = 0"):
        server.execute(f"ALTER ROLE {ROLE} IN DATABASE {database} SET {setting}")
    address = server.address(database, ROLE)
    asked = "SELECT name, setting FROM pg_settings WHERE name = ANY(%s) AND source = 'session'"
    with (
        Store.open(address, keystore=tmp_path / "keys", audit="off", timeout_s=7) as store,
        store.log.place().database.plain() as connection,
    ):
        found = dict(connection.execute(asked, ([*OF_A_SESSION, *OF_ITS_SOCKET],)).fetchall())
    assert found.keys() == {*OF_A_SESSION, *OF_ITS_SOCKET}
    assert {name: found[name] for name in OF_A_SESSION} == OF_A_SESSION
