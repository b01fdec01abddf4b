"""A store says how it is: while it is well, while another process writes, and when it is damaged."""

import os
import time
from pathlib import Path

import apsw
import pytest

from crash import log_processes
from perdure import Busy, Health, InvalidRequest, Memory, Store
from perdure.log.protocol import Batch
from unit.space.logs import in_a_thread

LONG_S = 5.0  # far more than any wait that a test asks for


@pytest.fixture
def directory(tmp_path):
    with Memory.open(tmp_path / "store") as memory:
        memory.remember("The kettle is blue", id="kettle")
    return tmp_path / "store"


@pytest.mark.parametrize("where", ["memory", "files"])
def test_a_store_that_nobody_keeps_is_well(directory, where):
    with Store.open(":memory:" if where == "memory" else directory) as store:
        assert store.health() == Health("ok", True, False, "the store can be read and written")


def test_while_another_process_has_the_turn_a_store_is_busy_and_is_read_all_the_same(directory):
    process = log_processes.start("hold", directory)
    assert process.stdout.readline() == "holding\n"
    with Store.open(directory, timeout_s=0.05) as store:
        began = time.monotonic()
        health = store.health(timeout_s=0.05)
        assert time.monotonic() - began < LONG_S
        assert (health.status, health.writable, health.erasure_pending) == ("busy", False, False)
        assert "try again" in health.message
        with pytest.raises(Busy):
            store.memory().remember("The teapot is green")
        assert store.memory().get("kettle") is not None
        process.communicate("go\n", timeout=60)
        assert store.health().status == "ok"
        store.memory().remember("The teapot is green")


def test_the_turn_of_another_thread_counts_as_well(directory):
    with Store.open(directory) as store, store.log.writer():
        begun = in_a_thread(lambda: store.health(timeout_s=0))
        assert (begun.status, begun.writable) == ("busy", False)


def test_an_erasure_that_is_not_cleaned_yet_is_told_and_left_as_it_is(directory):
    with Store.open(directory) as store:
        # Stands for another process in the middle of an operation.
        reader = apsw.Connection(str(directory / "store.lock"))
        with store.log.writer():
            head = store.log.head(1)
            store.log.append(1, head, Batch(records=[b"removal"], erase=[head.seq]))
            reader.execute("BEGIN")
            reader.execute("SELECT * FROM state").fetchall()
        reader.close()
        for _ in range(2):
            health = store.health()
            assert (health.status, health.writable, health.erasure_pending) == ("ok", True, True)
            assert "still to be cleaned" in health.message
        assert store.log.scrub()
        assert not store.health().erasure_pending


def test_a_damaged_or_closed_store_is_told_by_the_code_of_its_error(directory):
    store = Store.open(directory)
    (directory / "store.lock").write_bytes(b"")
    assert (store.health().status, store.health().writable) == ("corrupt", False)
    store.close()
    assert (store.health().status, store.health().writable) == ("unavailable", False)


def test_looking_writes_nothing(directory):
    with Store.open(directory) as store:
        store.health()
        head = store.log.head(1)
        before = {path.name: path.stat().st_mtime_ns for path in directory.iterdir()}
        for _ in range(3):
            store.health()
        assert {path.name: path.stat().st_mtime_ns for path in directory.iterdir()} == before
        assert store.log.append(1, head, Batch(records=[])) == head


@pytest.mark.parametrize("timeout_s", [-1, float("nan"), float("inf"), "5", True, None])
def test_a_wrong_time_out_is_refused(directory, timeout_s):
    with Store.open(directory) as store, pytest.raises(InvalidRequest) as caught:
        store.health(timeout_s=timeout_s)
    assert caught.value.field == "timeout_s"


@pytest.mark.skipif(not hasattr(os, "statvfs"), reason="what is free is asked as POSIX does")
@pytest.mark.parametrize("backend", ["sqlite", "journal"])
def test_a_store_on_a_disk_with_hardly_any_room_says_so_before_a_write_fails(tmp_path, monkeypatch, backend):
    with Store.open(tmp_path / "store", backend=backend) as store:
        asked = os.statvfs
        full = os.statvfs_result((4096, 4096, 1000, 10, 10, 0, 0, 0, 0, 255))
        monkeypatch.setattr(os, "statvfs", lambda path: full)
        found = store.health()
        assert (found.status, found.writable) == ("storage_full", False)
        assert "40960 bytes left" in found.message
        monkeypatch.setattr(os, "statvfs", asked)
        assert store.health().status == "ok"


@pytest.mark.parametrize("backend", ["sqlite", "journal"])
@pytest.mark.parametrize("which", ["directory", "file"])
def test_a_store_that_may_only_be_read_says_so(tmp_path, monkeypatch, backend, which):
    with Store.open(tmp_path / "store", backend=backend) as store:
        before = sorted((path.name, path.stat().st_mtime_ns) for path in (tmp_path / "store").iterdir())
        allowed = os.access

        def access(path, mode, **named):
            return Path(path).is_dir() != (which == "directory") and allowed(path, mode, **named)

        monkeypatch.setattr(os, "access", access)
        monkeypatch.setattr(os, "supports_effective_ids", {access})
        found = store.health()
        assert (found.status, found.writable) == ("unavailable", False)
        assert f"the store's {which}" in found.message
        after = sorted((path.name, path.stat().st_mtime_ns) for path in (tmp_path / "store").iterdir())
        assert before == after
