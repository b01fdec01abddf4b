"""An erasure that was interrupted, or stood in the way of by a reader, is finished by whoever comes next."""

from __future__ import annotations

import shutil
from contextlib import contextmanager

import pytest

from erasure.killing import kill_at, steps_of
from erasure.places import MARKER, REPLACE, VECTOR, fill, open_store, traces
from perdure import Busy
from perdure.log.sqlite import SqliteLog
from processes.running import Child, servant
from unit.space.logs import WrappedLog

KILLS = 6  # tests/crash kills at every line; here a few steps, and every byte is looked at
OPERATIONS = {
    "forget": "memory.forget(ids=['x'], include_chain=True)",
    "forget and purge": "memory.forget(ids=['x'], include_chain=True, purge=True)",
    "erase a person": "store.erase('')",
}

READER = """
import sys, apsw
lock = apsw.Connection(sys.argv[1] + "/store.lock", flags=apsw.SQLITE_OPEN_READWRITE)
print("ready", flush=True)
for _ in sys.stdin:  # a line begins a read, the next one ends it
    lock.execute("BEGIN" if lock.get_autocommit() else "COMMIT")
    if not lock.get_autocommit():
        lock.execute("SELECT gen FROM state").fetchall()
    print("done", flush=True)
"""


@contextmanager
def reader_of(path):
    """A process that reads the store for as long as it is told, longer than any call of ours would."""
    with Child(READER, path) as reader:
        assert reader.hear() == "ready"
        yield reader
        reader.finish()


def open_watched(path, reader):
    """Open the store so that the reader begins to read as soon as an erasure is committed."""
    log = WrappedLog(SqliteLog.open(path, durability="normal"))
    waiting = [True]

    def begin():
        if log.scrub_pending() and waiting:
            waiting.clear()
            reader.ask("begin")

    log.after_append = begin
    return open_store(None, log=log)


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """A closed store with the marker in three facts of one chain, in a document, and in the cache."""
    path = tmp_path_factory.mktemp("planted") / "store"
    with open_store(path) as store:
        fill(store)
        memory = store.memory()
        memory.remember(MARKER, id="x", subject=MARKER, tags=[MARKER], embedding=VECTOR)
        memory.remember(f"{MARKER} 2", id="y", supersedes=["x"], embedding=VECTOR)
        memory.correct(f"{MARKER} 3", id="y")
        memory.end("x", at="2027-01-01", reason=MARKER)
        store.documents().put("d", "another text")
    hits = traces(path)
    assert {name.split("-")[0] for name in hits} == {"gen", "cache"}
    assert any("given vector" in forms for forms in hits.values())
    return path


@pytest.fixture
def path(planted, tmp_path):
    return shutil.copytree(planted, tmp_path / "store")


@pytest.fixture(scope="module")
def steps(planted, tmp_path_factory):
    """How many steps an expression takes that the tests kill."""
    known = {}

    def steps_(expression):
        if expression not in known:
            copy = shutil.copytree(planted, tmp_path_factory.mktemp("whole") / "store")
            known[expression] = steps_of(copy, expression)
        return known[expression]

    return steps_


