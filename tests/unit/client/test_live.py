"""Clients of a real server process: with its token, from several threads and tasks, and over its death."""

from __future__ import annotations

import asyncio
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

import forked
from perdure import Store
from perdure.client import AsyncClient, Client
from perdure.errors import Unauthorized

pytestmark = pytest.mark.slow

SERVER = """
import os, socket, sys
from perdure.server.serving import run
from perdure.server.settings import Settings

os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # nobody reads what it logs
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("127.0.0.1", int(sys.argv[2])))

def ready(front):
    print(listener.getsockname()[1], front.engine.authenticator.token_path, flush=True)

run(Settings(sys.argv[1], mcp=False), listener, ready)
"""


class Served:
    """A server process; `url` and `token` are those that it told of itself."""

    def __init__(self, store: Path):
        self._store, self._port = store, "0"
        self.start()

    def start(self):
        self._process = forked.start(SERVER, self._store, self._port, text=True)
        self._port, path = self._process.stdout.readline().split(maxsplit=1)
        self.url = f"http://127.0.0.1:{self._port}"
        self.token = Path(path.strip()).read_text(encoding="ascii").strip()

    def end(self, how):
        self._process.send_signal(how)
        self._process.wait(60)
        self._process.close()


@contextmanager
def served(store):
    process = Served(store)
    try:
        yield process
    finally:
        process.end(signal.SIGTERM)


def test_a_client_with_the_token_is_let_in_and_another_is_not(tmp_path):
    with served(tmp_path / "store") as server:
        with Client(server.url, api_key=server.token) as client:
            memory = client.memory("Zoë", "家")
            assert memory.remember("The kettle is blue", id="kettle").created
            assert [hit.id for hit in memory.recall("kettle")] == ["kettle"]
            assert [(name.principal, name.scope) for name in client.store.spaces()] == [("Zoë", "家")]
        for key in (None, "pk_wrong"):
            with Client(server.url, api_key=key) as client, pytest.raises(Unauthorized) as refused:
                client.memory("Zoë").recall("kettle")
            assert refused.value.status == 401


def test_tasks_share_one_client(tmp_path):
    async def told(server):
        async with AsyncClient(server.url, api_key=server.token) as client:
            memory = client.memory("alice")
            replies = await asyncio.gather(*(memory.remember(f"Kettle {n}") for n in range(40)))
            assert all(reply.created for reply in replies)
            found = await asyncio.gather(*(memory.recall(f"kettle {n}", k=1) for n in range(40)))
            assert [hits[0].text for hits in found] == [f"Kettle {n}" for n in range(40)]

    with served(tmp_path / "store") as server:
        asyncio.run(told(server))


def test_no_write_that_was_answered_is_lost_or_told_twice_when_the_server_is_killed(tmp_path):
    with served(tmp_path / "store") as server, Client(server.url, api_key=server.token, retries=10) as client:

        def tell(writer):
            memory = client.memory("alice")
            return [memory.remember(f"Kettle of {writer}", reassert=True).id for _ in range(10)]

        with ThreadPoolExecutor(4) as writers:
            telling = [writers.submit(tell, n) for n in range(4)]
            for _ in range(2):
                while client.memory("alice").list(limit=1).total < 5:  # there is something to lose
                    pass
                server.end(signal.SIGKILL)
                server.start()
            answered = [id_ for one in telling for id_ in one.result(timeout=120)]
    with Store.open(tmp_path / "store") as store:
        kept = [fact.id for fact in store.memory("alice").list(limit=100).items]
    assert sorted(kept) == sorted(answered)
    assert len(set(answered)) == 40
