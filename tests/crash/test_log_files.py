"""The files of a store: their modes, their secret, their versions."""

import os
import stat
import sys
import threading

import apsw
import pytest

from perdure.errors import Busy, Corrupt, InvalidRequest, Unavailable, WrongKey
from perdure.log.protocol import Batch, Cached
from perdure.log.sqlite import SqliteLog
from perdure.log.sqlite.files import StoreFiles
from perdure.log.sqlite.turns import ExclusiveLock, FlockLock, WriterTurn

NAME = b"n" * 16
posix = pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")


def filled(directory, **options):
    log = SqliteLog.open(directory, **options)
    space = log.create_space(NAME, b"first")
    head = log.append(space, log.head(space), Batch(records=[b"second"]))
    log.put_cache(space, "state", Cached(head, b"blob"))
    return log


@posix
@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_only_the_owner_may_read_a_store(tmp_path, umask):
    before = os.umask(umask)
    try:
        log = filled(tmp_path / "store")
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "store").iterdir()}
        log.close()
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "store").stat().st_mode) == 0o700
    assert {"store.lock", "gen-1.db", "gen-1.db-wal", "gen-1.hw", "writer.lock", "cache-1.db"} <= set(modes)
    assert set(modes.values()) == {0o600}


@posix
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644])
def test_a_secret_that_others_may_read_is_refused(tmp_path, mode):
    filled(tmp_path / "store").close()
    (tmp_path / "store" / "store.lock").chmod(mode)
    with pytest.raises(InvalidRequest, match="chmod 600"):
        SqliteLog.open(tmp_path / "store")


@pytest.mark.parametrize("mark", [None, b"", b"1234567", b"123456789"])
@pytest.mark.parametrize("ahead", [True, False], ids=["", "without its write-ahead log"])
def test_without_its_whole_mark_a_store_is_damaged_and_is_left_as_it_is(tmp_path, mark, ahead):
    filled(tmp_path / "store").close()
    path = tmp_path / "store" / "gen-1.hw"
    path.unlink()
    if mark is not None:
        path.write_bytes(mark)
    if not ahead:
        path.with_name("gen-1.db-wal").unlink()
    for _ in range(2):
        with pytest.raises(Corrupt, match=r"gen-1\.hw is missing or has not 8 bytes.*salvage.*backup"):
            SqliteLog.open(tmp_path / "store")
        assert (path.read_bytes() if path.exists() else None) == mark


def test_a_store_keeps_the_secret_it_made(tmp_path):
    log = filled(tmp_path / "store")
    secret = log.secret
    log.close()
    again = SqliteLog.open(tmp_path / "store", secret=secret)
    assert again.secret == secret
    again.close()
    with pytest.raises(WrongKey, match="another secret"):
        SqliteLog.open(tmp_path / "store", secret=b"x" * 32)


def test_a_secret_from_outside_is_not_kept_and_must_be_given_again(tmp_path):
    filled(tmp_path / "store", secret=b"s" * 32).close()
    assert all(b"s" * 32 not in path.read_bytes() for path in (tmp_path / "store").iterdir())
    with pytest.raises(WrongKey, match="secret="):
        SqliteLog.open(tmp_path / "store")
    with pytest.raises(WrongKey, match="another secret"):
        SqliteLog.open(tmp_path / "store", secret=b"x" * 32)
    log = SqliteLog.open(tmp_path / "store", secret=b"s" * 32)
    assert log.head(1).seq == 2
    log.close()


@pytest.mark.parametrize("secret", [b"", b"short", b"x" * 33])
def test_a_secret_of_another_length_is_refused(tmp_path, secret):
    with pytest.raises(InvalidRequest, match="32 bytes"):
        SqliteLog.open(tmp_path / "store", secret=secret)


def test_an_unknown_durability_is_refused(tmp_path):
    with pytest.raises(InvalidRequest, match="'full' or 'normal', got 'extra'"):
        SqliteLog.open(tmp_path / "store", durability="extra")


@pytest.mark.parametrize("name", ["store.lock", "gen-1.db"])
def test_a_newer_format_is_refused(tmp_path, name):
    filled(tmp_path / "store").close()
    db = apsw.Connection(str(tmp_path / "store" / name))
    db.execute("PRAGMA user_version = 9")
    db.close()
    with pytest.raises(Unavailable, match=f"{name} has format 9, .* upgrade"):
        SqliteLog.open(tmp_path / "store")


