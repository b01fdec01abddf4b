"""Erasure as people meet it: one person of several, what comes back by itself, and a canary in every place."""

from __future__ import annotations

import io
import json
import unicodedata

import pytest

from erasure.places import REPLACE, open_store
from erasure.scan import holders
from perdure import Blocked, InvalidRequest
from perdure.importers.exporting import export_facts
from perdure.importers.importing import Target, import_entries
from perdure.importers.sources import read_stream

CANARY = "XQZ-canary-7731"


def told_by_everyone(path):
    """A store with two persons, two scopes each, of whom one has a document and a block too."""
    store = open_store(path)
    for person in ("u1", "u2"):
        for scope in ("", "work"):
            memory = store.memory(person, scope)
            memory.remember(f"{person} said this at {scope or 'home'}", id="said")
            memory.remember(f"{person} said more", supersedes=["said"])
    store.documents("u1").put("letter", "a letter of u1")
    store.memory("u1").remember("blocked", id="b")
    store.memory("u1").forget(ids=["b"], block=True)
    return store


def shown(store):
    """Every text of every memory, by its name."""
    return {
        (space.principal, space.scope): sorted(
            document.text for document in store.documents(space.principal, space.scope).list(limit=1000).items
        )
        for space in store.spaces()
    }


def test_erasing_one_person_takes_that_person_and_nobody_else(tmp_path):
    with told_by_everyone(tmp_path / "a") as a, told_by_everyone(tmp_path / "b") as b:
        before, other_store = shown(a), shown(b)
        preview = a.erase("u1", dry_run=True)
        assert [(space.principal, space.scope) for space in preview.spaces] == [("u1", ""), ("u1", "work")]
        assert preview.facts == 5
        assert shown(a) == before
        assert a.erase("nobody").facts == 0
        assert shown(a) == before
        erased = a.erase("u1")
        assert (erased.spaces, erased.facts) == (preview.spaces, preview.facts)
        assert shown(a) == {name: texts for name, texts in before.items() if name[0] != "u1"}
        assert shown(b) == other_store
        assert a.memory("u1").remember("blocked", id="b").created  # the block went along
        assert a.erase("u1", "work").facts == 0


def test_erasing_one_scope_leaves_the_others_of_that_person(tmp_path):
    with told_by_everyone(tmp_path / "a") as store:
        before = shown(store)
        assert store.erase("u1", "work").facts == 2
        assert shown(store) == {name: texts for name, texts in before.items() if name != ("u1", "work")}


def test_a_scope_that_names_nothing_in_particular_is_refused(store):
    memory = store.memory()
    memory.remember("a fact", metadata={"k": 1})
    for scope in ({"matching": {}}, {"filter": {}}, {}, {"text": " "}, {"containing": ""}, {"all": False}):
        with pytest.raises(InvalidRequest):
            memory.forget(**scope)
    with pytest.raises(InvalidRequest):
        store.erase(None)
    assert memory.list().total == 1
    assert memory.forget(all=True).forgotten != ()


@pytest.fixture
def store(tmp_path):
    with open_store(tmp_path / "store") as opened:
        yield opened


TEXT = "Café Zoé keeps the spare key"
SPELLINGS = {
    "the same": TEXT,
    "another case": TEXT.upper(),
    "other spaces": "  " + TEXT.replace(" ", " \n "),
    "decomposed": unicodedata.normalize("NFD", TEXT),
    "full width": TEXT.replace("C", "\uff23"),
}


@pytest.mark.parametrize("purged", [False, True])
def test_what_was_forgotten_with_a_block_comes_back_by_no_way_but_an_explicit_one(store, tmp_path, purged):
    memory = store.memory()
    memory.remember(TEXT, id="key")
    memory.remember("a harmless fact", id="harmless")
    exported = b"".join(json.dumps(told).encode() + b"\n" for told in export_facts(memory))
    memory.forget(ids=["key"], block=True, purge=purged)
    for text in SPELLINGS.values():
        with pytest.raises(Blocked) as refused:
            memory.remember(text)
        assert refused.value.details["reason"] == "tombstone"
        with pytest.raises(Blocked):
            store.documents().put("another", text)
        with pytest.raises(Blocked):
            memory.correct(text, id="harmless")
    entries = list(read_stream(io.BytesIO(exported), "export.jsonl", "jsonl"))
    report = import_entries(entries, Target(store), lenient=True)
    assert (report.stored, report.outcomes) == (0, {"existing": 1})
    assert [TEXT in bad.reason for bad in report.bad] == [False]
    with pytest.raises(Blocked):
        import_entries(entries, Target(store))
    assert holders(tmp_path / "store", TEXT) == {}
    assert memory.unblock(ids=["key"], texts=[TEXT.lower()]) == 2
    assert import_entries(entries, Target(store)).stored == 1
    assert memory.get("key").text == TEXT
    assert "unblocked" in {change.kind for change in memory.changes().items}


def test_a_canary_in_every_field_is_gone_after_one_erasure(tmp_path):
    path = tmp_path / "store"
    with open_store(path) as store:
        memory = store.memory("ann", CANARY)
        memory.remember(
            f"text {CANARY}",
            id=f"id {CANARY}",
            subject=CANARY,
            entities=[CANARY],
            metadata={CANARY: CANARY},
            tags=[CANARY],
            source={"uri": CANARY, "quote": CANARY, "actor": CANARY},
            idempotency_key=CANARY,
        )
        memory.annotate(f"id {CANARY}", tags=[CANARY, "t"], metadata={"k": CANARY})
        memory.end(f"id {CANARY}", at="2027-01-01", reason=CANARY)
        store.memory("ann", CANARY, config=REPLACE).remember(f"replaced {CANARY}", id="r")
        store.memory("ann", CANARY, config=REPLACE).remember("replacing", id="r")
        store.documents("ann", CANARY).put("d", f"document {CANARY}")
        with pytest.raises(InvalidRequest):
            memory.remember(f"refused {CANARY}", supersedes=[CANARY])
        memory.recall(CANARY)
        assert holders(path, CANARY) != {}
        store.memory("somebody else").remember("another fact")
        assert store.erase("ann").pending is False
        assert holders(path, CANARY) == {}
    assert holders(path, CANARY) == {}
    with open_store(path) as store:
        assert [space.principal for space in store.spaces()] == ["somebody else"]
        assert holders(path, CANARY) == {}
