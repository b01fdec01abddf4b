"""Lines of threads: bounded, in order, and honest about what was carried out."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from perdure.errors import Busy, NotFound, Unavailable
from perdure.server.lines import Line


class Held:
    """Work that goes on until it is let go."""

    def __init__(self) -> None:
        self.began, self.go, self.done = threading.Event(), threading.Event(), threading.Event()

    def __call__(self) -> str:
        self.began.set()
        assert self.go.wait(20)
        self.done.set()
        return "done"


def running(scenario: Any) -> Any:
    return asyncio.run(asyncio.wait_for(scenario, 30))


async def began(held: Held) -> None:
    assert await asyncio.to_thread(held.began.wait, 20)


def test_work_gives_what_it_returns_or_raises():
    async def scenario() -> None:
        line = Line("test", threads=1, queue=4)
        assert await line.run(lambda: 7, timeout_s=20) == 7
        with pytest.raises(NotFound):
            await line.run(_absent, timeout_s=20)
        assert line.pending == 0

    running(scenario())


def _absent() -> None:
    raise NotFound("nothing")


def test_more_than_runs_and_waits_is_refused_at_once():
    async def scenario() -> None:
        line, held = Line("test", threads=1, queue=1), Held()
        first = asyncio.create_task(line.run(held, timeout_s=20))
        await began(held)
        second = asyncio.create_task(line.run(lambda: 2, timeout_s=20))
        await asyncio.sleep(0)
        with pytest.raises(Busy):
            await line.run(lambda: 3, timeout_s=20)
        held.go.set()
        assert await first == "done"
        assert await second == 2

    running(scenario())


def test_work_that_had_no_turn_in_time_is_busy_and_never_begins():
    async def scenario() -> None:
        line, held, ran = Line("test", threads=1, queue=1), Held(), threading.Event()
        first = asyncio.create_task(line.run(held, timeout_s=20))
        await began(held)
        with pytest.raises(Busy):
            await line.run(ran.set, timeout_s=0.01, writes=True)
        held.go.set()
        await first
        assert await line.run(lambda: 1, timeout_s=20) == 1
        assert not ran.is_set()

    running(scenario())


def test_work_that_goes_on_past_its_time_is_unavailable_and_carried_to_its_end():
    async def scenario() -> None:
        line, held = Line("test", threads=1, queue=1), Held()
        with pytest.raises(Unavailable) as caught:
            await line.run(held, timeout_s=0.05, writes=True)
        assert "may still be carried out" in caught.value.message
        held.go.set()
        assert await asyncio.to_thread(held.done.wait, 20)

    running(scenario())


def test_work_of_a_caller_who_has_gone_is_not_begun_where_it_still_waits():
    async def scenario() -> None:
        line, held, ran = Line("test", threads=1, queue=4), Held(), threading.Event()
        first = asyncio.create_task(line.run(held, timeout_s=20))
        await began(held)
        second = asyncio.create_task(line.run(ran.set, timeout_s=20))
        await asyncio.sleep(0)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        held.go.set()
        await first
        await line.run(lambda: None, timeout_s=20)
        assert not ran.is_set()
        assert line.pending == 0

    running(scenario())


def test_what_was_put_in_before_the_end_is_carried_out():
    async def scenario() -> None:
        line, held = Line("test", threads=1, queue=4), Held()
        first = asyncio.create_task(line.run(held, timeout_s=20))
        second = asyncio.create_task(line.run(lambda: 2, timeout_s=20))
        await began(held)
        line.close()
        held.go.set()
        assert (await first, await second) == ("done", 2)
        await asyncio.to_thread(line.join)

    running(scenario())


def test_as_many_run_at_once_as_there_are_threads_and_no_more():
    async def scenario() -> None:
        line = Line("test", threads=3, queue=20)
        most, now, lock = 0, 0, threading.Lock()
        gate = threading.Barrier(3)

        def work() -> None:
            nonlocal most, now
            with lock:
                now += 1
                most = max(most, now)
            gate.wait(20)
            with lock:
                now -= 1

        await asyncio.gather(*(line.run(work, timeout_s=20) for _ in range(9)))
        assert most == 3

    running(scenario())
