"""Stores of every backend with their audits, and a clock that stands still until it is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from backends import chosen, open_at
from perdure import ManualClock, Store

NOW = 1_800_000_000_000
SECRET = bytes(range(32))
BACKENDS = chosen("memory", "sqlite", "journal")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW)


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def opened(backend: str, tmp_path: Path, clock: ManualClock) -> Iterator[Callable[..., Store]]:
    """Opens the store of this test, again after it was closed; an ephemeral one anew."""
    stores: list[Store] = []

    def open_store(**how: Any) -> Store:
        stores.append(open_at(tmp_path / "store", backend, clock=clock, secret=SECRET, **how))
        return stores[-1]

    yield open_store
    for store in stores:
        store.close()


@pytest.fixture
def store(opened: Callable[..., Store]) -> Store:
    return opened()
