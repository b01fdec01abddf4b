"""Every operation but remember: bad arguments are refused by name, echo nothing and change nothing."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import pytest

from perdure import Blocked, Conflict, InvalidRequest, ManualClock, Memory, NotFound, Store
from unit.memory.refusals import MARKER, refused

LONE = MARKER + "\ud800"
BAD_COUNTS = (0, -1, -(10**30), 10**9, 10**5000, 2.5, 1.0, True, False, "5", b"5", [5], math.nan)
BAD_TIMES = (
    "banana",
    "",
    "2024-13-01",
    "2024-02-30",
    "0000-01-01",
    "10000-01-01",
    "2024-01-01T25:00Z",
    "2024-01-01T00:00+24:00",
    "9999-12-31T23:59:59-00:01",
    "0001-01-01T00:00:00+00:01",
    253_402_300_800_000,
    -62_135_596_800_001,
    10**5000,
    True,
    1.5,
    math.nan,
    b"2024-01-01",
    datetime(9999, 12, 31, 23, 59, tzinfo=UTC).date(),
)
READS = {
    "recall": lambda memory, **options: memory.recall("fact", **options),
    "explain": lambda memory, **options: memory.explain("fact", "a", **options),
    "trace": lambda memory, **options: memory.trace("fact", **options),
    "list": lambda memory, **options: memory.list(**options),
    "get": lambda memory, **options: memory.get("a", **options),
    "history": lambda memory, **options: memory.history("a", **options),
}
ASKING = ("recall", "explain", "trace")
SCOPED = ("recall", "explain", "trace", "list")


@pytest.fixture
def memory():
    with Store.open(":memory:", clock=ManualClock("2026-01-01")) as store:
        memory = store.memory()
        memory.remember("a fact", id="a", subject="s", metadata={"k": 1})
        memory.remember("a hidden fact", id="h")
        memory.forget(ids=["h"], soft=True)
        yield memory


@pytest.mark.parametrize(
    "value", BAD_COUNTS, ids=lambda value: str(value)[:12] if value != 10**5000 else "huge"
)
def test_a_count_is_a_whole_number_within_its_range_and_never_capped(memory, value):
    for call, field in (
        (lambda: memory.recall("fact", k=value), "k"),
        (lambda: memory.explain("fact", "a", k=value), "k"),
        (lambda: memory.recall("fact", k=2, candidate_limit=value), "candidate_limit"),
        (lambda: memory.list(limit=value), "limit"),
        (lambda: memory.changes(limit=value), "limit"),
    ):
        refused(memory, call, field)


def test_the_ends_of_each_count_are_allowed_and_absent_means_the_default(memory):
    memory.remember_many([f"fact {n}" for n in range(60)])
    assert [len(memory.recall("fact", k=k)) for k in (1, 1000, None)] == [1, 61, 10]
    assert len(memory.recall("fact", k=5, candidate_limit=5)) == 5
    assert len(memory.recall("fact", k=5, candidate_limit=4096)) == 5
    assert [len(memory.list(limit=n).items) for n in (1, 1000, None)] == [1, 61, 50]
    assert [len(memory.changes(limit=n).items) for n in (1, 1000, None)] == [1, 63, 50]
    refused(memory, lambda: memory.recall("fact", k=1001), "k")
    refused(memory, lambda: memory.recall("fact", k=5, candidate_limit=4), "candidate_limit")
    refused(memory, lambda: memory.recall("fact", candidate_limit=4097), "candidate_limit")
    refused(memory, lambda: memory.list(limit=1001), "limit")


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("field", ["as_of", "known_at"])
def test_a_time_that_is_none_is_refused_by_every_read(memory, read, field):
    for value in BAD_TIMES:
        refused(memory, lambda value=value: READS[read](memory, **{field: value}), field)
    assert READS[read](memory, **{field: "9999-12-31T23:59:59.999Z"})


@pytest.mark.parametrize("read", READS)
def test_an_unknown_option_is_an_error_and_never_ignored(memory, read):
    with pytest.raises((TypeError, InvalidRequest), match="as_off"):
        READS[read](memory, as_off=1)


@pytest.mark.parametrize("read", SCOPED)
def test_a_malformed_scope_is_refused_by_every_read_that_takes_one(memory, read):
    call = READS[read]
    for options, field in (
        ({"subject": ""}, "subject"),
        ({"subject": MARKER.ljust(1025)}, "subject"),
        ({"subject": LONE}, "subject"),
        ({"subject": 1}, "subject"),
        ({"entity": ""}, "entity"),
        ({"entity": ["x"]}, "entity"),
        ({"tags": "one"}, "tags"),
        ({"tags": [1]}, "tags"),
        ({"tags": {"a": 1}}, "tags"),
        ({"tags": [str(n) for n in range(257)]}, "tags"),
        ({"kind": "epic"}, "kind"),
        ({"kind": 1}, "kind"),
        ({"filter": [("a", 1)]}, "filter"),
        ({"filter": MARKER}, "filter"),
        ({"filter": {1: MARKER}}, "filter"),
        ({"filter": {MARKER: math.inf}}, "filter"),
        ({"filter": {MARKER: LONE}}, "filter"),
    ):
        refused(memory, lambda options=options: call(memory, **options), field)
    assert call(memory, subject="s", filter={"k": 1})


@pytest.mark.parametrize("query", ["", "   ", "\n\t", "\u200b", "\u00a0\u3000", "\ufeff", "\u2060\u200d"])
def test_a_blank_query_is_refused_and_names_the_way_to_list(memory, query):
    for call in (lambda: memory.recall(query), lambda: memory.explain(query, "a")):
        assert "list" in str(refused(memory, call, "query"))
    # A scope that holds nothing does not let a blank query through.
    refused(memory, lambda: memory.recall(query, subject="nobody"), "query")
    assert len(memory.recall("fact")) == 1


def test_a_query_is_text_of_at_most_65536_bytes(memory):
    for query in (None, 1, True, b"fact", ["fact"], LONE, MARKER.ljust(65_537), "é" * 32_769):
        refused(memory, lambda query=query: memory.recall(query), "query")
        refused(memory, lambda query=query: memory.explain(query, "a"), "query")
    assert len(memory.recall("fact".ljust(65_536))) == 1


def test_every_other_option_of_recall_is_checked_by_name(memory):
    for options, field in (
        ({"history": "past"}, "history"),
        ({"history": 1}, "history"),
        ({"history": ["all"]}, "history"),
        ({"min_score": -0.1}, "min_score"),
        ({"min_score": math.nan}, "min_score"),
        ({"min_score": math.inf}, "min_score"),
        ({"min_score": True}, "min_score"),
        ({"min_score": "1"}, "min_score"),
        ({"min_score": -(10**5000)}, "min_score"),
        ({"explain": 1}, "explain"),
    ):
        refused(memory, lambda options=options: memory.recall("fact", **options), field)
    refused(memory, lambda: memory.recall("fact", min_score=10**400), "min_score")
    assert len(memory.recall("fact", min_score=0, history="all", explain=True)) == 1


def test_every_other_option_of_list_is_checked_by_name(memory):
    for options, field in (
        ({"status": "old"}, "status"),
        ({"status": "hidden"}, "status"),
        ({"status": ["current"]}, "status"),
        ({"status": "current", "hidden": True}, "status"),
        ({"order": "text"}, "order"),
        ({"order": None}, "order"),
        ({"order": "--ingest"}, "order"),
        ({"order": "-id"}, "order"),
        ({"hidden": 1}, "hidden"),
        ({"cursor": ""}, "cursor"),
        ({"cursor": MARKER}, "cursor"),
        ({"cursor": "é"}, "cursor"),
        ({"cursor": 5}, "cursor"),
        ({"cursor": b"AAAA"}, "cursor"),
        ({"cursor": "A" * 10_000}, "cursor"),
    ):
        refused(memory, lambda options=options: memory.list(**options), field)
    for since in ("", MARKER, "é", 5, b"AAAA", "A" * 10_000):
        refused(memory, lambda since=since: memory.changes(since), "since")


ONE_ID = {
    "get": lambda memory, id_: memory.get(id_),
    "history": lambda memory, id_: memory.history(id_),
    "explain": lambda memory, id_: memory.explain("fact", id_),
    "end": lambda memory, id_: memory.end(id_, idempotency_key="k"),
    "retract": lambda memory, id_: memory.retract(id_, idempotency_key="k"),
    "annotate": lambda memory, id_: memory.annotate(id_, pinned=True, idempotency_key="k"),
    "correct": lambda memory, id_: memory.correct("new", id=id_, idempotency_key="k"),
}


@pytest.mark.parametrize("operation", ONE_ID)
def test_an_id_is_checked_before_anything_else_is_done_with_it(memory, operation):
    for id_ in (
        "",
        MARKER.ljust(257),
        "perdure:".ljust(4_097, "x"),
        MARKER + "\n",
        LONE,
        1,
        True,
        b"a",
        ["a"],
    ):
        refused(memory, lambda id_=id_: ONE_ID[operation](memory, id_), "id")


@pytest.mark.parametrize("operation", sorted(ONE_ID.keys() - {"get", "history"}))
def test_an_unknown_or_hidden_id_is_not_found_and_not_echoed(memory, operation):
    for id_ in (MARKER, "h"):
        refused(memory, lambda id_=id_: ONE_ID[operation](memory, id_), "id", NotFound)


def test_reads_of_an_unknown_or_hidden_id_find_nothing(memory):
    for id_ in (MARKER, "h"):
        assert memory.get(id_) is None
        assert memory.history(id_) == []
    assert memory.get("a") is not None
    assert len(memory.history("a")) == 1


def test_a_correction_names_one_fact_in_one_way(memory):
    for target, field in (
        ({}, "id"),
        ({"id": "a", "text": "a fact"}, "id"),
        ({"id": "a", "text": ""}, "id"),
        ({"text": ""}, "text"),
        ({"text": " \n"}, "text"),
        ({"text": 5}, "text"),
        ({"text": LONE}, "text"),
        ({"containing": ""}, "containing"),
        ({"containing": "\t"}, "containing"),
        ({"containing": b"fact"}, "containing"),
        ({"id": "a", "new_id": "a"}, "id"),
        ({"id": "a", "new_id": ""}, "id"),
        ({"id": "a", "valid_from": 5, "valid_to": 5}, "valid_to"),
        ({"id": "a", "tags": "one"}, "tags"),
        ({"id": "a", "pinned": 1}, "pinned"),
    ):
        refused(memory, lambda target=target: memory.correct(f"{MARKER} new", **target), field)
    for text in ("", None, 5, b"x", LONE, MARKER.ljust(65_537, "x")):
        refused(memory, lambda text=text: memory.correct(text, id="a"), "text")
    refused(memory, lambda: memory.correct("new", text=MARKER), "text", NotFound)
    refused(memory, lambda: memory.correct("new", containing=MARKER), "containing", NotFound)
    memory.remember(f"{MARKER} two", id="b")
    memory.remember(f"{MARKER} three", id="c")
    with pytest.raises(Conflict) as caught:
        memory.correct("new", containing=MARKER.lower())
    assert (caught.value.kind, caught.value.details["ids"]) == ("several", ["b", "c"])
    assert MARKER not in str(caught.value)
    assert memory.correct("right", text=f" {MARKER}\n two ").supersedes == ("b",)


def test_an_end_lies_after_the_start_and_not_after_an_earlier_end(memory):
    memory.remember("b", id="b", valid_from=100, valid_to=200)
    for at in (99, 100, 201, 10**12, "banana", True, 10**5000):
        refused(memory, lambda at=at: memory.end("b", at=at), "at")
    for reason in (5, b"x", LONE, MARKER.ljust(4097)):
        refused(memory, lambda reason=reason: memory.end("b", at=150, reason=reason), "reason")
        refused(memory, lambda reason=reason: memory.retract("b", reason=reason), "reason")
    ended = memory.end("b", at=150, reason="r" * 4096)
    assert [(end.at, end.reason) for end in ended.ends] == [
        (datetime(1970, 1, 1, microsecond=150_000, tzinfo=UTC), "r" * 4096)
    ]
    assert MARKER not in repr(memory.end("b", at=150, reason=MARKER))  # the same end again: nothing new
    assert "rrr" not in repr(ended.ends)


def test_an_annotation_changes_at_least_one_thing_and_checks_it_as_remember_does(memory):
    refused(memory, lambda: memory.annotate("a"), None)
    for changes, field in (
        ({"tags": "one"}, "tags"),
        ({"tags": [""]}, "tags"),
        ({"kind": "epic"}, "kind"),
        ({"importance": 2}, "importance"),
        ({"importance": 10**400}, "importance"),
        ({"pinned": 0}, "pinned"),
        ({"metadata": MARKER}, "metadata"),
        ({"metadata": {"perdure": MARKER}}, "metadata"),
        ({"metadata": {MARKER: math.nan}}, "metadata"),
    ):
        refused(memory, lambda changes=changes: memory.annotate("a", **changes), field)


def test_forget_takes_exactly_one_well_formed_scope(memory):
    for scope, field in (
        ({}, "scope"),
        ({"all": False}, "scope"),
        ({"subject": "s", "entity": "e"}, "scope"),
        ({"all": True, "ids": []}, "scope"),
        ({"ids": "a"}, "ids"),
        ({"ids": b"a"}, "ids"),
        ({"ids": 5}, "ids"),
        ({"ids": [MARKER, ""]}, "ids"),
        ({"ids": [LONE]}, "ids"),
        ({"ids": [None]}, "ids"),
        ({"subject": ""}, "subject"),
        ({"subject": 5}, "subject"),
        ({"entity": ""}, "entity"),
        ({"entity": MARKER.ljust(1025)}, "entity"),
        ({"tag": ""}, "tag"),
        ({"tag": ["a"]}, "tag"),
        ({"kind": "epic"}, "kind"),
        ({"kind": ""}, "kind"),
        ({"matching": {}}, "matching"),
        ({"matching": MARKER}, "matching"),
        ({"matching": {MARKER: math.nan}}, "matching"),
        ({"filter": {}}, "filter"),
        ({"text": ""}, "text"),
        ({"text": " \n"}, "text"),
        ({"text": 5}, "text"),
        ({"containing": ""}, "containing"),
        ({"containing": " "}, "containing"),
        ({"containing": LONE}, "containing"),
        ({"ingested_before": "banana"}, "ingested_before"),
        ({"ingested_before": True}, "ingested_before"),
        ({"event_before": 10**5000}, "event_before"),
        ({"all": 1}, "all"),
        ({"all": "true"}, "all"),
    ):
        for key in (None, "key"):
            refused(memory, lambda scope=scope, key=key: memory.forget(**scope, idempotency_key=key), field)
    for flag in ("include_chain", "dry_run", "soft", "block"):
        for value in (1, 0, "true"):
            refused(memory, lambda flag=flag, value=value: memory.forget(all=True, **{flag: value}), flag)
    assert memory.forget(ids=[]).forgotten == ()
    assert memory.forget(ids=[MARKER]).forgotten == ()
    assert memory.forget(all=True).forgotten == ("a", "h")


def test_a_flag_that_is_none_is_as_good_as_left_out(memory):
    assert memory.remember("a fact", id="p", pinned=None, reassert=None).created
    assert not memory.get("p").pinned
    assert memory.remember("again", reassert=None).created
    assert not memory.remember("again", reassert=None).created
    assert memory.recall("fact", explain=None)[0].explanation is None
    assert memory.list(hidden=None) == memory.list()
    assert memory.forget(ids=["p"], include_chain=None, dry_run=None, soft=None, block=None).forgotten == (
        "p",
    )
    assert memory.remember("a fact", id="p").created
    assert memory.restore(["p"]) == ()
    refused(memory, lambda: memory.forget(all=None), "scope")
    assert memory.forget(ids=["p"], all=None).forgotten == ("p",)


def test_a_flag_that_is_none_changes_nothing_of_a_stored_fact(memory):
    memory.remember("a pinned fact", id="p", pinned=True)
    assert memory.annotate("p", tags=["t"], pinned=None).pinned
    corrected = memory.correct("a fact that stays pinned", id="p", pinned=None)
    assert memory.get(corrected.id).pinned
    refused(memory, lambda: memory.annotate("p", pinned=None), None)


def test_a_flag_that_is_none_leaves_maintenance_a_preview(memory):
    before = memory.list()
    assert memory.apply_forgetting(dry_run=None, include_chain=None).dry_run
    assert memory.consolidate(dry_run=None, allow_destructive=None).dry_run
    assert memory.list() == before


WORDS = f"{MARKER} said so"


def test_a_value_of_text_is_shown_by_its_length_alone(memory):
    for call, field in (
        (lambda: memory.remember("x", kind=WORDS), "kind"),
        (lambda: memory.annotate("a", kind=WORDS), "kind"),
        (lambda: memory.recall("x", kind=WORDS), "kind"),
        (lambda: memory.recall("x", history=WORDS), "history"),
        (lambda: memory.list(order=WORDS), "order"),
        (lambda: memory.list(status=WORDS), "status"),
        (lambda: memory.forget(kind=WORDS), "kind"),
    ):
        found = refused(memory, call, field)
        assert f"got a text of {len(WORDS)} characters" in str(found)


def test_a_blocked_member_of_a_batch_is_told_by_its_index(memory):
    memory.remember(WORDS, id="b")
    memory.forget(ids=["b"], block=True)
    for blocked in ({"text": WORDS}, {"text": "other words", "id": "b"}):
        found = refused(
            memory,
            lambda blocked=blocked: memory.remember_many(["fine", "fine too", blocked]),
            "id" if "id" in blocked else "text",
            Blocked,
        )
        assert found.details["index"] == 2
        assert str(found).startswith("facts[2]: ")


def test_restoring_and_unblocking_take_lists(memory):
    for ids in ("h", b"h", 5, None, [5], [""], [LONE]):
        refused(memory, lambda ids=ids: memory.restore(ids), "ids")
    for options, field in (
        ({}, "ids"),
        ({"ids": "a"}, "ids"),
        ({"ids": [""]}, "ids"),
        ({"ids": 5}, "ids"),
        ({"texts": "a"}, "texts"),
        ({"texts": [5]}, "texts"),
        ({"texts": [LONE]}, "texts"),
        ({"texts": 5}, "texts"),
    ):
        refused(memory, lambda options=options: memory.unblock(**options), field)
    assert memory.unblock(ids=[], texts=[]) == 0
    assert memory.restore(["h", MARKER]) == ("h",)


def test_only_the_contract_that_is_spoken_is_negotiated(memory):
    assert memory.capabilities() == memory.capabilities(1)
    for version in (0, 2, -1, True, "1", 1.0, None, 10**5000):
        refused(memory, lambda version=version: memory.capabilities(version), "contract_version")


def test_what_values_show_of_themselves_holds_no_text(memory: Memory):
    memory.remember(
        f"{MARKER} says",
        id=MARKER,
        subject=MARKER,
        entities=[MARKER],
        tags=[MARKER],
        metadata={MARKER: MARKER},
        source={"uri": MARKER, "quote": MARKER, "actor": MARKER},
    )
    memory.end(MARKER, reason=MARKER)
    for value in (
        memory.recall(MARKER, explain=True, history="all"),
        memory.explain(MARKER, MARKER),
        memory.explain(MARKER, MARKER).chain,
        memory.get(MARKER),
        memory.get(MARKER).source,
        memory.get(MARKER).ends,
        memory.history(MARKER),
        memory.list(),
    ):
        assert repr(value)
        assert MARKER not in repr(value)
        assert MARKER not in str(value)


def test_a_key_that_was_refused_is_still_unused(memory):
    refused(memory, lambda: memory.remember("", idempotency_key="key"), "text")
    refused(memory, lambda: memory.remember("x", supersedes=["nobody"], idempotency_key="key"), "supersedes")
    with pytest.raises(Conflict) as caught:
        memory.remember("other", id="a", idempotency_key="key")
    assert caught.value.kind == "id"
    assert memory.remember("x", idempotency_key="key").outcome == "created"
    with pytest.raises(Conflict) as caught:
        memory.remember("y", idempotency_key="key")
    assert (caught.value.kind, caught.value.field) == ("idempotency", "idempotency_key")
    assert isinstance(caught.value, Conflict)
    assert not isinstance(caught.value, InvalidRequest)
