"""The journal, too, holds no byte of what was removed: the marker in every place, in a store of one readable file."""

from __future__ import annotations

import pytest

from erasure.places import PLACES, open_store, traces
from perdure.log.journal import JournalLog


def open_journal_store(path):
    return open_store(None, log=JournalLog.open(path, durability="normal"))


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_what_was_removed_is_in_no_file_of_a_journal_at_once_nor_later(tmp_path, place):
    path = tmp_path / "store"
    with open_journal_store(path) as store:
        place.plant(store)
        assert place.is_planted(traces(path))
    with open_journal_store(path) as store:
        place.remove(store)
        assert traces(path) == {}
        store.purge()
        assert traces(path) == {}
    assert traces(path) == {}
    open_journal_store(path).close()
    assert traces(path) == {}
