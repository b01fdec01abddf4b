"""A child that is forked while the store is at work takes nothing of it away."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from perdure import Store

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")

WITHIN_A_PURGE = """
import os, sys
from perdure import Store
store = Store.open(sys.argv[1])
store.memory("ann").remember_many([{"text": f"fact {i}", "id": f"x{i}"} for i in range(600)])
forked = []
def progress(done, total):
    if not forked and (sys.argv[2] == "first" or done == total):
        forked.append(os.fork())
        if not forked[0]:
            sys.exit(0)  # unwinds through the purge
        os.waitpid(forked[0], 0)
store.purge(progress=progress)
os._exit(0)
"""

WITHIN_A_TURN = """
import os, sys
from perdure import Store
store = Store.open(sys.argv[1], timeout_s=0.2)
other = Store.open(sys.argv[1], timeout_s=0.2)
try:
    with store.log.writer():
        if not (child := os.fork()):
            sys.exit(0)  # gives the turn back on its way out
        os.waitpid(child, 0)
        print(other.health(timeout_s=0).status, flush=True)
finally:
    os._exit(0)
"""


@pytest.mark.parametrize("when", ["first", "last"])
def test_a_child_that_is_forked_within_a_purge_and_exits_takes_nothing_away(tmp_path, when):
    command = [sys.executable, "-W", "ignore", "-c", WITHIN_A_PURGE, str(tmp_path / "store"), when]
    done = subprocess.run(command, timeout=60, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    with Store.open(tmp_path / "store") as store:
        assert store.memory("ann").list().total == 600
        assert store.log.epoch() == 1
        assert store.verify().ok


def test_a_child_does_not_give_its_parents_turn_away(tmp_path):
    command = [sys.executable, "-W", "ignore", "-c", WITHIN_A_TURN, str(tmp_path / "store")]
    done = subprocess.run(command, timeout=60, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["busy"]
