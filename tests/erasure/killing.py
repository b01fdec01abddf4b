"""A process that is killed in the middle of an operation: `python killing.py DIRECTORY EXPRESSION STEP`.

Its steps are the calls of functions of the log, counted from 1 while the expression runs; with STEP 0 it
lives and tells how many there were. `store` and `memory` are at hand.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
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
    command = [sys.executable, __file__, str(directory), expression, str(step)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), str(TESTS.parent / "src")])}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=120)


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


if __name__ == "__main__":
    sys.stdout.write(str(_run(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
