"""What was forgotten of nodes and conversations is in no byte of any file, and a purged store is one that never held it."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from erasure.governed_places import GOVERNED_PLACES, NAME
from erasure.places import MARKER, fill
from erasure.scan import forms_of, found
from governed import START, opened
from governed_run import SECRET, Governed
from perdure import Store

KEY = b"k" * 32
STORES = {"sqlite": {}, "encrypted": {"key": KEY}, "journal": {}}


def open_kind(path: Path, kind: str) -> Store:
    backend = "journal" if kind == "journal" else "sqlite"
    return opened(path, backend, **STORES[kind])


def traces(path: Path) -> dict[str, list[str]]:
    # Names of nodes and sessions hold no space, and are escaped in ids.
    forms = {f"{what} {name}": form for what in (MARKER, NAME) for name, form in forms_of(what).items()}
    return found(path, forms)


def plant(path: Path, kind: str, name: str) -> None:
    with open_kind(path, kind) as store:
        GOVERNED_PLACES[name].plant(store)
        store.memory().remember("what stays")
        if kind == "sqlite":
            fill(store)  # so that closing keeps the derived state in a file too
    assert (traces(path) != {}) == (kind != "encrypted")


@pytest.mark.parametrize("name", GOVERNED_PLACES)
@pytest.mark.parametrize("kind", ["sqlite", "journal"])
def test_what_was_removed_is_in_no_file_at_once_nor_after_closing_and_purging(tmp_path, kind, name):
    plant(tmp_path, kind, name)
    with open_kind(tmp_path, kind) as store:
        GOVERNED_PLACES[name].remove(store)
        assert traces(tmp_path) == {}
        assert store.verify().findings == ()
    assert traces(tmp_path) == {}
    with open_kind(tmp_path, kind) as store:
        assert [hit.text for hit in store.memory().recall("stays", k=1)] == ["what stays"]
        store.purge()
        assert traces(tmp_path) == {}
        assert store.verify().findings == ()
    assert traces(tmp_path) == {}


@pytest.mark.parametrize("name", ["content", "quote of an evidence", "text of a turn"])
def test_an_encrypted_store_never_shows_what_it_holds_nor_what_it_held(tmp_path, name):
    plant(tmp_path, "encrypted", name)
    with open_kind(tmp_path, "encrypted") as store:
        assert MARKER in b"".join(store.export_lines()).decode()
        GOVERNED_PLACES[name].remove(store)
        assert MARKER not in b"".join(store.export_lines()).decode()
        store.purge()
    assert traces(tmp_path) == {}


@pytest.mark.parametrize("kind", ["sqlite", "journal"])
def test_erasing_a_scope_leaves_no_name_of_it_nor_of_its_nodes_and_sessions(tmp_path, kind):
    with open_kind(tmp_path, kind) as store:
        space = Governed(store, ("alice", NAME)).fill()
        space.memory.remember(MARKER)
        store.memory("bob").remember("what stays")
    assert traces(tmp_path) != {}
    with open_kind(tmp_path, kind) as store:
        store.erase("alice", NAME)
        assert traces(tmp_path) == {}
        assert found(tmp_path, {"alice": b"alice", "evidence": b"file:first"}) == {}
    assert traces(tmp_path) == {}


@pytest.mark.parametrize("kind", ["sqlite", "journal"])
@pytest.mark.parametrize("name", [name for name in GOVERNED_PLACES if "quotes" not in name])
def test_a_purged_store_equals_byte_for_byte_one_that_never_held_what_was_forgotten(tmp_path, kind, name):
    kept = []
    for place, holds in (("one", True), ("other", False)):
        with opened(tmp_path / place, "journal" if kind == "journal" else "sqlite", secret=SECRET) as store:
            space = Governed(store, ("", "")).live(Random(7), 12)
            space.clock.set(START + 100_000)
            if holds:
                GOVERNED_PLACES[name].plant(store)
                GOVERNED_PLACES[name].remove(store)
                _remove_rest(store)
            store.memory().remember("what stays", id="stays")
            store.purge()
        kept.append(_bytes_of(tmp_path / place))
    assert kept[0] == kept[1]


def _remove_rest(store: Store) -> None:
    store.repository().forget(["n", "m", NAME])
    for session in ("s", NAME):
        store.conversation().forget(session)


def _bytes_of(path: Path) -> list[bytes]:
    """What a closed store keeps of its records: numbers of files, locks and the audit, which outlives, left out."""
    files = sorted(file for pattern in ("*/gen-*.db", "*/journal-*.jsonl") for file in path.glob(pattern))
    return [file.read_bytes() for file in files]
