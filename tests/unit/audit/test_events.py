"""What leaves an event, and what the event says: a type, times, counts and digests, never a text or an id."""

from __future__ import annotations

import pytest

from backends import IN_FILES
from perdure import InvalidRequest, MemoryConfig, Namespace, Store
from perdure.base.acting import acting
from perdure.policies import Prune, StandardAdmission
from talks import talk

NOW = 1_800_000_000_000  # of the clock


def types(page):
    return [event.type for event in page.items]


def test_each_change_of_a_fact_leaves_an_event_of_its_type_in_order(store):
    memory = store.memory("ada")
    memory.remember("the kettle is red", id="red")
    memory.remember("the kettle is blue", id="blue", supersedes=["red"])
    memory.correct("the kettle is green", id="blue", new_id="green")
    memory.annotate("green", tags=["kitchen"])
    memory.end("green")
    memory.retract("blue")
    memory.record_use(["green"])
    memory.forget(ids=["red"], soft=True)
    memory.restore(["red"])
    memory.forget(ids=["red"], block=True)
    memory.unblock(ids=["red"])
    assert types(memory.events()) == [
        "created", "created", "superseded", "created", "superseded", "corrected", "annotated", "ended", "retracted", "used",
        "hidden", "restored", "blocked", "forgotten", "unblocked",
    ]  # fmt: skip


def test_an_event_names_its_fact_while_the_fact_exists_and_its_digest_for_good(store):
    memory = store.memory("ada")
    memory.remember("the kettle is red", id="red")
    before = memory.events().items[0]
    assert before.fact_id == "red"
    memory.forget(ids=["red"])
    first, last = memory.events().items
    assert (first.fact_id, last.fact_id) == (None, None)
    assert first.details["fact"] == last.details["fact"] == before.details["fact"]


def test_the_digest_of_an_event_is_that_of_the_certificate(store):
    memory = store.memory("ada")
    memory.remember("the kettle is red", id="red")
    certificate = memory.forget(ids=["red"]).certificate
    assert certificate.ids == (memory.events(type="forgotten").items[0].details["fact"],)


def test_no_event_holds_a_text_or_an_id(store):
    memory = store.memory("ada", "zebra scope")
    memory.remember("zebra one", id="zebra 1", tags=["zebra"], subject="zebra", metadata={"a": "zebra"})
    memory.correct("zebra two", id="zebra 1", new_id="zebra 2")
    memory.end("zebra 2", reason="zebra")
    memory.forget(ids=["zebra 1", "zebra 2"])
    store.purge()
    assert b"zebra" not in b"".join(store.export_events())


def test_events_of_an_id_are_found_before_and_after_it_is_forgotten(store):
    memory = store.memory("ada")
    memory.remember("the kettle is red", id="red")
    memory.remember("the pot is black", id="pot")
    memory.forget(ids=["red"])
    assert types(memory.events(id="red")) == ["created", "forgotten"]
    assert types(memory.events(id="pot")) == ["created"]


def test_an_event_of_a_supersession_is_found_by_either_id(store):
    memory = store.memory("ada")
    memory.remember("the kettle is red", id="red")
    memory.remember("the kettle is blue", id="blue", supersedes=["red"])
    assert types(memory.events(id="blue")) == ["created", "superseded"]
    assert memory.events(id="blue").items[1].fact_id == "red"


def test_who_acts_is_named_by_the_events_of_that_block_alone(store):
    memory = store.memory("ada")
    memory.remember("before")
    with acting("key of the crawler"):
        memory.remember_many(["one", "two"])
        with acting(None):
            memory.remember("nobody in particular")
        memory.remember("three")
    memory.remember("after")
    actor = "key of the crawler"
    assert [event.actor for event in memory.events().items] == [None, actor, actor, None, actor, None]


def test_who_erases_a_person_is_named(store):
    store.memory("ada").remember("the kettle is red")
    with acting("operator"):
        store.erase("ada")
    told = [(event.type, event.actor) for event in store.events().items]
    assert told == [("created", None), ("erased", "operator"), ("purged", "operator")]


