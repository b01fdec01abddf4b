"""More threads than connections: each gets its turn, and none waits for one that waits for it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from perdure import Busy, ManualClock, NewFact, Store, Unavailable
from perdure.log.postgres import connections
from perdure.log.postgres import pool as pools
from perdure.log.postgres.pool import Pool
from postgres_server import fresh_address, fresh_database, shared_server
from unit.space.logs import in_a_thread, together

THREADS = 40
WAIT_S = 0.2


@pytest.fixture
def pool() -> Iterator[Pool]:
    address = shared_server().address(fresh_database())
    made = Pool(lambda: psycopg.connect(address, autocommit=True), 2, WAIT_S)
    yield made
    made.close()


def test_a_thread_that_has_a_connection_gets_another_at_once_and_only_others_wait(pool):
    mine = [pool.take() for _ in range(3)]
    assert len({link.connection.info.backend_pid for link in mine}) == 3
    second = in_a_thread(pool.take)
    with pytest.raises(Busy, match="2 other threads"):
        in_a_thread(pool.take)
    mine.append(pool.take())  # also while all are in use
    for link in (mine[1], mine[0], mine[3]):
        pool.give(link)
    with pytest.raises(Busy):
        in_a_thread(pool.take)
    pool.give(mine[2])
    third = in_a_thread(pool.take)
    pool.give(second)
    pool.give(third)
    last = pool.take()
    assert last is third
    pool.give(last)


def test_a_thread_that_waits_for_a_connection_gets_it_before_those_that_had_one_and_come_again(pool):
    links, order = [pool.take(), in_a_thread(pool.take)], list[str]()

    def wait() -> None:
        link = pool.take()
        order.append("waited")
        pool.give(link)

    def come_again() -> None:
        pool.give(links[1])
        link = pool.take()
        order.append("came again")
        pool.give(link)

    thread = threading.Thread(target=wait)
    thread.start()
    while not pool._places._room._waiting:
        assert thread.is_alive()
    in_a_thread(come_again)
    thread.join()
    pool.give(links[0])
    assert order == ["waited", "came again"]


def test_what_another_thread_gives_back_is_no_longer_counted_as_its_takers(pool):
    lent = [in_a_thread(pool.take), in_a_thread(pool.take)]
    for link in lent:
        pool.give(link)
    again = [in_a_thread(pool.take) for _ in lent]
    with pytest.raises(Busy):
        pool.take()
    for link in again:
        pool.give(link)


@pytest.mark.parametrize("size", [2, 4])
def test_however_many_threads_erase_purge_and_delete_at_once_none_waits_in_a_circle(
    monkeypatch, tmp_path: Path, size
):
    for name, count in (("WRITERS_MAX", size), ("BESIDE_MAX", size - 1), ("BRIEF_MAX", 1)):
        monkeypatch.setattr(connections, name, count)
    address, keystore, clock = fresh_address(), tmp_path / "keys", ManualClock(1_000_000)
    tenants = [f"t{number}" for number in range(4)]
    stores = [Store.open(address, tenant=tenant, keystore=keystore, clock=clock) for tenant in tenants]
    for store in stores:
        for scope in "abc":
            facts = [NewFact(text=f"heron {n}", id=str(n)) for n in range(THREADS)]
            store.memory("ann", scope).remember_many(facts)
    most = [0]
    ended = threading.Event()

    def count() -> None:
        own = shared_server().execute
        name = address.split("?")[0].rsplit("/", 1)[1]
        while not ended.wait(0.01):
            asked = f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{name}' AND usename = 'tenants'"
            most[0] = max(most[0], own(asked)[0][0])

    counting = threading.Thread(target=count)
    counting.start()

    def work(number: int) -> None:
        store = stores[number % 4]
        if number == 13:
            stores[1].delete_tenant()
        elif number % 10 == 8:
            store.purge()
        elif number % 4 != 1:  # the others may find theirs gone
            for scope in "abc":
                store.memory("ann", scope).forget(ids=[str(number)])

    try:
        together(THREADS, work)
    finally:
        ended.set()
        counting.join()
    assert 0 < most[0] <= size + (size - 1) + 2
    for place, store in enumerate(stores):
        if place != 1:
            left = {fact.id for fact in store.memory("ann", "b").list(limit=100).items}
            erased = {str(n) for n in range(THREADS) if n % 4 == place and n % 10 != 8}
            assert left == {str(n) for n in range(THREADS)} - erased
            assert store.verify().ok
        store.close()


def test_a_database_that_says_nothing_is_given_up_though_each_look_takes_all_the_patience(monkeypatch):
    now, looks = [100.0], [0]

    class Clock:
        monotonic = staticmethod(lambda: now[0])

        @staticmethod
        def sleep(seconds: float) -> None:
            now[0] += seconds

    def connect() -> psycopg.Connection[tuple[object, ...]]:
        looks[0] += 1
        now[0] += 5.0
        raise psycopg.OperationalError("connection timeout expired")

    monkeypatch.setattr(pools, "time", Clock)
    pool = Pool(connect, 1, 5.0)
    for count in (1, 2):
        with pytest.raises(Unavailable, match="did not answer in time"):
            pool.take()
        assert looks[0] == count
