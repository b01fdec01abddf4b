"""The handles that a store gives: one for each memory, for as long as it is the right one."""

from __future__ import annotations

import gc
import weakref

import pytest

from perdure import InvalidRequest, MemoryConfig, Store


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "store") as opened:
        yield opened


def test_the_same_memory_asked_for_again_is_the_same_handle(store):
    config = MemoryConfig(default_k=3)
    assert store.memory("ann") is store.memory("ann")
    assert store.memory("ann", config=config) is store.memory("ann", config=config)
    assert store.memory("ann", "work") is not store.memory("ann")


def test_another_configuration_is_another_handle(store):
    few = store.memory("ann", config=MemoryConfig(default_k=1))
    many = store.memory("ann", config=MemoryConfig(default_k=2))
    for text in ("a red kettle", "a blue kettle", "a green kettle"):
        few.remember(text)
    assert (len(few.recall("kettle")), len(many.recall("kettle"))) == (1, 2)


def test_a_configuration_that_the_store_comes_to_keep_is_followed_and_others_are_refused(store):
    own = MemoryConfig(default_k=1)
    store.memory("ann", config=own)
    store.save_config(MemoryConfig(default_k=2))
    assert store.memory("ann").config.default_k == 2
    with pytest.raises(InvalidRequest) as refused:
        store.memory("ann", config=own)
    assert refused.value.field == "default_k"


def test_a_memory_that_was_erased_is_asked_for_anew_and_its_handle_is_let_go(store):
    memory = store.memory("ann")
    memory.remember("what goes")
    gone = weakref.ref(memory)
    del memory
    store.erase("ann")
    gc.collect()
    assert gone() is None
    assert store.memory("ann").list().total == 0


def test_a_closed_store_gives_no_handle_that_it_made(tmp_path):
    store = Store.open(tmp_path / "store")
    store.memory("ann")
    store.close()
    with pytest.raises(Exception, match="closed"):
        store.memory("ann")
