"""The wire form of replies: shapes, order of keys, times in milliseconds, plain JSON."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure import Context, ManualClock, Memory, MemoryConfig, NewFact, errors
from perdure.contract import wire
from perdure.contract.naming import camel_case
from perdure.contract.operations import OPERATIONS
from perdure.importers.jsonlines import fact_of
from perdure.model.fact import Fact
from perdure.model.status import Status

FACT = [
    "id", "text", "subject", "entities", "metadata", "tags", "kind", "importance", "pinned", "eventTime",
    "validFrom", "validTo", "ingestTime", "ends", "uses", "lastUsedAt", "hidden", "source", "supersedes",
    "supersededBy", "status", "merged",
]  # fmt: skip
EXPLANATION = [
    "id", "reason", "retrieved", "rank", "lexicalScore", "semanticScore", "retrievalScore", "weights", "fusion",
    "matchedTerms", "recencyFactor", "historicalFactor", "finalScore", "parts", "status", "asOf", "knownAt",
    "validFrom", "validTo", "withinValidity", "filteredBy", "chain", "source",
    "uses", "lastUsedAt", "marks", "neighbours", "actor", "period", "node",
]  # fmt: skip
DAY_MS = 1_735_689_600_000


@pytest.fixture
def memory():
    config = MemoryConfig(supersession="latest-by-subject")
    with Memory.open(":memory:", config=config, clock=ManualClock("2025-01-01")) as opened:
        opened.remember(
            "Alice lives in Paris", id="p", subject="s", valid_from="2020-01-01", metadata={"n": 1.5}
        )
        opened.remember(
            "Alice lives in Rome",
            id="r",
            subject="s",
            valid_from="2022-01-01",
            source={"uri": "u", "position": 0},
        )
        yield opened


def plain(value: Any) -> Any:
    """Return the value after a way through JSON, which must not change it."""
    again = json.loads(json.dumps(value, allow_nan=False))
    assert again == value
    return again


def test_a_fact_has_every_key_in_its_place(memory):
    memory.end("r", at="2024-01-01", reason="left")
    told = plain(wire.fact_object(memory.get("r")))
    assert list(told) == FACT
    assert (told["validFrom"], told["validTo"], told["ingestTime"]) == (1_640_995_200_000, None, DAY_MS)
    assert told["ends"] == [{"at": 1_704_067_200_000, "recordedAt": DAY_MS, "reason": "left"}]
    assert told["source"] == {"uri": "u", "position": 0}
    assert (told["supersedes"], told["status"]) == (["p"], "expired")


def test_a_hit_has_an_explanation_only_where_it_was_asked_for(memory):
    (hit,) = memory.recall("Alice")
    assert list(plain(wire.hit_object(hit))) == ["fact", "score", "status"]
    (hit,) = memory.recall("Alice", explain=True)
    assert list(plain(wire.hit_object(hit))) == ["fact", "score", "status", "explanation"]


def test_a_hit_names_its_memory_where_several_were_asked(memory):
    (hit,) = memory.recall("Alice", spaces=["other"])
    told = plain(wire.hit_object(hit))
    assert list(told) == ["fact", "score", "status", "space"]
    assert told["space"] == {"principal": "", "scope": ""}


def test_a_trace_has_every_key_and_its_options_are_json(memory):
    asked = {
        "k": 1, "as_of": datetime(2025, 1, 1, tzinfo=UTC), "history": None, "tags": iter(["red"]),
        "embedding": np.array([1.0, 0.5], dtype=np.float32), "context": Context(neighbours=(0.5,)),
        "weights": {"lexical": 1},
    }  # fmt: skip
    told = plain(wire.trace_object(memory.trace("Alice", **asked)))
    assert list(told) == [
        "query", "options", "seen", "eligible", "matched", "scored", "returned", "results", "rejected",
    ]  # fmt: skip
    assert told["options"] == {
        "k": 1, "asOf": DAY_MS, "tags": ["red"], "embedding": [1.0, 0.5],
        "context": {"neighbours": [0.5], "actor": 1.25, "period": 1.5}, "weights": {"lexical": 1},
    }  # fmt: skip
    assert told["rejected"][0] == {
        "id": "p", "reason": "filtered", "status": "superseded", "filter": ["tags"],
    }  # fmt: skip


def test_a_diff_has_every_key(memory):
    told = plain(wire.diff_object(memory.diff((0, DAY_MS))))
    assert list(told) == [
        "knownFrom", "knownTo", "asOf", "learnt", "ended", "retracted", "superseded", "corrected",
    ]  # fmt: skip
    (one,) = told["superseded"]
    assert list(one) == ["fact", "before", "after", "by"]
    assert (one["fact"]["id"], one["before"], one["after"], one["by"]) == ("p", None, "superseded", ["r"])


def test_an_explanation_has_every_key_in_its_place(memory):
    told = plain(wire.explanation_object(memory.explain("Alice", "p")))
    assert list(told) == EXPLANATION
    assert (told["reason"], told["status"], told["asOf"]) == ("not-current", "superseded", DAY_MS)
    assert told["source"] is None
    assert wire.explanation_object(memory.explain("Alice", "r"))["source"] == {"uri": "u", "position": 0}
    assert [list(link) for link in told["chain"]] == [
        ["id", "text", "relation", "direct", "effectiveTime", "status"]
    ] * 2


def test_receipts_pages_and_feeds_have_their_keys(memory):
    told = plain(wire.remembered_object(memory.remember("x", id="x")))
    assert told == {
        "id": "x", "outcome": "created", "created": True, "status": "current", "reason": None,
        "ingestTime": DAY_MS, "supersedes": [], "supersededBy": [], "pending": False,
    }  # fmt: skip
    page = plain(wire.page_object(memory.list(limit=1), wire.fact_object))
    assert list(page) == ["items", "total", "hasMore", "cursor"]
    feed = plain(wire.changes_object(memory.changes()))
    assert list(feed) == ["items", "hasMore", "cursor"]
    assert list(feed["items"][0]) == ["sequence", "kind", "at", "ids", "count"]
    forgotten = plain(wire.forgotten_object(memory.forget(ids=["x"])))
    assert forgotten | {"certificate": None} == {
        "forgotten": ["x"], "derived": [], "dryRun": False, "purged": False, "pending": False, "certificate": None,
    }  # fmt: skip
    assert list(forgotten["certificate"]) == [
        "version", "operation", "at", "store", "epoch", "spaces", "facts", "records", "ids", "texts", "steps",
        "pending", "backups", "outside", "seal", "event",
    ]  # fmt: skip
    assert plain(wire.consolidated_object(memory.consolidate())) == {
        "created": [], "forgotten": [], "dryRun": True, "pending": False,
    }  # fmt: skip


def test_a_merge_and_what_was_merged_have_their_keys(memory):
    memory.remember("Alice dwells in Rome", id="x", metadata={"n": 1.5})
    assert plain(wire.merged_object(memory.merge("r", ["x"]))) == {
        "kept": "r", "merged": ["x"], "dryRun": False, "tags": [], "kind": None, "importance": None,
        "pinned": False, "metadata": {"n": 1.5},
    }  # fmt: skip
    assert plain(wire.fact_object(memory.get("r")))["merged"] == {"count": 1, "lastAt": DAY_MS}
    assert wire.fact_object(memory.get("p"))["merged"] is None


def test_capabilities_say_what_is_not_there_too(memory):
    told = plain(wire.capabilities_object(memory.capabilities()))
    assert told["contractVersion"] == 1
    assert told["operations"] == sorted(OPERATIONS)
    assert {"remember", "putDocument", "applyChanges", "recallConversation", "export"} <= set(
        told["operations"]
    )
    assert told["features"]["documents"] is True
    assert told["features"]["embeddingDimension"] is None
    assert told["features"]["asOf"] is True


def test_an_error_has_one_shape_with_field_and_details_where_there_are_any():
    assert wire.error_object(errors.NotFound("gone")) == {"error": {"code": "not_found", "message": "gone"}}
    told = wire.error_object(errors.InvalidRequest("bad", field="valid_from"))
    assert told == {"error": {"code": "invalid_request", "message": "bad", "field": "validFrom"}}
    told = wire.error_object(
        errors.Conflict("several", kind="several", ids=("a", "b"), as_of=datetime(2025, 1, 1, tzinfo=UTC))
    )
    assert told["error"]["details"] == {"kind": "several", "ids": ["a", "b"], "asOf": DAY_MS}
    assert wire.error_object(errors.QueryLimit("work", 5))["error"]["details"] == {
        "resource": "work",
        "limit": 5,
    }


details = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(Status)
    | st.datetimes(timezones=st.just(UTC)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(details)
def test_whatever_stands_in_the_details_of_an_error_is_plain_json_on_the_wire(value):
    error = errors.NotFound("gone", member=[value])
    plain(wire.error_object(error))


def test_nothing_inside_the_details_of_an_error_is_null():
    error = errors.NotFound("gone", bad=[{"line": 3, "entry": None}], none=None)
    assert wire.error_object(error)["error"]["details"] == {"bad": [{"line": 3, "entry": None}]}


@pytest.mark.parametrize(
    "kind", [k for k in vars(errors).values() if isinstance(k, type) and issubclass(k, errors.PerdureError)]
)
def test_every_error_has_a_wire_form(kind):
    options = {errors.Conflict: {"kind": "id"}, errors.ImportFailed: {"committed": "no"}}.get(kind, {})
    error = kind("work", 5) if kind is errors.QueryLimit else kind("a message", **options)
    told = plain(wire.error_object(error))["error"]
    assert (told["code"], told["message"]) == (kind.code, str(error))


moments = st.none() | st.datetimes(min_value=datetime(1, 1, 1), timezones=st.just(UTC))


@given(moments, moments, st.text(max_size=20))
def test_times_are_whole_milliseconds_in_the_order_of_the_moments(start, end, text):
    with Memory.open(":memory:", clock=ManualClock("2025-01-01")) as opened:
        opened.remember("w " + text, id="a", event_time=start)
        told = wire.fact_object(opened.get("a"))
        assert told["eventTime"] is None or isinstance(told["eventTime"], int)
        assert told["text"] == "w " + text
        if start is not None and end is not None:
            earlier, later = sorted([start, end])
            opened.remember("b", id="b", event_time=earlier)
            opened.remember("c", id="c", event_time=later)
            assert (
                wire.fact_object(opened.get("b"))["eventTime"]
                <= wire.fact_object(opened.get("c"))["eventTime"]
            )


def test_the_names_of_a_new_fact_are_those_of_a_fact():
    camel = {camel_case(name) for name in NewFact.__struct_fields__} - {"reassert", "embedding"}
    assert camel <= set(FACT)
    assert {camel_case(name) for name in Fact.__struct_fields__} == set(FACT)


def test_a_fact_on_the_wire_can_be_told_again(memory):
    told = wire.fact_object(memory.get("p"))
    again = fact_of({name: told[name] for name in ("id", "text", "subject", "metadata", "validFrom")})
    assert memory.remember_many([again])[0].outcome == "existing"
