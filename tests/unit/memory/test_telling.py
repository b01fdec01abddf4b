"""What makes two tellings the same, what a conflict is, and what a batch promises."""

from __future__ import annotations

import pytest

from perdure import Blocked, Conflict, InvalidRequest, MemoryConfig, NewFact, NotFound, Source
from scenarios.stores import ids, texts
from unit.memory.refusals import MARKER, refused, seen

WHOLE = {
    "text": "Alice lives in Paris",
    "subject": "alice/city",
    "entities": ["Paris", "Alice"],
    "metadata": {"a": 1, "b": [1.0, {"c": None}]},
    "event_time": 1,
    "valid_from": 2,
    "valid_to": 3,
    "tags": ["x", "y"],
    "kind": "semantic",
    "importance": 0.5,
    "pinned": True,
    "source": Source(uri="u", position=1),
}
SAME = [
    {"entities": ("Alice", "Paris", "Alice")},
    {"metadata": {"b": [1, {"c": None}], "a": 1.0}},
    {"tags": ["y", "x", "y"]},
    {"event_time": "1970-01-01T00:00:00.001Z"},
    {"supersedes": []},
    {"supersedes": None},
    {"importance": 0.5},
    {"source": {"uri": "u", "position": 1}},
]
OTHER = [
    {"text": "Alice lives in Paris "},
    {"subject": "alice"},
    {"subject": None},
    {"entities": ["Paris"]},
    {"entities": None},
    {"metadata": {"a": True, "b": [1, {"c": None}]}},
    {"metadata": None},
    {"event_time": 2},
    {"event_time": None},
    {"valid_from": 1},
    {"valid_to": 4},
    {"source": Source(uri="u")},
    {"source": None},
]
OTHER_ANNOTATION = [{"tags": ["x"]}, {"kind": None}, {"importance": 0.6}, {"pinned": False}]


@pytest.mark.parametrize("change", SAME, ids=str)
def test_the_same_told_in_another_spelling_is_stored_once(memory, clock, change):
    first = memory.remember(**WHOLE)
    before = seen(memory)
    clock.advance(10)
    again = memory.remember(**{**WHOLE, **change})
    assert (again.id, again.outcome, again.created, again.ingest_time) == (
        first.id,
        "existing",
        False,
        first.ingest_time,
    )
    assert seen(memory) == before


@pytest.mark.parametrize("change", OTHER, ids=str)
def test_another_payload_is_another_fact_and_under_the_same_id_a_conflict(memory, change):
    derived = memory.remember(**WHOLE)
    assert memory.remember(**{**WHOLE, **change}).id != derived.id
    memory.remember(**WHOLE, id="told")
    found = refused(memory, lambda: memory.remember(**{**WHOLE, **change}, id="told"), "id", Conflict)
    assert found.kind == "id"


@pytest.mark.parametrize("change", OTHER_ANNOTATION, ids=str)
def test_another_annotation_is_no_other_fact_but_a_visible_conflict(memory, change):
    memory.remember(**WHOLE)
    found = refused(memory, lambda: memory.remember(**{**WHOLE, **change}), "id", Conflict)
    assert found.kind == "id"


def test_empty_and_absent_are_the_same(memory):
    first = memory.remember("x")
    empty = memory.remember("x", entities=[], metadata={}, tags=(), supersedes=[], source=Source())
    assert (empty.id, empty.outcome) == (first.id, "existing")


def test_telling_again_what_is_no_longer_so_says_so_and_how_to_say_it_anew(slots, clock):
    paris = slots.remember("Paris", subject="city")
    clock.advance(1)
    slots.remember("Berlin", subject="city")
    clock.advance(1)
    again = slots.remember("Paris", subject="city")
    assert (again.id, again.outcome, again.status) == (paris.id, "existing", "superseded")
    assert "valid_from" in again.reason
    assert "reassert" in again.reason
    assert texts(slots.list(status="current").items) == ["Berlin"]
    anew = slots.remember("Paris", subject="city", reassert=True, idempotency_key="k")
    assert anew.outcome == "created"
    assert anew.id != paris.id
    assert texts(slots.list(status="current").items) == ["Paris"]
    assert slots.remember("Paris", subject="city", reassert=True, idempotency_key="k") == anew
    assert slots.list().total == 3


def test_a_hidden_fact_told_again_is_existing_and_names_the_way_back(memory):
    first = memory.remember("x")
    memory.forget(ids=[first.id], soft=True)
    again = memory.remember("x")
    assert (again.outcome, again.status) == ("existing", "hidden")
    assert "restore" in again.reason
    assert memory.list().total == 0


def test_a_forgotten_fact_told_again_is_new_with_a_new_ingest_time(memory, clock):
    first = memory.remember("x")
    memory.forget(ids=[first.id])
    clock.advance(1000)
    again = memory.remember("x")
    assert (again.id, again.outcome) == (first.id, "created")
    assert again.ingest_time > first.ingest_time
    assert memory.get(first.id, known_at=first.ingest_time) is None


def test_a_retry_succeeds_also_after_what_it_superseded_was_forgotten(memory):
    memory.remember("old", id="old")
    memory.remember("new", id="new", supersedes=["old"])
    assert memory.remember("new", id="new", supersedes=["old"]).outcome == "existing"
    memory.forget(ids=["old"])
    assert memory.remember("new", id="new", supersedes=["old"]).outcome == "existing"
    memory.remember("other", id="other")
    refused(memory, lambda: memory.remember("new", id="new", supersedes=["other"]), "supersedes", Conflict)


