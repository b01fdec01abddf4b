"""Requests that wait for one another share a transaction, and do what they would have done one by one."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread

import pytest

from perdure import ManualClock, Memory, MemoryConfig, Store
from perdure.policies.supersession import Arrival, Slot, SupersessionDecision


class Gate:
    """A supersession policy that links nothing and keeps the writer turn until it is opened."""

    def __init__(self) -> None:
        self.inside, self.opened = Event(), Event()

    def decide(self, arrival: Arrival, slot: Slot) -> SupersessionDecision:
        self.inside.set()
        assert self.opened.wait(30)
        return SupersessionDecision()


def together(*writes: Callable[[Memory], object]) -> tuple[Store, Memory]:
    """Run writes that queue, most likely in this order, behind one that keeps the turn."""
    gate = Gate()
    store = Store.open(":memory:", clock=ManualClock(100))
    config = MemoryConfig(supersession=gate, on_id_conflict="replace")
    memory = store.memory(config=config)
    memory.remember("alpha", id="a")
    threads = [Thread(target=memory.remember, args=("gate",), kwargs={"subject": "gate"})]
    threads[0].start()
    assert gate.inside.wait(30)
    for write in writes:
        threads.append(Thread(target=write, args=(memory,)))
        threads[-1].start()
        threads[-1].join(0.02)  # it waits behind the gate; were it slower, it would only come later
    gate.opened.set()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    return store, memory


def replace_a(memory: Memory) -> None:
    memory.remember("beta", id="a")


@pytest.mark.parametrize("times", range(2))
def test_a_link_told_just_before_its_target_is_replaced_is_kept(times):
    def supersede_a(memory: Memory) -> None:
        memory.remember("gamma", id="n", supersedes=["a"])

    _, memory = together(supersede_a, replace_a)
    fact = memory.get("a")
    assert fact is not None
    assert (fact.text, fact.superseded_by) == ("beta", ("n",))


@pytest.mark.parametrize(
    "write",
    [
        lambda memory: memory.annotate("a", metadata={"note": "canary"}),
        lambda memory: memory.end("a", at=500, reason="canary"),
        lambda memory: memory.correct("canary", id="a", new_id="c"),
        lambda memory: memory.remember("alpha", id="a", idempotency_key="key"),
        lambda memory: memory.remember("canary", id="c"),
    ],
    ids=["annotate", "end", "correct", "key", "remember"],
)
def test_what_was_said_of_a_fact_just_before_it_is_replaced_leaves_the_log_with_it(write):
    store, memory = together(write, replace_a)
    memory.forget(ids=["c"])
    log = store.log
    entries = [entry for space in log.spaces() for entry in log.read(space, 0, log.head(space).seq)]
    assert not [entry.seq for entry in entries if entry.data is not None and b"canary" in entry.data]
    fact = memory.get("a")
    assert fact is not None
    assert (fact.text, fact.metadata, fact.ends) == ("beta", {}, ())
    reopened = Store.open(log=log, clock=ManualClock(100)).memory()
    assert reopened.list().items == memory.list().items
