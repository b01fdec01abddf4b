"""Stores that earlier builds wrote and that keep a configuration: it still holds, and they live on under this build."""

from __future__ import annotations

import json
import shutil

import pytest

from golden.answers import answers, open_at_now, without_cursor, without_the_feed
from perdure import InvalidRequest, MemoryConfig
from perdure.log.records import ConfigRecord, decode
from source_tree import ROOT

GOLDEN = ROOT / "tests" / "golden"
KEPT = sorted(path.name for path in GOLDEN.glob("configured-*"))


@pytest.fixture(params=KEPT)
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
    copy = tmp_path / "store"
    shutil.copytree(kept / "store", copy)
    copy.chmod(0o700)
    for file in copy.iterdir():
        file.chmod(0o600)
    return copy


def told_by(store, expected):
    """Return the answers and the configuration as JSON, without the fields that later builds have added."""
    told = {"config": json.loads(store.config.to_json()), **answers(store)}
    return _like(json.loads(json.dumps(told)), expected)


def _like(told, expected):
    if isinstance(told, dict) and isinstance(expected, dict):
        return {name: _like(told[name], expected[name]) for name in expected if name in told}
    if isinstance(told, list) and isinstance(expected, list) and len(told) == len(expected):
        return [_like(one, other) for one, other in zip(told, expected, strict=True)]
    return told


def test_there_is_one_of_each_backend():
    assert {name.rpartition("-")[2] for name in KEPT} == {"sqlite", "journal"}


def test_its_memories_answer_by_the_configuration_that_it_keeps(path, expected):
    with open_at_now(path) as store:
        assert store.config != MemoryConfig()
        assert told_by(store, expected) == expected
        memory = store.memory()
        assert memory.get("turin").superseded_by == ("genoa",)
        assert memory.get("kettle").tags == ("evening", "kitchen")
        assert len(memory.recall("kettle house")) <= store.config.default_k


def test_the_record_that_keeps_it_is_of_the_format_that_the_store_is_kept_for(kept, path):
    with open_at_now(path) as store:
        records = [
            entry.data
            for space in store.log.spaces()
            for entry in store.log.read(space, 0, store.log.head(space).seq)
            if entry.data is not None
        ]
    found = [data for data in records if isinstance(decode(data), ConfigRecord)]
    assert [data[0] for data in found] == [int(kept.name.split("-")[1])]
    assert max(data[0] for data in records) == found[0][0]


def test_another_configuration_is_refused_and_may_be_saved_in_its_place(path):
    with open_at_now(path) as store:
        with pytest.raises(InvalidRequest) as caught:
            store.memory(config=MemoryConfig())
        assert caught.value.field == "default_k"
        store.save_config(MemoryConfig(default_k=2))
    with open_at_now(path) as store:
        assert store.config == MemoryConfig(default_k=2)
        assert store.memory().get("turin").superseded_by == ("genoa",)


def test_what_is_written_now_goes_by_it_too(path):
    with open_at_now(path) as store:
        memory = store.memory()
        memory.remember("Ada lives in Rome", id="rome", subject="ada.home", valid_from=1_710_000_000_000)
        assert memory.get("genoa").superseded_by == ("rome",)
        assert memory.remember("ok thanks").outcome == "refused"
        assert memory.remember("the blue kettle of the house  WHISTLES").id == "kettle"


def test_it_is_whole_and_survives_a_purge(path, expected):
    with open_at_now(path) as store:
        assert store.verify().findings == ()
        store.purge()
        assert store.verify().findings == ()
        assert without_the_feed(told_by(store, expected)) == without_the_feed(expected)
        config = store.config
    with open_at_now(path) as store:
        assert store.config == config
