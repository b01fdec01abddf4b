"""A space that is opened again, from a snapshot or from its records, answers as it did before."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest

from perdure import ManualClock, Memory, MemoryConfig, NewFact, Store
from scenarios.stores import NOW

SLOTS = MemoryConfig(supersession="latest-by-subject", on_id_conflict="replace", ranking="relevance")
MANY = 1_200  # enough for a snapshot to be kept


def told(n: int, random: Random) -> NewFact:
    return NewFact(
        text=f"fact {n} of colour {random.choice(['red', 'blue', 'green'])} number {n % 17}",
        id=f"{n}",
        subject=f"subject {n % 40}" if n % 3 else None,
        entities=[f"entity {n % 5}"],
        metadata={"mod": n % 7, "n": n},
        event_time=n if n % 4 == 0 else None,
        valid_from=random.randint(0, 1000) if n % 2 else None,
        valid_to=2000 if n % 10 == 0 else None,
        tags=[f"tag{n % 6}"] if n % 5 else [],
        kind="semantic" if n % 8 == 0 else None,
        importance=n % 11 / 10,
        pinned=n % 13 == 0,
        source={"uri": "u", "position": n} if n % 9 == 0 else None,
    )


def live(memory: Memory, clock: ManualClock, random: Random, names: range) -> None:
    """Use everything that a memory offers."""
    memory.remember_many([told(n, random) for n in names])
    some = [f"{n}" for n in random.sample(names, len(names) // 10)]
    for turn, id_ in enumerate(some):
        clock.advance(1)
        if memory.get(id_) is None:
            continue
        if turn % 6 == 0:
            memory.forget(ids=[id_], block=turn % 12 == 0)
        elif turn % 6 == 1:
            memory.forget(ids=[id_], soft=True, idempotency_key=f"hide {id_}")
        elif turn % 6 == 2:
            memory.correct(f"corrected {id_}", id=id_, new_id=f"{id_} corrected")
        elif turn % 6 == 3:
            memory.end(id_, reason="over") if memory.get(id_).valid_to is None else memory.retract(id_)
        elif turn % 6 == 4:
            memory.annotate(id_, tags=["noted"], metadata={"mod": 3})
        else:
            memory.remember(f"replaced {id_}", id=id_, subject="subject 1")
    hidden = [fact.id for fact in memory.list(hidden=True, limit=4).items]
    memory.restore(hidden[:2])


def everything(memory: Memory) -> list[Any]:
    ask = [
        lambda: memory.remember("keyed", idempotency_key="key"),
        *(
            lambda q=q: memory.recall(q, k=50, explain=True)
            for q in ("red number 3", "fact", "corrected", "noted")
        ),
        *(lambda h=h: memory.recall("colour green", k=200, history=h) for h in ("all", "historical")),
        lambda: memory.recall("blue", as_of=500, k=100),
        lambda: memory.recall("blue", known_at=NOW, k=100),
        lambda: memory.recall("blue", subject="subject 1", tags=["tag1"]),
        lambda: memory.recall("red", filter={"mod": 3}, entity="entity 2", kind="semantic"),
        lambda: memory.list(limit=1000, order="event"),
        lambda: memory.list(limit=1000, order="-importance", status="superseded"),
        lambda: memory.list(limit=1000, hidden=True),
        lambda: memory.changes(limit=1000),
        *(lambda n=n: memory.history(f"{n}") for n in range(0, 40, 3)),
    ]
    return [call() for call in ask]


@pytest.fixture
def open_again(tmp_path: Path) -> Callable[..., Store]:
    return lambda clock, **options: Store.open(tmp_path / "s", clock=clock, durability="normal", **options)


@pytest.mark.parametrize("count", [60, MANY], ids=["from its records", "from a snapshot"])
def test_every_answer_is_the_same_after_opening_again(open_again, count):
    clock, random = ManualClock(NOW), Random(count)
    with open_again(clock) as store:
        memory = store.memory(config=SLOTS)
        live(memory, clock, random, range(count))
        before = everything(memory)
    for _ in range(2):
        with open_again(clock) as store:
            assert everything(store.memory(config=SLOTS)) == before


def test_what_is_written_beyond_a_snapshot_is_there_too_and_what_was_erased_is_not(open_again):
    clock, random = ManualClock(NOW), Random(5)
    with open_again(clock) as store:
        live(store.memory(config=SLOTS), clock, random, range(MANY))
    with open_again(clock) as store, closing(open_again(clock)) as beside:
        memory, other = store.memory(config=SLOTS), beside.memory(config=SLOTS)
        memory.recall("red")
        other.remember_many([told(n, random) for n in range(MANY, MANY + 30)])
        other.forget(subject="subject 1")
        live(memory, clock, random, range(MANY + 30, MANY + 60))
        before = everything(memory)
        assert everything(other) == before
    with open_again(clock) as store:
        memory = store.memory(config=SLOTS)
        assert everything(memory) == before
