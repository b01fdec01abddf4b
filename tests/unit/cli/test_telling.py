"""remember, correct, end, retract and annotate at the command line."""

from __future__ import annotations

import json

from unit.cli.command_line import remember, texts


def test_remember_answers_with_the_receipt(run):
    outcome = run("remember", "Alice lives in Paris", "--id", "a", "--json")
    assert outcome.code == 0
    receipt = outcome.json
    assert list(receipt) == [
        "id", "outcome", "created", "status", "reason", "ingestTime", "supersedes", "supersededBy", "pending",
    ]  # fmt: skip
    assert (receipt["id"], receipt["outcome"], receipt["status"]) == ("a", "created", "current")
    assert isinstance(receipt["ingestTime"], int)


def test_people_see_the_outcome_and_the_id(run):
    outcome = run("remember", "Alice lives in Paris", "--id", "a")
    assert outcome.code == 0
    assert "created" in outcome.out
    assert outcome.err == ""


def test_every_option_of_remember_is_kept(run):
    remember(run, "before", "--id", "old")
    source = {"uri": "mail:7", "position": 3, "actor": "Bo"}
    told = remember(
        run, "Alice lives in Paris", "--subject", "alice/city", "--entity", "Paris", "--entity", "Alice",
        "--metadata", '{"team":"a","n":1.5}', "--event-time", "2020-02-01", "--valid-from", "2020-01-01",
        "--valid-to", "2030-01-01T00:00:00+01:00", "--supersedes", "old", "--tag", "x", "--tag", "y",
        "--kind", "semantic", "--importance", "0.5", "--pinned", "--source", json.dumps(source),
    )  # fmt: skip
    fact = run("get", told, "--json").json["fact"]
    assert fact["subject"] == "alice/city"
    assert fact["entities"] == ["Alice", "Paris"]
    assert fact["metadata"] == {"team": "a", "n": 1.5}
    assert (fact["eventTime"], fact["validFrom"]) == (1_580_515_200_000, 1_577_836_800_000)
    assert fact["validTo"] == 1_893_456_000_000 - 3_600_000
    assert (fact["supersedes"], fact["tags"]) == (["old"], ["x", "y"])
    assert (fact["kind"], fact["importance"], fact["pinned"]) == ("semantic", 0.5, True)
    assert fact["source"] == source


def test_a_text_is_read_from_standard_input_without_its_last_line_end(run):
    told = run("remember", "-", "--json", stdin="two\nlines\n")
    fact = run("get", told.json["id"], "--json").json["fact"]
    assert fact["text"] == "two\nlines"


def test_standard_input_that_is_not_utf_8_is_refused_with_the_place(run):
    outcome = run("remember", "-", stdin=b"ab\xff")
    assert outcome.code == 2
    assert "byte 3" in outcome.err


def test_telling_the_same_again_answers_existing(run):
    first = run("remember", "Alice lives in Paris", "--json").json
    again = run("remember", "Alice lives in Paris", "--json").json
    assert (again["outcome"], again["id"], again["ingestTime"]) == (
        "existing",
        first["id"],
        first["ingestTime"],
    )


def test_reassert_tells_it_anew(run):
    first = remember(run, "Paris it is", "--valid-to", "2020-01-01")
    assert remember(run, "Paris it is", "--valid-to", "2020-01-01", "--reassert") != first


def test_an_idempotency_key_with_another_request_is_a_conflict_and_changes_nothing(run):
    first = remember(run, "one", "--idempotency-key", "k")
    assert remember(run, "one", "--idempotency-key", "k") == first
    outcome = run("remember", "two", "--idempotency-key", "k", "--json")
    assert outcome.code == 1
    assert outcome.error["code"] == "conflict"
    assert outcome.error["details"]["kind"] == "idempotency"
    assert texts(run("list", "--json")) == ["one"]


def test_a_correction_inherits_what_is_not_given_and_clears_what_is_named(run):
    remember(run, "The code is 4711", "--id", "a", "--subject", "door", "--tag", "t", "--importance", "1")
    outcome = run(
        "correct", "The code is 4712", "--id", "a", "--new-id", "b", "--clear", "importance", "--json"
    )
    assert outcome.json["supersedes"] == ["a"]
    fact = run("get", "b", "--json").json["fact"]
    assert (fact["subject"], fact["tags"], fact["importance"]) == ("door", ["t"], None)
    assert texts(run("recall", "code", "--json")) == ["The code is 4712"]


def test_a_field_cannot_be_given_and_cleared(run):
    remember(run, "x", "--id", "a")
    outcome = run("correct", "y", "--id", "a", "--subject", "s", "--clear", "subject")
    assert outcome.code == 2
    assert "subject" in outcome.err


def test_clear_names_the_fields_that_it_knows(run):
    outcome = run("annotate", "a", "--clear", "text")
    assert outcome.code == 2
    assert "importance" in outcome.err
    assert "'text'" in outcome.err


def test_a_correction_of_nothing_is_not_found_and_of_several_a_conflict(run):
    remember(run, "a blue roof")
    assert run("correct", "y", "--text", "nothing like it", "--json").error["code"] == "not_found"
    ids = {remember(run, "a red door"), remember(run, "a red wall")}
    outcome = run("correct", "y", "--containing", "red", "--json")
    assert outcome.code == 1
    assert set(outcome.error["details"]["ids"]) == ids


def test_an_ended_fact_is_expired_from_then_on(run):
    remember(run, "The lift is broken", "--id", "a", "--valid-from", "2024-01-01")
    fact = run("end", "a", "--at", "2024-02-01", "--reason", "mended", "--json").json["fact"]
    assert fact["status"] == "expired"
    assert fact["ends"][0]["at"] == 1_706_745_600_000
    assert fact["ends"][0]["reason"] == "mended"
    assert texts(run("recall", "lift", "--json")) == []
    assert texts(run("recall", "lift", "--as-of", "2024-01-15", "--json")) == ["The lift is broken"]


def test_a_retracted_fact_was_never_true(run):
    remember(run, "The office moves", "--id", "a", "--valid-from", "2024-01-01")
    assert run("retract", "a", "--json").json["fact"]["ends"][0]["at"] is None
    assert texts(run("recall", "office", "--as-of", "2024-06-01", "--json")) == []


def test_annotate_changes_what_is_noted(run):
    remember(run, "x", "--id", "a", "--importance", "0.2", "--tag", "old")
    outcome = run("annotate", "a", "--tag", "new", "--clear", "importance", "--pinned", "--json")
    fact = outcome.json["fact"]
    assert (fact["tags"], fact["importance"], fact["pinned"]) == (["new"], None, True)


def test_what_is_not_there_cannot_be_ended_retracted_or_annotated(run):
    remember(run, "x")
    for command in ("end", "retract"):
        assert run(command, "nope", "--json").error["code"] == "not_found"
    outcome = run("annotate", "nope", "--tag", "t")
    assert outcome.code == 1
    assert outcome.err.count("\n") == 1
