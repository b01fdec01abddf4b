"""Opening and closing: what a closed store answers, and what opening refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from perdure import InvalidRequest, ManualClock, Memory, Store, Unavailable
from perdure.log.memory import MemoryLog
from scenarios.stores import BACKENDS, NOW, OpenStore
from unit.space.logs import together

CALLS = {
    "remember": lambda memory: memory.remember("x"),
    "remember_many": lambda memory: memory.remember_many(["x"]),
    "correct": lambda memory: memory.correct("x", id="a"),
    "end": lambda memory: memory.end("a"),
    "retract": lambda memory: memory.retract("a"),
    "annotate": lambda memory: memory.annotate("a", pinned=True),
    "recall": lambda memory: memory.recall("x"),
    "explain": lambda memory: memory.explain("x", "a"),
    "get": lambda memory: memory.get("a"),
    "history": lambda memory: memory.history("a"),
    "list": lambda memory: memory.list(),
    "changes": lambda memory: memory.changes(),
    "forget": lambda memory: memory.forget(all=True),
    "restore": lambda memory: memory.restore(["a"]),
    "unblock": lambda memory: memory.unblock(ids=["a"]),
}


@pytest.mark.parametrize("used", [True, False], ids=["a space that was used", "a space that was not"])
@pytest.mark.parametrize("name", CALLS)
def test_after_close_every_call_says_that_it_is_closed(open_store: OpenStore, name, used):
    store = open_store()
    memory = store.memory()
    if used:
        memory.remember("x", id="a")
    store.close()
    with pytest.raises(Unavailable, match=r"closed.*open it again"):
        CALLS[name](memory)


def test_after_close_the_store_gives_out_nothing_and_closing_twice_is_fine(open_store: OpenStore):
    store = open_store()
    store.memory().remember("x")
    store.close()
    store.close()
    for call in (store.memory, store.documents, store.spaces, store.stats):
        with pytest.raises(Unavailable, match="closed"):
            call()


def test_a_context_closes_also_when_its_body_fails(open_store: OpenStore, tmp_path):
    store = open_store()
    memory = store.memory()
    with pytest.raises(ZeroDivisionError), store:
        1 / 0  # noqa: B018
    with pytest.raises(Unavailable):
        memory.recall("x")
    own = Memory.open(tmp_path / "own")
    own.remember("x")
    with pytest.raises(ZeroDivisionError), own:
        1 / 0  # noqa: B018
    with pytest.raises(Unavailable):
        own.recall("x")


def test_closing_a_memory_of_a_store_leaves_the_store_open(store):
    with store.memory() as memory:
        memory.remember("x")
    assert store.memory().list().total == 1
    assert memory.list().total == 1


def test_closing_from_many_threads_while_others_work_ends_in_answers_or_one_clear_error(
    open_store: OpenStore,
):
    store = open_store()
    memory = store.memory()

    def work(index: int) -> str:
        if index < 2:
            store.close()
            return "closed"
        try:
            for turn in range(50):
                memory.remember(f"{index} {turn}")
                memory.recall("0")
        except Unavailable as error:
            return type(error).__name__
        return "done"

    assert set(together(8, work)) <= {"closed", "done", "Unavailable"}


def test_opening_checks_every_argument(tmp_path: Path):
    clock = ManualClock(NOW)
    for arguments, field in (
        ({}, "path"),
        ({"path": None}, "path"),
        ({"path": 5}, "path"),
        ({"path": b"x"}, "path"),
        ({"path": ""}, "path"),
        ({"secret": b"short"}, "secret"),
        ({"secret": "s" * 32}, "secret"),
        ({"secret": 32}, "secret"),
        ({"durability": "none"}, "durability"),
        ({"durability": None}, "durability"),
        ({"timeout_s": -1}, "timeout_s"),
        ({"timeout_s": float("nan")}, "timeout_s"),
        ({"timeout_s": "5"}, "timeout_s"),
        ({"timeout_s": True}, "timeout_s"),
        ({"memory_bytes": -1}, "memory_bytes"),
        ({"memory_bytes": 1.5}, "memory_bytes"),
        ({"memory_bytes": True}, "memory_bytes"),
        ({"clock": 5}, "clock"),
        ({"clock": "2026-01-01"}, "clock"),
    ):
        for path in (":memory:", tmp_path / "store"):
            told = {"path": path, "clock": clock, **arguments} if arguments else {}
            with pytest.raises(InvalidRequest) as caught:
                Store.open(**told)
            assert caught.value.field == field
    for arguments, field in (
        ({"principal": "x" * 257}, "principal"),
        ({"config": {"defaultK": 5}}, "config"),
    ):
        with pytest.raises(InvalidRequest) as caught:
            Memory.open(tmp_path / "store", **arguments)
        assert caught.value.field == field
    assert not (tmp_path / "store").exists()
    with Store.open(":memory:") as store, pytest.raises(InvalidRequest):
        store.memory(config="explicit")
    with pytest.raises(InvalidRequest):
        Store.open(log=MemoryLog(), secret=b"s" * 32)


def test_a_path_may_be_text_or_a_path_and_memory_is_ephemeral_in_both(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in (":memory:", Path(":memory:")):
        with Memory.open(path) as memory:
            memory.remember("x")
        with Memory.open(path) as memory:
            assert memory.list().total == 0
    assert list(tmp_path.iterdir()) == []
    with Memory.open(str(tmp_path / "kept")) as memory:
        memory.remember("x")
    with Memory.open(tmp_path / "kept") as memory:
        assert memory.list().total == 1


def test_statistics_count_live_facts_of_all_spaces(store):
    assert (store.stats().facts, store.stats().spaces, store.stats().records) == (0, 0, 0)
    store.memory("a").remember_many(["one", "two", "three"])
    store.memory("b").remember("one", id="1")
    store.memory("b").remember("hidden", id="2")
    store.memory("b").forget(ids=["2"], soft=True)
    store.memory("a").forget(text="two")
    stats = store.stats()
    assert (stats.facts, stats.spaces) == (3, 2)
    assert stats.backend in BACKENDS
    assert (stats.size_bytes > 0) == (stats.backend != "memory")
    assert (stats.size_bytes >= stats.reclaimable_bytes > 0) == (stats.backend != "memory")
