"""A process that is killed in the middle of an operation.

Its steps are the calls of functions of the log, counted from 1 while the expression runs; with 0 for a step it
lives and tells how many there were. `store` and `memory` are at hand.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import forked

WATCHED = os.sep + os.path.join("perdure", "log") + os.sep


def steps_of(directory: Path, expression: str) -> int:
    """Run the expression on the store in a process of its own; return how many steps it took."""
    done = _start(directory, expression, 0)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def kill_at(directory: Path, expression: str, step: int) -> None:
    """Run the expression on the store in a process that is killed when it comes to this step."""
    done = _start(directory, expression, step)
    assert done.returncode == -signal.SIGKILL, done.stderr


def _start(directory: Path, expression: str, step: int) -> subprocess.CompletedProcess[str]:
    program = "from erasure.killing import main; main()"
    return forked.run(program, directory, expression, step, text=True, timeout=120)


def _run(directory: str, expression: str, step: int) -> int:
    from erasure.places import open_store  # noqa: PLC0415 - the parent needs none of it

    store = open_store(directory, durability="full")
    memory = store.memory()
    memory.list(limit=1)
    count = 0

    def watch(frame: object, event: str, _: object) -> None:
        nonlocal count
        if event == "call" and WATCHED in frame.f_code.co_filename:  # type: ignore[attr-defined]
            count += 1
            if count == step:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(watch)
    eval(expression, {"store": store, "memory": memory})
    sys.setprofile(None)
    store.close()
    return count


def main() -> None:
    sys.stdout.write(str(_run(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
