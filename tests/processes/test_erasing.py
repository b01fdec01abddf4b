"""One process erases and purges; the others go on in the right memories, with what is left in them."""

from __future__ import annotations

import pytest

from perdure import Busy, Store
from perdure.contract.reading import read_kept_certificate
from perdure.log.sqlite.log import SqliteLog
from processes.running import Child, files_with, servant
from unit.space.logs import WrappedLog

pytestmark = pytest.mark.slow  # each process takes most of a second to start

NAMES = ("first", "second", "third")

READER = """
import sys, apsw
lock = apsw.Connection(sys.argv[1] + "/store.lock", flags=apsw.SQLITE_OPEN_READWRITE)
for line in sys.stdin:
    lock.execute("BEGIN" if line == "begin\\n" else "COMMIT")
    if line == "begin\\n":
        lock.execute("SELECT gen FROM state").fetchall()
    print(line, end="", flush=True)
"""

WRITER = """
import sys
from perdure import Store
with Store.open(sys.argv[1]) as store:
    memories = [store.memory(name) for name in ("first", "second", "third")]
    print("ready", flush=True)
    sys.stdin.readline()
    told = {}
    for n in range(int(sys.argv[2])):
        for place, memory in enumerate(memories):
            reply = memory.remember(f"fact {n} of place {place}", id=f"fact {n}")
            assert reply.outcome == "created", reply
            told[place, n] = reply.ingest_time
            if place != 1:
                assert memory.get(f"fact {n}").text == f"fact {n} of place {place}"
            assert all(hit.text.endswith(f"place {place}") for hit in memory.recall("fact place", k=5))
    for place in (0, 2):
        listed = memories[place].list(limit=1000).items
        assert {f.text for f in listed} >= {f"fact {n} of place {place}" for n in range(int(sys.argv[2]))}
    print("done", flush=True)
"""


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "s") as opened:
        for name in NAMES:
            opened.memory(name).remember(f"words of the {name}", id="x", tags=[name])
        yield opened


def held(path):
    """A process with a handle for each memory in `m`, which has read in each of them."""
    other = servant(path)
    for name in NAMES:
        assert (
            other.ask(f"globals().setdefault('m', {{}}).setdefault({name!r}, store.memory({name!r})) and 0")
            == "0"
        )
        assert other.ask(f"[hit.text for hit in m[{name!r}].recall('words')]") == repr(
            [f"words of the {name}"]
        )
    return other


@pytest.mark.parametrize("way", ["erase", "forget and purge", "erase, then purge again"])
def test_the_handles_of_another_process_go_on_when_the_memory_between_theirs_is_gone(store, tmp_path, way):
    with held(tmp_path / "s") as other:
        if way == "forget and purge":
            store.memory("second").forget(all=True, purge=True)
        else:
            assert store.erase("second").facts == 1
        if way == "erase, then purge again":
            store.purge()
        for name in ("first", "third"):
            assert other.ask(f"m[{name!r}].get('x').text") == repr(f"words of the {name}")
        assert other.ask("(m['second'].get('x'), m['second'].list().total, m['second'].recall('words'))") == (
            "(None, 0, [])"
        )
        assert other.ask("[name.principal for name in store.spaces()]") == "['first', 'third']"
        for name in NAMES[::-1]:  # the middle one comes into being again, behind the third
            assert (
                other.ask(f"m[{name!r}].remember('told later to the {name}', id='y').outcome") == "'created'"
            )
        for name in NAMES:
            assert store.memory(name).get("y").text == f"told later to the {name}"
        assert other.ask("[m[name].list().total for name in m]") == "[2, 1, 2]"
        assert store.erase("first").facts == 2
        assert other.ask("m['third'].correct('set right', id='x', new_id='z').id") == "'z'"
        assert other.ask("[m[name].list().total for name in m]") == "[0, 1, 3]"
        other.finish()


def test_cursors_of_another_process_end_with_the_purge_and_its_follower_starts_over(store, tmp_path):
    with held(tmp_path / "s") as other:
        assert other.ask("globals().update(c=m['third'].changes().cursor) or 0") == "0"
        store.memory("third").remember("more words", id="y")
        assert other.ask("[change.ids for change in m['third'].changes(since=c).items]") == "[('y',)]"
        store.purge()
        other.tell("m['third'].changes(since=c)")
        assert "since this cursor was given; start over" in other.finish(may_fail=True)


def test_a_writer_in_three_memories_loses_nothing_while_others_are_erased_and_purged(store, tmp_path):
    for name in ("before", "between"):
        store.memory(name).remember("words")
    with Child(WRITER, tmp_path / "s", 25) as writer:
        assert writer.hear() == "ready"
        writer.tell("go")
        for turn in range(8):
            store.memory("before").remember(f"words {turn}")
            store.erase("before" if turn % 2 else "second")
            store.memory("between").remember(f"words {turn}", id="z")
            store.memory("between").forget(ids=["z"], purge=True)
        assert writer.hear() == "done"
        writer.finish()
    for place, name in ((0, "first"), (2, "third")):
        found = store.memory(name).list(limit=1000).items
        expected = {f"fact {n} of place {place}" for n in range(25)} | {f"words of the {name}"}
        assert {fact.text for fact in found} == expected
    assert store.verify().findings == ()


@pytest.mark.parametrize("call", ["forget", "erase"])
def test_a_reader_in_the_way_of_the_purge_fails_it_with_a_certificate_and_the_next_purge_makes_up_for_it(
    tmp_path, call
):
    log = WrappedLog(SqliteLog.open(tmp_path / "s", timeout_s=1.0))
    with Store.open(log=log) as store, Child(READER, tmp_path / "s") as reader:
        ann = store.memory("ann")
        ann.remember("words of Ann", id="a")
        log.after_append = lambda: reader.ask("begin")
        erase = {"forget": lambda: ann.forget(ids=["a"], purge=True), "erase": lambda: store.erase("ann")}[
            call
        ]
        with pytest.raises(Busy) as caught:
            erase()
        log.after_append = lambda: None
        certificate = read_kept_certificate(caught.value.details["certificate"])
        assert [(step.name, step.done) for step in certificate.steps] == [
            ("zeroed", True),
            ("scrubbed", False),
            ("rewritten", False),
        ]
        assert (certificate.pending, certificate.facts, ann.get("a")) == (True, 1, None)
        unpurged, unfinished = store.check_certificate(certificate)
        assert "the purge that was asked for has not been done" in unpurged.message
        assert "the erasure is not finished: a reader keeps its last step" in unfinished.message
        assert reader.ask("end") == "end"
        assert store.check_certificate(certificate) == (unpurged,)
        done = store.purge()
        assert (done.pending, done.certificate.pending, done.certificate.epoch) == (False, False, 1)
        assert store.check_certificate(certificate) == ()
        assert files_with(tmp_path / "s", b"words of Ann") == []
        reader.finish()
