"""A space that holds a record of a newer format is refused whole, the store's other spaces are not."""

from __future__ import annotations

from hashlib import blake2b

import pytest

from perdure import Namespace, Store, SystemClock, Unavailable
from perdure.log.memory import MemoryLog
from perdure.log.protocol import Batch
from perdure.log.sqlite import SqliteLog

LATER = bytes([9]) + b"\x91\x01"  # a record of format 9, whatever it says

READS = {
    "recall": lambda memory: memory.recall("kettle"),
    "explain": lambda memory: memory.explain("kettle", "kettle"),
    "get": lambda memory: memory.get("kettle"),
    "get of nobody": lambda memory: memory.get("nobody"),
    "history": lambda memory: memory.history("kettle"),
    "list": lambda memory: memory.list(),
    "changes": lambda memory: memory.changes(),
    "dry forget": lambda memory: memory.forget(all=True, dry_run=True),
    "dry maintenance": lambda memory: memory.apply_forgetting(),
}
WRITES = {
    "remember": lambda memory: memory.remember("A cup"),
    "remember many": lambda memory: memory.remember_many(["A cup", "A saucer"]),
    "existing": lambda memory: memory.remember("The kettle is blue", id="kettle"),
    "correct": lambda memory: memory.correct("The kettle is red", id="kettle"),
    "end": lambda memory: memory.end("kettle"),
    "retract": lambda memory: memory.retract("kettle"),
    "annotate": lambda memory: memory.annotate("kettle", pinned=True),
    "forget": lambda memory: memory.forget(ids=["kettle"]),
    "forget all": lambda memory: memory.forget(all=True),
    "hide": lambda memory: memory.forget(ids=["kettle"], soft=True),
    "restore": lambda memory: memory.restore(["kettle"]),
    "unblock": lambda memory: memory.unblock(ids=["kettle"]),
    "consolidate": lambda memory: memory.consolidate(dry_run=False),
}
CALLS = {**READS, **WRITES}


def fill(log):
    """Write two spaces, then, as a later build would, a record into the second."""
    with Store(log, clock=SystemClock()) as store:
        store.memory("ada").remember("The kettle is blue", id="kettle")
        store.memory("bob").remember("The kettle is blue", id="kettle")
        later(store.log)


def later(log):
    log.append(2, log.head(2), Batch(records=[LATER]))


@pytest.fixture
def directory(tmp_path):
    fill(SqliteLog.open(tmp_path / "store"))
    return tmp_path / "store"


def hashes(directory):
    """Return the digest of every file but the one of shared memory, which is no part of the store."""
    return {
        path.name: blake2b(path.read_bytes()).hexdigest()
        for path in directory.iterdir()
        if path.is_file()
        if not path.name.endswith("-shm")
    }


@pytest.mark.parametrize("name", CALLS)
def test_every_call_on_a_space_with_a_later_record_says_which_format_it_needs(directory, name):
    before = hashes(directory)
    with Store.open(directory) as store:
        for _ in range(2):
            with pytest.raises(Unavailable, match=r"space 2 needs record format 9, .* newer build"):
                CALLS[name](store.memory("bob"))
    assert hashes(directory) == before


@pytest.mark.parametrize("name", CALLS)
def test_a_later_record_that_comes_while_the_store_is_open_refuses_the_space(tmp_path, name):
    with Store.open(tmp_path / "store") as store, Store.open(tmp_path / "store") as newer:
        store.memory("ada").remember("The kettle is blue", id="kettle")
        memory = store.memory("bob")
        memory.remember("The kettle is blue", id="kettle")
        assert len(memory.recall("kettle")) == 1
        later(newer.log)
        for _ in range(2):
            with pytest.raises(Unavailable, match="record format 9"):
                CALLS[name](memory)
        assert len(store.memory("ada").recall("kettle")) == 1
        assert newer.log.head(2).seq == store.log.head(2).seq == 3