@pytest.mark.parametrize("content", [b"not a database at all" * 100, b"x"])
def test_a_directory_of_something_else_is_no_store(tmp_path, content):
    directory = tmp_path / "store"
    directory.mkdir(mode=0o700)
    (directory / "store.lock").write_bytes(content)
    (directory / "store.lock").chmod(0o600)
    with pytest.raises(WrongKey, match="no file of a Perdure store"):
        SqliteLog.open(directory)
    assert (directory / "store.lock").read_bytes() == content


def test_another_sqlite_file_in_the_place_of_a_store_is_refused(tmp_path):
    directory = tmp_path / "store"
    directory.mkdir(mode=0o700)
    db = apsw.Connection(str(directory / "store.lock"))
    db.execute("CREATE TABLE state(gen, dirty)")
    db.close()
    (directory / "store.lock").chmod(0o600)
    with pytest.raises(WrongKey, match="no file of a Perdure store"):
        SqliteLog.open(directory)


def test_a_store_without_its_lock_file_is_not_written_over(tmp_path):
    filled(tmp_path / "store").close()
    (tmp_path / "store" / "store.lock").unlink()
    size = (tmp_path / "store" / "gen-1.db").stat().st_size
    with pytest.raises(Corrupt, match=r"store\.lock is missing"):
        SqliteLog.open(tmp_path / "store")
    assert (tmp_path / "store" / "gen-1.db").stat().st_size == size


def test_a_store_without_its_generation_is_refused(tmp_path):
    filled(tmp_path / "store").close()
    for path in (tmp_path / "store").glob("gen-1.db*"):
        path.unlink()
    with pytest.raises((Corrupt, Unavailable)):
        SqliteLog.open(tmp_path / "store")


def test_a_file_in_the_place_of_the_directory_is_unavailable(tmp_path):
    (tmp_path / "store").write_bytes(b"")
    with pytest.raises(Unavailable, match="directory"):
        SqliteLog.open(tmp_path / "store")


def test_the_size_of_a_store_is_that_of_its_files(tmp_path):
    log = filled(tmp_path / "store")
    assert log.size_bytes() == sum(path.stat().st_size for path in (tmp_path / "store").iterdir())
    log.close()


def locks(directory):
    files = StoreFiles(directory)
    return {
        "flock": lambda: FlockLock(files.writer, files.next_writer),
        "exclusive": lambda: ExclusiveLock(files.directory / "exclusive.lock"),
    }


@pytest.mark.parametrize("kind", ["flock", "exclusive"])
def test_a_lock_between_processes_has_one_holder_and_gives_up_in_time(tmp_path, kind):
    one, two = locks(tmp_path)[kind](), locks(tmp_path)[kind]()
    assert one.acquire(1)
    assert not two.acquire(0.01)
    one.release()
    assert two.acquire(1)
    two.release()
    one.close()
    two.close()


@pytest.mark.parametrize("kind", ["flock", "exclusive"])
def test_a_writer_is_told_busy_while_another_log_has_the_turn(tmp_path, kind):
    one = WriterTurn(locks(tmp_path)[kind](), timeout_s=1)
    two = WriterTurn(locks(tmp_path)[kind](), timeout_s=0.01)
    with one.held():
        with pytest.raises(Busy), two.held():
            pass
        with two.tried(0) as taken:
            assert not taken
    with two.held():
        pass
    one.close()
    two.close()


def test_a_log_that_is_closed_under_a_write_writes_into_no_file_that_is_opened_then(tmp_path, monkeypatch):
    log = filled(tmp_path / "store")
    others, seek = [], os.lseek

    def close_and_open():
        log.close()
        others.extend((tmp_path / f"other {number}").open("w+b") for number in range(12))

    closing = threading.Thread(target=close_and_open)

    def seek_slowly(*where):
        place = seek(*where)
        closing.start()
        closing.join(0.2)  # a close that waits for the write ends after it
        return place

    monkeypatch.setattr(os, "lseek", seek_slowly)
    log.append(1, log.head(1), Batch(records=[b"third"]))
    monkeypatch.undo()
    closing.join()
    for file in others:
        file.close()
    assert {path.read_bytes() for path in tmp_path.glob("other *")} == {b""}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts open files as Linux shows them")
def test_a_log_that_is_closed_while_a_thread_has_the_turn_keeps_no_file_open(tmp_path):
    before = set(os.listdir("/proc/self/fd"))
    log = SqliteLog.open(tmp_path / "store")
    with log.writer():
        log.close()
    assert set(os.listdir("/proc/self/fd")) <= before
    with pytest.raises(Unavailable), log.writer():
        pass