def test_whatever_is_done_to_a_store_names_who_did_it(store):
    memory = store.memory("ada")
    with acting("operator"):
        for default_k in (3, 3, 4):
            store.save_config(MemoryConfig(default_k=default_k))
        memory.remember_many(
            [{"text": "red", "id": "red"}, {"text": "blue", "id": "blue", "supersedes": ["red"]}]
        )
        memory.correct("green", id="blue", new_id="green")
        memory.annotate("green", tags=["kitchen"])
        memory.end("green")
        memory.retract("blue")
        memory.record_use(["green"])
        memory.recall("red")
        memory.forget(ids=["red"], soft=True)
        memory.restore(["red"])
        memory.forget(ids=["red"], block=True)
        memory.unblock(ids=["red"])
        store.documents("ada").put("page", "one")
        store.conversation("ada").remember(talk(["hello"]))
        memory.reindex(k1=1.5)
        store.import_(list(store.export_lines()))
        store.save_config(None)
        store.purge()
        store.erase("ada")
    events = store.events(limit=1_000).items
    assert {event.type for event in events} >= {
        "configured", "created", "superseded", "corrected", "annotated", "ended", "retracted", "used", "hidden", "restored",
        "blocked", "unblocked", "forgotten", "conversed", "exported", "purged", "erased",
    }  # fmt: skip
    assert {(event.type, event.actor) for event in events} == {(event.type, "operator") for event in events}


@pytest.mark.parametrize("actor", ["", "a" * 257, "line\nbreak", 7])
def test_an_actor_that_is_no_name_is_refused(actor):
    with pytest.raises(InvalidRequest), acting(actor):
        pass


def test_a_policy_lets_facts_expire(opened, clock):
    config = MemoryConfig(forgetting=Prune(max_facts=1))
    memory = opened(config=config).memory("ada")
    memory.remember("old")
    clock.advance(1_000)
    memory.remember("new")
    gone = memory.apply_forgetting(dry_run=False).forgotten
    assert len(gone) == 1
    assert types(memory.events()) == ["created", "created", "expired"]


def test_what_is_replaced_under_its_id_says_so(opened):
    memory = opened(config=MemoryConfig(on_id_conflict="replace")).memory("ada")
    memory.remember("old", id="one")
    memory.remember("new", id="one")
    assert types(memory.events()) == ["created", "forgotten", "created"]
    assert memory.events(type="forgotten").items[0].details["cause"] == "replaced"


def test_documents_tell_their_versions(store):
    documents = store.documents("ada")
    documents.put("page", "one")
    documents.put("page", "two")
    events = store.memory("ada").events().items
    assert [(event.type, event.details.get("document")) for event in events] == [
        ("created", 1), ("forgotten", None), ("created", 2),
    ]  # fmt: skip


def test_a_store_tells_the_events_of_all_its_spaces_and_its_own(store):
    store.memory("ada").remember("one", id="one")
    store.memory("ben").remember("two", id="two")
    store.save_config(MemoryConfig(default_k=3))
    store.purge()
    events = store.events().items
    assert sorted(event.type for event in events) == ["configured", "created", "created", "purged"]
    assert {event.fact_id for event in events} == {"one", "two", None}
    assert len({event.space for event in events}) == 3  # None is the store's own
    assert types(store.memory("ada").events()) == ["created"]


def test_exports_and_imports_are_events_of_the_store(store, opened, backend, tmp_path):
    store.memory("ada").remember("one", id="one")
    store.export(tmp_path / "all.jsonl")
    target = store if backend != "memory" else opened()
    target.import_(tmp_path / "all.jsonl")
    assert store.events(type="exported").items[0].details == {"spaces": 1, "facts": 1}
    assert target.events(type="imported").total == 1


def test_refused_tellings_are_counted(opened):
    memory = opened(config=MemoryConfig(admission=StandardAdmission())).memory("ada")
    memory.remember("hello")
    assert [(e.type, e.details) for e in memory.events().items] == [("refused", {"count": 1})]


def test_recalls_are_noted_only_where_the_audit_is_full(opened):
    memory = opened(audit="full").memory("ada")
    memory.remember("the kettle is red")
    memory.recall("kettle")
    memory.trace("kettle")
    first, second = memory.events(type="recalled").items
    assert (first.details["hits"], second.details["hits"]) == (1, 1)
    assert second.details["trace"] is True
    assert "trace" not in first.details
    assert first.details["query"] == second.details["query"] != "kettle"


def test_a_recall_leaves_nothing_in_a_usual_audit(store):
    memory = store.memory("ada")
    memory.recall("kettle")
    assert memory.events().items == ()


def test_the_words_of_a_recall_are_kept_where_that_is_asked_for(opened):
    memory = opened(audit="full", audit_queries=True).memory("ada")
    memory.recall("kettle")
    assert memory.events().items[0].details["query"] == "kettle"


