"""Reads of a database that are done on the loop's own thread, once it is known where their spaces stand."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from perdure import MemoryConfig, Store
from perdure.databases import Lookout, delete_tenant
from perdure.errors import Unavailable
from perdure.log.looks import HeadLook, NameLook
from perdure.server.front import Front
from perdure.server.looker import Looker, ahead_of
from postgres_server import ROLE, fresh_database, shared_server
from unit.log.postgres.test_round_trips import Counter
from unit.server.databases import app_on

T0 = 1_700_000_000_000
Client = httpx.AsyncClient


class ThreadClock:
    """A fixed clock that notes which threads asked it."""

    def __init__(self) -> None:
        self.threads: list[int] = []

    def now(self) -> int:
        self.threads.append(threading.get_ident())
        return T0


@pytest.fixture
def clock() -> ThreadClock:
    return ThreadClock()


@pytest.fixture
def database() -> str:
    return fresh_database()


@pytest.fixture
def address(database: str) -> str:
    return shared_server().address(database, ROLE)


@pytest.fixture
def app(address: str, tmp_path: Path, clock: ThreadClock) -> Iterator[Front]:
    made = app_on(address, tmp_path / "keys", clock=clock)
    yield made
    made.close()


@pytest.fixture
def other(address: str, tmp_path: Path) -> Iterator[Store]:
    with Store.open(address, tenant="default", keystore=tmp_path / "keys") as store:
        yield store


def served(app: Front, scenario: Callable[[Client], Awaitable[None]]) -> None:
    async def run() -> None:
        transport = httpx.ASGITransport(app=app)
        async with Client(transport=transport, base_url="http://localhost") as client:
            await scenario(client)

    asyncio.run(asyncio.wait_for(run(), 60))


async def remember(client: Client, text: str, **headers: str) -> None:
    reply = await client.post("/api/v1/memory/remember", json={"text": text}, headers=headers)
    assert reply.status_code == 200, reply.text


async def recall(client: Client, **headers: str) -> list[str]:
    reply = await client.post("/api/v1/memory/recall", json={"query": "kettle"}, headers=headers)
    assert reply.status_code == 200, reply.text
    return sorted(one["fact"]["text"] for one in reply.json()["results"])


async def warmed(client: Client, clock: ThreadClock, **headers: str) -> None:
    """Recall until it is done on this thread."""
    await recall(client, **headers)
    while clock.threads[-1] != threading.get_ident():  # the scenario has its time
        await recall(client, **headers)


def test_a_recall_of_a_loaded_space_is_done_on_the_loops_thread(app, clock):
    async def scenario(client: Client) -> None:
        await remember(client, "the kettle is blue")
        await recall(client)
        assert clock.threads[-1] != threading.get_ident(), "the first may have to load the space"
        await warmed(client, clock)

    served(app, scenario)


def test_what_another_server_acknowledged_is_in_the_next_recall_that_is_done_at_once(app, clock, other):
    async def scenario(client: Client) -> None:
        await remember(client, "the kettle is blue")
        told = ["the kettle is blue"]
        for number in range(5):
            await warmed(client, clock)
            told.append(f"kettle number {number}")
            await asyncio.to_thread(other.memory("").remember, told[-1])
            assert await recall(client) == sorted(told)

    served(app, scenario)


def test_a_configuration_that_another_server_keeps_is_that_of_the_next_recall(app, clock, other):
    async def scenario(client: Client) -> None:
        for number in range(3):
            await remember(client, f"kettle {number}")
        await warmed(client, clock)
        await asyncio.to_thread(other.save_config, MemoryConfig(default_k=1))
        assert len(await recall(client)) == 1
        await warmed(client, clock)
        await asyncio.to_thread(other.save_config, MemoryConfig(default_k=2))
        assert len(await recall(client)) == 2

    served(app, scenario)


def test_recalls_that_come_together_ask_the_database_once(database, tmp_path, clock):
    counter = Counter(shared_server().root)
    app = app_on(f"postgresql://{ROLE}@/{database}?host={counter.root}", tmp_path / "keys", clock=clock)

    async def scenario(client: Client) -> None:
        for tenant in ("acme", "default"):
            await remember(client, "the kettle is blue", **{"Perdure-Tenant": tenant})
            await warmed(client, clock, **{"Perdure-Tenant": tenant})
        before = counter.count
        both = [{"Perdure-Tenant": tenant} for tenant in ("acme", "default")]
        assert (
            await asyncio.gather(*(recall(client, **headers) for headers in both * 5))
            == [["the kettle is blue"]] * 10
        )
        assert counter.count - before <= 2

    try:
        served(app, scenario)
    finally:
        app.close()
        counter.close()


def test_each_tenant_is_told_of_its_own_spaces_alone(app, clock):
    async def scenario(client: Client) -> None:
        for tenant in ("acme", "beta"):
            await remember(client, f"the kettle of {tenant}", **{"Perdure-Tenant": tenant})
            await warmed(client, clock, **{"Perdure-Tenant": tenant})
        for tenant in ("acme", "beta") * 3:
            assert await recall(client, **{"Perdure-Tenant": tenant}) == [f"the kettle of {tenant}"]

    served(app, scenario)


def test_recalls_go_on_when_the_database_ended_every_session_and_are_done_at_once_again(app, clock, database):
    async def scenario(client: Client) -> None:
        await remember(client, "the kettle is blue")
        for _ in range(3):
            await warmed(client, clock)
            shared_server().execute(
                f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database}'"
            )
            for _ in range(3):
                assert await recall(client) == ["the kettle is blue"]
        await warmed(client, clock)

    served(app, scenario)


def test_a_tenant_that_was_deleted_is_not_answered_for_by_what_was_loaded(app, clock, address, tmp_path):
    async def scenario(client: Client) -> None:
        await remember(client, "the kettle is blue")
        await warmed(client, clock)
        await asyncio.to_thread(lambda: delete_tenant(address, "default", keystore=tmp_path / "keys"))
        reply = await client.post("/api/v1/memory/recall", json={"query": "kettle"})
        assert reply.status_code == 503 or reply.json()["results"] == []

    served(app, scenario)


def test_a_server_serves_several_loops_one_after_the_other(app, clock):
    async def scenario(client: Client) -> None:
        await remember(client, "the kettle is blue")
        await warmed(client, clock)

    served(app, scenario)
    served(app, scenario)


def test_a_server_that_is_closed_leaves_no_connection(address, database, tmp_path, clock):
    app = app_on(address, tmp_path / "keys", clock=clock)

    async def scenario(client: Client) -> None:
        await remember(client, "the kettle is blue")
        await warmed(client, clock)

    served(app, scenario)
    app.close()
    asked = f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{database}'"
    deadline = threading.Event()
    for _ in range(100):
        if shared_server().execute(asked) == [(0,)]:
            return
        deadline.wait(0.05)
    raise AssertionError("a connection is still there")


def test_looks_without_a_space_are_not_asked_ahead(other):
    other.memory().remember("the kettle is blue")
    assert ahead_of([NameLook(other.log, b"n" * 16), "something else"]) == ()
    assert len(ahead_of([NameLook(other.log, b"n" * 16), HeadLook(other.log, 1), 7])) == 2


def test_a_database_that_cannot_be_reached_leaves_reads_to_threads():
    def connect() -> Any:
        raise Unavailable("the database is away")

    looker = Looker(connect)
    log = object.__new__(type("Log", (), {}))

    async def scenario() -> None:
        for _ in range(3):
            assert await looker.look(ahead_of([HeadLook(log, 1)])) is None
            await asyncio.sleep(0)

    asyncio.run(scenario())


class Stub:
    """A connection that is closed or not, and lost when told so."""

    def __init__(self) -> None:
        self.sockets = socket.socketpair()
        self.is_lost = self.is_closed = False

    def fileno(self) -> int:
        if self.is_lost:
            raise psycopg.OperationalError("the connection is lost")
        return self.sockets[0].fileno()

    def ask(self, looks: list[Any]) -> Iterator[int]:
        yield 1

    def close(self) -> None:
        self.is_closed = True
        for one in self.sockets:
            one.close()


def test_a_connection_that_is_reached_after_its_loop_ended_is_taken_by_the_next_loop_or_closed():
    stubs: list[Stub] = []
    may_connect, connected = threading.Event(), threading.Semaphore(0)

    def connect() -> Any:
        assert may_connect.wait(20)
        stubs.append(Stub())
        connected.release()
        return stubs[-1]

    looker = Looker(connect)
    log = object.__new__(type("Log", (), {}))
    looks = ahead_of([HeadLook(log, 1)])

    async def look() -> Any:
        return await looker.look(looks)

    assert asyncio.run(look()) is None  # and its loop ends before anything is connected
    may_connect.set()
    assert connected.acquire(timeout=20)

    async def look_until_watched() -> None:
        asked = asyncio.ensure_future(look())
        while asked.done():
            await asyncio.sleep(0.01)
            asked = asyncio.ensure_future(look())
            await asyncio.sleep(0)
        looker.close()
        asked.cancel()

    asyncio.run(asyncio.wait_for(look_until_watched(), 20))
    assert [stub.is_closed for stub in stubs] == [True]


def test_a_connection_that_is_reached_after_the_server_was_closed_is_closed():
    stub, closed, may_connect = Stub(), threading.Event(), threading.Event()
    closing = stub.close
    stub.close = lambda: (closing(), closed.set())

    def connect() -> Any:
        assert may_connect.wait(20)
        return stub

    looker = Looker(connect)
    log = object.__new__(type("Log", (), {}))

    async def look() -> None:
        assert await looker.look(ahead_of([HeadLook(log, 1)])) is None

    asyncio.run(look())
    looker.close()
    may_connect.set()
    assert closed.wait(20)


def test_a_connection_that_was_lost_is_closed_though_it_tells_no_socket():
    stub = Stub()
    looker = Looker(lambda: stub)
    log = object.__new__(type("Log", (), {}))
    looks = ahead_of([HeadLook(log, 1)])

    async def scenario() -> None:
        asked = asyncio.ensure_future(looker.look(looks))
        await asyncio.sleep(0)
        while asked.done():
            await asyncio.sleep(0.01)
            asked = asyncio.ensure_future(looker.look(looks))
            await asyncio.sleep(0)
        stub.is_lost = True
        assert await asked is None, "nothing came in time"

    asyncio.run(asyncio.wait_for(scenario(), 20))
    assert stub.is_closed


def test_a_look_of_a_space_that_is_not_there_tells_nothing_of_its_log(address, other):
    other.memory().remember("the kettle is blue")
    with Lookout(address) as lookout:
        looking = lookout.looking()
        looker = Looker(lambda: looking)

        async def scenario() -> None:
            looks = ahead_of([HeadLook(other.log, 1)])
            found = None
            while found is None:  # it connects at first
                found = await looker.look(looks)
                await asyncio.sleep(0.01)
            assert found[HeadLook(other.log, 1)] == other.log.head(1)
            assert await looker.look(ahead_of([HeadLook(other.log, 1), HeadLook(other.log, 99)])) is None

        asyncio.run(asyncio.wait_for(scenario(), 20))
        looker.close()


@pytest.mark.parametrize("looked", [[1], [2, 1], [1, 3, 2]])
@pytest.mark.parametrize("named", [0, 1, 2])
def test_what_is_looked_at_together_is_what_the_log_tells_of_each(address, other, looked, named):
    names = [bytes([number]) * 16 for number in range(3)]
    for name in names:
        other.log.create_space(name, b"a record")
    looks = [HeadLook(other.log, space) for space in looked]
    looks += [NameLook(other.log, name) for name in [names[1], b"?" * 16][:named]]
    with Lookout(address) as lookout:
        looking = lookout.looking()
        looker = Looker(lambda: looking)

        async def scenario() -> None:
            found = None
            while found is None:  # it connects at first
                found = await looker.look(ahead_of(looks))
                await asyncio.sleep(0)
            assert {look: found[look] for look in looks} == {
                look: other.log.head(look.space)
                if isinstance(look, HeadLook)
                else other.log.find_space(look.name)
                for look in looks
            }

        asyncio.run(asyncio.wait_for(scenario(), 20))
        looker.close()
