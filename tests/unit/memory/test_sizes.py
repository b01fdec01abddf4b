"""`max_bytes`: the results are a beginning of all results, as long as fits, counted in the JSON that is sent."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from perdure import ManualClock, Memory
from perdure.contract.wire import hit_object
from unit.memory.refusals import refused

texts = st.lists(st.sampled_from(["red", "boat", "häuser", "船", '"quoted"', "\u2028"]), min_size=1).map(
    " ".join
)


def sent(hits) -> int:
    """The bytes of the results as a compact array of JSON."""
    told = [hit_object(hit) for hit in hits]
    return len(json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode())


@given(st.lists(texts, min_size=1, max_size=6), st.booleans(), st.integers(0, 60))
@settings(max_examples=examples(24), deadline=None)
def test_the_results_are_the_longest_beginning_that_fits(told, explain, percent):
    with Memory.open(":memory:", clock=ManualClock(0)) as memory:
        for number, text in enumerate(told):
            memory.remember(f"red {text}", id=f"f{number}", event_time=number)
        whole = memory.recall("red boat", explain=explain)
        size = max(2, sent(whole) * 2 * percent // 100)
        found = memory.recall("red boat", explain=explain, max_bytes=size)
        assert found == whole[: len(found)]
        assert sent(found) <= size or not found
        assert found == whole or sent(whole[: len(found) + 1]) > size


def test_a_size_of_exactly_the_results_holds_them_and_one_byte_less_does_not(memory):
    memory.remember("a red boat", id="a")
    size = sent(memory.recall("boat"))
    assert len(memory.recall("boat", max_bytes=size)) == 1
    assert memory.recall("boat", max_bytes=size - 1) == []


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "9", 2**31])
def test_a_size_is_a_whole_number_from_1(memory, value):
    refused(memory, lambda: memory.recall("fact", max_bytes=value), "max_bytes")
