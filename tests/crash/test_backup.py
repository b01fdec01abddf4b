"""A backup is the store of one moment, whoever writes meanwhile, and nothing but that."""

from __future__ import annotations

import stat
import threading
from pathlib import Path

import apsw
import pytest

import forked
from crash import log_processes
from golden.answers import answers
from perdure import Busy, Corrupt, InvalidRequest, ManualClock, Memory, Store, Unavailable, WrongKey
from perdure.log.memory import MemoryLog
from perdure.log.protocol import Batch, Rewritten
from perdure.log.sqlite import SqliteLog
from unit.space.logs import together

NAME = b"n" * 16
MARKER = "MARKER-that-nobody-else-writes"
PLAIN_FILES = {"store.lock", "writer.lock", "writer.next"}


@pytest.fixture
def directory(tmp_path):
    return tmp_path / "store"


@pytest.fixture
def copy(tmp_path):
    return tmp_path / "copy"


@pytest.fixture
def log(directory):
    log = SqliteLog.open(directory, timeout_s=5)
    space = log.create_space(NAME, b"first")
    log.append(space, log.head(space), Batch(records=[b"second", b"third"], keys=[(b"k" * 16, 1)]))
    yield log
    log.close()


def told(log):
    return [[entry.data for entry in log.read(space, 0, log.head(space).seq)] for space in log.spaces()]


def keep_all(space, read):
    return (Rewritten(entry.data) for entry in read() if entry.data is not None)


def tree(directory):
    """Return what lies in a directory, with modes and contents; the files must not be open here."""
    return {
        path.relative_to(directory).as_posix(): (
            path.stat().st_mode,
            path.read_bytes() if path.is_file() else b"",
        )
        for path in directory.rglob("*")
    }


def test_a_backup_opens_as_an_equal_store_of_the_same_secret(log, copy):
    log.backup(copy)
    with_copy = SqliteLog.open(copy)
    assert told(with_copy) == told(log) == [[b"first", b"second", b"third"]]
    assert (with_copy.head(1), with_copy.secret, with_copy.epoch()) == (log.head(1), log.secret, log.epoch())
    assert with_copy.find(1, [b"k" * 16]) == {b"k" * 16: 3}
    assert with_copy.find_space(NAME) == 1
    with_copy.append(1, with_copy.head(1), Batch(records=[b"fourth"]))
    assert told(log) == [[b"first", b"second", b"third"]]  # the two share nothing
    with_copy.close()


def test_a_backup_answers_every_read_as_the_store_does(directory, copy):
    clock = ManualClock(1_700_000_000_000)
    with Store.open(directory, clock=clock) as store:
        memory = store.memory()
        memory.remember("The kettle is blue", id="kettle", subject="kettle", idempotency_key="first")
        memory.remember("The kettle is red", id="red", supersedes=["kettle"])
        memory.remember("A secret kettle", id="gone")
        memory.forget(ids=["gone"])
        store.documents("ada").put("guide", "How to boil water in a kettle")
        store.log.backup(copy)
        with Store.open(copy, clock=clock) as other:
            assert answers(other) == answers(store)


def test_only_the_owner_may_read_a_backup_and_it_holds_no_cache(log, copy):
    log.backup(copy)
    assert stat.S_IMODE(copy.stat().st_mode) == 0o700
    names = {path.name for path in copy.iterdir()}
    assert names - PLAIN_FILES == {"gen-1.db", "gen-1.db-wal", "gen-1.db-shm", "gen-1.hw"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in copy.iterdir()} == {0o600}


