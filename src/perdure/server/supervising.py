"""Several workers on one store: started together, started anew when one dies, ended together."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any, NamedTuple

from perdure.errors import PerdureError, Unavailable
from perdure.server.logs import start_logging
from perdure.server.settings import Settings

START_S = 60.0  # how long a worker may take until it serves
BACKOFF_S = (0.0, 0.2, 0.5, 1.0, 2.0, 5.0)  # before a worker that died soon is started again
SOON_S = 5.0
MARGIN_S = 5.0  # after the time that a stop gives, before a worker is killed
log = logging.getLogger("perdure.server")
_spawn = multiprocessing.get_context("spawn")


class Post(NamedTuple):
    """What a worker is given; `alive` ends when the supervisor does."""

    settings: Settings
    slot: int
    listener: socket.socket
    told: Connection
    alive: Connection
    metrics_directory: str


@dataclass
class _Worker:
    process: SpawnProcess
    told: Connection
    started_at: float
    failures: int
    is_ready: bool = False


def work(post: Post) -> None:
    """Be a worker, in a process of its own."""
    from perdure.server.metrics import Metrics  # noqa: PLC0415 - looks at the environment when it is imported
    from perdure.server.serving import run  # noqa: PLC0415 - likewise

    settings = post.settings
    writer = start_logging(settings.log_level, as_json=settings.log_format == "json")
    threading.Thread(target=_end_with, args=(post.alive,), daemon=True).start()
    try:
        metrics = Metrics(post.metrics_directory, post.slot)
        run(settings, post.listener, lambda _: post.told.send(None), metrics=metrics)
    except PerdureError as error:
        post.told.send(error.message)
    finally:
        writer.close()


class Supervisor:
    """The workers of one server."""

    def __init__(
        self, settings: Settings, sockets: list[socket.socket], on_ready: Callable[[], None]
    ) -> None:
        """Take one socket for each worker, and what is called once all of them serve."""
        self._settings, self._sockets, self._on_ready = settings, sockets, on_ready
        self._workers: list[_Worker] = []
        self._stopping_since: float | None = None
        self._theirs, self._mine = _spawn.Pipe(duplex=False)

    def run(self) -> None:
        """Start the workers and watch them until SIGINT or SIGTERM; then wait until they have finished.

        Raises:
            Unavailable: a worker did not come to serve at all.
        """
        before = {one: signal.signal(one, self._on_signal) for one in (signal.SIGINT, signal.SIGTERM)}
        try:
            with tempfile.TemporaryDirectory(
                prefix="perdure-metrics-", ignore_cleanup_errors=True
            ) as directory:
                os.environ["PROMETHEUS_MULTIPROC_DIR"] = directory
                self._workers = [self._start(slot, directory) for slot in range(len(self._sockets))]
                try:
                    self._await_ready()
                    self._watch(directory)
                finally:
                    self._end()
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)

    def _start(self, slot: int, directory: str, failures: int = 0) -> _Worker:
        told, telling = _spawn.Pipe(duplex=False)
        post = Post(self._settings, slot, self._sockets[slot], telling, self._theirs, directory)
        process = _spawn.Process(target=work, args=(post,), name=f"perdure-worker-{slot}")
        process.start()
        telling.close()
        return _Worker(process, told, time.monotonic(), failures)

    def _await_ready(self) -> None:
        deadline = time.monotonic() + START_S
        for worker in self._workers:
            while not worker.told.poll(0.1):
                if self._stopping_since is not None:
                    return
                if time.monotonic() > deadline or not worker.process.is_alive():
                    raise Unavailable("a worker did not come to serve; its log above says why")
            _hear(worker)
        self._on_ready()

    def _watch(self, directory: str) -> None:
        while self._stopping_since is None:
            wait([worker.process.sentinel for worker in self._workers], timeout=0.25)
            for slot, worker in enumerate(self._workers):
                if self._stopping_since is None and not worker.process.is_alive():
                    self._replace(slot, worker, directory)

    def _replace(self, slot: int, worker: _Worker, directory: str) -> None:
        worker.process.join()
        worker.told.close()
        soon = time.monotonic() - worker.started_at < SOON_S
        failures = worker.failures + 1 if soon else 0
        _log("a worker died and is started again", slot=slot, exit_code=worker.process.exitcode)
        self._pause(BACKOFF_S[min(failures, len(BACKOFF_S) - 1)])
        if self._stopping_since is None:
            self._workers[slot] = self._start(slot, directory, failures)

    def _pause(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while self._stopping_since is None and (left := deadline - time.monotonic()) > 0:
            time.sleep(min(left, 0.1))

    def _end(self) -> None:
        deadline = time.monotonic() + self._settings.limits.stop_timeout_s + MARGIN_S
        for worker in self._workers:
            if worker.process.is_alive():
                worker.process.terminate()
        for worker in self._workers:
            worker.process.join(max(0.0, deadline - time.monotonic()))
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()
        self._mine.close()

    def _on_signal(self, number: int, frame: Any) -> None:
        del number, frame
        if self._stopping_since is None:
            self._stopping_since = time.monotonic()


def _hear(worker: _Worker) -> None:
    try:
        message = worker.told.recv()
    except EOFError:
        message = "its log above says why"
    if message is not None:
        raise Unavailable(f"a worker did not come to serve: {message}")
    worker.is_ready = True


def _end_with(alive: Connection) -> None:
    """Wait until the supervisor is gone, however it went, and end as though it had said so."""
    try:
        alive.recv_bytes()
    except (EOFError, OSError):
        os.kill(os.getpid(), signal.SIGTERM)


def _log(event: str, **fields: Any) -> None:
    log.warning(event, extra={"fields": fields})
