"""What a purge leaves as it was, what it ends, and what it does to handles, cursors and receipts."""

from __future__ import annotations

import pytest

from perdure import Blocked, Busy, Conflict, InvalidRequest, MemoryConfig, Namespace, NewFact, NotFound, Store
from perdure.log.memory import MemoryLog
from perdure.planning.certificates import reach_of
from perdure.policies import MaxFacts
from scenarios.stores import EVERY_BACKEND, ids, texts
from unit.memory.refusals import seen
from unit.space.logs import WrappedLog


@pytest.fixture(params=EVERY_BACKEND)
def backend(request):
    return request.param


def shown(memory, documents):
    """What reads show of a space, at several moments; the change feed begins anew with a purge."""
    answers = [memory.list(hidden=True).items, documents.list().items, documents.search("words", k=100)]
    for as_of in (None, 5, 15, "2026-06-01"):
        for known_at in (None, "2026-01-01T00:00:00.005Z"):
            times = {"as_of": as_of, "known_at": known_at}
            facts = memory.list(**times).items
            answers += [facts, memory.recall("words", k=100, history="all", explain=True, **times)]
            answers += [memory.history(fact.id, **times) for fact in facts]
    return answers


def lived_in(memory, documents, clock):
    """Tell a space something of every kind, and forget some of it."""
    for n in range(6):
        clock.advance(1)
        memory.remember(f"words of version {n}", id=f"v{n}", valid_from=n * 10, metadata={"n": n})
        if n:
            memory.remember(f"words over {n}", id=f"o{n}", supersedes=[f"v{n}", f"v{n - 1}"], valid_from=n)
    clock.advance(1)
    memory.annotate("v1", tags=["red"], kind="semantic", importance=0.5)
    memory.annotate("v1", tags=["blue"], pinned=True)
    memory.annotate("v2", metadata={"n": "two"})
    memory.end("v5", at="2026-03-01", reason="it was sold")
    memory.retract("o5", reason="it never was")
    memory.correct("words set right", id="v4", new_id="right")
    memory.forget(ids=["o1"], soft=True)
    memory.forget(ids=["o2"], soft=True)
    memory.restore(["o2"])
    memory.remember("words with much told", id="much", source={"uri": "x:y"}, entities=["Ann"], tags=["t"])
    documents.put("short", "words of a document", metadata={"m": [1, True]})
    documents.put("long", "words and words " * 6000)
    documents.put("long", "other words and words " * 5000)
    documents.put("gone", "words that are deleted")
    documents.delete("gone")
    memory.forget(ids=["v3", "v0"])
    memory.remember("words told last", id="last")
    clock.advance(1)


def test_a_purge_changes_no_answer_at_any_moment_and_keeps_no_more_than_it_needs(open_store, backend, clock):
    store = open_store()
    memory, documents = store.memory(), store.documents()
    lived_in(memory, documents, clock)
    before, records = shown(memory, documents), store.stats().records
    reply = store.purge()
    assert (reply.pending, reply.records + reply.dropped) == (False, records)
    assert reply.dropped > 0
    assert shown(memory, documents) == before
    again = store.purge()
    assert (again.records, again.dropped) == (reply.records, 0)
    assert shown(memory, documents) == before
    assert store.verify().findings == ()
    if backend != "memory":
        store.close()
        store = open_store()
        assert shown(store.memory(), store.documents()) == before


def test_a_purge_of_nothing_is_done_all_the_same(store):
    assert (store.purge().records, store.purge().dropped) == (0, 0)
    assert store.spaces() == []
    store.memory().remember("words")
    reply = store.purge()
    assert (reply.records, reply.dropped, reply.certificate.operation) == (2, 0, "purge")


def test_cursors_from_before_a_purge_are_refused_and_new_ones_hold(store):
    memory, documents = store.memory(), store.documents()
    memory.remember_many([NewFact(text=f"words {n}", id=f"{n}") for n in range(4)])
    memory.forget(ids=["3"])
    pages = {
        "list": lambda cursor: memory.list(limit=1, cursor=cursor),
        "by id": lambda cursor: memory.list(limit=1, order="id", cursor=cursor),
        "changes": lambda cursor: memory.changes(since=cursor, limit=1),
        "documents": lambda cursor: documents.list(limit=1, cursor=cursor),
    }
    cursors = {name: page(None).cursor for name, page in pages.items()}
    for name, page in pages.items():
        assert page(cursors[name]).items  # the control: they hold until the purge
    store.purge()
    for name, page in pages.items():
        with pytest.raises(Conflict) as caught:
            page(cursors[name])
        assert caught.value.kind == "epoch"
        assert page(page(None).cursor).items
    assert [change.kind for change in memory.changes().items] == ["remembered"] * 3


