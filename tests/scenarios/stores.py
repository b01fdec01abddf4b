"""Fixtures: real stores on every backend, with a clock that stands still."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from backends import chosen, open_at
from perdure import ManualClock, Memory, MemoryConfig, Store
from perdure.log.journal.log import open_journal

NOW = "2026-01-01T00:00:00Z"
NOW_MS = 1_767_225_600_000
DAY_MS = 86_400_000
BACKENDS = chosen("memory", "sqlite")
EVERY_BACKEND = chosen(
    "memory", "sqlite", "journal"
)  # for what is about the log: `backend` is overridden with it

OpenStore = Callable[..., Store]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW)


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def open_store(backend: str, tmp_path: Path, clock: ManualClock) -> Iterator[OpenStore]:
    """Opens stores of one backend: a new ephemeral one, or the same directory again by default."""
    opened: list[Store] = []

    def open_(name: str = "store", **options: Any) -> Store:
        # Without the wait for the disk the trials are quicker; tests/processes keeps it.
        options = {"clock": clock, "durability": "normal", **options}
        if backend == "journal":
            log = open_journal(tmp_path / name, durability=options.pop("durability"))
            store = Store.open(log=log, **options)
        else:
            store = open_at(tmp_path / name, backend, **options)
        opened.append(store)
        return store

    yield open_
    for store in opened:
        store.close()


@pytest.fixture
def store(open_store: OpenStore) -> Store:
    return open_store()


@pytest.fixture
def memory(store: Store) -> Memory:
    return store.memory()


@pytest.fixture
def slots(store: Store) -> Memory:
    """A memory whose facts of one subject replace one another."""
    return store.memory(config=MemoryConfig(supersession="latest-by-subject"))


def texts(found: Any) -> list[str]:
    """The texts of hits or facts, in order."""
    return [one.text for one in found]


def ids(found: Any) -> list[str]:
    """The ids of hits or facts, in order."""
    return [one.id for one in found]
