"""A database that hangs, or that is cut off by a network that drops all: whoever asks is told, and nothing is lost."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from perdure import Memory, PerdureError, Store, Unavailable
from perdure.log.postgres import connections
from perdure.log.postgres.connections import Database
from perdure.log.postgres.wire import Wire
from postgres_proxy import Proxy
from postgres_server import ROLE, fresh_address, fresh_database, shared_server

SILENCE_S = 0.5


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