def test_a_follower_of_a_memory_that_is_still_empty_misses_nothing_in_a_store_that_was_purged(store):
    for turn in range(2):
        store.purge()
        memory = store.memory(f"ann {turn}")
        cursor = memory.changes().cursor
        memory.remember("words", id="x")
        assert [change.ids for change in memory.changes(since=cursor).items] == [("x",)]
    cursor = store.memory("bob").changes().cursor
    store.purge()
    with pytest.raises(Conflict):
        store.memory("bob").changes(since=cursor)


def test_receipts_outlive_a_purge_where_all_their_facts_do_and_are_gone_else(store):
    memory = store.memory()
    memory.remember("words before", id="before")
    kept = memory.remember("words kept", id="kept", supersedes=["before"], idempotency_key="kept")
    lost = {"text": "words lost", "id": "lost", "idempotency_key": "lost"}
    memory.remember(**lost)
    both = [NewFact(text="words of two", id="two"), NewFact(text="words of one", id="one")]
    memory.remember_many(both, idempotency_key="both")
    memory.end("kept", at="2027-01-01", idempotency_key="end")
    memory.forget(ids=["nobody"], idempotency_key="forget")
    memory.forget(ids=["lost", "one", "before"])
    for late in (
        lambda: memory.remember(**lost),
        lambda: memory.remember_many(both, idempotency_key="both"),
    ):
        with pytest.raises(NotFound):
            late()
    store.purge()
    before = seen(memory)
    replay = memory.remember("words kept", id="kept", supersedes=["before"], idempotency_key="kept")
    assert (replay.id, replay.outcome, replay.ingest_time) == ("kept", kept.outcome, kept.ingest_time)
    assert memory.end("kept", at="2027-01-01", idempotency_key="end").id == "kept"
    assert memory.forget(ids=["nobody"], idempotency_key="forget").forgotten == ()
    with pytest.raises(Conflict):
        memory.remember("other words", idempotency_key="kept")
    assert seen(memory) == before
    assert memory.remember(**lost).outcome == "created"
    assert memory.remember_many(both, idempotency_key="both")[1].outcome == "created"


def test_blocks_outlive_purges_also_where_nothing_else_is_left_and_can_be_lifted_then(store):
    memory = store.memory("ann")
    memory.remember("The pin is 9", id="pin")
    memory.remember("The code is 8", id="code")
    memory.forget(all=True, block=True)
    memory.unblock(ids=["code"], texts=["the code is 8"])
    for _ in range(2):
        store.purge()
        assert store.spaces() == [Namespace("ann")]
        for told in ({"text": "the  PIN is 9"}, {"text": "other words", "id": "pin"}):
            with pytest.raises(Blocked):
                memory.remember(**told)
    assert memory.remember("The code is 8", id="code").outcome == "created"
    assert memory.unblock(ids=["pin"], texts=["the pin is 9"]) == 2
    store.purge()
    assert memory.unblock(ids=["pin"], texts=["the pin is 9"]) == 0
    assert memory.remember("The pin is 9", id="pin").outcome == "created"


def test_what_was_hidden_can_be_brought_back_after_a_purge(slots, store):
    slots.remember("the first words", id="0", subject="s", valid_from=1)
    slots.remember("words in between", id="1", subject="s", valid_from=2)
    slots.remember("the last words", id="2", subject="s", valid_from=3)
    before = slots.list().items
    slots.forget(ids=["1"], soft=True)
    store.purge()
    assert ids(slots.list(hidden=True).items) == ["1"]
    assert slots.get("0").superseded_by == ("2",)
    assert slots.restore(["1"]) == ("1",)
    assert ids(slots.list().items) == ids(before)
    assert slots.get("0").superseded_by == ("1", "2")
    slots.forget(ids=["1"])
    store.purge()
    assert (slots.list(hidden=True).total, slots.restore(["1"])) == (0, ())


