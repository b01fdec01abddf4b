"""Listing in parts and following changes: nothing twice, nothing left out, whatever happens in between."""

from __future__ import annotations

import base64
from datetime import timedelta
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from perdure import InvalidRequest, ManualClock, Memory, NewFact, Store
from scenarios.stores import NOW, ids
from unit.space.logs import together

ORDERS = ("ingest", "-ingest", "event", "-event", "importance", "-importance", "last_used", "id")


def fill(memory: Memory, clock: ManualClock, count: int = 20) -> None:
    for n in range(count):
        clock.advance(n % 3)
        memory.remember(
            f"fact {n}",
            id=f"{n * 7 % count:03}",
            importance=(None, 0.5, 0.1, 1.0)[n % 4],
            event_time=None if n % 3 else 1000 - n,
            valid_from=None if n % 2 else n,
            tags=["even"] if n % 2 == 0 else [],
            metadata={"a": n % 2, "b": 1},
        )


def pages(memory: Memory, limit: int, **options):
    """Return all items, page by page."""
    found, cursor = [], None
    while True:
        page = memory.list(limit=limit, cursor=cursor, **options)
        found.append(page.items)
        assert page.has_more == (page.cursor is not None)
        if not page.has_more:
            return found
        assert len(page.items) == limit
        cursor = page.cursor


@pytest.mark.parametrize("order", ORDERS)
def test_pages_together_are_the_whole_listing(memory, clock, order):
    fill(memory, clock)
    whole = memory.list(order=order, limit=1000)
    assert (len(whole.items), whole.total, whole.has_more, whole.cursor) == (20, 20, False, None)
    for limit in (1, 3, 19, 20):
        parts = pages(memory, limit, order=order)
        assert tuple(item for part in parts for item in part) == whole.items


def test_each_order_is_what_its_name_says_with_ties_by_arrival(memory, clock):
    fill(memory, clock)
    arrived = memory.list(limit=100).items
    rank = {fact.id: place for place, fact in enumerate(arrived)}
    event = lambda fact: fact.event_time or fact.valid_from or fact.ingest_time  # noqa: E731
    weight = lambda fact: -1 if fact.importance is None else fact.importance  # noqa: E731
    step = timedelta(milliseconds=1)
    keys = {
        "ingest": lambda fact: fact.ingest_time,
        "-ingest": lambda fact: (arrived[0].ingest_time - fact.ingest_time) / step,
        "event": event,
        "-event": lambda fact: (arrived[0].ingest_time - event(fact)) / step,
        "importance": weight,
        "-importance": lambda fact: -weight(fact),
        "last_used": lambda fact: 0,
        "id": lambda fact: fact.id,
    }
    for order in ORDERS:
        expected = sorted(arrived, key=lambda fact, order=order: (keys[order](fact), rank[fact.id]))
        assert ids(memory.list(order=order, limit=100).items) == ids(expected)


@given(st.integers(0, 2**32))
@settings(max_examples=examples(24), deadline=None)
def test_what_comes_and_goes_between_pages_neither_repeats_nor_hides_the_rest(seed):
    random, clock = Random(seed), ManualClock(NOW)
    with Store.open(":memory:", clock=clock) as store:
        memory = store.memory()
        fill(memory, clock, 12)
        order = random.choice(ORDERS)
        stays = {fact.id for fact in memory.list().items}
        seen: list[str] = []
        cursor, more, told = None, True, 0
        while more:
            page = memory.list(order=order, limit=random.randint(1, 4), cursor=cursor)
            seen += ids(page.items)
            cursor, more = page.cursor, page.has_more
            for _ in range(random.randint(0, 2) if told < 20 else 0):
                told += 1
                clock.advance(1)
                memory.remember(f"new {told}", importance=random.random())
            # Also what the cursor stands at may go; it was seen already.
            gone = random.sample(sorted(stays), min(len(stays), random.randint(0, 2)))
            gone += [page.items[-1].id] if page.items and random.random() < 0.5 else []
            memory.forget(ids=gone, soft=random.random() < 0.5)
            stays -= set(gone)
        assert len(seen) == len(set(seen))
        assert stays <= set(seen)


def test_pages_may_be_forgotten_as_they_are_read(memory, clock):
    fill(memory, clock)
    for order in ORDERS:
        cursor, seen = None, []
        while True:
            page = memory.list(order=order, limit=3, cursor=cursor)
            seen += ids(page.items)
            memory.forget(ids=ids(page.items))
            cursor = page.cursor
            if cursor is None:
                break
        assert sorted(seen) == [f"{n:03}" for n in range(20)]
        fill(memory, clock)