def test_documents_of_a_space_with_a_later_record_are_refused(directory):
    with Store.open(directory) as store:
        documents = store.documents("bob")
        for call in (
            lambda: documents.put("guide", "boil water"),
            lambda: documents.get("guide"),
            lambda: documents.search("water"),
            lambda: documents.delete("kettle"),
            documents.list,
        ):
            with pytest.raises(Unavailable, match="record format 9"):
                call()


def test_the_other_spaces_are_read_and_written_as_ever(directory):
    with Store.open(directory) as store:
        memory = store.memory("ada")
        assert [hit.id for hit in memory.recall("kettle")] == ["kettle"]
        memory.remember("A cup", id="cup")
        memory.correct("The kettle is red", id="kettle")
        assert memory.forget(ids=["cup"]).forgotten == ("cup",)
    with Store.open(directory) as store:
        assert [hit.text for hit in store.memory("ada").recall("kettle")] == ["The kettle is red"]


def test_the_store_tells_its_spaces_and_its_health_and_says_which_space_it_cannot_measure(directory):
    with Store.open(directory) as store:
        assert [name.principal for name in store.spaces()] == ["ada", "bob"]
        assert store.health().status == "ok"
        with pytest.raises(Unavailable, match="space 2 needs record format 9"):
            store.stats()


def test_a_memory_without_files_refuses_a_later_record_too():
    log = MemoryLog()
    store = Store(log, clock=SystemClock())
    store.memory("ada").remember("The kettle is blue", id="kettle")
    store.memory("bob").remember("The kettle is blue", id="kettle")
    later(log)
    with pytest.raises(Unavailable, match="record format 9"):
        store.memory("bob").recall("kettle")
    assert len(store.memory("ada").recall("kettle")) == 1


def contents(log):
    return [(log.head(space), list(log.read(space, 0, log.head(space).seq))) for space in log.spaces()]


def test_no_purge_is_made_of_a_store_with_a_later_record(directory):
    names = set(hashes(directory))
    with Store.open(directory) as store:
        before = contents(store.log)
        with pytest.raises(Unavailable, match="space 2 needs record format 9"):
            store.purge()
        assert contents(store.log) == before
        assert not store.log.scrub_pending()
    assert set(hashes(directory)) - names == {"backup.lock"}  # it keeps backups and purges apart


def test_a_forget_of_another_space_that_cannot_purge_is_done_and_certified(directory):
    with Store.open(directory) as store:
        with pytest.raises(Unavailable, match="space 2 needs record format 9") as caught:
            store.memory("ada").forget(ids=["kettle"], purge=True)
        assert caught.value.details["certificate"]["pending"]
        assert store.memory("ada").get("kettle") is None
        assert store.memory("ada").forget(ids=["kettle"]).pending is False


def test_another_memory_can_be_erased_but_for_the_purge(directory):
    with Store.open(directory) as store:
        with pytest.raises(Unavailable, match="space 2 needs record format 9"):
            store.erase("ada")
        assert [name.principal for name in store.spaces()] == ["bob"]
        with pytest.raises(Unavailable, match="space 2 needs record format 9"):
            store.erase("bob")
        assert [name.principal for name in store.spaces()] == ["bob"]


def test_a_verification_names_the_space_with_a_later_record(directory):
    with Store.open(directory) as store:
        found = store.verify()
    assert any(finding.space == 2 and "format 9" in finding.message for finding in found.findings)


def test_a_backup_keeps_a_later_record(directory, tmp_path):
    with Store.open(directory) as store:
        store.backup(tmp_path / "copy")
    with Store.open(tmp_path / "copy") as store, pytest.raises(Unavailable, match="record format 9"):
        store.memory("bob").list()


def test_an_export_of_a_space_with_a_later_record_writes_no_file_and_one_of_the_others_is_whole(
    directory, tmp_path
):
    with Store.open(directory) as store:
        with pytest.raises(Unavailable, match="space 2 needs record format 9"):
            store.export(tmp_path / "all.jsonl")
        assert not (tmp_path / "all.jsonl").exists()
        store.export(tmp_path / "ada.jsonl", spaces=[Namespace("ada", "")])
    with Store.open(":memory:") as other:
        other.import_(tmp_path / "ada.jsonl")
        assert other.memory("ada").get("kettle") is not None
