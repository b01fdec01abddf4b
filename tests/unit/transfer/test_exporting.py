"""An export is one moment of a store, in bounded memory, while others write, forget and purge."""

from __future__ import annotations

import json
import os
import stat
import threading
import tracemalloc

import pytest

from backends import chosen, open_at
from perdure import InvalidRequest, ManualClock, Namespace, NewFact, NotFound, StorageFull, Store

BIG = "word " + "x" * 9_995  # 10 kB, of which little is to be analysed
OPTIONS = {"durability": "normal"}


@pytest.fixture(params=chosen("memory", "sqlite"))
def store(request, tmp_path):
    with open_at(tmp_path / "store", request.param, clock=ManualClock(1_000), durability="normal") as opened:
        yield opened


def told(lines):
    return [json.loads(line) for line in lines]


def facts(lines):
    return [line["id"] for line in told(lines) if line.get("type") == "fact"]


def test_what_is_written_after_the_start_is_left_out_of_every_space(store):
    for name in ("ann", "bob"):
        store.memory(name).remember("one", id=f"{name} 1")
    lines = store.export_lines()
    first = [next(lines), next(lines)]
    for name in ("ann", "bob", "new"):
        store.memory(name).remember("two", id=f"{name} 2")
    assert facts([*first, *lines]) == ["ann 1", "bob 1"]


def test_what_is_forgotten_meanwhile_is_left_out_and_what_it_superseded_stays_superseded(store):
    memory = store.memory("ann")
    store.memory("first").remember("zero")
    for number in range(3):
        memory.remember(f"version {number}", id=str(number), supersedes=[str(number - 1)] if number else [])
    lines = store.export_lines()
    next(lines)
    memory.forget(ids=["1"])
    found = told(lines)
    assert facts(json.dumps(line) for line in found)[1:] == ["0", "2"]
    links = [(line["newer"], line["older"]) for line in found if line.get("type") == "link"]
    assert links == [(1, 0)]


def test_a_document_that_is_replaced_meanwhile_is_exported_as_replaced(store):
    store.memory("first").remember("zero")
    documents = store.documents("ann")
    documents.put("d", "old words")
    lines = store.export_lines()
    next(lines)
    documents.put("d", "new words")
    assert [line["text"] for line in told(lines) if line.get("type") == "document"] == ["new words"]


def test_a_purge_meanwhile_changes_nothing_for_the_export(store):
    for name in ("ann", "bob", "cem"):
        store.memory(name).remember(f"of {name}", id=name)
    store.memory("ann").remember("gone", id="gone")
    lines = store.export_lines()
    first = [next(lines), next(lines)]
    store.memory("ann").forget(ids=["ann", "gone"])
    store.purge()
    assert facts([*first, *lines]) == ["ann", "gone", "bob", "cem"]


def test_a_space_that_is_gone_meanwhile_is_left_out(store):
    for name in ("ann", "bob", "cem"):
        store.memory(name).remember(f"of {name}", id=name)
    lines = store.export_lines()
    first = [next(lines)]
    store.erase(principal="bob", dry_run=False)
    assert facts([*first, *lines]) == ["ann", "cem"]


def test_writers_and_forgetters_go_on_while_an_export_is_read(store):
    memory = store.memory("ann")
    memory.remember_many([NewFact(text=f"fact {n}", id=str(n)) for n in range(200)])
    failures = []
    stop = threading.Event()

    def write():
        number = 200
        try:
            while not stop.is_set():
                memory.remember(f"fact {number}", id=str(number), supersedes=[str(number - 1)])
                memory.forget(ids=[str(number - 100)])
                number += 1
        except Exception as error:  # noqa: BLE001 - the thread's own; told below
            failures.append(error)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        exports = [list(store.export_lines()) for _ in range(5)]
    finally:
        stop.set()
        thread.join()
    assert failures == []
    for lines in exports:
        with Store.open(":memory:", clock=ManualClock(1_000)) as other:
            report = other.import_(lines)
            assert report.problems == ()
            numbers = sorted(int(id_) for id_ in facts(lines))
            assert numbers[-1] - numbers[0] >= 90
            # What a fact superseded was forgotten at times, never what stands between it and the newest.
            current = [fact.id for fact in other.memory("ann").list(status="current", limit=1_000).items]
            assert str(numbers[-1]) in current