def test_a_cursor_goes_on_with_its_own_listing_only(memory, clock):
    fill(memory, clock)
    asked = {
        "filter": {"a": 0, "b": 1},
        "tags": ["even"],
        "status": "current",
        "as_of": "2030-01-01",
        "known_at": "2029-01-01",
        "order": "-event",
    }
    cursor = memory.list(limit=2, **asked).cursor
    first = memory.list(limit=2, **asked, cursor=cursor)
    assert len(first.items) == 2
    same = {**asked, "filter": {"b": 1.0, "a": 0}, "as_of": 1_893_456_000_000, "tags": ["even", "even"]}
    assert memory.list(limit=2, **same, cursor=cursor) == first
    assert len(memory.list(limit=5, **asked, cursor=cursor).items) == 5  # the size of the page may change
    for change in (
        {"filter": {"a": 0}},
        {"filter": None},
        {"tags": None},
        {"status": None},
        {"as_of": None},
        {"as_of": "2031-01-01"},
        {"known_at": None},
        {"order": "event"},
        {"subject": "s"},
        {"entity": "e"},
        {"kind": "semantic"},
        {"status": None, "hidden": True},
    ):
        with pytest.raises(InvalidRequest) as caught:
            memory.list(limit=2, **{**asked, **change}, cursor=cursor)
        assert caught.value.field == "cursor"
    with pytest.raises(InvalidRequest):
        memory.changes(cursor)
    with pytest.raises(InvalidRequest):
        memory.list(cursor=memory.changes().cursor)


def test_no_change_of_a_cursor_makes_another_valid_one(memory, clock):
    fill(memory, clock)
    cursor = memory.list(limit=2, order="id").cursor
    for place in range(0, len(cursor) - 1, 3):
        other = cursor[:place] + ("A" if cursor[place] != "A" else "B") + cursor[place + 1 :]
        with pytest.raises(InvalidRequest):
            memory.list(limit=2, order="id", cursor=other)
    with pytest.raises(InvalidRequest):
        memory.list(limit=2, order="id", cursor=cursor[:-4])


def test_a_cursor_holds_no_readable_id(memory):
    for n in range(3):
        memory.remember(f"fact {n}", id=f"XQZ-canary-{n}" * 20)
    cursor = memory.list(limit=1, order="id").cursor
    raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
    assert b"canary" not in raw
    assert len(raw) > 240  # it does carry the id
    assert len(memory.list(limit=5, order="id", cursor=cursor).items) == 2


def test_a_cursor_works_after_the_store_was_opened_again(open_store, backend, clock):
    if backend == "memory":
        pytest.skip("an ephemeral store is not opened again")
    store = open_store()
    fill(store.memory(), clock)
    whole = store.memory().list(order="id").items
    cursor, feed = store.memory().list(limit=7, order="id").cursor, store.memory().changes(limit=7).cursor
    store.close()
    memory = open_store().memory()
    assert memory.list(order="id", cursor=cursor).items == whole[7:]
    assert len(memory.changes(feed).items) == 13


def follow(memory: Memory, since: str | None, limit: int):
    """Return every change after the cursor, and the cursor to go on with."""
    found = []
    while True:
        part = memory.changes(since, limit=limit)
        found += part.items
        since = part.cursor
        assert len(part.items) <= limit
        if not part.has_more:
            return found, since


def test_changes_are_told_once_in_order_and_again_to_nobody(slots, clock):
    memory = slots
    start = memory.changes().cursor
    memory.remember("a", id="a", subject="s")
    clock.advance(1)
    memory.remember_many([NewFact(text="b", id="b", subject="s"), NewFact(text="c", id="c")])
    memory.end("c", at="2030-01-01")
    memory.retract("c")
    memory.annotate("a", tags=["t"])
    memory.correct("b2", id="b", new_id="b2")
    memory.forget(ids=["c"], soft=True)
    memory.restore(["c"])
    for limit in (1, 2, 100):
        found, cursor = follow(memory, None, limit)
        assert [change.kind for change in found] == [
            "remembered",
            "remembered",
            "remembered",
            "superseded",
            "ended",
            "retracted",
            "annotated",
            "remembered",
            *("superseded", "corrected"),
            "hidden",
            "restored",
        ] or sorted(change.kind for change in found[8:10]) == ["corrected", "superseded"]
        sequences = [change.sequence for change in found]
        assert sequences == sorted(set(sequences))
        assert memory.changes(cursor).items == ()
    assert follow(memory, start, 3)[0] == found

    memory.forget(ids=["a"], block=True)
    later, end = follow(memory, cursor, 1)
    kinds = [change.kind for change in later]
    assert kinds.count("forgotten") == 1
    assert kinds.count("blocked") == 1
    assert all("a" not in change.ids for change in follow(memory, None, 5)[0])
    assert memory.changes(end).items == ()
    assert next(change for change in later if change.kind == "forgotten").count == 1


def test_a_follower_that_reads_while_others_write_misses_nothing(memory):
    def work(index: int):
        if index:
            return [memory.remember(f"{index} {turn}").id for turn in range(20)]
        heard, cursor = [], None
        while len(heard) < 60:
            part = memory.changes(cursor, limit=7)
            heard += [id_ for change in part.items for id_ in change.ids]
            cursor = part.cursor
        return heard

    heard, *told = together(4, work)
    assert sorted(heard) == sorted(id_ for part in told for id_ in part)
    assert len(set(heard)) == 60
