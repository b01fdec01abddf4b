"""Stores with nodes and conversations that earlier builds wrote answer as they did, and live on under this build."""

from __future__ import annotations

import json
import shutil

import msgspec
import pytest

from governed import change, create
from governed_run import Governed, shown
from perdure import ManualClock, Store
from perdure.log.records import (
    AccessRecord,
    ByRecord,
    ChangeSetRecord,
    ConversationRecord,
    MarkRecord,
    NodeRecord,
    RemovalRecord,
    TurnRecord,
    decode,
)
from source_tree import ROOT

GOLDEN = ROOT / "tests" / "golden"
KEPT = sorted(path.name for path in GOLDEN.glob("governed-*"))
OF_A_HISTORY = ("token", "changes")


@pytest.fixture(params=KEPT)
def kept(request):
    return GOLDEN / request.param


@pytest.fixture
def expected(kept):
    return json.loads((kept / "expected.json").read_text(encoding="utf-8"))


@pytest.fixture
def store(kept, expected, tmp_path):
    """Open a copy with the modes that a store's files have; git keeps no modes."""
    copy = tmp_path / "store"
    shutil.copytree(kept / "store", copy)
    for path in [copy, *copy.rglob("*")]:
        path.chmod(0o700 if path.is_dir() else 0o600)
    with Store.open(copy, clock=ManualClock(expected["now"])) as opened:
        yield opened


def told_by(store, expected):
    """Return what is shown as JSON, without the fields that later builds have added to what is expected."""
    return _like(json.loads(msgspec.json.encode(shown(Governed(store), tokens=True))), expected["shown"])


def _like(told, expected):
    if isinstance(told, dict) and isinstance(expected, dict):
        return {name: _like(told[name], expected[name]) for name in expected if name in told}
    if isinstance(told, list) and isinstance(expected, list) and len(told) == len(expected):
        return [_like(one, other) for one, other in zip(told, expected, strict=True)]
    return told


def lasting(told):
    """Return what a purge leaves: it begins a new history."""
    return {name: value for name, value in told.items() if name not in OF_A_HISTORY}


def test_there_is_one_of_each_backend():
    assert {name.rpartition("-")[2] for name in KEPT} == {"sqlite", "journal"}


def test_an_earlier_store_answers_as_the_build_did_that_wrote_it(store, expected):
    assert told_by(store, expected) == expected["shown"]


def test_the_kept_store_holds_records_of_every_type_of_its_format(store):
    records = [
        decode(entry.data)
        for space in store.log.spaces()
        for entry in store.log.read(space, 0, store.log.head(space).seq)
        if entry.data is not None
    ]
    kinds = {type(record) for record in records}
    assert kinds >= {
        AccessRecord, ByRecord, ChangeSetRecord, ConversationRecord, MarkRecord, NodeRecord, RemovalRecord, TurnRecord,
    }  # fmt: skip
    assert any(isinstance(record, RemovalRecord) and record.nodes for record in records)
    assert any(isinstance(record, RemovalRecord) and record.turns for record in records)


def test_nothing_is_found_wrong_with_an_earlier_store_before_or_after_a_purge(store, expected):
    assert store.verify().findings == ()
    store.purge()
    assert store.verify().findings == ()
    assert lasting(told_by(store, expected)) == lasting(expected["shown"])


def test_an_earlier_store_can_be_governed_on(store, expected):
    space = Governed(store)
    told = change("kept by a purge", create("g", "gamma comes before a purge"))
    assert space.repository.apply(told).nodes[0].revision == 1  # as it was answered then
    space.repository.apply(change("today", create("h", "a node of today")))
    assert space.repository.forget(["h"]).forgotten == ("h",)
    assert lasting(told_by(store, expected)) == lasting(expected["shown"])
