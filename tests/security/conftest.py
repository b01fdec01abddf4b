"""A server of two tenants, each with its people, for the attacks to begin from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .site import Site


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A root of the tenants a and b."""
    with Site(tmp_path / "stores", tenants=("a", "b")) as served:
        yield served
