"""What a purge gives back is told beforehand."""

from __future__ import annotations

import pytest

from perdure.log.protocol import Batch, Cached, Rewritten
from perdure.log.sqlite import SqliteLog

NAME = b"n" * 16
SIZE = 5000
COUNT = 300


@pytest.fixture
def log(tmp_path):
    log = SqliteLog.open(tmp_path / "store")
    space = log.create_space(NAME, b"first")
    log.append(space, log.head(space), Batch(records=[b"x" * SIZE] * COUNT))
    yield log
    log.close()


def keep_all(space, read):
    return (Rewritten(entry.data) for entry in read() if entry.data is not None)


def write_ahead(tmp_path):
    return (tmp_path / "store" / "gen-1.db-wal").stat().st_size


def test_the_bytes_of_erased_records_are_reclaimable(log, tmp_path):
    assert log.reclaimable_bytes() == write_ahead(tmp_path) > 0
    log.append(1, log.head(1), Batch(records=[b"removal"], erase=range(2, 102)))
    assert log.scrub()
    assert log.reclaimable_bytes() == write_ahead(tmp_path) + 100 * SIZE


def test_erased_records_are_counted_wherever_they_are(log, tmp_path):
    log.append(1, log.head(1), Batch(records=[b"many"] * 50_000))
    head = log.head(1)
    log.append(1, head, Batch(records=[b"removal"], erase=[2, head.seq]))
    assert log.scrub()
    assert log.reclaimable_bytes() == write_ahead(tmp_path) + SIZE + len(b"many")


def test_a_cache_is_reclaimable(log, tmp_path):
    before = log.reclaimable_bytes()
    log.put_cache(1, "state", Cached(log.head(1), b"derived" * 1000))
    assert log.reclaimable_bytes() - before == (tmp_path / "store" / "cache-1.db").stat().st_size > 7000


def test_a_purge_gives_back_about_as_much_as_was_told(log):
    log.append(1, log.head(1), Batch(records=[b"removal"], erase=range(2, 202)))
    assert log.scrub()
    told, before = log.reclaimable_bytes(), log.size_bytes()
    log.purge(keep_all)
    assert log.reclaimable_bytes() == 0
    assert before - log.size_bytes() == pytest.approx(told, rel=0.3)
