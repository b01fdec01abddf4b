"""Which backends the suites run on, and how a store of each is opened at a place of a test's own."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

from perdure import Store
from postgres_server import shared_address

POSTGRES = "postgres"
IN_FILES = ("sqlite", "journal")  # what lies in the directory of a test
TENANT_MAX = 200  # characters of a path's end, which is what differs between the tests of a process


def chosen(*usual: str) -> tuple[str, ...]:
    """Return these backends, or those that PERDURE_TEST_BACKENDS names in their place, with commas between them."""
    told = os.environ.get("PERDURE_TEST_BACKENDS", "")
    return tuple(told.split(",")) if told else usual


def open_at(place: Path, backend: str, **options: Any) -> Store:
    """Open the store of a backend at a place: its files there, or the rows of the tenant of that name.

    One in memory is new each time. That of a database has its keys beside the place.
    """
    if backend == "memory":
        return Store.open(":memory:", **options)
    if backend == POSTGRES:
        options.pop("durability", None)  # the database's own
        return Store.open(shared_address(), **tenant_at(place), **options)
    return Store.open(place, backend=backend, **options)  # type: ignore[arg-type]


def tenant_at(place: Path) -> dict[str, Any]:
    """Return whose rows stand for a place, and where the keys to them are, in a directory that is made."""
    keys = place.parent / "keys"
    keys.mkdir(mode=0o700, parents=True, exist_ok=True)
    return {"tenant": str(place)[-TENANT_MAX:], "keystore": keys}


_fresh = count(1)


@cache
def _directory(own: int) -> Path:
    made = Path(tempfile.mkdtemp(prefix="stores"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


def fresh(usual: str = "memory", **options: Any) -> Store:
    """Open a new store of a backend, or of the first that PERDURE_TEST_BACKENDS names; it goes with the process."""
    return open_at(_directory(os.getpid()) / f"s{next(_fresh)}", chosen(usual)[0], **options)
