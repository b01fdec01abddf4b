"""Observers hear of exactly what was durably written, and can disturb nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from perdure import Fact, InvalidRequest, Memory, MemoryConfig, Status
from properties.memory_run import CONFIGS, Space, everything, listed, shown
from properties.strategies import scripts

configs = st.sampled_from(CONFIGS)


class Notes:
    """Writes down what it hears."""

    def __init__(self) -> None:
        self.heard: list[Any] = []

    def remembered(self, fact: Fact) -> None:
        self.heard.append(fact)

    def forgotten(self, ids: Sequence[str]) -> None:
        self.heard.append(tuple(ids))

    def take(self) -> list[Any]:
        heard, self.heard = self.heard, []
        return heard


class Broken:
    def remembered(self, fact: Fact) -> None:
        raise RuntimeError("remembered")

    def forgotten(self, ids: Sequence[str]) -> None:
        raise KeyError("forgotten")


def held(space: Space) -> dict[str, Fact]:
    """Every stored fact without what its links make of it."""
    facts = (*listed(space.memory), *listed(space.memory, hidden=True))
    alone = {"supersedes": (), "superseded_by": (), "status": Status.CURRENT}
    return {fact.id: msgspec.structs.replace(fact, **alone) for fact in facts}


@given(configs, scripts())
@settings(max_examples=examples(24), deadline=None)
def test_what_observers_hear_is_the_difference_that_each_call_makes(config, script):
    notes = Notes()
    space = Space(config.replace(observers=(Broken(), notes)))
    for call in script:
        before = held(space)
        space.run(call)
        after, heard = held(space), notes.take()
        remembered = [fact.id for fact in heard if isinstance(fact, Fact)]
        forgotten = [ids for ids in heard if isinstance(ids, tuple)]
        # Annotating and restoring change what is shown of a fact, but neither stores nor removes one.
        told = call[0] in ("remember", "remember_many", "correct")
        new = [id_ for id_, fact in after.items() if before.get(id_) != fact]
        gone = [id_ for id_ in before if id_ not in after or (after[id_].hidden and not before[id_].hidden)]
        assert sorted(remembered) == (sorted(new) if told else [])
        assert forgotten == ([tuple(sorted(gone))] if gone and call[0] == "forget" else [])


@given(configs, scripts())
@settings(max_examples=examples(16), deadline=None)
def test_a_failing_observer_changes_nothing(config, script):
    quiet, disturbed = Space(config), Space(config.replace(observers=(Broken(),)))
    for call in script:
        one, other = quiet.run(call), disturbed.run(call)
        assert shown_reply(one) == shown_reply(other)
    assert everything(quiet.memory) == everything(disturbed.memory)


def shown_reply(reply: Any) -> Any:
    return shown(reply) if isinstance(reply, Fact) else reply


def test_a_batch_is_heard_in_list_order_and_a_retry_not_at_all():
    notes = Notes()
    memory = Space(MemoryConfig(observers=(notes,))).memory
    facts = [{"text": f"alpha {id_}", "id": id_} for id_ in "cab"]
    memory.remember_many(facts)
    assert [fact.id for fact in notes.take()] == ["c", "a", "b"]
    memory.remember_many([*facts, {"text": "delta", "id": "d"}])
    assert [fact.id for fact in notes.take()] == ["d"]


def test_a_replayed_key_is_not_heard():
    notes = Notes()
    memory = Space(MemoryConfig(observers=(notes,))).memory
    memory.remember("alpha", id="a")
    memory.remember("beta", id="b")
    notes.take()
    for _ in range(2):
        memory.correct("gamma", id="a", new_id="g", idempotency_key="correct")
        memory.forget(ids=["b"], soft=True, idempotency_key="hide")
    corrected, hidden = notes.take()
    assert (corrected.id, hidden) == ("g", ("b",))


def test_a_dry_run_is_not_heard():
    notes = Notes()
    memory = Space(MemoryConfig(observers=(notes,))).memory
    memory.remember("alpha", id="a")
    notes.take()
    memory.forget(ids=["a"], dry_run=True)
    memory.forget(ids=["nobody"])
    assert notes.take() == []


class Reader:
    """Reads the memory that it observes, and tries to write to it."""

    def __init__(self) -> None:
        self.memory: Memory | None = None
        self.read: list[tuple[str, ...]] = []
        self.refused = 0

    def remembered(self, fact: Fact) -> None:
        assert self.memory is not None
        self.read.append(tuple(hit.id for hit in self.memory.recall("alpha")))
        for write in (
            lambda memory: memory.remember("more", id="more"),
            lambda memory: memory.forget(ids=[fact.id]),
            lambda memory: memory.annotate(fact.id, pinned=True),
        ):
            with pytest.raises(InvalidRequest):
                write(self.memory)
            self.refused += 1

    def forgotten(self, ids: Sequence[str]) -> None:
        raise AssertionError("nothing was forgotten")


def test_an_observer_may_read_what_was_written_and_its_own_writes_are_refused():
    reader = Reader()
    memory = Space(MemoryConfig(observers=(reader,))).memory
    reader.memory = memory
    memory.remember("alpha", id="a")
    memory.remember("alpha too", id="b")
    assert reader.read == [("a",), ("a", "b")]
    assert reader.refused == 6
    assert [fact.id for fact in listed(memory)] == ["a", "b"]
    assert memory.remember("more").created, "refusing ends with the call"
