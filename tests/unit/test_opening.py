"""A path means a store of the backend that lies there; a new one is made as told."""

from __future__ import annotations

import pytest

from perdure import InvalidRequest, Store


def names(directory):
    return {path.name for path in directory.iterdir()}


def test_a_new_store_is_kept_in_sqlite_unless_told_otherwise(tmp_path):
    with Store.open(tmp_path / "usual") as usual, Store.open(tmp_path / "told", backend="journal") as told:
        assert (usual.log.name, told.log.name) == ("sqlite", "journal")


@pytest.mark.parametrize("backend", ["sqlite", "journal"])
def test_a_store_is_opened_with_the_backend_that_it_was_made_with(tmp_path, backend):
    with Store.open(tmp_path / "store", backend=backend) as store:
        store.memory().remember("The kettle is blue", id="kettle")
    for told in (None, backend):
        with Store.open(tmp_path / "store", backend=told) as store:
            assert store.log.name == backend
            assert store.memory().get("kettle").text == "The kettle is blue"


@pytest.mark.parametrize(("made", "told"), [("sqlite", "journal"), ("journal", "sqlite")])
def test_a_store_of_another_backend_is_refused_and_left_as_it_was(tmp_path, made, told):
    Store.open(tmp_path / "store", backend=made).close()
    before = names(tmp_path / "store")
    with pytest.raises(InvalidRequest, match=f"of the backend '{made}'") as caught:
        Store.open(tmp_path / "store", backend=told)
    assert caught.value.field == "backend"
    assert names(tmp_path / "store") == before


def test_an_unknown_backend_is_refused_and_nothing_is_made(tmp_path):
    with pytest.raises(InvalidRequest, match="backend"):
        Store.open(tmp_path / "store", backend="postgres")
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("options", [{"backend": "sqlite"}, {"key": b"k" * 32}])
def test_an_ephemeral_store_takes_no_backend_and_no_key(options):
    with pytest.raises(InvalidRequest, match="ephemeral"):
        Store.open(":memory:", **options)


def test_a_journal_takes_no_key(tmp_path):
    with pytest.raises(InvalidRequest, match="not encrypted"):
        Store.open(tmp_path / "store", backend="journal", key=b"k" * 32)
    assert not (tmp_path / "store").exists()
