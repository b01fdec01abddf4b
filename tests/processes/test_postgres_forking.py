"""A child that is forked while a store in PostgreSQL is open uses none of its connections, and takes nothing of it away."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from perdure import Store
from postgres_server import fresh_address

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")

FORKED = """
import gc, os, sys
from perdure import PerdureError, Store
store = Store.open(sys.argv[1], tenant="acme", keystore=sys.argv[2])
memory = store.memory("ann")
memory.remember("tea", id="tea")

def sessions():
    with store.log.place().database.session(store.log.place().tenant) as session:
        return [session.run("SELECT pg_backend_pid()").fetchall() for _ in range(2)]

before = sessions()
if not (child := os.fork()):
    asked = (
        lambda: memory.recall("tea"), lambda: memory.get("tea"), lambda: memory.remember("milk"),
        lambda: memory.remember_many([{"text": f"{n}", "id": f"{n}"} for n in range(300)]),
        lambda: memory.forget(ids=["tea"]), lambda: store.memory("new").remember("milk"), store.purge,
        lambda: store.log.place().database.session(store.log.place().tenant).__enter__(),
    )
    for ask in asked:
        try:
            ask()
        except PerdureError as error:
            print(error.code, "fork" in error.message)
        else:
            print("was answered")
    with Store.open(sys.argv[1], tenant="acme", keystore=sys.argv[2]) as own:
        print(own.memory("ann").get("tea").text, own.memory("bob").remember("milk", id="milk").outcome)
    store.close()
    del store, memory, asked, ask
    gc.collect()
    sys.exit(0)
print("child", os.waitpid(child, 0)[1], flush=True)
print(sessions() == before, memory.remember("milk").outcome, store.memory("bob").get("milk").text)
store.close()
"""

WITHIN_A_PURGE = """
import os, sys
from perdure import Store
store = Store.open(sys.argv[1], tenant="acme", keystore=sys.argv[2])
store.memory("ann").remember_many([{"text": f"fact {i}", "id": f"x{i}"} for i in range(600)])
forked = []
def progress(done, total):
    if not forked and (sys.argv[3] == "first" or done == total):
        forked.append(os.fork())
        if not forked[0]:
            sys.exit(0)  # unwinds through the purge
        os.waitpid(forked[0], 0)
store.purge(progress=progress)
print(len(forked), flush=True)
os._exit(0)
"""

WITHIN_A_TURN = """
import os, sys
from perdure import Store, Busy
store = Store.open(sys.argv[1], tenant="acme", keystore=sys.argv[2], timeout_s=5)
other = Store.open(sys.argv[1], tenant="acme", keystore=sys.argv[2], timeout_s=0.2)
try:
    with store.log.writer():
        if not (child := os.fork()):
            sys.exit(0)  # gives the turn back on its way out
        os.waitpid(child, 0)
        try:
            with other.log.writer():
                print("free", flush=True)
        except Busy:
            print("busy", flush=True)
finally:
    os._exit(0)
"""


def told_by(script, *arguments):
    command = [sys.executable, "-W", "ignore", "-c", script, *map(str, arguments)]
    done = subprocess.run(command, timeout=60, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_child_is_refused_whatever_it_asks_and_one_that_opens_the_store_anew_has_connections_of_its_own(
    tmp_path,
):
    told = told_by(FORKED, fresh_address(), tmp_path / "keys")
    assert told == [*["unavailable True"] * 8, "tea created", "child 0", "True created milk"]


@pytest.mark.parametrize("when", ["first", "last"])
def test_a_child_that_is_forked_within_a_purge_and_exits_takes_nothing_away(tmp_path, when):
    address = fresh_address()
    assert told_by(WITHIN_A_PURGE, address, tmp_path / "keys", when) == ["1"]
    with Store.open(address, tenant="acme", keystore=tmp_path / "keys") as store:
        assert store.memory("ann").list().total == 600
        assert store.log.epoch() == 1
        assert store.verify().ok


def test_a_child_does_not_give_its_parents_turn_away(tmp_path):
    assert told_by(WITHIN_A_TURN, fresh_address(), tmp_path / "keys") == ["busy"]
