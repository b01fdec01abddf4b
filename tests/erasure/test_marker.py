"""What was forgotten is in no byte of any file under the store, wherever it had been written."""

from __future__ import annotations

import os
import shutil

import pytest

from erasure.places import MARKER, PLACES, fill, open_store, traces
from erasure.scan import found, holders


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A closed store of facts without the marker."""
    path = tmp_path_factory.mktemp("filled") / "store"
    with open_store(path) as store:
        fill(store)
    return path


@pytest.fixture
def path(filled, tmp_path):
    return shutil.copytree(filled, tmp_path / "store")


def planted(path, place):
    """Plant the marker and close the store, so that the derived state is kept in a file too."""
    for cache in path.glob("cache-*"):
        cache.unlink()  # so that one is written that knows the marker
    with open_store(path) as store:
        assert store.memory().list(limit=1).total > 0
        place.plant(store)
    hits = traces(path)
    assert any(name.startswith("gen-") for name in hits)
    assert place.is_planted(hits)
    assert any(name.startswith("cache-") for name in hits) >= place.kept_in_cache


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_what_was_removed_is_in_no_file_at_once_nor_after_closing_and_reopening(path, place):
    planted(path, place)
    with open_store(path) as store:
        place.remove(store)
        assert traces(path) == {}
        assert store.memory().recall("note", k=1)
    assert list(path.glob("cache-*")) != []
    assert traces(path) == {}
    with open_store(path) as store:
        assert store.memory().list(limit=1).total > 0
        assert traces(path) == {}
        store.purge()
        assert traces(path) == {}
    assert traces(path) == {}


PURGED = ("text", "metadata", "reason of an end", "a chain", "what was hidden before", "long document")


@pytest.mark.parametrize("name", PURGED)
def test_what_a_forget_with_a_purge_removed_is_in_no_file(path, name):
    planted(path, PLACES[name])
    with open_store(path) as store:
        store.memory().forget(ids=["x"], include_chain=True, purge=True)
        assert traces(path) == {}
        assert list(path.glob("gen-1*")) == []  # the replaced files are not only clean but gone
        assert store.memory().list(limit=1).total >= 1_000
    assert traces(path) == {}


def test_the_names_and_all_that_an_erased_person_told_are_in_no_file(path):
    name = MARKER.replace(" ", "-")
    with open_store(path) as store:
        for scope in ("work", MARKER):
            memory = store.memory(name, scope)
            memory.remember(MARKER, id=MARKER, subject=MARKER)
            memory.remember(f"gone before, {MARKER}", id="b")
            memory.forget(ids=["b"], block=True)
        store.memory("somebody else").remember("a fact of another")
    assert traces(path) != {}
    assert "utf-8" in holders(path, name)["gen-1.db"]
    with open_store(path) as store:
        assert store.erase(name).facts == 2
        for words in (MARKER, name):
            assert holders(path, words) == {}
        assert [space.principal for space in store.spaces()] == ["", "somebody else"]
        assert store.memory(name, "work").list().total == 0
    for words in (MARKER, name):
        assert holders(path, words) == {}


def test_what_was_noted_of_a_fact_and_changed_since_is_gone_after_a_purge(path):
    with open_store(path) as store:
        memory = store.memory()
        memory.remember("a fact", id="x")
        memory.annotate("x", tags=[MARKER], metadata={"k": MARKER})
        memory.annotate("x", tags=["t"], metadata={})
        assert traces(path) != {}
        store.purge()
        assert traces(path) == {}
        assert memory.get("x").tags == ("t",)


def test_the_files_that_a_purge_replaces_are_overwritten_and_not_only_unlinked(path, tmp_path):
    planted(path, PLACES["text"])
    links = tmp_path / "links"
    links.mkdir()
    for file in path.glob("*-1.db*"):
        os.link(file, links / file.name)  # another name for the same bytes, which an unlink leaves
    kept = {"a text that was never forgotten": b"note 7 about", "a term of it": b"note"}
    assert {name.split("-")[0] for name in found(links, kept)} == {"gen", "cache"}
    with open_store(path) as store:
        store.purge()
        assert store.memory().recall("note", k=1)
    assert found(links, kept) == {}
