"""A damaged store.lock beside records is reported: never a fresh store, never another secret, nothing erased."""

import random
import shutil

import apsw
import pytest

from perdure import Corrupt, PerdureError, WrongKey
from perdure.log.protocol import Batch
from perdure.log.sqlite import SqliteLog

NAME = b"n" * 16


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    directory = tmp_path_factory.mktemp("lock") / "store"
    log = SqliteLog.open(directory)
    space = log.create_space(NAME, b"first")
    log.append(space, log.head(space), Batch(records=[b"second"]))
    log.close()
    return directory


@pytest.fixture
def copy(store, tmp_path):
    shutil.copytree(store, tmp_path / "store")
    return tmp_path / "store"


def told(directory):
    """All that a store tells, its secret included."""
    log = SqliteLog.open(directory, timeout_s=1)
    try:
        return log.secret, log.spaces(), log.find_space(NAME), [entry.data for entry in log.read(1, 0, 99)]
    finally:
        log.close()


def records_of(directory):
    return {path.name: path.stat().st_size for path in directory.glob("gen-*") if not path.match("*-shm")}


SIZES = [0, 1, 99, 100, 511, 512, 4095, 4096, 4097, 8191]


@pytest.mark.parametrize("size", SIZES)
def test_a_store_whose_lock_was_cut_short_is_damaged_and_keeps_its_records(copy, size):
    path, before = copy / "store.lock", records_of(copy)
    whole = path.read_bytes()
    assert len(whole) > max(SIZES)
    path.write_bytes(whole[:size])
    for _ in range(2):
        with pytest.raises(Corrupt):
            told(copy)
    assert records_of(copy) == before
    path.write_bytes(whole)
    assert told(copy)[3] == [b"first", b"second"]


@pytest.mark.parametrize(
    "content", [b"", b"x", b"something else " * 1000, bytes(8192)], ids=["empty", "short", "text", "zeros"]
)
@pytest.mark.parametrize("secret", [None, b"s" * 32])
def test_a_store_whose_lock_holds_something_else_is_damaged_whatever_secret_is_given(copy, content, secret):
    before = records_of(copy)
    (copy / "store.lock").write_bytes(content)
    with pytest.raises(Corrupt, match=r"store\.lock|damaged"):
        SqliteLog.open(copy, secret=secret)
    assert records_of(copy) == before


@pytest.mark.parametrize("kept", ["gen-1.db", "gen-1.hw", "gen-1.db-wal"])
def test_any_file_of_a_generation_tells_that_there_was_a_store(copy, kept):
    for path in copy.iterdir():
        if path.name not in (kept, "store.lock"):
            path.unlink()
    (copy / "store.lock").write_bytes(b"")
    with pytest.raises(Corrupt):
        SqliteLog.open(copy)
    (copy / "store.lock").unlink()
    with pytest.raises(Corrupt):
        SqliteLog.open(copy)


@pytest.mark.parametrize("seed", range(6))
def test_a_flipped_bit_in_the_lock_is_reported_or_changes_nothing(store, tmp_path, seed):
    chance = random.Random(seed)
    truth, before = told(store), records_of(store)
    whole = (store / "store.lock").read_bytes()
    last = len(whole.rstrip(b"\0"))
    noticed = 0
    for trial in range(25):
        directory = tmp_path / str(trial)
        shutil.copytree(store, directory)
        damaged = bytearray(whole)
        # Half of the flips hit the row itself, which lies at the end of the last page.
        position = chance.randrange(last) if trial % 2 else chance.randrange(last - 130, last)
        damaged[position] ^= 1 << chance.randrange(8)
        (directory / "store.lock").write_bytes(damaged)
        try:
            assert told(directory) == truth
        except PerdureError:
            noticed += 1
        assert set(records_of(directory)) == set(before)
        shutil.rmtree(directory)
    assert noticed > 5


@pytest.mark.parametrize("column", ["gen", "dirty", "secret", "verifier", "ck"])
@pytest.mark.parametrize("value", [0, 2, -1, 2**40, "text", 7.5, b"", b"x" * 16, b"x" * 32])
def test_a_column_of_the_lock_of_another_value_or_type_is_reported(copy, column, value):
    truth = told(copy)
    path = copy / "store.lock"
    db = apsw.Connection(str(path))
    old = db.execute(f"SELECT {column} FROM state").fetchall()
    db.execute(f"UPDATE state SET {column} = ?", (value,))
    db.close()
    if old == [(value,)]:
        assert told(copy) == truth
        return
    with pytest.raises(Corrupt, match=r"store\.lock"):
        told(copy)
    assert (copy / "gen-1.db").stat().st_size > 0


@pytest.mark.parametrize(
    "statement",
    ["DELETE FROM state", "DROP TABLE state", "PRAGMA application_id = 7", "PRAGMA user_version = 0"],
)
def test_a_lock_that_lost_its_row_or_its_mark_is_reported(copy, statement):
    db = apsw.Connection(str(copy / "store.lock"))
    db.execute(statement)
    db.close()
    with pytest.raises(Corrupt, match=r"store\.lock"):
        told(copy)


def test_a_lock_damaged_while_the_store_is_open_is_reported_by_the_next_call(copy):
    log = SqliteLog.open(copy)
    assert log.head(1).seq == 2
    (copy / "store.lock").write_bytes(b"")
    for call in (lambda: log.head(1), log.spaces, lambda: log.find_space(NAME), log.scrub):
        with pytest.raises(Corrupt):
            call()
    log.close()


def test_a_missing_generation_is_named(copy):
    for path in copy.glob("gen-1.db*"):
        path.unlink()
    with pytest.raises(Corrupt, match=r"gen-1\.db is missing"):
        SqliteLog.open(copy)


def test_a_secret_that_is_kept_is_never_taken_for_another_one(copy):
    secret = told(copy)[0]
    path = copy / "store.lock"
    whole = path.read_bytes()
    assert whole.count(secret) == 1
    path.write_bytes(whole.replace(secret, secret[:-1] + bytes([secret[-1] ^ 1])))
    for given in (None, secret, b"x" * 32):
        with pytest.raises(Corrupt):
            SqliteLog.open(copy, secret=given)


def test_a_wrong_secret_from_outside_is_no_damage(tmp_path):
    SqliteLog.open(tmp_path / "store", secret=b"s" * 32).close()
    with pytest.raises(WrongKey):
        SqliteLog.open(tmp_path / "store", secret=b"x" * 32)