def test_a_memory_of_which_nothing_is_left_is_gone_and_the_handles_of_all_go_on(store):
    names = ["first", "second", "third", "fourth"]
    memories = {name: store.memory(name) for name in names}
    for name, memory in memories.items():
        memory.remember(f"words of the {name}", id="x")
    memories["second"].forget(all=True)
    memories["third"].forget(ids=["x"])
    store.purge()
    assert store.spaces() == [Namespace("first"), Namespace("fourth")]
    assert [memories[name].list().total for name in names] == [1, 0, 0, 1]
    memories["third"].remember("new words of the third", id="y")
    memories["fourth"].remember("more words of the fourth", id="y")
    memories["second"].remember("new words of the second", id="y")
    assert [memories[name].get("y").text.split()[-1] for name in names[1:]] == names[1:]
    assert [texts(memories[name].recall("words", k=9)) for name in ("first", "third")] == [
        ["words of the first"],
        ["new words of the third"],
    ]
    assert memories["first"].get("y") is None
    store.purge()
    assert [memory.list().total for memory in memories.values()] == [1, 1, 1, 2]


def test_the_settings_of_a_memory_outlive_a_purge(store):
    memory = store.memory("ann", config=MemoryConfig(k1=1.5, b=0.1))
    memory.remember("words and words", id="x")
    memory.remember("gone words", id="y")
    memory.forget(ids=["y"])
    before = [hit.score for hit in memory.recall("words")]
    store.purge()
    assert [hit.score for hit in memory.recall("words")] == before
    with pytest.raises(InvalidRequest):
        store.memory("ann", config=MemoryConfig(k1=1.2))


def test_a_forget_purges_when_asked_to_also_where_nothing_matched_and_never_in_a_dry_run(store):
    memory = store.memory()
    for n in range(3):
        memory.remember(f"words {n}", id=f"{n}")
    cursor = memory.changes().cursor
    dry = memory.forget(ids=["0"], purge=True, dry_run=True)
    assert (dry.forgotten, dry.purged, dry.certificate) == (("0",), False, None)
    assert memory.changes(since=cursor).items == ()
    gone = memory.forget(ids=["0"], purge=True)
    assert (gone.forgotten, gone.purged, gone.pending) == (("0",), True, False)
    assert [(step.name, step.done) for step in gone.certificate.steps] == [
        *((name, True) for name in reach_of(store.log).erased),
        ("rewritten", True),
        (reach_of(store.log).overwritten, True),
    ]
    memory.forget(ids=["1"])
    assert store.stats().records > 2
    nothing = memory.forget(ids=["1"], purge=True)
    assert (nothing.forgotten, nothing.purged, nothing.certificate.facts) == ((), True, 0)
    assert store.stats().records == 2  # the space's own, and the fact that is left
    with pytest.raises(InvalidRequest) as caught:
        memory.forget(ids=["2"], purge=True, soft=True)
    assert caught.value.field == "purge"
    assert memory.get("2") is not None


def test_a_forgetting_policy_may_be_carried_out_with_a_purge(store):
    memory = store.memory(config=MemoryConfig(forgetting=MaxFacts(1)))
    for n in range(3):
        memory.remember(f"words {n}", id=f"{n}")
    assert memory.apply_forgetting(purge=True).purged is False  # a preview unless told otherwise
    done = memory.apply_forgetting(dry_run=False, purge=True)
    assert (done.forgotten, done.purged, done.certificate.facts) == (("0", "1"), True, 2)
    assert store.stats().records == 2


def test_a_purge_that_fails_changes_nothing_and_the_next_one_is_done(clock):
    log = WrappedLog(MemoryLog())
    with Store.open(log=log, clock=clock) as store:
        memory, documents = store.memory(), store.documents()
        lived_in(memory, documents, clock)
        before, feed = shown(memory, documents), seen(memory)

        def busy(*_):
            raise Busy("a backup is being made")

        log.purge = busy
        with pytest.raises(Busy):
            store.purge()
        assert (shown(memory, documents), seen(memory)) == (before, feed)
        del log.purge
        assert store.purge().dropped > 0
        assert shown(memory, documents) == before