def test_an_export_needs_little_memory_however_large_the_facts_are(tmp_path):
    with Store.open(tmp_path / "store", **OPTIONS) as store:
        memory = store.memory()
        for start in range(0, 3_000, 250):
            memory.remember_many([NewFact(text=f"{n} {BIG}", id=str(n)) for n in range(start, start + 250)])
    with Store.open(tmp_path / "store", **OPTIONS) as store:
        tracemalloc.start()
        try:
            done = store.export(tmp_path / "out.jsonl")
            to_file = tracemalloc.get_traced_memory()[1]
            tracemalloc.reset_peak()
            size = sum(map(len, store.export_lines()))
            streamed = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert done.facts == 3_000
    assert done.size_bytes >= 30_000_000
    assert size >= 30_000_000
    assert max(to_file, streamed) < 15_000_000  # what the log reads at once, and the spool


def test_an_export_to_a_file_is_for_its_owner_and_leaves_nothing_beside_it(store, tmp_path):
    store.memory().remember("one")
    path = tmp_path / "out" / "all.jsonl"
    path.parent.mkdir()
    done = store.export(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert (done.spaces, done.facts, done.size_bytes) == (1, 1, path.stat().st_size)
    assert os.listdir(path.parent) == ["all.jsonl"]
    assert path.read_bytes() == b"".join(store.export_lines())


def test_an_export_writes_over_nothing_unless_told_and_then_whole_or_not_at_all(store, tmp_path, monkeypatch):
    store.memory().remember("one")
    path = tmp_path / "mine"
    path.write_text("mine")
    with pytest.raises(InvalidRequest, match="exists"):
        store.export(path)
    link = tmp_path / "link"
    link.symlink_to(path)
    with pytest.raises(InvalidRequest, match="link"):
        store.export(link, force=True)

    def full(_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(StorageFull):
            store.export(path, force=True)
    assert path.read_text() == "mine"
    assert sorted(entry for entry in os.listdir(tmp_path) if entry not in ("store", "keys")) == [
        "link",
        "mine",
    ]
    store.export(path, force=True)
    assert path.read_text().startswith('{"format":"perdure-export"')


@pytest.mark.parametrize("backend", ["sqlite", "journal"])
@pytest.mark.parametrize("force", [True, False])
def test_no_export_is_written_into_a_store(tmp_path, backend, force):
    place = tmp_path / "store"
    with Store.open(place, backend=backend, **OPTIONS) as store:
        store.memory().remember("one", id="a")
        (tmp_path / "link").symlink_to(place)
        (place / "inner").mkdir()
        before = sorted(os.listdir(place))
        for path in (place / before[0], place / "new", tmp_path / "link" / "new", place / "inner" / "new"):
            with pytest.raises(InvalidRequest, match="within a store") as refused:
                store.export(path, force=force)
            assert refused.value.field == "path"
        with Store.open(":memory:") as other, pytest.raises(InvalidRequest, match="within a store"):
            other.export(place / "new", force=force)
        assert sorted(os.listdir(place)) == before
    with Store.open(place, **OPTIONS) as store:
        assert store.memory().get("a") is not None


@pytest.mark.parametrize("path", [5, None, b"bytes", "", "a\0b", "\udcff"])
def test_what_is_no_path_is_refused_as_such(store, path):
    with pytest.raises(InvalidRequest) as refused:
        store.export(path)
    assert refused.value.field == "path"


def test_what_holds_nothing_cannot_be_asked_for(store):
    store.memory("ann").remember("one")
    with pytest.raises(NotFound, match="of 2 spaces to be exported 1 holds nothing"):
        store.export_lines(spaces=[Namespace("ann"), Namespace("Ann")])
    for spaces in ([], "ann", ["ann"], Namespace("ann")):
        with pytest.raises(InvalidRequest, match="spaces"):
            store.export_lines(spaces=spaces)


def test_a_store_without_a_fact_exports_as_a_file_without_a_space(store):
    assert [line.get("type") for line in told(store.export_lines())] == [None, "total"]


def test_the_progress_of_an_export_is_told_by_spaces(store, tmp_path):
    for name in ("ann", "bob"):
        store.memory(name).remember("one")
    seen = []
    store.export(tmp_path / "out", progress=lambda done, of: seen.append((done, of)))
    assert seen == [(1, 2), (2, 2)]
