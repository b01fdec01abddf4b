"""Times in every form and at every edge: one stated rule, and nothing saved as another moment than was told."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from perdure import InvalidRequest, Memory
from scenarios.stores import ids, texts

ZONES = [None, UTC, timezone(timedelta(hours=2)), timezone(-timedelta(hours=11, minutes=30))]


def test_naive_and_aware_times_meet_and_naive_means_utc(slots):
    slots.remember("Ana lives in Oslo", subject="ana/city", valid_from=datetime(2024, 1, 1))
    rome = slots.remember(
        "Ana lives in Rome",
        subject="ana/city",
        valid_from=datetime(2025, 1, 1, tzinfo=timezone(timedelta(hours=2))),
    )
    assert texts(slots.recall("Ana lives", as_of=datetime(2024, 6, 1))) == ["Ana lives in Oslo"]
    assert slots.get(rome.id).valid_from == datetime(2024, 12, 31, 22, tzinfo=UTC)
    assert texts(slots.recall("Ana lives", as_of="2024-12-31T21:59:59.999Z")) == ["Ana lives in Oslo"]
    assert texts(slots.recall("Ana lives", as_of=datetime(2024, 12, 31, 22))) == ["Ana lives in Rome"]


@pytest.mark.parametrize("zone", ZONES, ids=str)
def test_every_mix_of_naive_aware_number_and_text_compares_by_the_moment_it_names(memory, zone):
    at = datetime(2024, 3, 31, 12, 30, 15, 250_000, tzinfo=UTC)
    local = at.replace(tzinfo=None) if zone is None else at.astimezone(zone)
    millis = (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    forms = [local, millis, local.isoformat(), at.isoformat().replace("+00:00", "Z")]
    for n, start in enumerate(forms):
        memory.remember(f"fact {n}", id=f"{n}", valid_from=start, valid_to=local + timedelta(seconds=1))
    assert {fact.valid_from for fact in memory.list().items} == {at}
    for form in forms:
        assert sorted(ids(memory.recall("fact", as_of=form))) == ["0", "1", "2", "3"]
    assert memory.recall("fact", as_of=millis - 1) == []
    assert memory.recall("fact", as_of=millis + 1000) == []


def test_the_same_sentence_with_another_interval_is_another_fact(slots):
    told = [("Acme", 2018, 2020), ("Initech", 2020, 2023), ("Acme", 2023, None)]
    replies = [
        slots.remember(
            f"Bo works at {firm}",
            subject="bo/job",
            valid_from=datetime(start, 1, 1),
            valid_to=None if end is None else datetime(end, 1, 1),
        )
        for firm, start, end in told
    ]
    assert len({reply.id for reply in replies}) == 3
    for year, firm in ((2019, "Acme"), (2021, "Initech"), (2024, "Acme")):
        assert texts(slots.recall("Bo works", as_of=datetime(year, 6, 1))) == [f"Bo works at {firm}"]
    why = slots.explain("Bo works at Acme", replies[2].id)
    assert (why.reason, why.retrieved) == ("returned", True)
    related = {link.id: link.relation for link in why.chain}
    assert related == {replies[0].id: "related", replies[1].id: "supersedes", replies[2].id: "self"}
    again = slots.remember("Bo works at Acme", subject="bo/job", valid_from="2023-01-01")
    assert (again.outcome, again.id) == ("existing", replies[2].id)
    assert slots.list().total == 3


EDGES = {
    "1969-12-31T23:59:59.5Z": datetime(1969, 12, 31, 23, 59, 59, 500_000, tzinfo=UTC),
    "1815-12-10": datetime(1815, 12, 10, tzinfo=UTC),
    "0001-01-01": datetime(1, 1, 1, tzinfo=UTC),
    "9999-12-31T23:59:59.999999Z": datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC),
}


def test_times_at_every_edge_round_trip_to_the_millisecond_and_sort(slots):
    replies = {text: slots.remember(f"t8 fact {text}", subject="t8/x", valid_from=text) for text in EDGES}
    for text, expected in EDGES.items():
        assert slots.get(replies[text].id).valid_from == expected
    in_order = [replies[text].id for text in ("0001-01-01", "1815-12-10", "1969-12-31T23:59:59.5Z")]
    assert ids(slots.list(order="event").items) == [*in_order, replies["9999-12-31T23:59:59.999999Z"].id]
    assert ids(slots.history(in_order[0])) == ids(slots.list(order="event").items)
    for at, expected in (
        ("1900-01-01", "1815-12-10"),
        ("0001-01-01", "0001-01-01"),
        ("1815-12-09T23:59:59.999Z", "0001-01-01"),
        ("1969-12-31T23:59:59.499Z", "1815-12-10"),
        ("1969-12-31T23:59:59.5Z", "1969-12-31T23:59:59.5Z"),
        ("9999-12-31T23:59:59.998Z", "1969-12-31T23:59:59.5Z"),
        ("9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999999Z"),
    ):
        assert ids(slots.recall("t8 fact", as_of=at)) == [replies[expected].id]
        assert slots.explain("t8 fact", replies[expected].id, as_of=at).reason == "returned"
    for text, start in EDGES.items():
        id_ = replies[text].id
        slots.retract(id_)
        assert slots.get(id_, as_of=start).status == "expired"
        assert slots.explain("t8 fact", id_, history="all").valid_from == start


@pytest.mark.parametrize("field", ["valid_from", "valid_to", "event_time"])
@pytest.mark.parametrize("told", ["0000-12-31", "10000-01-01", -62_135_596_800_001, 253_402_300_800_000])
def test_a_time_outside_the_calendar_is_refused_at_the_write_and_the_store_still_reads(memory, field, told):
    memory.remember("a fact", id="a")
    with pytest.raises(InvalidRequest) as caught:
        memory.remember("another fact", **{field: told})
    assert caught.value.field == field
    assert ids(memory.recall("fact")) == ids(memory.list().items) == ["a"]
    assert memory.remember("another fact", **{field: "9999-12-31"}).outcome == "created"


def test_the_boundary_instant_belongs_to_the_new_fact_alone(slots):
    slots.remember("plan basic", subject="s/plan", valid_from="2024-01-01")
    slots.remember("plan pro", subject="s/plan", valid_from="2024-07-01")
    for at, plan in (
        ("2024-06-30T23:59:59Z", "plan basic"),
        ("2024-06-30T23:59:59.999Z", "plan basic"),
        ("2024-07-01T00:00Z", "plan pro"),
        ("2025-01-01", "plan pro"),
    ):
        assert texts(slots.recall("plan", as_of=at)) == [plan]
        assert texts(slots.list(status="current", as_of=at).items) == [plan]
    assert slots.recall("plan", as_of="2023-12-31T23:59:59.999Z") == []


def test_both_times_are_honoured_by_every_read(memory, clock):
    clock.set("2024-01-01")
    memory.remember("plan basic", id="basic", subject="p", valid_from="2020-01-01")
    clock.set("2025-01-01")
    memory.remember("plan pro", id="pro", subject="p", valid_from="2022-01-01", supersedes=["basic"])
    reads = {
        "recall": lambda **at: ids(memory.recall("plan", **at)),
        "list": lambda **at: ids(memory.list(status="current", **at).items),
        "get": lambda **at: [
            f.id for i in ("basic", "pro") if (f := memory.get(i, **at)) and f.status == "current"
        ],
        "history": lambda **at: [f.id for f in memory.history("basic", **at) if f.status == "current"],
        "explain": lambda **at: [i for i in ("basic", "pro") if memory.explain("plan", i, **at).retrieved],
    }
    for read in reads.values():
        assert read() == ["pro"]
        assert read(as_of="2021-01-01") == ["basic"]
        assert read(as_of="2019-01-01") == []
        assert read(known_at="2024-06-01") == ["basic"]
        assert read(as_of="2023-01-01", known_at="2024-06-01") == ["basic"]
        assert read(as_of="2023-01-01", known_at="2025-01-01") == ["pro"]
        assert read(known_at="2023-12-31") == []
    assert memory.explain("plan", "pro", known_at="2024-06-01").reason == "not-known"
    assert memory.get("pro", known_at="2024-06-01") is None
    assert ids(memory.history("basic", known_at="2024-06-01")) == ["basic"]
    assert memory.list(known_at="2024-06-01").total == 1


def test_what_was_just_written_is_seen_also_by_a_clock_that_lags(open_store, clock):
    store = open_store()
    first = store.memory().remember("first")
    clock.set("2020-01-01")  # another machine's clock, or one that was set back
    second = store.memory().remember("second", supersedes=[first.id])
    assert second.ingest_time == first.ingest_time
    memory: Memory = store.memory()
    assert texts(memory.recall("first second")) == ["second"]
    assert memory.end(second.id).status == "expired"
    assert memory.recall("first second") == []
