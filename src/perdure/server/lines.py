"""Where engine calls wait and run: a few threads, a line before them, and no more than fits."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from perdure.errors import Busy, Unavailable

T = TypeVar("T")

RETRY_AFTER_S = 1


class Line:
    """Threads that do one thing after another. All but the work itself happens on the event loop's thread."""

    def __init__(self, name: str, *, threads: int, queue: int) -> None:
        """Make a line; its threads begin with its first work.

        Args:
            name: of the threads.
            threads: how many calls run at once.
            queue: how many more may wait.
        """
        self.name, self._size, self._capacity = name, threads, threads + queue
        self._jobs: SimpleQueue[_Job[Any] | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self.pending = 0

    async def run(self, work: Callable[[], T], *, timeout_s: float, writes: bool = False) -> T:
        """Run the work on one of the threads and return what it returns, or raise what it raises.

        What has begun is carried to its end, also where nobody waits for it any more.

        Raises:
            Busy: the line is full, or the time was over before the work began; nothing was done.
            Unavailable: the time is over while the work goes on; a write may still be carried out.
        """
        self.check_room()
        loop = asyncio.get_running_loop()
        job = _Job(work, loop, self._left)
        self.pending += 1
        timer = loop.call_later(timeout_s, job.give_up, timeout_s, writes)
        self._put(job)
        try:
            return await job.answer
        finally:
            timer.cancel()
            job.take_back()  # whoever asked may have gone

    def check_room(self) -> None:
        """Raise Busy where the line is full."""
        if self.pending >= self._capacity:
            raise Busy("the server has as much to do as it takes at once; try again later")

    def close(self) -> None:
        """Let the threads end after what was put in before. Does not wait."""
        for _ in self._threads:
            self._jobs.put(None)

    def join(self) -> None:
        """Wait until the threads have ended."""
        for thread in self._threads:
            thread.join()

    def _put(self, job: _Job[Any]) -> None:
        if len(self._threads) < min(self._size, self.pending):
            thread = threading.Thread(
                target=_work, args=(self._jobs,), name=f"perdure-{self.name}", daemon=True
            )
            self._threads.append(thread)
            thread.start()
        self._jobs.put(job)

    def _left(self) -> None:
        self.pending -= 1


class _Job(Generic[T]):
    """One call. Its one ticket goes to whoever comes first: the thread that begins it, or who takes it back."""

    def __init__(
        self, work: Callable[[], T], loop: asyncio.AbstractEventLoop, left: Callable[[], None]
    ) -> None:
        """`left` is called once, when the call neither waits nor runs any more."""
        self._work: Callable[[], T] | None = work
        self._loop, self._left = loop, left
        self._tickets = [None]
        self.answer: asyncio.Future[T] = loop.create_future()

    def run(self) -> None:
        """Carry the call out; on a thread."""
        if not self._take_ticket():
            return
        assert self._work is not None
        try:
            result = self._work()
        except BaseException as error:  # noqa: BLE001 - raised again where it is awaited
            self._tell(self._fail, error)
        else:
            self._tell(self._succeed, result)

    def give_up(self, timeout_s: float, writes: bool) -> None:
        """Answer that the time is over."""
        if self.answer.done():
            return
        if self.take_back():
            told: Busy | Unavailable = Busy(
                f"the request waited for its turn for {timeout_s:g} s and was not begun; try again"
            )
        else:
            more = "; it may still be carried out: repeat it with the same id or idempotency key to be sure"
            told = Unavailable(f"the request was not done within {timeout_s:g} s{more if writes else ''}")
        self.answer.set_exception(told)

    def take_back(self) -> bool:
        """Return whether the call had not begun; then it never will."""
        if not self._take_ticket():
            return False
        self._work = None  # it stands in the line until a thread passes it by
        self._left()
        return True

    def _take_ticket(self) -> bool:
        try:
            self._tickets.pop()
        except IndexError:
            return False
        return True

    def _tell(self, how: Callable[[Any], None], what: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(how, what)
        except RuntimeError:  # the loop was closed: nobody waits for the answer
            return

    def _succeed(self, result: T) -> None:
        self._left()
        if not self.answer.done():
            self.answer.set_result(result)

    def _fail(self, error: BaseException) -> None:
        self._left()
        if not self.answer.done():
            self.answer.set_exception(error)


def _work(jobs: SimpleQueue[_Job[Any] | None]) -> None:
    while (job := jobs.get()) is not None:
        job.run()
        del job  # else the last request's values stay until the next comes
