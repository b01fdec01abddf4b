"""Processes forked at will from one that has imported everything: each starts in milliseconds and may be killed.

`Nursery("crash.kills")` starts the parent of them all: a process that opens no store itself. Each child runs one
function of that module, `job(tell, *arguments)`, and tells of what it does through one pipe that all of them share;
a line is written whole or not at all, however a child ends. Only where there is fork.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import select
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parent.parent
PATIENCE_S = 120
LINE_MAX = 4096  # what a pipe takes as a whole, whoever else writes to it

Tell = Callable[..., None]


class Child:
    """One process. `said` is what it told so far, oldest first; `status` is None until it ended."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.pid = 0
        self.said: list[list[Any]] = []
        self.failure = ""
        self.status: int | None = None

    @property
    def was_killed(self) -> bool:
        return self.status == -signal.SIGKILL


class Nursery:
    """Starts children and hears them. Not thread-safe; a context manager that leaves no process behind."""

    def __init__(self, module: str) -> None:
        found = [str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(found)}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "crash.children", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._orders, self._pipe = self._process.stdin, self._process.stdout
        self._buffer = b""
        self._children: dict[int, Child] = {}

    def start(self, job: str, *arguments: object) -> Child:
        """Start a job; its arguments travel as JSON."""
        child = Child(len(self._children))
        self._children[child.number] = child
        self._orders.write(json.dumps([child.number, job, *arguments]).encode() + b"\n")
        self._orders.flush()
        return child

    def hear(self, wait_s: float) -> None:
        """Take in what was told, waiting for the first word at most this long."""
        ready, _, _ = select.select([self._pipe], [], [], max(0.0, wait_s))
        if not ready:
            return
        told = os.read(self._pipe.fileno(), 1 << 16)
        if not told:
            raise AssertionError("the process that starts the others has ended")
        *lines, self._buffer = (self._buffer + told).split(b"\n")
        for line in lines:
            number, kind, *words = json.loads(line)
            child = self._children[number]
            match kind:
                case "pid":
                    child.pid = words[0]
                case "said":
                    child.said.append(words)
                case "failed":
                    child.failure = words[0]
                case "died":
                    child.status = os.waitstatus_to_exitcode(words[0])

    def await_(self, child: Child, word: str | None = None) -> list[Any]:
        """Wait until the child says something that starts with this word, or, for None, until it ended.

        Returns what it said last.
        """
        deadline = time.monotonic() + PATIENCE_S
        while child.status is None and not any(said[0] == word for said in child.said):
            assert time.monotonic() < deadline, (
                f"child {child.number} neither spoke nor ended: {child.said[-1:]}"
            )
            self.hear(1)
        assert not child.failure, child.failure
        assert child.status in (None, 0) or word is None, f"child {child.number} ended with {child.status}"
        return child.said[-1] if child.said else []

    def kill(self, child: Child) -> None:
        """End the child in the middle of what it does, and wait until it is no more."""
        while child.pid == 0:
            self.hear(1)
        if child.status is None:
            os.kill(child.pid, signal.SIGKILL)
        self.await_(child)

    def scan(self, directory: Path, pattern: str) -> set[str]:
        """Return all texts in the directory's files that match, lower-cased, as a child without locks finds them."""
        child = self.start("scan", str(directory), pattern)
        self.await_(child)
        return {text for said in child.said for text in said[1:]}

    def __enter__(self) -> Nursery:
        return self

    def __exit__(self, *_: object) -> None:
        for child in self._children.values():
            if child.status is None and child.pid:
                os.kill(child.pid, signal.SIGKILL)
        self._orders.close()
        self._pipe.close()
        self._process.wait(PATIENCE_S)


def find_texts(directory: Path, pattern: str) -> dict[str, set[str]]:
    """Return, by file, the texts that match the pattern in any case, in UTF-8 or UTF-16, lower-cased.

    Args:
        pattern: letters and classes of letters, each standing for one character: `xq[a-f]{12}`.
    """
    plain = re.compile(pattern.encode(), re.IGNORECASE)
    # Each character, class or repeated class is followed by a zero byte.
    atoms = re.findall(r"(\[[^]]+\]|[^[{])(\{\d+\})?", pattern)
    wide = re.compile("".join(rf"(?:{atom}\x00){count}" for atom, count in atoms).encode(), re.IGNORECASE)
    found: dict[str, set[str]] = {}
    for path in sorted(path for path in directory.rglob("*") if path.is_file()):
        try:
            data = path.read_bytes()
        except FileNotFoundError:  # a purge ended meanwhile
            continue
        texts = {match.decode() for match in plain.findall(data)}
        texts |= {match.decode("utf-16-le") for match in wide.findall(data)}
        if texts:
            found[path.name] = {text.lower() for text in texts}
    return found


def scan(tell: Tell, directory: str, pattern: str) -> None:
    for name, texts in find_texts(Path(directory), pattern).items():
        ordered = sorted(texts)
        for start in range(0, len(ordered), 50):
            tell(name, *ordered[start : start + 50])


def _orders() -> Iterator[list[Any]]:
    """Yield orders as they come; tell of children that ended meanwhile."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    buffer = b""
    while True:
        ready, _, _ = select.select([0, read], [], [])
        if read in ready:
            os.read(read, 4096)
            yield []
        if 0 in ready:
            told = os.read(0, 1 << 16)
            if not told:
                return
            *lines, buffer = (buffer + told).split(b"\n")
            for line in lines:
                yield json.loads(line)


def _write(number: int, kind: str, *words: object) -> None:
    line = json.dumps([number, kind, *words]).encode() + b"\n"
    assert len(line) <= LINE_MAX, "a line must fit into the pipe as a whole"
    os.write(1, line)


def _run(job: Callable[..., None], number: int, arguments: list[Any]) -> None:
    try:
        job(lambda *words: _write(number, "said", *words), *arguments)
    except BaseException:  # noqa: BLE001 - told to whoever started the child
        _write(number, "failed", traceback.format_exc()[-LINE_MAX // 2 :])
        os._exit(1)
    os._exit(0)


def main(module: str) -> None:
    jobs = importlib.import_module(module)
    numbers: dict[int, int] = {}
    for order in _orders():
        while numbers:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            _write(numbers.pop(pid), "died", status)
        if order:
            number, job, *arguments = order
            pid = os.fork()
            if pid == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                os.close(0)
                _run(scan if job == "scan" else getattr(jobs, job), number, arguments)
            numbers[pid] = number
            _write(number, "pid", pid)


if __name__ == "__main__":
    main(sys.argv[1])
