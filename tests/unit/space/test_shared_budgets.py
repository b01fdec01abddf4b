"""One budget over the spaces of several stores: each has its answers, and together they take no more than it allows."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from perdure import Busy, InvalidRequest, ManualClock, NewFact, Store
from perdure.log.memory import MemoryLog
from perdure.space.budget import MemoryBudget
from postgres_server import fresh_address
from scenarios.stores import NOW
from unit.space.logs import check_told, together

PATIENCE_S = 20
SECRET = b"s" * 32
STORES, SPACES = 3, 4
FACTS = 100  # enough that what they take is measured when they are there


class Opened:
    """Opens stores of one kind, each of which knows no other, and closes them at the end."""

    def __init__(self, kind: str, directory: Path, closing: ExitStack) -> None:
        self._kind, self._directory, self._closing = kind, directory, closing
        self._address = fresh_address() if kind == "postgres" else ""

    def __call__(self, number: int, memory: int | MemoryBudget) -> Store:
        if self._kind == "postgres":
            keys = self._directory / "keys"
            store = Store.open(self._address, tenant=f"t{number}", keystore=keys, memory_bytes=memory)
        else:
            store = Store.open(self._directory / f"t{number}", memory_bytes=memory)
        return self._closing.enter_context(store)


@pytest.fixture(params=["sqlite", "postgres"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opened]:
    with ExitStack() as closing:
        yield Opened(request.param, tmp_path, closing)


def fill(store: Store, space: str, count: int = FACTS, word: str = "heron") -> None:
    store.memory(space).remember_many([NewFact(text=f"{space} saw {word} {n}") for n in range(count)])


def size_of_one() -> int:
    """Return what a space of FACTS facts takes, about."""
    with Store.open(":memory:") as store:
        fill(store, "m0")
        return store.counters().memory_bytes


def taken(stores: list[Store]) -> int:
    return sum(store.counters().memory_bytes for store in stores)


def test_stores_with_one_budget_take_no_more_than_it_allows_and_answer_as_ever(opened: Opened):
    budget = MemoryBudget(size_of_one() * 5)
    stores = [opened(number, budget) for number in range(STORES)]
    for number, store in enumerate(stores):
        for space in range(SPACES):
            fill(store, f"m{space}", word=f"bird{number}")
            assert budget.bytes_now <= budget.bytes_max
    assert 1 <= sum(store.counters().spaces_loaded for store in stores) < STORES * SPACES
    for _ in range(2):
        for space in range(SPACES):
            for number, store in enumerate(stores):
                memory = store.memory(f"m{space}")
                assert len(memory.recall(f"bird{number}", k=100)) == FACTS
                assert memory.recall(f"bird{(number + 1) % STORES}") == []
                assert budget.bytes_now == taken(stores) <= budget.bytes_max


def test_a_space_makes_room_by_letting_go_of_what_nobody_of_any_store_has_used_for_longest(opened: Opened):
    budget = MemoryBudget(size_of_one() * 5 // 2)
    first, second = opened(0, budget), opened(1, budget)
    fill(first, "old")
    fill(second, "new")
    assert [store.counters().spaces_loaded for store in (first, second)] == [1, 1]
    fill(second, "newer")
    assert [store.counters().spaces_loaded for store in (first, second)] == [0, 2]
    first.memory("old").recall("heron")
    assert [store.counters().spaces_loaded for store in (first, second)] == [1, 1]


def test_a_space_that_cannot_fit_answers_busy_and_names_the_setting_and_no_other_goes_for_its_sake(
    opened: Opened,
):
    ample = opened(0, 1 << 30)
    fill(ample, "large", 1_200)
    ample.close()
    budget = MemoryBudget(size_of_one() * 4)
    tight, other = opened(0, budget), opened(1, budget)
    fill(other, "small")
    before = other.counters()
    for _ in range(2):
        with pytest.raises(Busy, match=rf"memory_bytes allows {budget.bytes_max} .*--memory-bytes"):
            tight.memory("large").recall("heron")
    assert len(other.memory("small").recall("heron", k=100)) == FACTS
    after = other.counters()
    assert (after.spaces_loaded, after.misses) == (before.spaces_loaded, before.misses)
    assert budget.bytes_now == taken([tight, other]) <= budget.bytes_max


def test_a_store_that_is_closed_gives_back_what_it_took(opened: Opened):
    budget = MemoryBudget(1 << 30)
    first, second = opened(0, budget), opened(1, budget)
    fill(first, "m0")
    fill(second, "m0")
    memory = first.memory("m0")
    left = second.counters().memory_bytes
    assert budget.bytes_now > left > 0
    first.close()
    assert budget.bytes_now == left
    assert first.counters().memory_bytes == first.counters().spaces_loaded == 0
    assert memory.config is not None  # a handle of it keeps nothing counted


def test_what_was_erased_is_given_back(opened: Opened):
    budget = MemoryBudget(1 << 30)
    store = opened(0, budget)
    fill(store, "m0")
    assert budget.bytes_now > 0
    store.erase("m0")
    assert budget.bytes_now == store.counters().memory_bytes == 0


@pytest.mark.parametrize("held", [1, 3])
def test_threads_over_many_stores_and_little_room_get_right_answers_and_end(opened: Opened, held: int):
    budget = MemoryBudget(size_of_one() * held)
    stores = [opened(number, budget) for number in range(STORES)]

    def work(index: int) -> None:
        for turn in range(12):
            store = stores[(index + turn) % STORES]
            memory = store.memory(f"m{turn % SPACES}")
            text = f"thread {index} turn {turn}"
            check_told(memory, text)

    together(6, work)
    found = sum(store.memory(f"m{space}").list().total for store in stores for space in range(SPACES))
    assert found == 6 * 12
    assert budget.bytes_now == taken(stores) <= budget.bytes_max


class HeldLog:
    """A log whose whole reads wait until they may go on."""

    is_shared = False

    def __init__(self) -> None:
        self._log = MemoryLog(SECRET)
        self.waits, self.go_on = threading.Event(), threading.Event()
        self.go_on.set()

    def __getattr__(self, name: str) -> object:
        return getattr(self._log, name)

    def read(self, *asked: int) -> object:
        if not self.go_on.is_set():
            self.waits.set()
            assert self.go_on.wait(PATIENCE_S)
        return self._log.read(*asked)


def test_a_space_that_is_being_brought_up_keeps_no_other_store_waiting_and_makes_room_when_it_is():
    clock = ManualClock(NOW)
    held, budget = HeldLog(), MemoryBudget(size_of_one() * 5 // 2)
    writer = Store.open(log=held, clock=clock, audit="off")
    slow = Store.open(log=held, clock=clock, audit="off", memory_bytes=budget)
    quick = Store.open(log=MemoryLog(SECRET), clock=clock, audit="off", memory_bytes=budget)
    with writer, slow, quick:
        fill(slow, "m0")
        fill(writer, "m0", word="crane")
        held.go_on.clear()
        thread = threading.Thread(target=lambda: slow.memory("m0").list(limit=1))
        thread.start()
        assert held.waits.wait(PATIENCE_S)
        for space in ("m0", "m1"):  # there is no room for all, and nobody waits for the one that is read
            fill(quick, space)
            assert len(quick.memory(space).recall("heron", k=100)) == FACTS
        assert [store.counters().spaces_loaded for store in (slow, quick)] == [1, 1]
        assert budget.bytes_now <= budget.bytes_max
        held.go_on.set()
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
        assert [store.counters().spaces_loaded for store in (slow, quick)] == [1, 0]
        assert budget.bytes_now == taken([slow, quick]) <= budget.bytes_max


def test_a_store_by_itself_has_a_budget_of_its_own(tmp_path: Path):
    room = size_of_one() * 3 // 2
    with (
        Store.open(tmp_path / "a", memory_bytes=room) as first,
        Store.open(tmp_path / "b", memory_bytes=room) as second,
    ):
        fill(first, "m0")
        fill(second, "m0")
        assert [store.counters().spaces_loaded for store in (first, second)] == [1, 1]


@pytest.mark.parametrize("bytes_max", [-1, 1.5, True, "1", (1 << 50) + 1])
def test_a_budget_is_a_whole_number_of_bytes(bytes_max: object):
    with pytest.raises(InvalidRequest, match="memory_bytes"):
        MemoryBudget(bytes_max)  # type: ignore[arg-type]
