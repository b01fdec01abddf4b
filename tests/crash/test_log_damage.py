"""Damaged files are reported, never read as something else."""

import random
import shutil

import apsw
import pytest

from perdure.errors import Corrupt, PerdureError
from perdure.log.protocol import Batch, Cached
from perdure.log.sqlite import SqliteLog

NAMES = [b"a" * 16, b"b" * 16]


def contents(directory):
    """All that a store tells."""
    log = SqliteLog.open(directory)
    try:
        spaces = [log.find_space(name) for name in NAMES]
        heads = [log.head(space) for space in spaces]
        entries = [list(log.read(space, 0, 10**6)) for space in spaces]
        points = [
            log.get(space, range(1, head.seq + 1), head) for space, head in zip(spaces, heads, strict=True)
        ]
        return log.spaces(), spaces, heads, entries, points
    finally:
        log.close()


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Two spaces of 300 records of many sizes, ten erased, all in the database file."""
    directory = tmp_path_factory.mktemp("damage") / "store"
    log = SqliteLog.open(directory)
    for name in NAMES:
        space = log.create_space(name, b"first")
        for batch in range(20):
            records = [bytes([batch + 1]) * (number * 7 % 300) for number in range(15)]
            log.append(space, log.head(space), Batch(records=records, keys=[(name, 1)]))
        log.append(space, log.head(space), Batch(records=[b"x" * 9000], erase=range(20, 30)))
    assert log.scrub()
    log.close()
    return directory


@pytest.mark.parametrize("seed", range(8))
def test_a_flipped_bit_is_reported_or_changes_nothing(store, tmp_path, seed):
    chance = random.Random(seed)
    truth = contents(store)
    whole = (store / "gen-1.db").read_bytes()
    noticed = 0
    for trial in range(20):
        directory = tmp_path / str(trial)
        shutil.copytree(store, directory)
        damaged = bytearray(whole)
        # Every other flip hits the first bytes of a page, where a b-tree keeps its structure.
        position = chance.randrange(len(whole))
        if trial % 2:
            position = position // 4096 * 4096 + chance.randrange(60)
        damaged[position] ^= 1 << chance.randrange(8)
        (directory / "gen-1.db").write_bytes(damaged)
        try:
            assert contents(directory) == truth
        except PerdureError:
            noticed += 1
        shutil.rmtree(directory)
    assert noticed > 0


def test_a_damaged_record_is_named(store, tmp_path):
    directory = tmp_path / "store"
    shutil.copytree(store, directory)
    whole = (directory / "gen-1.db").read_bytes()
    (directory / "gen-1.db").write_bytes(
        whole.replace(b"\x05" * 98, b"\x05" * 40 + b"\x06" + b"\x05" * 57, 1)
    )
    log = SqliteLog.open(directory)
    with pytest.raises(Corrupt) as caught:
        list(log.read(1, 0, 10**6))
    error = caught.value
    assert (error.generation, error.space) == (1, 1)
    seq = error.seq
    with pytest.raises(Corrupt) as caught:
        log.get(1, [seq - 1, seq], log.head(1))
    assert caught.value.seq == seq
    assert log.get(1, [seq - 1, seq + 1], log.head(1)) != []
    assert f"record {seq} of space 1" in str(error)
    assert "backup" in str(error)
    log.close()


def test_a_record_zeroed_by_accident_is_noticed_when_its_space_is_read(store, tmp_path):
    directory = tmp_path / "store"
    shutil.copytree(store, directory)
    log = SqliteLog.open(directory)
    space = log.head(1)
    victim = 40
    data = log.get(1, [victim], space)[0]
    log.close()
    db = apsw.Connection(str(directory / "gen-1.db"))
    db.execute(
        "UPDATE rec SET data = zeroblob(?), ck = zeroblob(16) WHERE space = 1 AND seq = ?",
        (len(data), victim),
    )
    db.close()
    log = SqliteLog.open(directory)
    with pytest.raises(Corrupt, match="add up"):
        list(log.read(1, 0, 10**6))
    log.close()


@pytest.mark.parametrize("seed", range(10))
def test_a_damaged_write_ahead_log_is_noticed_at_opening(tmp_path, seed):
    chance = random.Random(seed)
    directory = tmp_path / "store"
    log = SqliteLog.open(directory)
    space = log.create_space(NAMES[0], b"first")
    for number in range(30):
        log.append(space, log.head(space), Batch(records=[b"record %d" % number]))
    log.close()
    journal = directory / "gen-1.db-wal"
    damaged = bytearray(journal.read_bytes())
    damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
    journal.write_bytes(damaged)
    (directory / "gen-1.db-shm").unlink()  # as after a restart of the machine
    with pytest.raises(Corrupt, match="acknowledged"):
        SqliteLog.open(directory)


def test_a_lost_write_ahead_log_is_noticed_at_opening(tmp_path):
    directory = tmp_path / "store"
    log = SqliteLog.open(directory)
    space = log.create_space(NAMES[0], b"first")
    log.append(space, log.head(space), Batch(records=[b"second"]))
    log.close()
    for name in ("gen-1.db-wal", "gen-1.db-shm"):
        (directory / name).unlink()
    with pytest.raises(Corrupt, match="up to row 2 were acknowledged, but the last row is 0"):
        SqliteLog.open(directory)


def test_a_damaged_cache_is_dropped(tmp_path):
    directory = tmp_path / "store"
    log = SqliteLog.open(directory)
    space = log.create_space(NAMES[0], b"first")
    cached = Cached(log.head(space), b"derived " * 5000)
    log.put_cache(space, "state", cached)
    path = directory / "cache-1.db"
    whole = path.read_bytes()
    for position in (0, 30, len(whole) // 2, len(whole) - 500):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
        assert log.get_cache(space, "state") in (None, cached)
        log.put_cache(space, "state", cached)
        log.put_cache(space, "state", cached)
        assert log.get_cache(space, "state") == cached
    log.close()


def damaged_copy(store, directory, statement, *bindings):
    """Copy the store and run a statement that no log would run; return the copy's directory."""
    shutil.copytree(store, directory)
    db = apsw.Connection(str(directory / "gen-1.db"))
    db.execute("PRAGMA ignore_check_constraints = ON")
    db.execute(statement, bindings)
    db.close()
    return directory


@pytest.mark.parametrize("value", ["text", 7.5, -1, 2**40, b"", b"blob"])
@pytest.mark.parametrize(
    ("table", "column", "which"),
    [
        *(("rec", column, "space = 1 AND seq = 40") for column in ("space", "seq", "data", "ck")),
        *(("head", column, "space = 1") for column in ("epoch", "seq", "erasures", "digest", "ck")),
    ],
)
def test_a_column_of_another_value_or_type_is_reported(store, tmp_path, table, column, which, value):
    statement = f"UPDATE {table} SET {column} = ? WHERE {which}"
    with pytest.raises(Corrupt):
        contents(damaged_copy(store, tmp_path / "store", statement, value))


@pytest.mark.parametrize("rid", ["text", 7.5, -1, 2**40, 100])
def test_a_key_that_leads_elsewhere_is_reported(store, tmp_path, rid):
    directory = damaged_copy(store, tmp_path / "store", "UPDATE key SET rid = ?", rid)
    log = SqliteLog.open(directory)
    with pytest.raises(Corrupt, match="key"):
        log.find_space(NAMES[0])
    with pytest.raises(Corrupt, match="key"):
        log.find(2, [NAMES[1]])
    log.close()