def test_a_backup_made_while_others_write_is_that_of_one_moment(directory, log, copy):
    stop, acknowledged = threading.Event(), []

    def write():
        number = 0
        while not stop.is_set():
            log.append(1, log.head(1), Batch(records=[b"%d/a" % number, b"%d/b" % number]))
            acknowledged.append(number)
            number += 1

    log.append(1, log.head(1), Batch(records=[b"x" * 4000] * 2000))  # so that copying takes several steps
    writer = threading.Thread(target=write)
    writer.start()
    while not acknowledged:
        pass
    before = len(acknowledged)
    log.backup(copy)
    stop.set()
    writer.join()
    with_copy = SqliteLog.open(copy)
    records = told(with_copy)[0][2003:]
    with_copy.close()
    assert records == [
        b"%d/%s" % (number, half) for number in range(len(records) // 2) for half in (b"a", b"b")
    ]
    assert before <= len(records) // 2 <= len(acknowledged)
    assert len(told(log)[0]) == 2003 + 2 * len(acknowledged)


def test_what_other_processes_acknowledged_before_is_in_the_backup(directory, log, copy):
    log_processes.finish(log_processes.start("append", directory, "w", 10))
    log.backup(copy)
    with_copy = SqliteLog.open(copy)
    assert with_copy.head(1).seq == 23
    with_copy.close()


def test_progress_ends_with_all_pages(log, copy):
    log.append(1, log.head(1), Batch(records=[b"x" * 4000] * 1000))
    steps = []
    log.backup(copy, lambda done, total: steps.append((done, total)))
    assert len(steps) > 1
    assert [done for done, _ in steps] == sorted(done for done, _ in steps)
    assert steps[-1][0] == steps[-1][1] > 1000


# Where a backup may go


def test_an_empty_directory_is_taken_and_missing_parents_are_made(log, tmp_path):
    (tmp_path / "empty").mkdir(mode=0o755)
    for target in (tmp_path / "empty", tmp_path / "a" / "b" / "copy"):
        log.backup(target)
        assert stat.S_IMODE(target.stat().st_mode) == 0o700
        SqliteLog.open(target).close()


def test_a_directory_within_the_store_is_refused_also_through_links(directory, log, tmp_path):
    (tmp_path / "link").symlink_to(directory)
    (tmp_path / "way").mkdir()
    (tmp_path / "way" / "in").symlink_to(directory / "new")
    before = sorted(path.name for path in directory.iterdir())
    for target in (
        directory,
        directory / "copy",
        directory / "a" / "b",
        tmp_path / "link",
        tmp_path / "link" / "copy",
        tmp_path / "way" / "in",
        tmp_path / "way" / ".." / "store" / "copy",
    ):
        with pytest.raises(InvalidRequest, match="within the store") as caught:
            log.backup(target)
        assert caught.value.field == "directory"
    assert sorted(path.name for path in directory.iterdir()) == before


def test_a_directory_that_holds_something_is_refused_and_left_as_it_was(log, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter").write_text("mine")
    (tmp_path / "file").write_text("mine")
    log.backup(tmp_path / "copy")
    before = tree(tmp_path / "full"), tree(tmp_path / "copy")
    for target in (tmp_path / "full", tmp_path / "file", tmp_path / "copy"):
        with pytest.raises(InvalidRequest):
            log.backup(target)
    assert (tree(tmp_path / "full"), tree(tmp_path / "copy")) == before
    assert (tmp_path / "file").read_text() == "mine"


def test_a_place_that_cannot_be_written_is_unavailable(log, tmp_path):
    (tmp_path / "file").write_text("mine")
    for target in (tmp_path / "file" / "copy", Path("/proc/copy"), tmp_path / ("x" * 300)):
        with pytest.raises(Unavailable, match="backup's directory"):
            log.backup(target)
    with pytest.raises(InvalidRequest):
        log.backup(Path("a\0b"))


def test_a_memory_without_files_has_no_backup(copy):
    with pytest.raises(Unavailable, match="export"):
        MemoryLog().backup(copy)
    assert not copy.exists()


# Meanwhile


def once(work):
    """Return a progress that does the work at its first call, and where its result is found."""
    results = []

    def progress(done, total):
        if not results:
            results.append(work())

    return progress, results


def test_a_purge_is_busy_while_a_backup_is_made_and_runs_afterwards(directory, log, copy):
    other = SqliteLog.open(directory, timeout_s=0.2)

    def purge():
        with pytest.raises(Busy, match="backup"):
            other.purge(keep_all)
        return True

    progress, results = once(purge)
    log.backup(copy, progress)
    assert results == [True]
    assert other.purge(keep_all).epoch == 1
    other.close()


def test_a_backup_is_busy_while_a_purge_is_under_way_and_leaves_nothing(directory, log, copy):
    other = SqliteLog.open(directory, timeout_s=0.2)

    def rewrite(space, read):
        with pytest.raises(Busy):
            other.backup(copy)
        return keep_all(space, read)

    assert log.purge(rewrite).epoch == 1
    assert not copy.exists()
    other.backup(copy)
    with_copy = SqliteLog.open(copy)
    assert (with_copy.epoch(), told(with_copy)) == (1, [[b"first", b"second", b"third"]])
    with_copy.close()
    other.close()


def test_a_forget_during_a_backup_does_not_wait_and_its_cleaning_is_done_afterwards(directory, log, copy):
    log.append(1, log.head(1), Batch(records=[MARKER.encode()]))
    other = SqliteLog.open(directory, timeout_s=0.2)

    def erase():
        head = other.append(1, other.head(1), Batch(records=[b"removal"], erase=[4]))
        return other.scrub(), other.scrub_pending(), head.erasures

    progress, results = once(erase)
    log.backup(copy, progress)
    assert results == [(False, True, 1)]
    assert log.scrub()
    assert log_processes.holders(directory, MARKER) == []
    other.close()


def test_a_backup_of_a_store_that_is_still_to_be_cleaned_holds_nothing_of_what_was_erased(
    directory, log, copy, tmp_path
):
    log.append(1, log.head(1), Batch(records=[MARKER.encode() * 300]))

    def erase():
        log.append(1, log.head(1), Batch(records=[b"removal"], erase=[4]))
        assert not log.scrub()
        assert log_processes.holders(directory, MARKER) != []  # in the write-ahead log, and to be found there
        log.backup(copy)
        return True

    progress, results = once(erase)
    log.backup(tmp_path / "older", progress)
    assert results == [True]
    assert log_processes.holders(copy, MARKER) == []
    assert log_processes.holders(tmp_path / "older", MARKER) != []
    with_copy = SqliteLog.open(copy)
    assert not with_copy.scrub_pending()
    assert told(with_copy) == [[b"first", b"second", b"third", None, b"removal"]]
    with_copy.close()


def test_two_backups_at_once_are_both_whole(log, tmp_path):
    progress, _ = once(lambda: log.backup(tmp_path / "inner"))
    log.backup(tmp_path / "outer", progress)
    for name in ("inner", "outer"):
        with_copy = SqliteLog.open(tmp_path / name)
        assert told(with_copy) == told(log)
        with_copy.close()


# When it fails


@pytest.mark.parametrize("there", [True, False])
def test_a_backup_that_fails_leaves_the_directory_as_it_was(log, tmp_path, there):
    target = tmp_path / "a" / "copy"
    if there:
        target.mkdir(parents=True)
        target.chmod(0o750)

    def fail(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        log.backup(target, fail)
    assert (tmp_path / "a").exists() == there
    assert not there or (list(target.iterdir()) == [] and stat.S_IMODE(target.stat().st_mode) == 0o750)
    log.backup(target)
    SqliteLog.open(target).close()


def test_a_damaged_store_makes_no_backup_and_says_where_it_is_damaged(directory, log, copy):
    log.close()
    db = apsw.Connection(str(directory / "gen-1.db"))
    db.execute("UPDATE rec SET data = x'00' WHERE seq = 2")
    db.close()
    log = SqliteLog.open(directory)
    with pytest.raises(Corrupt) as caught:
        log.backup(copy)
    assert (caught.value.space, caught.value.seq) == (1, 2)
    assert not copy.exists()
    log.close()


KILLED = """
import os, sys
from pathlib import Path
from perdure.log.sqlite import SqliteLog
log = SqliteLog.open(Path(sys.argv[1]))
log.backup(Path(sys.argv[2]), lambda done, total: os._exit(3))
"""


def test_a_backup_that_was_killed_does_not_open_and_is_not_written_over(directory, log, copy):
    process = forked.run(KILLED, directory, copy, timeout=60)
    assert process.returncode == 3
    with pytest.raises(Corrupt, match=r"store\.lock is missing"):
        SqliteLog.open(copy)
    with pytest.raises(InvalidRequest, match="holds something"):
        log.backup(copy)
    assert log.purge(keep_all).epoch == 1  # the killed one keeps nobody out


def test_a_closed_log_makes_no_backup(log, copy):
    log.close()
    with pytest.raises(Unavailable):
        log.backup(copy)
    assert not copy.exists()


# Afterwards


def test_a_backup_of_a_backup_is_the_same_store(log, copy, tmp_path):
    log.backup(copy)
    with_copy = SqliteLog.open(copy)
    with_copy.backup(tmp_path / "again")
    again = SqliteLog.open(tmp_path / "again")
    assert told(again) == told(log)
    again.close()
    with_copy.close()


def test_a_secret_that_is_kept_outside_is_not_in_the_backup(directory, copy):
    secret = bytes(range(32))
    with Memory.open(directory, secret=secret) as memory:
        memory.remember("The kettle is blue", id="kettle")
    log = SqliteLog.open(directory, secret=secret)
    log.backup(copy)
    log.close()
    with Memory.open(copy, secret=secret) as memory:
        assert memory.get("kettle") is not None
    assert [path.name for path in copy.iterdir() if secret in path.read_bytes()] == []


def test_the_moments_of_backups_are_noted_in_order_and_outlive_closing_purging_and_copying(
    directory, log, copy
):
    assert log.backups() == []
    log.note_backup(1_700_000_000_000)
    log.note_backup(-5)
    log.backup(copy)
    log.purge(keep_all)
    log.close()
    for place in (directory, copy):
        log = SqliteLog.open(place)
        assert log.backups() == [1_700_000_000_000, -5]
        log.close()


def test_a_damaged_note_of_a_backup_is_reported(directory, log):
    log.note_backup(1_700_000_000_000)
    log.close()
    db = apsw.Connection(str(directory / "store.lock"))
    db.execute("UPDATE backup SET at = at + 1")
    db.close()
    log = SqliteLog.open(directory)
    with pytest.raises(Corrupt, match=r"store\.lock"):
        log.backups()
    log.close()


# Encrypted stores


def test_a_backup_of_an_encrypted_store_is_encrypted_under_the_same_key(directory, copy):
    key = bytes(range(32))
    with Memory.open(directory, key=key) as memory:
        memory.remember(MARKER, id="kettle")
    log = SqliteLog.open(directory, key=key)
    log.backup(copy)
    assert log_processes.holders(copy, MARKER) == []
    for wrong in (None, bytes(32)):
        with pytest.raises(WrongKey):
            Memory.open(copy, key=wrong)
    with Memory.open(copy, key=key) as memory:
        assert [hit.text for hit in memory.recall(MARKER)] == [MARKER]
    log.close()


def test_the_key_is_not_changed_while_a_backup_is_made_and_backups_go_on_under_the_new_one(
    log, copy, tmp_path
):
    other = SqliteLog.open(tmp_path / "store", timeout_s=0.2)

    def rekey():
        with pytest.raises(Busy):
            other.rekey(keep_all, "a new passphrase")
        return True

    progress, results = once(rekey)
    log.backup(copy, progress)
    assert results == [True]
    other.rekey(keep_all, "a new passphrase")
    other.backup(tmp_path / "new")
    with_copy = SqliteLog.open(tmp_path / "new", key="a new passphrase")
    assert told(with_copy) == [[b"first", b"second", b"third"]]
    with pytest.raises(WrongKey, match="changed"):
        log.backup(tmp_path / "late")
    assert not (tmp_path / "late").exists()
    for opened in (with_copy, other):
        opened.close()


@pytest.mark.parametrize("backend", ["sqlite", "journal"])
def test_of_two_copies_into_one_directory_one_is_made_whole_and_the_other_refused(tmp_path, backend):
    stores = [Store.open(tmp_path / f"store {n}", backend=backend) for n in range(2)]
    for number, store in enumerate(stores):
        store.memory().remember_many([f"fact {n} of store {number}" for n in range(20)])
    for attempt in range(10):
        target = tmp_path / f"copy {attempt}"
        outcomes = together(2, lambda index, target=target: backed_up(stores[index], target))
        assert outcomes.count(True) == 1
        with Store.open(target) as copied:
            texts = {fact.text for fact in copied.memory().list(limit=100).items}
        assert texts == {f"fact {n} of store {outcomes.index(True)}" for n in range(20)}
    for store in stores:
        store.close()


def backed_up(store, target):
    try:
        store.backup(target)
    except InvalidRequest:
        return False
    return True
