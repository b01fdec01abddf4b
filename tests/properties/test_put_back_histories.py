"""A log that was put back to an earlier moment under stores that are open: they answer as one that was opened since."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from perdure import Conflict, ManualClock, MemoryConfig, Store
from perdure.model.namespace import Namespace
from perdure.space import snapshot
from perdure.space.space import Settings
from perdure.space.space import Space as FactSpace
from properties.memory_run import CONFIGS, Space, everything
from properties.strategies import NOW, calls, scripts
from scenarios.putting_back import PutBackLog

PROCESSES = 2


class Process(Space):
    """A store over a log that others have open too."""

    def __init__(self, log: PutBackLog, clock: ManualClock, config: MemoryConfig) -> None:
        self.clock = clock
        self.store = Store.open(log=log, clock=clock, audit="off")
        self.memory = self.store.memory(config=config)


def answers(process: Process) -> Any:
    documents = process.store.documents()
    return everything(process.memory), documents.list(limit=1_000).items, process.store.stats()


def keep_snapshot(process: Process) -> None:
    """Keep a snapshot of what the process has in memory, however small that is."""
    usual = MemoryConfig()
    config = Settings(usual.profile, usual.k1, usual.b)
    log = process.store.log
    number = log.find_space(FactSpace(log, Namespace(), config, process.clock).name)
    if number is not None:
        probe = process.store._registry.space(Namespace(), config)
        log.put_cache(number, snapshot.NAME, probe.read(lambda state, _: snapshot.cached_state(state)))


step = st.one_of(
    st.tuples(st.just("call"), st.integers(0, PROCESSES - 1), calls()),
    st.tuples(st.just("call"), st.integers(0, PROCESSES - 1), calls()),
    st.tuples(st.just("put back"), st.floats(0, 1), st.none()),
    st.tuples(st.just("look"), st.integers(0, PROCESSES - 1), st.none()),
    st.tuples(st.just("snapshot"), st.integers(0, PROCESSES - 1), st.none()),
    st.tuples(st.just("purge"), st.integers(0, PROCESSES - 1), st.none()),
)


def run(config: MemoryConfig, planted: list[Any], steps: list[Any]) -> None:
    log, clock = PutBackLog(), ManualClock(NOW)
    processes = [Process(log, clock, config) for _ in range(PROCESSES)]
    copies = [log.copy()]
    for call in planted:
        processes[0].run(call)
        copies.append(log.copy())
    for kind, which, call in steps:
        if kind == "put back":
            log.put_back(copies[int(which * (len(copies) - 1))])
        elif kind == "look":
            fresh = Process(log, clock, config)
            assert answers(processes[which]) == answers(fresh)
        elif kind == "snapshot":
            keep_snapshot(processes[which])
        elif kind == "purge":
            processes[which].store.purge()
        else:
            alone = PutBackLog()
            alone.put_back(log.copy())
            expected = Process(alone, clock, config)
            before = clock.now()
            reply, told = processes[which].run(call), None
            if clock.now() == before:
                told = expected.run(call)
                assert type(reply) is type(told)
                assert log.copy() == alone.copy(), "a write plans on what the log holds"
        copies.append(log.copy())
    for process in processes:
        assert answers(process) == answers(Process(log, clock, config))


@given(st.sampled_from(CONFIGS), scripts(max_size=8), st.lists(step, max_size=24))
@settings(max_examples=examples(60), deadline=None)
def test_every_process_answers_and_writes_as_one_that_was_opened_after_the_log_was_put_back(
    config, planted, steps
):
    run(config, planted, steps)


@pytest.mark.parametrize("erased", [None, "the first", "kept 0"])
@pytest.mark.parametrize("since", range(1, 7))
def test_as_many_other_writes_as_were_lost_are_told_apart_from_them(since, erased):
    log, clock = PutBackLog(), ManualClock(NOW)
    one, other = (Process(log, clock, CONFIGS[0]) for _ in range(PROCESSES))
    one.memory.remember("the first", id="the first")
    copy = log.copy()
    for number in range(3):
        one.memory.remember(f"lost {number}", id=f"lost {number}")
    assert len(other.memory.list().items) == 4
    log.put_back(copy)
    third = Process(log, clock, CONFIGS[0])
    expected = ["the first"]
    for number in range(since):
        expected.append(third.memory.remember(f"kept {number}", id=f"kept {number}").id)
    if erased is not None:
        third.memory.forget(ids=[erased])
        expected.remove(erased)
    for process in (one, other):
        assert sorted(fact.text for fact in process.memory.list().items) == sorted(expected)
        assert process.memory.get("lost 0") is None
        assert answers(process) == answers(third)


def test_whoever_follows_the_changes_is_told_to_start_over_where_what_he_saw_is_no_more():
    log, clock = PutBackLog(), ManualClock(NOW)
    process = Process(log, clock, CONFIGS[0])
    process.memory.remember("the first", id="first")
    kept = process.memory.changes().cursor
    copy = log.copy()
    process.memory.remember("lost", id="lost")
    lost = process.memory.changes().cursor
    for told in ([], ["other"], ["other", "another"]):
        log.put_back(copy)
        for text in told:
            process.memory.remember(text, id=text)
        assert [change.ids for change in process.memory.changes(kept).items] == [(text,) for text in told]
        with pytest.raises(Conflict) as refused:
            process.memory.changes(lost)
        assert refused.value.kind == "epoch"
    log.put_back(copy)
    process.memory.remember("lost", id="lost")
    process.memory.remember("more", id="more")
    assert [change.ids for change in process.memory.changes(lost).items] == [("more",)]
    cursor = process.memory.changes().cursor
    process.memory.forget(ids=["more"])
    assert [change.kind for change in process.memory.changes(cursor).items] == ["forgotten"]
