"""Reads that are done on the loop's own thread: only short ones, and never at the cost of anybody else."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import apsw
import httpx
import pytest

from perdure import Store
from perdure.base.haste import WouldWait, hurried, is_hurried, refuse_to_wait, seen_once
from perdure.errors import Busy, NotFound
from perdure.server.app import create_app
from perdure.server.engine import Engine
from perdure.server.lines import Line
from perdure.server.quick import Quick
from perdure.server.settings import Settings
from perdure.space.locks import SharedLock

WARM = 200  # reads after which one of its kind is done at once, however long the first took
T0 = 1_700_000_000_000


class WatchedClock:
    """A fixed clock that notes which threads asked it, and may hold them."""

    def __init__(self) -> None:
        self.threads: list[int] = []
        self.asked, self.go = threading.Event(), threading.Event()
        self.go.set()
        self.engine: Engine | None = None

    async def on_thread(self) -> None:
        """Wait until a read is on its way to a thread."""
        while self.engine is None or not self.engine.reads.pending:
            await asyncio.sleep(0)

    def now(self) -> int:
        self.threads.append(threading.get_ident())
        self.asked.set()
        assert self.go.wait(20)
        return T0


Client = httpx.AsyncClient
Scenario = Callable[[Client, WatchedClock], Awaitable[None]]


def served(place: Path | str, scenario: Scenario) -> None:
    """Run a scenario against an application over the store."""

    async def run() -> None:
        clock = WatchedClock()
        app = create_app(Settings(str(place), auth=False), clock=clock)
        clock.engine = app.engine
        try:
            async with Client(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
                await scenario(client, clock)
        finally:
            app.close()

    asyncio.run(asyncio.wait_for(run(), 60))


def filled(place: Path) -> Path:
    with Store.open(place) as store:
        store.memory().remember("the kettle is blue", id="kettle")
    return place


async def post(client: Client, op: str, **told: Any) -> Any:
    reply = await client.post(
        f"/api/v1/memory/{op}", content=json.dumps(told), headers={"content-type": "application/json"}
    )
    assert reply.status_code == 200, reply.text
    return reply.json()


async def recalled(client: Client) -> list[str]:
    return [one["fact"]["id"] for one in (await post(client, "recall", query="kettle"))["results"]]


async def warmed(client: Client, clock: WatchedClock) -> None:
    """Recall until it is done on this thread."""
    for _ in range(WARM):
        await recalled(client)
        if clock.threads[-1] == threading.get_ident():
            return
    raise AssertionError("no recall was done at once")


async def until(event: threading.Event) -> None:
    assert await asyncio.to_thread(event.wait, 20)


@pytest.mark.parametrize("kind", ["sqlite", "memory"])
def test_a_recall_of_a_loaded_space_is_done_on_the_loops_thread(tmp_path: Path, kind: str):
    async def scenario(client: Client, clock: WatchedClock) -> None:
        await post(client, "remember", text="the kettle is blue", id="kettle")
        await recalled(client)
        assert clock.threads[-1] != threading.get_ident(), "the first may have to load the space"
        await warmed(client, clock)
        assert await recalled(client) == ["kettle"]

    served(tmp_path / "s" if kind == "sqlite" else ":memory:", scenario)


def test_a_first_read_that_hangs_keeps_nobody_from_being_answered(tmp_path: Path):
    async def scenario(client: Client, clock: WatchedClock) -> None:
        clock.go.clear()
        slow = asyncio.create_task(recalled(client))
        await until(clock.asked)
        assert (await client.get("/health/live")).status_code == 200
        assert not slow.done()
        clock.go.set()
        assert await slow == ["kettle"]

    served(filled(tmp_path / "s"), scenario)


def test_a_read_that_another_process_holds_up_waits_on_a_thread_and_health_answers_meanwhile(tmp_path: Path):
    place = filled(tmp_path / "s")

    async def scenario(client: Client, clock: WatchedClock) -> None:
        await warmed(client, clock)
        other = apsw.Connection(str(place / "store.lock"))
        other.execute("BEGIN EXCLUSIVE")
        held = asyncio.create_task(recalled(client))
        await clock.on_thread()
        for _ in range(5):
            assert (await client.get("/health/live")).status_code == 200
            await asyncio.sleep(0)
        assert not held.done()
        other.execute("ROLLBACK")
        other.close()
        assert await held == ["kettle"]
        assert clock.threads[-1] != threading.get_ident()

    served(place, scenario)


def test_what_another_process_has_written_is_read_on_a_thread_and_seen_at_once(tmp_path: Path):
    place = filled(tmp_path / "s")

    async def scenario(client: Client, clock: WatchedClock) -> None:
        await warmed(client, clock)
        with Store.open(place) as other:
            other.memory().remember("another kettle", id="another")
        assert sorted(await recalled(client)) == ["another", "kettle"]
        assert clock.threads[-1] != threading.get_ident()

    served(place, scenario)


def test_an_error_of_a_read_that_is_done_at_once_is_the_same_as_on_a_thread(tmp_path: Path):
    async def scenario(client: Client, clock: WatchedClock) -> None:
        told = {"content-type": "application/json"}
        replies = []
        for _ in range(WARM):
            reply = await client.post(
                "/api/v1/memory/explain", content=b'{"query":"kettle","id":"none"}', headers=told
            )
            replies.append((reply.status_code, reply.content))
            if clock.threads[-1] == threading.get_ident():
                break
        assert clock.threads[-1] == threading.get_ident()
        assert set(replies) == {replies[0]}
        assert replies[0][0] == 404

    served(filled(tmp_path / "s"), scenario)


def running(scenario: Any) -> Any:
    return asyncio.run(asyncio.wait_for(scenario, 30))


def burning(seconds: float) -> Callable[[], int]:
    """Return work that takes the processor for as long, and tells its thread."""

    def work() -> int:
        ends = time.thread_time() + seconds
        while time.thread_time() < ends:
            pass
        return threading.get_ident()

    return work


async def quickened(quick: Quick) -> None:
    for _ in range(WARM):
        if await quick.run(("k",), burning(0), timeout_s=20) == threading.get_ident():
            return
    raise AssertionError("nothing was done at once")


def test_one_read_that_takes_long_sends_the_next_of_its_kind_to_a_thread():
    async def scenario() -> None:
        quick = Quick(Line("test", threads=1, queue=4))
        await quickened(quick)
        assert await quick.run(("k",), burning(0.05), timeout_s=20) == threading.get_ident()
        assert await quick.run(("k",), burning(0), timeout_s=20) != threading.get_ident()
        await quickened(quick)  # for a while only

    running(scenario())


def test_reads_that_take_long_on_threads_stay_there():
    async def scenario() -> None:
        quick = Quick(Line("test", threads=1, queue=4))
        threads = {await quick.run(("k",), burning(0.003), timeout_s=20) for _ in range(20)}
        assert threading.get_ident() not in threads

    running(scenario())


def test_a_read_that_gives_up_is_done_on_a_thread():
    def work() -> int:
        refuse_to_wait()
        return threading.get_ident()

    async def scenario() -> None:
        quick = Quick(Line("test", threads=1, queue=4))
        await quickened(quick)
        assert await quick.run(("k",), work, timeout_s=20) != threading.get_ident()

    running(scenario())


def test_many_short_reads_at_once_let_others_have_their_turn_between_them():
    async def scenario() -> None:
        quick = Quick(Line("test", threads=1, queue=400))
        await quickened(quick)
        loop, done, seen = asyncio.get_running_loop(), [0], []

        async def read() -> None:
            assert await quick.run(("k",), burning(0.0003), timeout_s=20)
            done[0] += 1

        def turn() -> None:
            seen.append(done[0])
            if done[0] < 200:
                loop.call_soon(turn)

        loop.call_soon(turn)
        await asyncio.gather(*(read() for _ in range(200)))
        assert max(later - before for before, later in itertools.pairwise(seen)) < 100

    running(scenario())


def test_a_full_line_refuses_what_would_be_done_at_once_too():
    async def scenario() -> None:
        line = Line("test", threads=1, queue=0)
        quick, began, go = Quick(line), threading.Event(), threading.Event()
        await quickened(quick)

        def held() -> bool:
            began.set()
            return go.wait(20)

        waiting = asyncio.create_task(line.run(held, timeout_s=20))
        await until(began)
        with pytest.raises(Busy):
            await quick.run(("k",), burning(0), timeout_s=20)
        go.set()
        assert await waiting

    running(scenario())


def test_a_thread_in_a_hurry_gives_up_where_a_writer_has_the_lock_and_takes_it_where_nobody_has():
    lock = SharedLock()
    with lock, pytest.raises(WouldWait):
        hurried(lock.acquire_shared)
    hurried(lock.acquire_shared)
    lock.release_shared()
    assert not is_hurried()


def test_a_hurry_ends_with_the_work_that_failed():
    def failing() -> None:
        assert is_hurried()
        raise NotFound("nothing")

    with pytest.raises(NotFound):
        hurried(failing)
    refuse_to_wait()
    assert not is_hurried()


def test_who_waits_for_a_later_turn_has_it_in_order_and_whoever_gave_up_keeps_no_other_from_it():
    async def scenario() -> None:
        quick, done = Quick(Line("test", threads=1, queue=400)), []
        await quickened(quick)

        async def read(number: int) -> None:
            await quick.run(("k",), burning(0.0003), timeout_s=20)
            done.append(number)

        tasks = [asyncio.create_task(read(number)) for number in range(200)]
        await asyncio.sleep(0)
        gone = [number for number in range(100, 200) if number % 3 == 0]
        for number in gone:
            tasks[number].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert done == [number for number in range(200) if number not in gone]

    running(scenario())


def test_a_read_sees_what_was_acknowledged_before_it_came_and_shares_looks_that_are_newer():
    async def scenario() -> None:
        quick, written, time_of = (
            Quick(Line("read", threads=1, queue=1)),
            [0],
            asyncio.get_running_loop().time,
        )
        kind = ("recall",)

        def read() -> tuple[bool, int]:
            return is_hurried(), seen_once("number", lambda: written[0])

        for _ in range(WARM):
            if (await quick.run(kind, read, timeout_s=5))[0]:
                break
        early = time_of()
        for number in range(1, 50):
            written[0] = number
            late = time_of()
            assert await quick.run(kind, read, timeout_s=5, came_at=late) == (True, number)
            written[0] = -1  # not acknowledged before these came
            assert await quick.run(kind, read, timeout_s=5, came_at=early) == (True, number)
            assert await quick.run(kind, read, timeout_s=5, came_at=late) == (True, number)
            assert await quick.run(kind, read, timeout_s=5) == (True, -1)

    asyncio.run(scenario())


def test_what_is_seen_for_one_work_in_a_hurry_is_seen_for_the_next_and_by_nobody_else():
    seen: dict[Any, Any] = {}
    counted = itertools.count()
    look = counted.__next__
    assert hurried(lambda: (seen_once("a", look), seen_once("a", look), seen_once("b", look)), seen) == (
        0,
        0,
        1,
    )
    assert hurried(lambda: seen_once("a", look), seen) == 0
    assert hurried(lambda: seen_once("a", look)) == 2
    assert seen_once("a", look) == 3
    assert hurried(lambda: seen_once("a", look), {}) == 4
