"""Documents on each kind of store."""

from __future__ import annotations

import pytest

from backends import chosen, open_at
from perdure import ManualClock, MemoryConfig


@pytest.fixture
def clock():
    return ManualClock(1_000)


@pytest.fixture(params=chosen("memory", "sqlite"))
def store(request, tmp_path, clock):
    with open_at(tmp_path / "store", request.param, clock=clock, durability="normal") as opened:
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
