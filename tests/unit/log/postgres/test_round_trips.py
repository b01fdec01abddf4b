"""How often a store waits for its database: what costs most where the database is another machine."""

from __future__ import annotations

import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from perdure import Memory, Store
from postgres_proxy import PORT_FILE
from postgres_server import ROLE, fresh_database, shared_server


class Counter:
    """Forwards connections to the server's socket, and counts how often a client speaks after the server did."""

    def __init__(self, server: Path) -> None:
        self.root, self._server, self.count = Path(tempfile.mkdtemp(prefix="px")), server, 0
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(self.root / PORT_FILE))
        self._listening.listen(16)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(str(self._server / PORT_FILE))
                ends = _Ends(self, client, server)
                threading.Thread(target=ends.forward, daemon=True).start()
                threading.Thread(target=ends.answer, daemon=True).start()

    def close(self) -> None:
        self._listening.close()


class _Ends:
    def __init__(self, counter: Counter, client: socket.socket, server: socket.socket) -> None:
        self._counter, self._client, self._server = counter, client, server
        self._has_answered = True

    def forward(self) -> None:
        with suppress(OSError):
            while data := self._client.recv(1 << 16):
                if self._has_answered:
                    self._has_answered = False
                    self._counter.count += 1
                self._server.sendall(data)
        self._server.close()

    def answer(self) -> None:
        with suppress(OSError):
            while data := self._server.recv(1 << 16):
                self._has_answered = True
                self._client.sendall(data)
        self._client.close()


@pytest.fixture
def counter() -> Iterator[Counter]:
    made = Counter(shared_server().root)
    yield made
    made.close()


@pytest.fixture
def opened(counter, tmp_path) -> Callable[[], Store]:
    """Opens one store again and again, each time without what was in memory before."""
    address = f"postgresql://{ROLE}@/{fresh_database()}?host={counter.root}"
    return lambda: Store.open(address, tenant="ada", keystore=tmp_path / "keys", audit="off")


@pytest.fixture
def memory(opened) -> Iterator[Memory]:
    """A memory that is loaded, whose statements were all said once."""
    with opened() as store:
        made = store.memory()
        for number in range(3):
            made.remember(f"fact {number}", id=f"f{number}")
        made.remember_many(["one more", "and another"])
        made.recall("fact")
        yield made


def test_a_recall_of_what_is_in_memory_takes_one_round_trip(memory, counter):
    before = counter.count
    memory.recall("fact")
    assert counter.count - before == 1


def test_a_recall_that_reads_its_facts_takes_two(memory, opened, counter):
    with opened() as store:
        again = store.memory()
        assert again.recall("fact")  # loads the memory, and reads these facts
        before = counter.count
        assert again.recall("another")
        assert counter.count - before == 2


def test_a_remember_takes_two_round_trips(memory, counter):
    before = counter.count
    memory.remember("the next fact", id="g")
    assert counter.count - before == 2


def test_a_batch_takes_no_more_than_one_fact(memory, counter):
    before = counter.count
    memory.remember_many([f"fact of a batch, the {number}th" for number in range(2)])
    assert counter.count - before == 2