def test_a_store_without_an_audit_says_so_and_keeps_nothing(opened, backend, tmp_path):
    store = opened(audit="off")
    memory = store.memory("ada")
    memory.remember("one", id="one")
    memory.forget(ids=["one"], purge=True)
    with pytest.raises(InvalidRequest, match="audit='off'"):
        memory.events()
    assert not (tmp_path / "store" / "audit").exists()


def test_an_audit_that_is_none_is_refused(tmp_path):
    with pytest.raises(InvalidRequest, match="audit"):
        Store.open(tmp_path / "store", audit="loud")
    with pytest.raises(InvalidRequest, match="audit_log"):
        Store.open(tmp_path / "store", audit_log=Store.open(":memory:").log)


def test_writes_leave_nothing_beside_the_log_until_something_must_be_kept(opened, backend, tmp_path):
    store = opened()
    memory = store.memory("ada")
    memory.remember("one", id="one")
    memory.recall("one")
    assert not (tmp_path / "store" / "audit").exists()
    memory.forget(ids=["one"])
    assert (tmp_path / "store" / "audit").exists() == (backend in IN_FILES)


def test_a_write_without_an_actor_takes_no_more_records_than_without_an_audit(opened):
    memory = opened().memory("ada")
    memory.remember("one", id="one")
    assert memory.changes().items[-1].sequence == 2  # after that of the space


def test_events_are_paged_in_order_with_a_total_and_survive_more_events(store):
    memory = store.memory("ada")
    memory.remember_many([f"fact {n}" for n in range(7)])
    first = memory.events(limit=3)
    assert (first.total, first.has_more, [e.sequence for e in first.items]) == (7, True, [1, 2, 3])
    memory.remember("one more")
    second = memory.events(limit=3, cursor=first.cursor)
    last = memory.events(limit=3, cursor=second.cursor)
    assert [e.sequence for e in (*second.items, *last.items)] == [4, 5, 6, 7, 8]
    assert (last.has_more, last.cursor, last.total) == (False, None, 8)


def test_a_cursor_goes_with_its_arguments(store):
    memory = store.memory("ada")
    memory.remember_many(["one", "two", "three"])
    cursor = memory.events(limit=1).cursor
    for told in ({"type": "created"}, {"id": "x"}, {"since": NOW}):
        with pytest.raises(InvalidRequest, match="cursor"):
            memory.events(cursor=cursor, **told)
    for forged in ("", "x", "é", cursor[:-3]):
        with pytest.raises(InvalidRequest, match="cursor"):
            memory.events(cursor=forged)


def test_events_are_narrowed_by_type_and_time(store, clock):
    memory = store.memory("ada")
    memory.remember("one", id="one")
    clock.advance(1_000)
    memory.remember("two", id="two")
    memory.end("one")
    assert types(memory.events(type="created", since=NOW + 1)) == ["created"]
    assert [e.fact_id for e in memory.events(until=NOW + 1_000).items] == ["one"]
    assert types(memory.events(since=NOW + 1_000)) == ["created", "ended"]
    assert memory.events(since=NOW + 1_000).items[0].at.timestamp() * 1000 == NOW + 1_000


@pytest.mark.parametrize(
    "told", [{"type": "Created"}, {"limit": 0}, {"limit": 1_001}, {"limit": True}, {"since": "yesterday"}, {"id": ""}]
)  # fmt: skip
def test_a_wrong_argument_is_refused(store, told):
    with pytest.raises(InvalidRequest):
        store.memory("ada").events(**told)


def test_events_go_on_after_the_store_is_opened_again(opened, backend):
    if backend == "memory":
        pytest.skip("an ephemeral store is not opened again")
    store = opened()
    store.memory("ada").remember("one", id="one")
    store.memory("ada").forget(ids=["one"])
    store.close()
    store = opened()
    store.memory("ada").remember("two", id="two")
    assert types(store.memory("ada").events()) == ["created", "forgotten", "created"]
    assert store.verify_events() == ()
    assert store.verify().ok


def test_a_direct_event_is_kept_with_its_counts(store):
    store.note_event("key_created", {"key": "00ff"})
    assert [(e.type, e.details, e.space) for e in store.events().items] == [
        ("key_created", {"key": "00ff"}, None)
    ]
    with pytest.raises(InvalidRequest, match="type"):
        store.note_event("sung")


def test_every_space_keeps_to_itself(store):
    store.memory("ada").remember("same", id="same")
    store.memory("ben").remember("same", id="same")
    ada, ben = (store.memory(name).events().items[0] for name in ("ada", "ben"))
    assert ada.details["fact"] != ben.details["fact"]
    assert store.spaces() == [Namespace("ada"), Namespace("ben")]
