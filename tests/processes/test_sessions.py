"""Processes that add to one kept session at once never give out a position twice, and lose no turn to a kill."""

from __future__ import annotations

import signal

import pytest

import forked
from perdure import Store
from processes.running import Child

pytestmark = pytest.mark.slow  # each process takes most of a second to start

ADDER = """
import sys
from perdure import Store
with Store.open(sys.argv[1]) as store:
    session = store.session("talk", "alice", max_turns=1000)
    for line in sys.stdin:
        print(session.add_turn("user", line.strip()).position, flush=True)
"""


def test_positions_of_two_processes_are_all_of_them_once_and_every_turn_is_seen_by_both(tmp_path):
    Store.open(tmp_path / "s").close()
    children = [Child(ADDER, tmp_path / "s") for _ in range(2)]
    positions = []
    for n in range(15):
        for child in children:
            child.tell(f"turn {n}")
        positions += [int(child.hear()) for child in children]
    for child in children:
        child.finish()
    assert sorted(positions) == list(range(30))
    with Store.open(tmp_path / "s") as store:
        turns = store.session("talk", "alice").get_turns()
    assert [turn.position for turn in turns] == list(range(30))


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="kills as POSIX systems do")
def test_turns_that_were_acknowledged_survive_the_kill_of_their_process(tmp_path):
    for _ in range(3):
        process = forked.start(ADDER, tmp_path / "s", text=True)
        process.stdin.write("".join(f"turn {n}\n" for n in range(200)))
        process.stdin.flush()
        told = [int(process.stdout.readline()) for _ in range(20)]
        process.kill()
        rest, _ = process.communicate()
        told += [int(line) for line in rest.split("\n") if line.strip().isdigit()]
        with Store.open(tmp_path / "s") as store:
            positions = [turn.position for turn in store.session("talk", "alice").get_turns()]
        assert positions == list(range(len(positions)))
        assert set(told) <= set(positions)