@pytest.mark.slow
@pytest.mark.parametrize("share", range(KILLS))
@pytest.mark.parametrize("expression", OPERATIONS.values(), ids=OPERATIONS)
def test_an_erasure_killed_at_any_step_is_whole_or_undone_and_leaves_no_text_once_it_is_whole(
    path, steps, expression, share
):
    kill_at(path, expression, 1 + share * (steps(expression) - 1) // (KILLS - 1))
    check_and_finish(path, expression)


@pytest.mark.soak
@pytest.mark.parametrize("expression", OPERATIONS.values(), ids=OPERATIONS)
def test_an_erasure_killed_at_each_of_a_hundred_steps_is_whole_or_undone(
    planted, tmp_path, steps, expression
):
    for share in range(100):
        path = shutil.copytree(planted, tmp_path / f"store {share}")
        kill_at(path, expression, 1 + share * (steps(expression) - 1) // 99)
        check_and_finish(path, expression)
        shutil.rmtree(path)


def check_and_finish(path, expression):
    """Check that the killed erasure is whole or undone, in the answers and in every byte; then repeat it."""
    with open_store(path) as store:
        memory = store.memory()
        left = [memory.get(id_) is not None for id_ in ("x", "y")]
        assert left in ([True, True], [False, False])
        if left == [False, False]:
            assert traces(path) == {}
        assert memory.recall("note", k=1) or "erase" in expression
        eval(expression, {"store": store, "memory": memory})
        assert memory.list(subject=MARKER).total == 0
        assert traces(path) == {}
    assert traces(path) == {}


def test_the_text_is_gone_while_another_process_has_the_store_open_and_asked_for_it(path):
    with open_store(path) as store, servant(path) as other:
        assert other.ask("memory.get('x') is not None") == "True"
        assert store.memory().forget(ids=["x"], include_chain=True).pending is False
        assert traces(path) == {}
        assert other.ask("memory.get('x') is not None") == "False"
        other.finish()
    assert traces(path) == {}


REMOVALS = {
    "forget": lambda store: store.memory().forget(ids=["x"], include_chain=True),
    "forget by subject, blocked": lambda store: store.memory().forget(
        subject=MARKER, include_chain=True, block=True
    ),
}


@pytest.mark.parametrize("remove", REMOVALS.values(), ids=REMOVALS)
def test_a_reader_in_the_way_is_told_as_pending_and_the_next_call_finishes(path, remove):
    with reader_of(path) as reader, open_watched(path, reader) as store:
        gone = remove(store)
        assert (gone.pending, gone.certificate.pending) == (True, True)
        assert not all(step.done for step in gone.certificate.steps)
        assert store.health().erasure_pending is True
        assert traces(path) != {}
        assert store.memory().get("x") is None  # gone from every read all the same
        assert reader.ask("end") == "done"
        store.memory().list(limit=1)  # any call will do
        assert traces(path) == {}
        assert store.health().erasure_pending is False
        again = store.memory().forget(ids=["x"])
        assert (again.pending, again.certificate.pending) == (False, False)
        assert store.check_certificate(gone.certificate) == ()
    assert traces(path) == {}


REPLACEMENTS = {
    "replaced fact": lambda store: store.memory(config=REPLACE).remember("clean", id="x"),
    "replaced document": lambda store: store.documents(config=REPLACE).put("x", "clean"),
    "deleted document": lambda store: store.documents().delete("x"),
}


@pytest.mark.parametrize("replace", REPLACEMENTS.values(), ids=REPLACEMENTS)
def test_what_a_reader_kept_from_being_cleaned_is_cleaned_by_any_later_call(path, replace):
    with open_store(path) as store:
        store.memory().forget(ids=["y"], include_chain=True)
        store.memory().remember(MARKER, id="x")
    with reader_of(path) as reader, open_watched(path, reader) as store:
        replace(store)
        assert store.health().erasure_pending is True
        assert reader.ask("end") == "done"
        assert store.memory().get("nobody") is None
        assert store.health().erasure_pending is False
        assert traces(path) == {}


def test_what_a_reader_kept_from_being_cleaned_is_cleaned_by_whoever_opens_the_store_next(path):
    with reader_of(path) as reader:
        with open_watched(path, reader) as store:
            assert store.memory().forget(ids=["x"], include_chain=True).pending is True
        assert traces(path) != {}
        assert reader.ask("end") == "done"
        open_store(path).close()
        assert traces(path) == {}


def test_repeating_a_forget_that_is_pending_finishes_it(path):
    with reader_of(path) as reader, open_watched(path, reader) as store:
        assert store.memory().forget(ids=["x"], include_chain=True).pending is True
        assert store.memory().forget(ids=["x"], include_chain=True).pending is True
        assert reader.ask("end") == "done"
        again = store.memory().forget(ids=["x"], include_chain=True)
        assert (again.forgotten, again.pending) == ((), False)
        assert traces(path) == {}


def test_a_forget_that_could_not_begin_for_a_reader_says_so_and_a_retry_does_it(path):
    with reader_of(path) as reader, open_store(path, timeout_s=0.1) as store:
        assert reader.ask("begin") == "done"
        with pytest.raises(Busy):
            store.memory().forget(ids=["x"], include_chain=True)
        assert store.memory().get("x") is not None
        assert reader.ask("end") == "done"
        assert store.memory().forget(ids=["x"], include_chain=True).forgotten != ()
        assert traces(path) == {}
