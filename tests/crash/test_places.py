"""Paths that no store can have, and other things that lie where its files should be."""

import os
import shutil
from contextlib import suppress

import pytest

from perdure import Corrupt, InvalidRequest, Memory, PerdureError, Store, Unavailable
from perdure.log.protocol import Batch, Cached
from perdure.log.sqlite import SqliteLog

NAME = b"n" * 16


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("", "empty"),
        ("a\0b", "value 0"),
        ("\0", "value 0"),
        ("a\ud800b", "UTF-8"),
        ("\udcff", "UTF-8"),
    ],
)
def test_a_path_that_no_file_can_have_is_refused_and_told_why(tmp_path, monkeypatch, path, said):
    monkeypatch.chdir(tmp_path)
    for opening in (Memory.open, Store.open):
        with pytest.raises(InvalidRequest, match=said) as caught:
            opening(path)
        assert caught.value.field == "path"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", ["x" * 300, "/".join(["x" * 200] * 4), "/dev/null/store", "/proc/store"])
def test_a_path_that_the_system_refuses_is_unavailable(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Unavailable, match=r"SQLite|directory"):
        Memory.open(path)


def test_a_directory_that_is_gone_is_unavailable(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(Unavailable):
        Memory.open("store")


def test_a_path_of_any_letters_and_blanks_is_a_path(tmp_path):
    for name in ("with blank", "ключ", "キー", "a?b#c%41", "file:x", "quote'\"s"):
        with Memory.open(tmp_path / name) as memory:
            memory.remember("The kettle is blue", id="kettle")
        with Memory.open(tmp_path / name) as memory:
            assert memory.get("kettle") is not None
        assert (tmp_path / name / "store.lock").exists()


@pytest.fixture
def directory(tmp_path):
    log = SqliteLog.open(tmp_path / "store")
    space = log.create_space(NAME, b"first")
    head = log.append(space, log.head(space), Batch(records=[b"second", b"third"]))
    log.put_cache(space, "state", Cached(head, b"blob"))
    log.close()
    return tmp_path / "store"


FILES = ["store.lock", "gen-1.db", "gen-1.db-wal", "gen-1.db-shm", "gen-1.hw", "writer.lock", "writer.next"]


def replaced(path, kind):
    """Put something that is no file in a file's place."""
    path.unlink()
    if kind == "directory":
        path.mkdir(mode=0o700)
    elif kind == "full directory":
        path.mkdir(mode=0o700)
        (path / "inside").write_bytes(b"of somebody")
    else:
        path.symlink_to(path)


def read_and_write(directory):
    log = SqliteLog.open(directory, timeout_s=1)
    # Shared memory that cannot be written does for reading.
    assert [entry.data for entry in log.read(1, 0, 9)] == [b"first", b"second", b"third"]
    log.append(1, log.head(1), Batch(records=[b"fourth"]))


KINDS = ["directory", "full directory", "loop"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FILES)
def test_what_lies_in_the_place_of_a_file_is_reported_and_left_alone(directory, name, kind):
    replaced(directory / name, kind)
    with pytest.raises((Corrupt, Unavailable)):
        read_and_write(directory)
    assert os.path.lexists(directory / name)
    assert kind != "full directory" or (directory / name / "inside").read_bytes() == b"of somebody"


@pytest.mark.parametrize("kind", KINDS)
def test_what_lies_in_the_place_of_the_cache_is_left_alone_and_there_is_no_cache(directory, kind):
    replaced(directory / "cache-1.db", kind)
    log = SqliteLog.open(directory)
    assert log.get_cache(1, "state") is None
    log.put_cache(1, "state", Cached(log.head(1), b"blob"))
    assert log.get_cache(1, "state") is None
    log.append(1, log.head(1), Batch(records=[b"removal"], erase=[2]))
    assert log.scrub()
    assert [entry.data for entry in log.read(1, 0, 9)] == [b"first", None, b"third", b"removal"]
    assert log.size_bytes() > 0
    log.close()
    assert os.path.lexists(directory / "cache-1.db")


@pytest.mark.parametrize("name", [*FILES, "cache-1.db"])
def test_a_file_that_goes_while_the_store_is_open_ends_in_an_answer_or_an_error_of_ours(directory, name):
    log = SqliteLog.open(directory, timeout_s=1)
    log.head(1)
    (directory / name).unlink()
    calls = [
        lambda: log.head(1),
        lambda: list(log.read(1, 0, 9)),
        lambda: log.append(1, log.head(1), Batch(records=[b"fourth"], erase=[2])),
        lambda: log.put_cache(1, "state", Cached(log.head(1), b"blob")),
        lambda: log.get_cache(1, "state"),
        log.scrub,
        log.size_bytes,
    ]
    for call in calls:
        with suppress(PerdureError):  # any other exception is a failure
            call()
    log.close()


def test_a_directory_that_goes_while_the_store_is_open_is_unavailable(directory):
    log = SqliteLog.open(directory, timeout_s=1)
    shutil.rmtree(directory)
    with pytest.raises(Unavailable):
        log.size_bytes()
    log.close()


# A store that is moved or copied


def told(path):
    with Store.open(path) as store:
        return [fact.text for fact in store.memory().list().items]


@pytest.fixture
def store(tmp_path):
    """Return the directory of a closed store with a cache, of which parts are in the write-ahead log."""
    with Memory.open(tmp_path / "store") as memory:
        memory.remember_many([f"The kettle {number} is blue" for number in range(1100)])
        memory.remember("The saucer is green", id="saucer")
    assert (tmp_path / "store" / "cache-1.db").exists()
    return tmp_path / "store"


def test_a_closed_store_can_be_moved_renamed_and_copied(store, tmp_path):
    before = told(store)
    (tmp_path / "deep" / "er").mkdir(parents=True)
    moved = store.rename(tmp_path / "deep" / "er" / "ключ")
    assert told(moved) == before
    copied = shutil.copytree(moved, tmp_path / "copy")
    for helper in (*copied.glob("*-shm"), *copied.glob("writer.*"), *copied.glob("cache-*")):
        helper.unlink()  # not every program that copies takes them along
    assert told(copied) == before
    assert not store.exists()


def test_a_copy_beside_the_original_shares_nothing_with_it(store, tmp_path):
    copied = shutil.copytree(store, tmp_path / "copy")
    with Store.open(store) as one, Store.open(copied) as other, one.log.writer():
        other.memory().remember("Only in the copy", id="copy")  # the turn of the original is not its turn
        other.memory().forget(ids=["saucer"])
        assert other.purge().pending is False
        assert one.memory().get("copy") is None
        assert one.memory().get("saucer") is not None
    assert len(told(store)) == len(told(copied)) == 50


def names_of(path):
    return sorted(entry.name for entry in path.iterdir())


def refuse(call):
    with pytest.raises(Unavailable, match=r"moved|directory"):
        call()


def test_a_store_that_moves_while_it_is_open_is_read_but_not_written_and_leaves_nothing_behind(
    store, tmp_path
):
    with Store.open(store, timeout_s=1) as opened:
        memory = opened.memory()
        before = memory.recall("kettle")
        moved = store.rename(tmp_path / "moved")
        assert memory.recall("kettle") == before
        for call in (
            lambda: memory.remember("cup"),
            lambda: memory.forget(ids=["saucer"]),
            opened.purge,
            lambda: opened.backup(tmp_path / "copy"),
            lambda: opened.memory("new").remember("cup"),
        ):
            refuse(call)
    assert names_of(tmp_path) == ["moved"]
    assert len(told(moved)) == 50
    with Memory.open(moved) as memory:
        assert memory.get("saucer") is not None
        assert memory.recall("cup") == []


def test_a_store_that_another_took_the_place_of_writes_into_neither(store, tmp_path):
    with Store.open(store, timeout_s=1) as opened:
        memory = opened.memory()
        memory.recall("kettle")
        copied = shutil.copytree(store, tmp_path / "copy")
        store.rename(tmp_path / "moved")
        copied.rename(store)
        names, before = names_of(store), (store / "store.lock").read_bytes()
        for call in (
            lambda: memory.remember("cup"),
            lambda: memory.forget(ids=["saucer"]),
            opened.purge,
            lambda: opened.memory("new").remember("cup"),
        ):
            refuse(call)
        assert set(names_of(store)) - set(names) <= {"backup.lock"}
        assert (store / "store.lock").read_bytes() == before
    for path in (store, tmp_path / "moved"):
        with Memory.open(path) as memory:
            assert memory.get("saucer") is not None
            assert memory.recall("cup") == []


def test_a_store_that_moved_and_came_back_while_it_was_open_goes_on(store, tmp_path):
    with Store.open(store, timeout_s=1) as opened:
        memory = opened.memory()
        memory.recall("kettle")
        store.rename(tmp_path / "moved").rename(store)
        memory.remember("cup", id="cup")
        assert memory.forget(ids=["saucer"]).pending is False
    with Memory.open(store) as memory:
        assert (memory.get("cup") is None, memory.get("saucer") is None) == (False, True)
