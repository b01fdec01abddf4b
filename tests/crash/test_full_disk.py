"""A full disk: writes say so and change nothing, reads go on, what is to be cleaned is cleaned later."""

import json

import pytest

import forked
from perdure import Memory

resource = pytest.importorskip("resource", reason="limits on files are POSIX")
SIZES = [0, 4, 4096, 20_000, 40_000]


def run(*arguments):
    process = forked.run("from crash.full_disk import main; main()", *arguments, text=True, timeout=120)
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout)


@pytest.fixture
def directory(tmp_path):
    with Memory.open(tmp_path / "store") as memory:
        memory.remember("The kettle is blue", id="kettle")
        memory.remember("saucer " * 4000)
    return tmp_path / "store"


@pytest.mark.parametrize("size", SIZES)
def test_on_a_full_disk_reads_answer_and_writes_say_that_it_is_full(directory, size):
    told = run("use", directory, size)
    assert told.pop("forget") in ("ok", "storage_full")
    assert told == {
        "recall": "ok",
        "list": "ok",
        "remember": "storage_full",
        "recall again": "ok",
        "health": "ok",
        "size": "ok",
        "after": "ok",
        "done": True,
    }
    with Memory.open(directory) as memory:
        assert memory.recall("teapot") == []
        assert len(memory.recall("cup")) == 1


def test_reads_do_not_fail_because_an_erasure_cannot_be_cleaned(directory):
    told = run("pending", directory)
    reads = {told.pop(name) for name in ("head", "read", "get", "spaces", "find", "cache")}
    assert reads == {"ok"}
    assert told == {"scrub": False, "pending": True, "later": [True, False]}


@pytest.mark.parametrize("size", [0, 4, 4096, 20_000, 30_000])
def test_a_store_that_cannot_be_created_for_want_of_room_is_created_later(tmp_path, size):
    assert run("create", tmp_path / "store", size) == {"open": "storage_full", "after": "ok"}


@pytest.mark.parametrize("size", [4, 9000, 20_000, 40_000])
def test_a_purge_or_backup_without_room_changes_nothing_and_works_when_there_is_room(directory, size):
    told = run("rewrite", directory, size)
    noted = told.pop("note")
    assert told.pop("noted") == ([1] if noted == "ok" else [])
    assert told == {
        "purge": "storage_full",
        "epoch": 0,
        "backup": "storage_full",
        "copied": False,
        "cache": "ok",
        "cached": False,
        "recall": "ok",
        "reclaimable": "ok",
        "scrub": True,
        "files": True,
        "later": "ok",
        "purged": "ok",
    }
    for path in (directory, directory.parent / "copy"):
        with Memory.open(path) as memory:
            assert [hit.id for hit in memory.recall("kettle")] == ["kettle"]


@pytest.mark.parametrize("level", ["on", "full"])
@pytest.mark.parametrize(
    ("backend", "size"),
    [("sqlite", 4), ("sqlite", 5_000), ("sqlite", 20_000), ("journal", 4), ("journal", 100)],
)
def test_where_the_audit_has_no_room_only_what_erases_waits_for_it(tmp_path, backend, size, level):
    with Memory.open(tmp_path / "store", backend=backend) as memory:
        memory.remember("The kettle is blue", id="kettle")
    answer = run("audited", tmp_path / "store", size, level)
    for said, what in zip(answer["said"], ["erased", "purged"], strict=True):
        assert said.startswith(f"the audit could not be written, so nothing was {what}: ")
    assert answer["told"] == {
        "recall": 1,
        "stats": "ok",
        "verify": [],
        "events": "storage_full",
        "verify events": 0,
        "export": True,
        "forgotten": ["kettle"],
        "purge": "ok",
        "later": ["created", "forgotten", "purged"],
    }


@pytest.mark.parametrize("size", [4, 4096, 20_000])
def test_an_export_or_import_without_room_leaves_nothing_and_works_when_there_is_room(directory, size):
    assert run("transfer", directory, size) == {
        "export": "storage_full",
        "purge": "storage_full",
        "backup": "storage_full",
        "import": "import_failed",
        "imported": 0,
        "left": ["other", "store", "whole.jsonl"],
        "later": ["ok"] * 5,
        "whole": ["lamp"],
    }
