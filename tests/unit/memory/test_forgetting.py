"""What each scope of forget means, and that what is gone is gone from every read at once."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from perdure import ManualClock, Memory, NewFact, NotFound, Store
from perdure.base.text import folded, folded_space
from scenarios.stores import NOW, NOW_MS, ids
from unit.memory.refusals import seen

TEXTS = ["red apple", "Red  Apple", "red apple pie", "RÉD", "re\u0301d apple", "plum"]
SUBJECTS = [None, "s", "S", "s "]
ENTITIES = [(), ("e",), ("e", "f"), ("E",)]
TAGS = [(), ("t",), ("t", "u")]
KINDS = [None, "semantic", "episodic"]
TIMES = [None, 0, 5, NOW_MS + 1]
METADATA = [None, {"k": 1}, {"k": 1.0, "l": 2}, {"k": True}, {"k": None}, {"l": 2}]

facts = st.builds(
    NewFact,
    text=st.sampled_from(TEXTS),
    subject=st.sampled_from(SUBJECTS),
    entities=st.sampled_from(ENTITIES),
    tags=st.sampled_from(TAGS),
    kind=st.sampled_from(KINDS),
    event_time=st.sampled_from(TIMES),
    valid_from=st.sampled_from(TIMES),
    metadata=st.sampled_from(METADATA),
)


def matches(fact, wanted: dict) -> bool:
    """Whether the metadata has every wanted key with a value of the same type class and value."""
    return all(
        key in fact.metadata
        and fact.metadata[key] == value
        and isinstance(fact.metadata[key], bool) == isinstance(value, bool)
        for key, value in wanted.items()
    )


def happened(fact) -> int:
    moment = fact.event_time or fact.valid_from or fact.ingest_time
    return round(moment.timestamp() * 1000)


SCOPES = [
    *(({"subject": s}, lambda fact, s=s: fact.subject == s) for s in ("s", "S", "s ", "t")),
    *(({"entity": e}, lambda fact, e=e: e in fact.entities) for e in ("e", "f", "E", "g")),
    *(({"tag": t}, lambda fact, t=t: t in fact.tags) for t in ("t", "u", "T")),
    *(({"kind": k}, lambda fact, k=k: fact.kind == k) for k in ("semantic", "episodic", "working")),
    *(({"matching": m}, lambda fact, m=m: matches(fact, m)) for m in METADATA if m),
    *(({"filter": m}, lambda fact, m=m: matches(fact, m)) for m in METADATA if m),
    *(
        ({"text": t}, lambda fact, t=t: folded_space(fact.text) == folded_space(t))
        for t in ("red apple", " red\napple ", "Red Apple", "red")
    ),
    *(
        ({"containing": p}, lambda fact, p=p: folded(p) in folded(fact.text))
        for p in ("RED", "apple", "réd a", "x")
    ),
    *(
        ({"ingested_before": t}, lambda fact, t=t: fact.ingest_time.timestamp() * 1000 < t)
        for t in (NOW_MS, NOW_MS + 1, NOW_MS + 3)
    ),
    *(
        ({"event_before": t}, lambda fact, t=t: happened(fact) < t)
        for t in (0, 1, 5, 6, NOW_MS + 1, NOW_MS + 2)
    ),
    ({"all": True}, lambda fact: True),
    ({"ids": ["0", "2", "2", "nobody"]}, lambda fact: fact.id in ("0", "2")),
    ({"ids": []}, lambda fact: False),
]


@given(st.lists(facts, min_size=1, max_size=5), st.lists(st.integers(0, 4), max_size=2))
@settings(max_examples=examples(12), deadline=None)
def test_each_scope_is_exactly_its_predicate_over_shown_and_hidden_facts(told, hidden):
    clock = ManualClock(NOW)
    with Store.open(":memory:", clock=clock) as store:
        memory = store.memory()
        for n, fact in enumerate(told):
            clock.advance(n % 2)
            memory.remember_many(
                [{name: getattr(fact, name) for name in NewFact.__struct_fields__} | {"id": f"{n}"}]
            )
        memory.forget(ids=[f"{n}" for n in hidden], soft=True)
        everything = [*memory.list().items, *memory.list(hidden=True).items]
        for scope, predicate in SCOPES:
            expected = tuple(sorted(fact.id for fact in everything if predicate(fact)))
            before = seen(memory)
            dry = memory.forget(**scope, dry_run=True)
            assert (dry.forgotten, dry.dry_run, dry.purged, dry.pending) == (expected, True, False, False), (
                scope
            )
            assert seen(memory) == before
        scope, predicate = SCOPES[sum(map(len, (fact.text for fact in told))) % len(SCOPES)]
        gone = memory.forget(**scope)
        assert gone.forgotten == tuple(sorted(fact.id for fact in everything if predicate(fact)))
        assert memory.forget(**scope).forgotten == ()
        left = {fact.id for fact in (*memory.list().items, *memory.list(hidden=True).items)}
        assert left == {fact.id for fact in everything} - set(gone.forgotten)


def test_time_scopes_do_not_reach_their_own_instant_and_documents_have_no_times(store, clock):
    memory, documents = store.memory(), store.documents()
    documents.put("doc", "a document")
    memory.remember("a", id="a", event_time=5, valid_from=1)
    memory.remember("b", id="b", valid_from=5)
    assert memory.forget(event_before=5, dry_run=True).forgotten == ()
    assert memory.forget(event_before=6, dry_run=True).forgotten == ("a", "b")
    assert memory.forget(event_before="9999-12-31", dry_run=True).forgotten == ("a", "b")
    assert memory.forget(ingested_before=clock.now(), dry_run=True).forgotten == ()
    assert memory.forget(ingested_before="9999-12-31", dry_run=True).forgotten == ("a", "b")
    assert memory.forget(ids=["doc"]).forgotten == ("doc",)


def absent(memory: Memory, id_: str, query: str) -> bool:
    """Whether every read behaves as if the fact had never been told."""
    try:
        memory.explain(query, id_, history="all")
    except NotFound:
        pass
    else:
        return False
    reads = (
        memory.recall(query, k=1000, history="all"),
        memory.recall(query, k=1000, known_at="9999-12-31"),
        memory.list(limit=1000).items,
        memory.list(hidden=True, limit=1000).items,
        memory.history(id_),
    )
    named = {one for change in memory.changes(limit=1000).items for one in change.ids}
    linked = {i for fact in memory.list(limit=1000).items for i in (*fact.supersedes, *fact.superseded_by)}
    return (
        memory.get(id_) is None
        and not any(one.id == id_ for read in reads for one in read)
        and id_ not in named | linked
    )


@pytest.mark.parametrize("way", ["forget", "hide then forget", "chain"])
def test_what_is_forgotten_is_absent_from_every_read_at_once_and_after_reopening(open_store, backend, way):
    store = open_store()
    memory = store.memory()
    memory.remember("canary one", id="a", subject="s", tags=["t"], entities=["e"], metadata={"k": 1})
    memory.remember("canary two", id="b", subject="s", supersedes=["a"])
    memory.remember("canary three", id="c", subject="s", supersedes=["b"])
    memory.remember("the canary that stays", id="stays")
    memory.annotate("b", tags=["u"])
    memory.end("b", at="2030-01-01")
    assert not absent(memory, "b", "canary")  # the positive control
    gone = {"a", "b", "c"} if way == "chain" else {"b"}
    if way == "forget":
        assert memory.forget(ids=["b"]).forgotten == ("b",)
    elif way == "hide then forget":
        memory.forget(ids=["b"], soft=True)
        assert memory.forget(ids=["b"]).forgotten == ("b",)
    else:
        assert memory.forget(ids=["b"], include_chain=True).forgotten == ("a", "b", "c")
    for turn in range(2):
        if turn:
            if backend == "memory":
                break
            store.close()
            memory = open_store().memory()
        for id_ in gone:
            assert absent(memory, id_, "canary")
        assert not absent(memory, "stays", "canary")
        for id_ in {"a", "c"} - gone:
            assert not absent(memory, id_, "canary")
    if way != "chain":
        assert memory.get("a").superseded_by == ("c",)
        assert memory.get("a").status == "superseded"


@pytest.mark.parametrize("gone", [c for n in range(1, 4) for c in itertools.combinations("abcd", n)])
def test_forgetting_any_versions_revives_nothing_older_than_what_stays(memory, gone):
    for n, id_ in enumerate("abcd"):
        memory.remember(f"version {id_}", id=id_, valid_from=n, supersedes=["abcd"[n - 1]] if n else [])
    memory.forget(ids=gone)
    left = [id_ for id_ in "abcd" if id_ not in gone]
    assert ids(memory.list(status="current").items) == left[-1:]
    for at in range(4):
        begun = [id_ for id_ in left if "abcd".index(id_) <= at]
        assert ids(memory.list(status="current", as_of=at).items) == begun[-1:]
    assert ids(memory.history(left[0])) == left
    assert memory.forget(ids=left[:1], include_chain=True, dry_run=True).forgotten == tuple(left)


def test_hiding_is_reversible_and_acts_as_forgetting_meanwhile(slots):
    told = [
        NewFact(text=f"value {n}", id=f"{n}", subject="s", valid_from=n, tags=["t"], metadata={"k": n})
        for n in range(3)
    ]
    slots.remember_many(told)
    before, scores = slots.list().items, [hit.score for hit in slots.recall("value", history="all")]
    assert slots.forget(ids=["2"], soft=True).pending is False
    assert ids(slots.list(status="current").items) == ["1"]
    assert ids(slots.list(hidden=True).items) == ["2"]
    assert slots.list(hidden=True).items[0].status == "hidden"
    assert [
        slots.list(**scope).total for scope in ({"tags": ["t"]}, {"filter": {"k": 2}}, {"subject": "s"})
    ] == [2, 0, 2]
    assert slots.get("2") is None
    assert slots.forget(ids=["2"], soft=True).forgotten == ()
    assert slots.restore(["2", "nobody", "0"]) == ("2",)
    assert slots.list().items == before
    assert [hit.score for hit in slots.recall("value", history="all")] == scores
    assert slots.list(hidden=True).total == 0


def test_a_forget_is_replayed_by_its_key_and_removes_nothing_told_since(memory):
    memory.remember("x", id="a", subject="s")
    assert memory.forget(subject="s", idempotency_key="key").forgotten == ("a",)
    memory.remember("y", id="b", subject="s")
    memory.forget(subject="s", idempotency_key="key")
    assert ids(memory.list().items) == ["b"]
    assert memory.forget(subject="s", idempotency_key="another").forgotten == ("b",)


def test_a_replay_answers_with_the_ids_of_the_first_call_and_does_nothing(memory):
    memory.remember_many([NewFact(text=f"fact {id_}", id=id_) for id_ in "abc"])
    hidden = memory.forget(ids=["a", "b"], soft=True, idempotency_key="hide")
    restored = memory.restore(["b", "nobody"], idempotency_key="restore")
    assert (hidden.forgotten, restored) == (("a", "b"), ("b",))
    memory.forget(ids=["c"], soft=True)
    before = seen(memory)
    assert memory.forget(ids=["a", "b"], soft=True, idempotency_key="hide") == hidden
    assert memory.restore(["b", "nobody"], idempotency_key="restore") == restored
    assert seen(memory) == before
    memory.forget(ids=["a"])
    with pytest.raises(NotFound):
        memory.forget(ids=["a", "b"], soft=True, idempotency_key="hide")