def test_replacing_discards_the_old_text_and_keeps_what_others_say_of_the_id(store, clock):
    memory = store.memory(config=MemoryConfig(on_id_conflict="replace"))
    memory.remember(f"{MARKER} one", id="a")
    memory.remember("newer", id="b", supersedes=["a"])
    clock.advance(5)
    reply = memory.remember("two", id="a")
    assert (reply.outcome, reply.created, reply.superseded_by) == ("replaced", True, ("b",))
    assert memory.get("a").status == "superseded"
    assert memory.recall(MARKER, history="all") == []
    assert memory.get("a", known_at=reply.ingest_time.replace(microsecond=0)) is None
    assert memory.remember("two", id="a").outcome == "existing"
    same_id_twice = [NewFact(text="three", id="c"), NewFact(text="four", id="c")]
    assert (
        refused(memory, lambda: memory.remember_many(same_id_twice), "facts[1].id", Conflict).details["index"]
        == 1
    )


def test_a_batch_has_one_time_its_own_order_and_may_name_its_later_members(slots, clock):
    replies = slots.remember_many(
        [
            NewFact(text="new", id="new", supersedes=["old", "before"]),
            NewFact(text="old", id="old"),
            NewFact(text="same", id="same"),
            NewFact(text="same", id="same"),
            NewFact(text="slot 1", subject="s", valid_from=1, id="s1"),
            NewFact(text="slot 3", subject="s", valid_from=3, id="s3"),
            NewFact(text="slot 2", subject="s", valid_from=2, id="s2"),
            NewFact(text="before", id="before"),
        ]
    )
    assert len({reply.ingest_time for reply in replies}) == 1
    assert [reply.outcome for reply in replies] == ["created"] * 3 + ["existing"] + ["created"] * 4
    assert replies[0].supersedes == ("before", "old")
    assert (replies[6].supersedes, replies[6].superseded_by) == (("s1",), ("s3",))
    assert ids(slots.list().items) == ["new", "old", "same", "s1", "s3", "s2", "before"]
    for at, id_ in ((1, "s1"), (2, "s2"), (3, "s3")):
        assert ids(slots.list(subject="s", status="current", as_of=at).items) == [id_]


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (NewFact(text=""), InvalidRequest),
        (NewFact(text="x", supersedes=["nobody"]), InvalidRequest),
        (NewFact(text="other", id="taken"), Conflict),
        (NewFact(text="other", id="member"), Conflict),
        (NewFact(text="a blocked text"), Blocked),
    ],
    ids=["malformed", "unknown target", "taken id", "id of another member", "blocked"],
)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_batch_with_one_bad_member_stores_nothing(memory, bad, error, place):
    memory.remember("taken", id="taken")
    memory.remember("a blocked text")
    memory.forget(text="a blocked text", block=True)
    facts = [NewFact(text="first", id="member"), NewFact(text="second", supersedes=["member"])]
    facts.insert(place, bad)
    before = seen(memory)
    with pytest.raises(error) as caught:
        memory.remember_many(facts, idempotency_key="key")
    if error is not Blocked:
        index = 1 if bad.id == "member" and place == 0 else place
        assert caught.value.details["index"] == index
    assert seen(memory) == before
    assert len(memory.remember_many(facts[:place] + facts[place + 1 :], idempotency_key="key")) == 2


def test_a_batch_is_replayed_whole_by_its_key(memory, clock):
    facts = [NewFact(text=f"fact {n}") for n in range(3)]
    first = memory.remember_many(facts, idempotency_key="key")
    clock.advance(1)
    assert memory.remember_many(facts, idempotency_key="key") == first
    with pytest.raises(Conflict):
        memory.remember_many(facts[:2], idempotency_key="key")
    assert (
        memory.remember("fact 0", idempotency_key="key").outcome == "existing"
    )  # a key belongs to its operation
    memory.forget(ids=[first[1].id])
    with pytest.raises(NotFound):
        memory.remember_many(facts, idempotency_key="key")
    assert memory.list().total == 2


def test_a_key_is_forgotten_after_its_days(open_store, clock):
    memory = open_store().memory(config=MemoryConfig(receipt_days=2))
    memory.remember("one", idempotency_key="key")
    clock.advance(2 * 86_400_000)
    with pytest.raises(Conflict):
        memory.remember("two", idempotency_key="key")
    clock.advance(1)
    assert memory.remember("two", idempotency_key="key").outcome == "created"


def test_what_is_blocked_is_refused_in_every_spelling_until_it_is_unblocked(memory):
    reply = memory.remember(f"Café {MARKER} ist schön")
    memory.forget(ids=[reply.id], block=True)
    spellings = [
        f"Café {MARKER} ist schön",
        f"  CAFÉ\n{MARKER.lower()}  IST SCHÖN ",
        f"Cafe\u0301 {MARKER} ist scho\u0308n",
    ]
    for text in spellings:
        assert refused(
            memory, lambda text=text: memory.remember(text), "text" if text != spellings[0] else "id", Blocked
        )
        refused(memory, lambda text=text: memory.remember(text, id="another"), "text", Blocked)
    assert memory.remember("Café ist schön").outcome == "created"  # the positive control: another text
    other = memory.remember("to correct")
    refused(memory, lambda: memory.correct(spellings[1], id=other.id), "new_text", Blocked)
    assert memory.unblock(texts=[spellings[2]]) == 1
    refused(memory, lambda: memory.remember(spellings[0]), "id", Blocked)
    assert memory.unblock(ids=[reply.id]) == 1
    assert memory.unblock(ids=[reply.id], texts=spellings) == 0
    assert memory.remember(spellings[0]).outcome == "created"
