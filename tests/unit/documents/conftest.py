"""Documents on each kind of store."""

from __future__ import annotations

import pytest

from perdure import ManualClock, MemoryConfig, Store


@pytest.fixture
def clock():
    return ManualClock(1_000)


@pytest.fixture(params=["memory", "sqlite"])
def store(request, tmp_path, clock):
    path = ":memory:" if request.param == "memory" else tmp_path / "store"
    with Store.open(path, clock=clock, durability="normal") as opened:
        yield opened


@pytest.fixture
def documents(store):
    return store.documents()


@pytest.fixture
def memory(store):
    return store.memory()


@pytest.fixture
def replacing(store):
    return store.documents(config=MemoryConfig(on_id_conflict="replace"))
