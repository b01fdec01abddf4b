"""A snapshot is taken for none but itself: who may write the tables can drop it, and not exchange it or set it forward."""

from __future__ import annotations

import pytest

from perdure.log.postgres import FileKeystore, PostgresLog
from perdure.log.protocol import Batch, Cached
from postgres_server import ROLE, fresh_database, shared_server

BOTH = ("cache", "cache_part")


@pytest.fixture
def database():
    return fresh_database()


@pytest.fixture
def log(database, tmp_path):
    address = shared_server().address(database, ROLE)
    opened = PostgresLog.open(address, tenant="acme", keystore=FileKeystore(tmp_path / "keys"))
    space = opened.create_space(b"n" * 16, b"first")
    opened.put_cache(space, "state", Cached(opened.head(space), b"of the state"))
    opened.put_cache(space, "index", Cached(opened.head(space), b"of an index!"))
    opened.append(space, opened.head(space), Batch([b"second"]))
    yield opened
    opened.close()


FORGED = {
    "exchanged": [
        f"UPDATE perdure.{table} SET name = CASE name WHEN 'state' THEN '-' WHEN 'index' THEN 'state' END"
        for table in BOTH
    ],
    "set forward": ["UPDATE perdure.cache SET seq = seq + 1"],
    "of another digest": ["UPDATE perdure.cache SET digest = sha256('')"],
    "cut to nothing": ["UPDATE perdure.cache SET parts = 0, size = 0", "DELETE FROM perdure.cache_part"],
    "of no key": [
        "UPDATE perdure.cache SET key = 0, parts = 0, size = 0",
        "DELETE FROM perdure.cache_part",
    ],
}


@pytest.mark.parametrize("how", FORGED)
def test_a_snapshot_whose_row_was_forged_is_none(log, database, how):
    assert log.get_cache(1, "state") is not None
    for statement in FORGED[how]:
        shared_server().execute(statement, database)
    assert log.get_cache(1, "state") is None


def test_an_empty_snapshot_comes_back_and_is_as_hard_to_forge(log, database):
    log.put_cache(1, "state", Cached(log.head(1), b""))
    kept = log.get_cache(1, "state")
    assert kept is not None
    assert (bytes(kept.blob), kept.head) == (b"", log.head(1))
    shared_server().execute("UPDATE perdure.cache SET erasures = 0, seq = 1", database)
    assert log.get_cache(1, "state") is None
