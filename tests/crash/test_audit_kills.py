"""Processes that write, forget and purge are killed at random: no event is lost, and none is told twice."""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from crash.children import Nursery, Tell
from perdure import Store
from perdure.log.sqlite import SqliteLog  # noqa: F401 - imported before the fork, not after it

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked, and this platform has no fork"),
]

KILLS = 24
ALIVE_S = 0.25  # at most; a write takes some milliseconds


def live(tell: Tell, directory: str, name: str, seed: int) -> None:
    """Write, forget, read events and purge until killed."""
    random = Random(seed)
    with Store.open(directory) as store:
        memory = store.memory("ada")
        for turn in range(10_000):
            id_ = f"{name}.{turn}"
            tell("writing", id_)
            memory.remember(f"fact {id_}", id=id_)
            tell("wrote", id_)
            if random.random() < 0.5:
                tell("forgetting", id_)
                memory.forget(ids=[id_])
                tell("forgot", id_)
            if random.random() < 0.2:
                store.purge()
                tell("purged")
            if random.random() < 0.3:
                memory.events(limit=1)


def test_killed_writers_forgetters_and_purgers_lose_no_event_and_double_none(tmp_path: Path) -> None:
    directory, random = tmp_path / "store", Random(20_260)
    said: list[list[str]] = []
    with Nursery("crash.test_audit_kills") as nursery:
        for kill in range(KILLS):
            child = nursery.start("live", str(directory), str(kill), kill)
            nursery.await_(child, "writing" if kill else "purged")  # one purges also where all is slow
            until = time.monotonic() + random.random() * ALIVE_S
            while (left := until - time.monotonic()) > 0:
                nursery.hear(left)
            nursery.kill(child)
            said += child.said
    told = Counter(words[0] for words in said)
    assert told["wrote"] > KILLS
    assert told["forgot"] > 0
    assert told["purged"] > 0
    with Store.open(directory) as store:
        memory = store.memory("ada")
        assert store.verify_events() == ()
        assert store.verify().ok
        there = {fact.id for fact in memory.list(limit=1_000).items}
        for word, kind, acknowledged in (
            ("writing", "created", "wrote"),
            ("forgetting", "forgotten", "forgot"),
        ):
            count = memory.events(type=kind).total
            assert told[acknowledged] <= count <= told[word], kind
        sure = [words[1] for words in said if words[0] == "wrote"]
        for id_ in sure[:: max(1, len(sure) // 60)]:
            types = [event.type for event in memory.events(id=id_).items]
            assert types == (["created"] if id_ in there else ["created", "forgotten"])
        kinds = Counter(event.type for event in store.events(type="gap").items)
        assert kinds == {}
        assert store.events(type="purged").total >= told["purged"]
