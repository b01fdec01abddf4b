"""Stores that earlier builds wrote answer as they did, and live on under this build."""

from __future__ import annotations

import json
import shutil

import pytest

from golden.answers import DIMENSION, answers, as_json, open_at_now, without_cursor, without_the_feed
from perdure import Blocked, Conflict, ManualClock, MemoryConfig, Store
from perdure.log.records import Record, decode
from source_tree import ROOT

GOLDEN = ROOT / "tests" / "golden"
FORMATS = sorted(path.name for path in GOLDEN.iterdir() if path.is_dir() and path.name.startswith("format-"))
TYPES = {1: 12, 3: 13}  # that a store of the format can hold after a while
WRITTEN = 1_700_000_900_000  # soon after the stores were written: receipts still count


@pytest.fixture(params=FORMATS)
def kept(request):
    return GOLDEN / request.param


@pytest.fixture
def expected(kept):
    told = json.loads((kept / "expected.json").read_text(encoding="utf-8"))
    for space in told["spaces"]:
        space["changes"] = [without_cursor(part) for part in space["changes"]]
    return told


@pytest.fixture
def path(kept, tmp_path):
    """Return a copy with the modes that a store's files have; git keeps no modes."""
    return copied(kept.name, tmp_path)


def copied(name, folder):
    copy = folder / "store"
    shutil.copytree(GOLDEN / name / "store", copy)
    copy.chmod(0o700)
    for file in copy.iterdir():
        file.chmod(0o600)
    return copy


def test_an_earlier_store_answers_as_the_build_did_that_wrote_it(path, expected):
    with open_at_now(path) as store:
        assert as_json(answers(store), expected) == expected


def test_an_earlier_store_answers_the_same_without_what_helps_to_open_it(path, expected):
    for file in [*path.glob("cache-*"), *path.glob("*-shm"), *path.glob("writer.*")]:
        file.unlink()
    with open_at_now(path) as store:
        assert as_json(answers(store), expected) == expected


def test_the_kept_store_holds_a_record_of_every_type_of_its_format(kept, path):
    number = int(kept.name.removeprefix("format-"))
    with open_at_now(path) as store:
        records = [
            entry.data
            for space in store.log.spaces()
            for entry in store.log.read(space, 0, store.log.head(space).seq)
            if entry.data is not None
        ]
    found: set[type[Record]] = {type(decode(data)) for data in records}
    assert len(found) >= TYPES[number]
    assert max(data[0] for data in records) == number


def test_vectors_merges_uses_and_refusals_of_a_store_of_format_3_still_count(tmp_path):
    path = copied("format-3", tmp_path)
    with Store.open(path, clock=ManualClock(WRITTEN)) as store:
        memory = store.memory()
        assert [memory.get(id_).uses for id_ in ("ada-2", "kettle", "teapot")] == [2, 1, 0]
        assert memory.record_use(["kettle"], "turn 1") == 0
        assert memory.get("samovar").merged.count == 2
        admitting = store.memory(config=MemoryConfig(admission="standard"))
        again = admitting.remember_many(["ok thanks", "The samovar is from Tula"], idempotency_key="refused")
        assert [reply.outcome for reply in again] == ["refused", "created"]
        index = store.documents("ada", "maps").index.vectors()
        assert (index.count, index.missing, index.dimension) == (7, 0, DIMENSION)
        (model,) = set(index.models) - {""}
        assert index.models == {"": 3, model: 4}
        given = store.memory("ada", "maps")
        assert given.recall("", embedding=[0.5] * DIMENSION, k=1)[0].id == "hill-2"
        assert given.restore(["hidden"]) == ("hidden",)
        assert store.documents("ada", "maps").index.vectors().models[""] == 4


def test_an_earlier_store_can_be_written_and_forgotten_in(path, expected):
    with open_at_now(path) as store:
        memory = store.memory()
        assert memory.remember("The new kettle whistles", id="whistle").outcome == "existing"
        assert memory.remember("A kettle of today", id="today").created
        assert memory.recall("kettle of today")[0].id == "today"
        assert memory.forget(ids=["today"]).forgotten == ("today",)
        told = as_json(answers(store), expected)
    assert without_the_feed(told) == without_the_feed(expected)


def test_what_was_blocked_and_answered_under_a_key_in_an_earlier_store_still_counts(path):
    with Store.open(path, clock=ManualClock(WRITTEN)) as store:
        memory = store.memory()
        again = memory.correct(
            "The kettle is red", id="kettle", new_id="kettle-red", idempotency_key="correction"
        )
        assert (again.outcome, again.id) == ("created", "kettle-red")  # as it was answered then
        with pytest.raises(Conflict) as caught:
            memory.remember("Something else", idempotency_key="first")
        assert caught.value.kind == "idempotency"
        with pytest.raises(Blocked):
            memory.remember("A blocked word about tea", id="other")
        assert memory.remember("An unblocked word about tea", id="unblocked").created


def test_an_earlier_store_can_be_purged(path, expected):
    with open_at_now(path) as store:
        store.purge()
        told = as_json(answers(store), expected)
        assert without_the_feed(told) == without_the_feed(expected)
    with open_at_now(path) as store:
        assert as_json(answers(store), expected) == told


def test_nothing_is_found_wrong_with_an_earlier_store_before_or_after_a_purge(path):
    with open_at_now(path) as store:
        assert store.verify().findings == ()
        store.purge()
        assert store.verify().findings == ()
