"""Uses are counted once, however often and however far an import came before."""

from __future__ import annotations

import pytest

from backends import fresh
from perdure import ManualClock, Namespace
from perdure.log.records import UseRecord
from perdure.space.space import Settings, Space

ANN = Namespace("ann")


def use(store, *numbers, at):
    """Record that facts were used, as the space's own writer does."""
    space = Space(store.log, ANN, Settings("english.v1", 0.9, 0.4), store.clock)
    space.write(lambda draft: draft.add(UseRecord(numbers, b"\x01\x02" * 8, at)))


def uses(store):
    return {fact.id: fact.uses for fact in store.memory("ann").list().items}


@pytest.fixture
def store():
    with fresh(clock=ManualClock(1_000)) as opened:
        yield opened


@pytest.fixture
def source():
    with fresh(clock=ManualClock(1_000)) as opened:
        for name in ("a", "b"):
            opened.memory("ann").remember(f"fact {name}", id=name)
        for numbers, at in (((0,), 1_001), ((0, 1), 1_002), ((1, 1), 1_003), ((0,), 1_004)):
            use(opened, *numbers, at=at)
        yield opened


def test_uses_are_moved_with_their_moments(source, store):
    store.import_(source.export_lines())
    assert uses(store) == uses(source) == {"a": 3, "b": 3}
    moved = store.memory("ann").get("a")
    assert moved == source.memory("ann").get("a")


@pytest.mark.parametrize("cut", range(4, 8))
def test_uses_are_counted_once_when_an_import_goes_on(source, store, cut):
    lines = list(source.export_lines())
    store.import_(lines[:cut], strict=False)
    store.import_(lines)
    assert uses(store) == {"a": 3, "b": 3}
    assert store.import_(lines).created == 0
    assert list(store.export_lines())[1:] == lines[1:]


def test_later_uses_of_the_source_are_added(source, store):
    store.import_(source.export_lines())
    use(source, 1, at=1_005)
    assert store.import_(source.export_lines()).created == 1
    assert uses(store) == {"a": 3, "b": 4}


def test_a_number_is_not_counted_by_a_dry_run(source, store):
    store.import_(source.export_lines())
    use(source, 0, 1, at=1_006)
    assert store.import_(source.export_lines(), dry_run=True).created == 1
    assert uses(store) == {"a": 3, "b": 3}
