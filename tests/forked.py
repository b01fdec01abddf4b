"""Processes that start in milliseconds: copies of one that has imported the package, and on their own from then on.

`start(program, arguments)` is `subprocess.Popen([sys.executable, "-c", program, *arguments])` with all three streams
as pipes, for programs that ask nothing of the interpreter's own start. What a new interpreter does differently (its
options, the seed of its hashes, what it does without streams) is told of by a process of `subprocess` alone. The
process that is copied opens no store and starts no thread; the copies are ended, killed and awaited like any child.
Only where there is fork.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import io
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import types
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, NoReturn, Self

IMPORTED = (
    "perdure.store",
    "perdure.cli.main",
    "perdure.cli.screen",
    "rich.console",
    "perdure.mcp.serving",
    "perdure.mcp.stdio",
    "perdure.server.serving",
    "perdure.log.postgres",
)
STREAMS = 3
LENGTH_BYTES = 8
COMMAND = "from perdure.cli.main import main; main()"  # `perdure`, as a program


class Process:
    """A copy that runs one program. Text or bytes, as asked; to be used by one thread at a time, like Popen."""

    def __init__(self, status: int, streams: list[Any]) -> None:
        self._status = open(status, "rb", buffering=0)  # noqa: SIM115 - lives as long as the process may be awaited
        self.stdin, self.stdout, self.stderr = streams
        self.returncode: int | None = None
        self.pid = int(self._status.read(LENGTH_BYTES))

    def poll(self) -> int | None:
        """Return the exit code, or None while it runs; minus the signal that ended it, if one did."""
        return self._await(0)

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code when it has ended.

        Raises:
            TimeoutError: it still runs after so many seconds.
        """
        code = self._await(timeout)
        if code is None:
            raise TimeoutError(f"process {self.pid} still runs after {timeout} s")
        return code

    def _await(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._status], [], [], timeout)[0]:
            told = self._status.read(LENGTH_BYTES)
            assert told, "the process that starts the others has ended"
            self.returncode = os.waitstatus_to_exitcode(int(told))
            self._status.close()
        return self.returncode

    def communicate(self, told: Any = None, timeout: float | None = None) -> tuple[Any, Any]:
        """Tell it this, close its input, and return all that it says until it ends, once it has ended."""
        heard: dict[str, Any] = {}
        readers = [
            threading.Thread(
                target=lambda name=name: heard.update({name: getattr(self, name).read()}), daemon=True
            )
            for name in ("stdout", "stderr")
        ]
        for reader in readers:
            reader.start()
        with contextlib.suppress(BrokenPipeError):
            if told:
                self.stdin.write(told)
            self.stdin.close()
        until = None if timeout is None else time.monotonic() + timeout
        for reader in readers:
            reader.join(None if until is None else max(0.0, until - time.monotonic()))
            if reader.is_alive():
                self.kill()
                raise TimeoutError(f"process {self.pid} still speaks after {timeout} s")
        self.wait(timeout)
        self.close()
        return heard["stdout"], heard["stderr"]

    def close(self) -> None:
        """Close the streams, and wait until it has ended."""
        for stream in (self.stdout, self.stderr, self.stdin):
            with contextlib.suppress(BrokenPipeError):
                stream.close()
        self.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(
                ProcessLookupError
            ):  # it has ended since, and whoever forked it has taken note
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def start(
    program: str,
    *arguments: object,
    text: bool = False,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Process:
    """Run a program in a process of its own, in this folder with this environment (else in this one's)."""
    ours: list[int] = []
    theirs: list[int] = []
    for number in range(STREAMS + 1):  # the last tells of the process itself
        read, write = os.pipe()
        ours.append(write if number == 0 else read)
        theirs.append(read if number == 0 else write)
    order = {
        "program": program,
        "arguments": [str(argument) for argument in arguments],
        "environment": dict(os.environ if env is None else env),
        "folder": str(cwd or Path.cwd()),
    }
    _nursery().order(json.dumps(order).encode(), theirs)
    for descriptor in theirs:
        os.close(descriptor)
    return Process(
        ours.pop(), [_stream(descriptor, "wb" if n == 0 else "rb", text) for n, descriptor in enumerate(ours)]
    )


def run(
    program: str,
    *arguments: object,
    told: Any = None,
    text: bool = False,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    timeout: float | None = None,
) -> subprocess.CompletedProcess[Any]:
    """Run a program to its end, as `subprocess.run` does with its output captured; `told` is its whole input."""
    process = start(program, *arguments, text=text, env=env, cwd=cwd)
    out, err = process.communicate(told, timeout)
    assert process.returncode is not None
    return subprocess.CompletedProcess([program, *arguments], process.returncode, out, err)


def _stream(descriptor: int, mode: str, text: bool) -> IO[Any]:
    stream = open(descriptor, mode)  # noqa: SIM115 - handed on
    return io.TextIOWrapper(stream, encoding="utf-8", write_through=True) if text else stream


class _Nursery:
    """The process that is copied. Thread-safe."""

    def __init__(self) -> None:
        mine, its = socket.socketpair()
        self._orders, self._lock = mine, threading.Lock()
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "OPENBLAS_NUM_THREADS": "1",
        }
        self._process = subprocess.Popen(
            [sys.executable, "-m", "forked", str(its.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[its.fileno()],
            env=environment,
        )
        its.close()
        atexit.register(self.close)

    def order(self, told: bytes, descriptors: list[int]) -> None:
        with self._lock:
            socket.send_fds(self._orders, [len(told).to_bytes(LENGTH_BYTES, "big")], descriptors)
            self._orders.sendall(told)

    def close(self) -> None:
        self._orders.close()
        self._process.wait()


@functools.cache
def _nursery() -> _Nursery:
    return _Nursery()


class _Program(Exception):
    """Not a failure: it takes a copy out of the loop that it was made in."""

    def __init__(self, order: dict[str, Any]) -> None:
        self.order = order


def _serve(orders: socket.socket) -> None:
    """Copy this process for each order, and tell of each copy when it ends; return when nobody orders any more.

    Raises:
        _Program: in a copy, with what it is to run.
    """
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    statuses: dict[int, int] = {}
    while True:
        ready, _, _ = select.select([orders, woken], [], [])
        if woken in ready:
            os.read(woken, 4096)
            _tell_of_the_dead(statuses)
        if orders not in ready:
            continue
        length, descriptors, _, _ = socket.recv_fds(orders, LENGTH_BYTES, STREAMS + 1)
        if not length:
            return
        order = json.loads(_whole(orders, int.from_bytes(length, "big")))
        *streams, status = descriptors
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for number, descriptor in enumerate(streams):
                os.dup2(descriptor, number)
            for descriptor in (*streams, status, *statuses.values(), woken, wake):
                os.close(descriptor)
            orders.close()
            raise _Program(order)
        for descriptor in streams:
            os.close(descriptor)
        statuses[pid] = status
        _tell(status, pid)


def _whole(orders: socket.socket, length: int) -> bytes:
    parts = bytearray()
    while len(parts) < length:
        part = orders.recv(length - len(parts))
        assert part, "an order broke off"
        parts += part
    return bytes(parts)


def _tell(status: int, number: int) -> None:
    with contextlib.suppress(BrokenPipeError):  # nobody waits for it any more
        os.write(status, b"%0*d" % (LENGTH_BYTES, number))


def _tell_of_the_dead(statuses: dict[int, int]) -> None:
    while statuses:
        pid, code = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        status = statuses.pop(pid)
        _tell(status, code)
        os.close(status)


def _become(order: dict[str, Any]) -> NoReturn:
    """Run the program as the main module and end as an interpreter does, with all that runs at its end."""
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environment"])
    sys.stdin, sys.stdout, sys.stderr = _opened(0, "r"), _opened(1, "w"), _opened(2, "w")
    sys.argv = ["-c", *order["arguments"]]
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    exec(compile(order["program"], "<string>", "exec"), main.__dict__)
    sys.exit()


def _opened(descriptor: int, mode: str) -> io.TextIOWrapper:
    """Return a standard stream as the interpreter would have opened it."""
    encoding, _, errors = os.environ.get("PYTHONIOENCODING", "").partition(":")
    stream = open(  # noqa: SIM115 - open to the end
        descriptor,
        mode,
        encoding=encoding or "utf-8",
        errors="backslashreplace" if descriptor == 2 else errors or "strict",
        closefd=False,
    )
    stream.reconfigure(
        line_buffering=descriptor == 2,
        write_through=bool(os.environ.get("PYTHONUNBUFFERED")),
    )
    return stream


def main(descriptor: int) -> None:
    for name in IMPORTED:
        with contextlib.suppress(ImportError):  # of an extra that is not installed
            importlib.import_module(name)
    assert threading.active_count() == 1, (
        "a copy of a process with threads may wait for a lock that nobody holds"
    )
    gc.collect()
    gc.freeze()
    try:
        _serve(socket.socket(fileno=descriptor))
    except _Program as program:
        order = program.order
    else:
        return
    _become(order)


if __name__ == "__main__":
    main(int(sys.argv[1]))
