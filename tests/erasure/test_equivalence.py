"""A store that has forgotten is one that never knew: in every answer at once, in every byte after a purge."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from erasure.pairs import SECRET, History, Pair, Side, a_governed_history, a_history, kept_bytes
from perdure import ManualClock, MemoryConfig, Store
from properties.strategies import Drawn


@st.composite
def histories(draw: Any) -> History:
    return a_history(Drawn(draw))


@given(histories())
@settings(max_examples=examples(16), deadline=None)
def test_every_answer_is_that_of_a_store_that_never_held_what_was_forgotten(history):
    pair = Pair(":memory:", ":memory:", history)
    assert pair.differences(purged=False) == []
    pair.close()


@pytest.mark.slow
@given(histories())
@settings(max_examples=examples(6), deadline=None)
def test_after_a_purge_every_answer_and_every_byte_is_that_of_a_store_that_never_held_it(history):
    check_purged(history, "sqlite")


@pytest.mark.slow
@given(histories())
@settings(max_examples=examples(6), deadline=None)
def test_after_a_purge_every_line_of_a_journal_is_that_of_one_that_never_held_what_was_forgotten(history):
    check_purged(history, "journal")


@st.composite
def governed_histories(draw: Any) -> History:
    return a_governed_history(Drawn(draw))


@given(governed_histories())
@settings(max_examples=examples(16), deadline=None)
def test_nodes_conversations_and_sessions_are_those_of_a_store_that_never_held_what_was_forgotten(history):
    pair = Pair(":memory:", ":memory:", history)
    assert pair.differences(purged=False) == []
    pair.close()


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["sqlite", "journal"])
@given(history=governed_histories())
@settings(max_examples=examples(6), deadline=None)
def test_after_a_purge_governed_knowledge_is_byte_for_byte_that_of_a_store_that_never_held_it(
    backend, history
):
    check_purged(history, backend)


@pytest.mark.soak
@pytest.mark.parametrize("backend", ["sqlite", "journal"])
@given(history=histories() | governed_histories())
@settings(max_examples=600, deadline=None)
def test_after_a_purge_hundreds_of_stores_are_those_that_never_held_what_was_forgotten(backend, history):
    check_purged(history, backend)


def check_purged(history: History, backend: str) -> None:
    """Let a pair of stores live through the history and be purged; compare every answer, twice, and every byte."""
    with tempfile.TemporaryDirectory() as folder:
        pair = Pair(Path(folder, "first"), Path(folder, "second"), history, backend)
        assert pair.differences(purged=False) == []
        pair.purge()
        assert pair.differences(purged=True) == []
        pair.reopen()
        assert pair.differences(purged=True) == []
        pair.close()
        assert pair.differing_files() == []
        assert pair.files >= 2
        assert pair.traces() == {}


def purged_twice_over(path: Path, *, secrets: bool) -> dict[str, bytes]:
    """Live through a year of notes, purging between the secrets that the first store has; return its bytes."""
    side = Side(path, MemoryConfig())
    for month in range(12):
        side.clock.advance(1_000)
        side.memory.remember(f"a note of month {month}", id=f"note {month}", tags=["note"])
        if secrets:
            side.memory.remember(f"a secret of month {month}", id="S0", tags=["note"])
            side.store.memory("alone with secrets").remember("another secret", id="S1")
            side.store.memory("alone with secrets").forget(ids=["S1"])
            side.memory.forget(ids=["S0"], purge=month % 4 == 0)
    side.store.purge()
    side.store.close()
    return kept_bytes(path)


def test_how_often_a_store_was_purged_shows_in_the_names_of_its_files_alone(tmp_path):
    first = purged_twice_over(tmp_path / "first", secrets=True)
    assert first == purged_twice_over(tmp_path / "second", secrets=False)
    for name in ("first/gen-5.db", "second/gen-2.db"):
        assert (tmp_path / name).exists()


def test_a_purge_of_a_purged_store_changes_no_byte(tmp_path):
    before = purged_twice_over(tmp_path / "store", secrets=True)
    side = Side(tmp_path / "store", MemoryConfig())
    side.store.purge()
    side.store.close()
    assert kept_bytes(tmp_path / "store") == before


def test_the_same_later_writes_keep_equal_stores_equal(tmp_path):
    for name in ("first", "second"):
        purged_twice_over(tmp_path / name, secrets=name == "first")
        side = Side(tmp_path / name, MemoryConfig())
        side.memory.remember("told later", id="later", supersedes=["note 3"])
        side.memory.forget(ids=["note 5"])
        side.store.purge()
        side.store.close()
    assert kept_bytes(tmp_path / "first") == kept_bytes(tmp_path / "second")


def test_without_a_purge_the_bytes_tell_stores_apart_as_the_comparison_notices(tmp_path):
    for name in ("first", "second"):
        side = Side(tmp_path / name, MemoryConfig())
        side.memory.remember("a note", id="note")
        if name == "first":
            side.memory.remember("a secret", id="S0")
            side.memory.forget(ids=["S0"])
        side.store.close()
    assert kept_bytes(tmp_path / "first") != kept_bytes(tmp_path / "second")


def test_nothing_tells_that_a_memory_was_there_earlier_than_what_is_left_of_it(tmp_path):
    for name, first in (("held", True), ("never", False)):
        clock = ManualClock("2026-01-01T00:00:00Z")
        with Store.open(tmp_path / name, secret=SECRET, clock=clock) as store:
            ann, bob = store.memory("ann"), store.memory("bob")
            if first:
                ann.remember("The secret is in the quokka", id="secret")
            bob.remember("Bob has a kettle")
            ann.remember("Ann has a teapot")
            if first:
                ann.forget(ids=["secret"])
            store.purge()
    assert kept_bytes(tmp_path / "held") == kept_bytes(tmp_path / "never")
