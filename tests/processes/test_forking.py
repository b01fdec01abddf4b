"""A child that is forked while the store is at work takes nothing of it away."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from perdure import Store
from postgres_server import fresh_address

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


REFUSED = """
import os, sys
from perdure import PerdureError, Store
store = Store.open(sys.argv[1], backend=sys.argv[2], audit="off")
memory = store.memory("ann")
memory.remember_many([{"text": f"fact {i}", "id": f"x{i}"} for i in range(1_100)])  # a snapshot of which pays
if not (child := os.fork()):
    asked = (
        lambda: memory.recall("fact"), lambda: memory.get("x1"), lambda: memory.remember("milk"),
        lambda: memory.forget(ids=["x1"]), lambda: store.memory("new").remember("milk"), store.purge,
    )
    for ask in asked:
        try:
            ask()
        except PerdureError as error:
            print(error.code, error.details.get("kind"))
        else:
            print("was answered")
    store.close()
    print("closed", flush=True)
    os._exit(0)
print("child", os.waitpid(child, 0)[1])
print(memory.remember("milk").outcome, memory.list().total, store.verify().ok)
store.close()
"""


@pytest.mark.parametrize("backend", ["sqlite", "journal"])
def test_a_child_is_refused_whatever_it_asks_and_told_that_it_was_forked(tmp_path, backend):
    command = [sys.executable, "-W", "ignore", "-c", REFUSED, str(tmp_path / "store"), backend]
    done = subprocess.run(command, timeout=60, capture_output=True, text=True, check=True)
    told = [*["unavailable forked"] * 6, "closed", "child 0", "created 1101 True"]
    assert done.stdout.splitlines() == told, done.stderr


BESIDE_WORK = """
import os, signal, sys, threading
from perdure import PerdureError, Store
from perdure.space.space import Space
signal.alarm(50)
told = {"tenant": "acme", "keystore": sys.argv[3]} if sys.argv[2] == "postgres" else {"backend": sys.argv[2]}
store = Store.open(sys.argv[1], audit="off", **(told if sys.argv[1] != ":memory:" else {}))
ann, ben = store.memory("ann"), store.memory("ben")
for memory in (ann, ben):
    memory.remember("tea", id="tea")
ben._space.drop_state()
goes_on, reached = threading.Event(), threading.Semaphore(0)
def wait(then):
    def waited(*told):
        reached.release()
        goes_on.wait()
        return then(*told)
    return waited
whole = Space._append, Space._load
Space._append, Space._load = map(wait, whole)
work = [threading.Thread(target=one) for one in (lambda: ann.remember("milk"), lambda: ben.recall("tea"))]
for thread in work:
    thread.start()
    reached.acquire()
Space._append, Space._load = whole
if not (child := os.fork()):
    signal.alarm(20)  # else one that hangs would outlive the test
    asked = (
        lambda: ann.remember("bread"), lambda: ann.recall("tea"), lambda: ben.remember("bread"), lambda: ben.recall("tea"),
        lambda: ben.get("tea"), lambda: store.memory("new"), lambda: ann.forget(ids=["tea"]),
    )
    for ask in asked:
        try:
            ask()
        except PerdureError as error:
            print(error.code, error.details.get("kind"))
        else:
            print("was answered")
    store.close()
    print("closed", flush=True)
    os._exit(0)
print("child", os.waitpid(child, 0)[1], flush=True)
goes_on.set()
for thread in work:
    thread.join()
print(ann.list().total, ben.remember("milk").outcome, store.verify().ok)
store.close()
"""


@pytest.mark.parametrize("backend", ["memory", "sqlite", "journal", "postgres"])
def test_a_child_waits_for_no_thread_that_wrote_or_read_when_it_was_forked(tmp_path, backend):
    place = {"postgres": fresh_address, "memory": lambda: ":memory:"}.get(
        backend, lambda: str(tmp_path / "store")
    )()
    command = [sys.executable, "-W", "ignore", "-c", BESIDE_WORK, place, backend, str(tmp_path / "keys")]
    done = subprocess.run(command, timeout=60, capture_output=True, text=True, check=False)
    told = [*["unavailable forked"] * 7, "closed", "child 0", "2 created True"]
    assert done.stdout.splitlines() == told, done.stderr
