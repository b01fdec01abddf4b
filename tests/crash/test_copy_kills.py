"""Processes that copy a store are killed anywhere: the next one goes on, and the copy is the store in the end."""

from __future__ import annotations

import os
import time
from pathlib import Path
from random import Random
from typing import Any

import pytest

from crash.children import Nursery, Tell
from effort import examples
from perdure import ManualClock, Store, copy
from perdure.log import copying
from perdure.log.copying import are_equal
from postgres_server import fresh_address

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked, and this platform has no fork"),
]

NOW = "2026-01-01T00:00:00Z"
KILLS = 10
ALIVE_S = 0.3  # a whole copy takes about as long
YOUNG_S = 0.04  # in which the target is made


def run(tell: Tell, source: str, target: str, told: dict[str, Any]) -> None:
    """Copy a few records at a time, so that there are many moments to be killed at."""
    copying.RECORDS_MAX = 4  # type: ignore[misc]
    tell("copying")
    done = copy(source, target, verify=False, **told)
    tell("copied", done.written)


def live(store: Store, random: Random) -> None:
    memory = store.memory(random.choice(("ann", "bob", "cid")))
    for _ in range(20):
        memory.remember(f"Cup {random.random()} is blue")
    there = [fact.id for fact in memory.list().items]
    memory.forget(ids=random.sample(there, min(3, len(there))))


@pytest.mark.parametrize("kind", ["sqlite", "journal", "postgres"])
def test_a_copy_that_is_killed_anywhere_goes_on_and_ends_equal(tmp_path: Path, kind: str) -> None:
    random = Random(kind)
    target, told = str(tmp_path / "copy"), {"to_backend": kind}
    opened: dict[str, Any] = {}
    if kind == "postgres":
        target, told = fresh_address(), {"to_keystore": str(tmp_path / "keys")}
        opened = {"keystore": tmp_path / "keys"}
    source = tmp_path / "store"
    with Store.open(source, clock=ManualClock(NOW)) as store:
        store.purge()
        for _ in range(4):
            live(store, random)
        store.erase("bob")
    ended = 0
    with Nursery("crash.test_copy_kills") as nursery:
        for kill in range(KILLS * examples(1)):
            child = nursery.start("run", str(source), target, told)
            nursery.await_(child, "copying")
            until = time.monotonic() + random.random() * (YOUNG_S if kill < KILLS / 2 else ALIVE_S)
            while (left := until - time.monotonic()) > 0 and child.status is None:
                nursery.hear(left)
            nursery.kill(child)
            assert not child.failure, child.failure
            ended += child.status == 0
            with Store.open(source, clock=ManualClock(NOW)) as store:
                live(store, random)
    assert ended < KILLS * examples(1)
    copy(source, target, **told)
    with (
        Store.open(source, clock=ManualClock(NOW)) as one,
        Store.open(target, clock=ManualClock(NOW), **opened) as other,
    ):
        assert are_equal(one.log, other.log)
        assert one.events().items == other.events().items
        assert list(other.export_lines()) == list(one.export_lines())
        assert other.verify_events() == ()
