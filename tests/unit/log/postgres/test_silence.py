"""A database that hangs, or that is cut off by a network that drops all: whoever asks is told, and nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from perdure import Memory, Store, Unavailable
from perdure.log.postgres import connections
from perdure.log.postgres.wire import Wire
from postgres_proxy import Proxy
from postgres_server import ROLE, fresh_database, shared_server

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
