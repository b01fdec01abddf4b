"""A clock is the caller's own object: what it says is checked before anything is written."""

import pytest

from perdure import InvalidRequest, ManualClock, MemoryConfig, Store


class Saying:
    def __init__(self, value):
        self.value = value

    def now(self):
        return self.value


@pytest.mark.parametrize("value", [1.0, True, None, "x", 2**63, 253_402_300_800_000, -62_135_596_800_001])
def test_a_clock_that_says_anything_but_milliseconds_of_the_calendar_writes_nothing(tmp_path, value):
    with Store.open(tmp_path / "s", clock=ManualClock(5)) as store:
        store.memory().remember("a precious fact", id="p")
    with Store.open(tmp_path / "s", clock=Saying(value)) as store:
        with pytest.raises(InvalidRequest, match="clock") as caught:
            store.memory().remember("second", id="q")
        assert caught.value.field == "clock"
    with Store.open(tmp_path / "s", clock=ManualClock(9)) as store:
        assert [fact.id for fact in store.memory().list().items] == ["p"]


def test_a_recency_policy_that_calls_its_memory_is_refused_and_blocks_nobody():

    class Calling:
        basis = "event"
        is_identity = False

        def factor(self, context):
            memory.remember("inside")
            return 1.0

    with Store.open(":memory:") as store:
        memory = store.memory(config=MemoryConfig(recency=Calling()))
        memory.remember("a fact", valid_from=0)
        with pytest.raises(InvalidRequest, match="policy called the memory"):
            memory.recall("fact")
        assert memory.list().total == 1
        assert memory.remember("another fact").created
