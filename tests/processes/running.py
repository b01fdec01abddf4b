"""Other processes, each running a small script against a store."""

from __future__ import annotations

from pathlib import Path

import forked
from unit.space.logs import PATIENCE_S

TESTS = Path(__file__).resolve().parent.parent


class Child:
    """A Python process. `tell` sends it a line, `hear` waits for one; leaving the context ends it."""

    def __init__(self, script: str, *arguments: object) -> None:
        self._process = forked.start(script, *arguments, text=True)

    def hear(self) -> str:
        line = self._process.stdout.readline()
        if not line:
            raise AssertionError(f"the process ended early: {self.finish(may_fail=True)}")
        return line.strip()

    def tell(self, line: str) -> None:
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def ask(self, line: str) -> str:
        self.tell(line)
        return self.hear()

    def finish(self, *, may_fail: bool = False) -> str:
        """Close its input, wait until it ends and return the rest of what it said."""
        out, err = self._process.communicate(timeout=PATIENCE_S)
        if not may_fail:
            assert self._process.returncode == 0, err
            assert err == ""
            return out
        return out + err

    def kill(self) -> list[str]:
        """End it in the middle of what it does; return the lines that it had said and nobody had heard."""
        self._process.kill()
        self._process.wait(PATIENCE_S)
        return [line.strip() for line in self._process.stdout if line.endswith("\n")]

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self.kill()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()


def servant(path: Path) -> Child:
    """A process that holds the store open and evaluates what it is told, with `memory` and `store` at hand."""
    child = Child(_SERVANT, path)
    assert child.hear() == "ready"
    return child


_SERVANT = """
import sys
from perdure import Store
with Store.open(sys.argv[1]) as store:
    memory = store.memory()
    print("ready", flush=True)
    for line in sys.stdin:
        print(repr(eval(line)), flush=True)
"""


def files_with(directory: Path, marker: bytes) -> list[str]:
    """The names of the files under a directory whose bytes hold the marker."""
    return sorted(
        path.name for path in directory.rglob("*") if path.is_file() and marker in path.read_bytes()
    )
