"""Spaces of one store learn nothing of one another."""

from __future__ import annotations

import pytest

from perdure import Blocked, Conflict, InvalidRequest, ManualClock, NotFound, Store
from scenarios.stores import NOW, ids

NAMES = [
    (None, None),
    ("a", None),
    (None, "a"),
    ("a", "b"),
    ("ab", None),
    ("a/b", None),
    ("A", None),
    ("a ", None),
    ("a%", "_"),
    ("é", None),
    ("e\u0301", None),
    ("3f2a9c1e-7b1d-4e0a-9c55-0d9f6a1b2c3d", "team-alpha"),
    ("x" * 256, "y" * 256),
]


def test_names_are_compared_exactly_and_never_by_prefix(store):
    for n, (principal, scope) in enumerate(NAMES):
        reply = store.memory(principal, scope).remember(f"fact {n}", id="same")
        assert reply.outcome == "created"
    for n, (principal, scope) in enumerate(NAMES):
        memory = store.memory(principal, scope)
        assert [fact.text for fact in memory.list().items] == [f"fact {n}"]
        assert [hit.text for hit in memory.recall("fact")] == [f"fact {n}"]
    named = [(name.principal or None, name.scope or None) for name in store.spaces()]
    assert named == sorted(NAMES, key=lambda name: (name[0] or "", name[1] or ""))
    assert (store.stats().spaces, store.stats().facts) == (len(NAMES), len(NAMES))


def test_a_space_comes_into_being_with_its_first_write_and_not_with_a_read_or_a_refusal(store):
    memory = store.memory("nobody", "nowhere")
    assert memory.recall("x") == []
    assert memory.list().total == 0
    assert memory.changes().items == ()
    assert memory.forget(all=True).forgotten == ()
    with pytest.raises(InvalidRequest):
        memory.remember("")
    with pytest.raises(NotFound):
        memory.end("x")
    assert store.spaces() == []
    memory.remember("x")
    assert [(name.principal, name.scope) for name in store.spaces()] == [("nobody", "nowhere")]


def test_a_name_is_short_text_without_control_characters(store):
    for name in ("x" * 257, "é" * 129, "a\n", "\x00", "\x85", "\ud800", 5, b"a", ["a"], True):
        for field, arguments in (("principal", (name, None)), ("scope", (None, name))):
            for make in (store.memory, store.documents):
                with pytest.raises(InvalidRequest) as caught:
                    make(*arguments)
                assert caught.value.field == field
    assert store.spaces() == []


def test_what_happens_in_one_space_moves_no_score_and_no_answer_of_another(store):
    mine, theirs = store.memory("me"), store.memory("they")
    mine.remember_many(["red apple", "red pear", "green apple"])
    before = mine.recall("red apple", explain=True)
    theirs.remember_many([f"red apple {n}" for n in range(50)])
    theirs.remember("red apple", id=mine.list().items[0].id)
    assert mine.recall("red apple", explain=True) == before
    theirs.forget(all=True)
    assert mine.recall("red apple", explain=True) == before
    mine.remember("red plum")
    assert mine.recall("red apple") != before  # the positive control: one's own facts do move scores


def test_cursors_keys_blocks_and_ids_of_one_space_are_nothing_in_another(store):
    mine, theirs = store.memory("me"), store.memory("they")
    for memory in (mine, theirs):
        memory.remember_many([f"fact {n}" for n in range(5)])
    cursor, feed = mine.list(limit=2).cursor, mine.changes(limit=2).cursor
    assert len(mine.list(limit=2, cursor=cursor).items) == 2
    assert len(mine.changes(feed, limit=2).items) == 2
    with pytest.raises(InvalidRequest):
        theirs.list(limit=2, cursor=cursor)
    with pytest.raises(InvalidRequest):
        theirs.changes(feed, limit=2)

    first = mine.remember("keyed", idempotency_key="key")
    other = theirs.remember("another", idempotency_key="key")
    assert (first.outcome, other.outcome) == ("created", "created")
    with pytest.raises(Conflict):
        mine.remember("another", idempotency_key="key")

    mine.forget(ids=[first.id], block=True)
    with pytest.raises(Blocked):
        mine.remember("keyed")
    assert theirs.remember("keyed").outcome == "created"

    only_mine = mine.remember("mine alone", id="mine")
    assert theirs.get(only_mine.id) is None
    with pytest.raises(NotFound):
        theirs.explain("mine", only_mine.id)
    with pytest.raises(InvalidRequest):
        theirs.remember("later", supersedes=[only_mine.id])
    assert theirs.forget(ids=[only_mine.id]).forgotten == ()
    assert mine.get(only_mine.id) is not None


def test_equal_content_leaves_no_equal_bytes_in_two_spaces_or_stores(tmp_path):
    # What could be compared without the secret: the names that the store gives to spaces and keys.
    cursors = set()
    for n in range(2):
        with Store.open(tmp_path / str(n), clock=ManualClock(NOW)) as store:
            for principal in ("me", "they"):
                memory = store.memory(principal)
                memory.remember_many(["a", "b"])
                cursors.add(memory.list(limit=1).cursor)
    assert len(cursors) == 4


def test_two_handles_of_one_space_are_one_space(store):
    one, other = store.memory("me"), store.memory("me")
    one.remember("fact", id="1")
    assert ids(other.list().items) == ["1"]
    assert other.forget(ids=["1"]).forgotten == ("1",)
    assert one.get("1") is None
