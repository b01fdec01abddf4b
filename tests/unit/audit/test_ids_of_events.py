"""Which ids the events of a space and of a store name, and how events are found by an id."""

from __future__ import annotations

import pytest

from governed import activate, change, create, evidence
from perdure import InvalidRequest, Store
from perdure.model.node import AccessEvent


def told(page):
    return [(event.type, event.fact_id, event.node_id) for event in page.items]


@pytest.fixture
def known(store: Store):
    """The knowledge of ada: a candidate, "waits", and "nine", which is active."""
    repository = store.repository("ada")
    repository.apply(change("first", create("waits"), create("nine")))
    repository.apply(change("second", activate("nine", 1, evidence("desk"))))
    return repository


def test_an_event_names_its_node_candidates_too_while_the_node_exists(store, known):
    memory = store.memory("ada")
    seen = known.get("nine").fact
    assert told(memory.events(type="revised")) == [
        ("revised", None, "waits"), ("revised", None, "nine"), ("revised", seen, "nine"),
    ]  # fmt: skip
    known.forget(["waits"])
    (first, *_), (*_, last) = memory.events(id="waits").items, memory.events(id="waits").items
    assert (first.type, first.node_id, last.type, last.node_id) == ("revised", None, "forgotten", None)
    assert first.details["node"] == last.details["fact"]


def test_what_counts_the_use_of_a_node_names_it(store, known):
    known.record_use(AccessEvent("turn-1", "nine", 2, 1_800_000_000_000))
    assert told(store.events(type="used")) == [("used", None, "nine")]


def test_the_events_of_a_store_name_what_exists_in_any_of_its_spaces(store, known):
    store.memory("bob").remember("the kettle is red", id="red")
    assert told(store.events(type="created"))[-1] == ("created", "red", None)
    assert told(store.events(type="revised"))[0] == ("revised", None, "waits")


def test_an_id_is_found_in_every_space_of_a_store_after_it_was_forgotten_too(store):
    for name in ("ada", "bob"):
        store.memory(name).remember("the kettle is red", id="red")
        store.memory(name).remember("the pot is black", id="pot")
    store.memory("bob").forget(ids=["red"])
    assert sorted(told(store.events(id="red")), key=str) == [
        ("created", "red", None), ("created", None, None), ("forgotten", None, None),
    ]  # fmt: skip
    assert store.events(id="red", limit=1).total == 3
    assert store.events(id="nobody").items == ()


def test_pages_of_the_events_of_an_id_in_a_store_go_on_where_the_page_before_ended(store):
    for name in ("ada", "bob", "eve"):
        store.memory(name).remember("the kettle is red", id="red")
    first = store.events(id="red", limit=2)
    rest = store.events(id="red", limit=2, cursor=first.cursor)
    assert [event.sequence for event in (*first.items, *rest.items)] == [
        event.sequence for event in store.events(id="red").items
    ]
    assert rest.cursor is None


def test_what_is_no_id_is_refused_before_any_event_is_read(store):
    with pytest.raises(InvalidRequest, match="id must take 1 to 256 bytes"):
        store.events(id="")
