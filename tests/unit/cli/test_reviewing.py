"""Governed knowledge, conversations and the audit at the command line."""

from __future__ import annotations

import json
import sqlite3

import pytest

TURNS = [
    {"sourceId": "t0", "role": "user", "text": "The vault opens at nine", "observationTime": "2026-01-01"},
    {"sourceId": "t1", "role": "assistant", "text": "Noted", "observationTime": "2026-01-01"},
]
LINES = "\n".join(json.dumps(turn) for turn in TURNS)


def proposed(run, id_, text, *options):
    told = run("propose", text, "--evidence", f"chat/{id_}", "--quote", text, "--id", id_, *options, "--json")
    assert told.code == 0, told.err
    return told.json["nodes"][0]


def recalled(run, query="vault"):
    return [hit["fact"]["text"] for hit in run("recall", query, "--json").json["results"]]


def test_what_is_proposed_waits_with_its_quote_and_is_served_once_it_is_activated(run):
    node = proposed(run, "nine", "The vault opens at nine", "--label", "site=north", "--actor", "agent")
    assert (node["status"], node["labels"], node["actor"]) == ("candidate", {"site": "north"}, "agent")
    assert recalled(run) == []
    shown = run("review")
    for part in ("nine", "candidate", "chat/nine", "The vault opens at nine", "1 waits for a decision."):
        assert part in shown.out
    told = run("activate", "nine", "--revision", "1", "--reason", "asked", "--json").json["nodes"][0]
    assert (told["status"], told["revision"], told["reason"]) == ("active", 2, "asked")
    assert [one["kind"] for one in told["evidence"]] == ["user_statement", "manual"]
    assert recalled(run) == ["The vault opens at nine"]
    assert run("review").out == "Nothing waits for a decision.\n"
    explained = run("explain", "vault", "perdure:node/nine@2").out
    assert "nine, revision 2, active" in explained
    assert "user_statement, chat/nine: The vault opens at nine" in explained


def test_a_second_witness_of_a_text_makes_a_candidate_of_its_own(run):
    for source in ("a", "b"):
        assert run("propose", "The vault is blue", "--evidence", source, "--digest", "d").code == 0
    assert run("review", "--json").json["total"] == 2


def test_a_retry_under_the_same_key_gives_the_first_answer_and_changes_nothing(run):
    key, told = "--idempotency-key", ("--evidence", "chat/1", "--quote", "at nine", "--json")
    calls = [
        ("propose", "The vault opens at nine", "--id", "nine", *told, key, "p"),
        ("propose", "The vault opens at ten", "--id", "ten", *told, key, "q"),
        ("activate", "ten", "--json", key, "a"),
        ("activate", "nine", "--supersedes", "ten", "--reason", "asked", "--json", key, "b"),
        ("revise", "nine", "It opens at nine", "--evidence", "c/2", "--digest", "d", "--json", key, "c"),
        ("reject", "nine", "--evidence", "desk", "--digest", "d", "--json", key, "d"),
    ]
    first = [run(*call).json for call in calls]
    state = run("revisions", "nine", "--json").out, run("revisions", "ten", "--json").out
    assert [node["status"] for node in first[3]["nodes"]] == ["active", "superseded"]
    assert [run(*call).json for call in calls] == first
    assert (run("revisions", "nine", "--json").out, run("revisions", "ten", "--json").out) == state


def test_a_key_stands_for_one_change_only(run):
    proposed(run, "nine", "The vault opens at nine")
    assert run("activate", "nine", "--idempotency-key", "a").code == 0
    refused = run("activate", "nine", "--reason", "another", "--idempotency-key", "a", "--json")
    assert (refused.code, refused.error["details"]["kind"]) == (1, "idempotency_conflict")


def test_the_same_text_has_the_same_id_and_is_proposed_once(run):
    first = run("propose", "The vault is blue", "--evidence", "a", "--digest", "d", "--json").json
    again = run("propose", "The vault is blue", "--evidence", "a", "--digest", "d", "--json")
    assert again.code == 1
    assert again.error["details"] == {
        "kind": "node_already_exists",
        "nodeId": first["nodes"][0]["id"],
    }


def test_activating_in_place_of_another_supersedes_it(run):
    proposed(run, "ten", "The vault opens at ten")
    run("activate", "ten")
    proposed(run, "nine", "The vault opens at nine")
    done = run("activate", "nine", "--supersedes", "ten", "--actor", "ada", "--json")
    assert {node["id"]: node["status"] for node in done.json["nodes"]} == {
        "nine": "active",
        "ten": "superseded",
    }
    assert recalled(run) == ["The vault opens at nine"]
    shown = run("revisions", "ten").out
    assert shown.count("revision ") == 4
    assert "superseded by" in shown
    changed = [line.split(None, 1)[1] for line in shown.splitlines() if line.startswith("changed")]
    assert changed == [
        "status, 1 more evidence",
        "relations, 1 more evidence",
        "status, 1 more evidence",
    ]
    assert [node["revision"] for node in run("revisions", "ten", "--json").json["items"]] == [1, 2, 3, 4]


def test_a_node_is_said_anew_and_vouched_for_by_another_witness(run):
    proposed(run, "nine", "The vault opens at nine")
    run("activate", "nine")
    told = ("--evidence", "chat/2", "--quote", "the vault opens at half past nine", "--quote-start", "4")
    revised = run("revise", "nine", "The vault opens at half past nine", *told, "--json").json["nodes"][0]
    assert (revised["revision"], revised["revisionKind"], revised["evidence"][0]["start"]) == (
        3,
        "refined",
        4,
    )
    assert recalled(run) == ["The vault opens at half past nine"]
    more = run(
        "corroborate", "nine", "--evidence", "chat/3", "--quote", "yes", "--at", "2026-01-01", "--json"
    )
    assert more.json["nodes"][0]["revisionKind"] == "corroborated"
    assert {one["uri"] for one in more.json["nodes"][0]["evidence"]} >= {"chat/nine", "chat/2", "chat/3"}


def test_what_is_disputed_is_served_no_longer_until_it_is_resolved(run):
    for name, text in (("one", "The vault has one key"), ("two", "The vault has two keys")):
        proposed(run, name, text)
    run("activate", "one")
    call = ("dispute", "one", "--with", "two", "--idempotency-key", "k", "--json")
    done = run(*call)
    assert run(*call).json == done.json
    assert {node["id"]: node["status"] for node in done.json["nodes"]} == {
        "one": "conflicted",
        "two": "candidate",
    }
    assert [node["relations"][0]["target"] for node in done.json["nodes"]] == ["two", "one"]
    assert recalled(run) == []
    assert run("resolve", "one").code == 0
    assert recalled(run) == ["The vault has one key"]


@pytest.mark.parametrize("words", [("retract",), ("correct", "The vault opens at ten", "--id")])
def test_a_fact_that_a_node_is_seen_as_is_refused_with_the_name_of_the_node(run, words):
    proposed(run, "nine", "The vault opens at nine")
    run("activate", "nine")
    refused = run(*words, "perdure:node/nine@2", "--json")
    assert (refused.code, refused.error["details"]["kind"]) == (1, "governed")
    assert ": nine; perdure revise" in refused.error["message"]


def test_a_candidate_is_erased_with_all_that_it_rests_on(run, store_path):
    proposed(run, "ten", "The vault opens at ten")
    preview = run("forget-node", "ten", "--dry-run")
    assert (preview.code, "1 node would go. Nothing was changed." in preview.out) == (0, True)
    refused = run("forget-node", "ten", stdin="n\n")
    assert (refused.code, "The vault opens at ten" in refused.err) == (1, True)
    assert run("forget-node", "ten", "nobody", "--yes", "--purge", "--json").json["forgotten"] == ["ten"]
    assert run("review", "--json").json["total"] == 0
    assert not any(b"opens at ten" in file.read_bytes() for file in store_path.rglob("*") if file.is_file())
    again = run("forget-node", "ten", "--yes")
    assert (again.code, again.err) == (1, "perdure: not found: ten\n")


def test_a_decision_names_the_user_unless_somebody_else_is_told(run, monkeypatch):
    monkeypatch.setattr("getpass.getuser", lambda: "ada")
    proposed(run, "ten", "The vault opens at ten")
    assert run("activate", "ten", "--json").json["nodes"][0]["actor"] == "ada"
    assert run("reject", "ten", "--actor", "bo", "--json").json["nodes"][0]["actor"] == "bo"


PROPOSE = ("propose", "The vault opens at ten", "--evidence", "c", "--quote", "ten")


@pytest.mark.parametrize(
    ("line", "option"),
    [
        ((*PROPOSE, "--confidence", "7"), "--confidence"),
        ((*PROPOSE, "--confidence", "much"), "--confidence"),
        ((*PROPOSE, "--knowledge", "dream"), "--knowledge"),
        ((*PROPOSE, "--kind", "dream"), "--kind"),
        ((*PROPOSE, "--quote-start", "x"), "--quote-start"),
        ((*PROPOSE, "--quote-start", "-1"), "--quote-start"),
        ((*PROPOSE, "--at", "soon"), "--at"),
        ((*PROPOSE, "--at", "2999-01-01"), "--at (2999-01-01T00:00:00Z)"),
        (
            (*PROPOSE, "--valid-from", "2020-01-01", "--valid-to", "2019-01-01"),
            "--valid-to (2019-01-01T00:00:00Z) must lie after --valid-from (2020-01-01T00:00:00Z)",
        ),
        (("activate", "nine", "--revision", "x"), "--revision"),
        (("activate", "nine", "--revision", "0"), "--revision"),
        (("activate", "nine", "--evidence", "u"), "--digest"),
        (("review", "--limit", "0"), "--limit"),
        (("review", "--limit", "x"), "--limit"),
        ((*PROPOSE, "--valid-from", "soon"), "--valid-from"),
        (("conversation", "recall", "x", "--k", "x"), "--k"),
        (("conversation", "recall", "x", "--role", "me"), "--role"),
        (("conversation", "recall", "x", "--subquery-weight", "7"), "--subquery-weight"),
        (("conversation", "recall", "x", "--max-sources", "0"), "--max-sources"),
    ],
)
def test_a_wrong_value_is_told_by_the_option_that_was_typed(run, line, option):
    proposed(run, "nine", "The vault opens at nine")
    refused = run(*line)
    assert refused.code == 2
    assert refused.err.startswith(f"perdure: {option}")


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ((*PROPOSE, "--confidence", "7"), "draft.confidence"),
        ((*PROPOSE, "--kind", "dream"), "draft.evidence[0].kind"),
        ((*PROPOSE, "--at", "soon"), "occurredAt"),
        ((*PROPOSE, "--valid-from", "soon"), "validFrom"),
        (("activate", "nine", "--revision", "x"), "expectedRevision"),
        (("activate", "nine", "--revision", "0"), "expectedRevision"),
        (("review", "--limit", "0"), "limit"),
        (("conversation", "recall", "x", "--max-sources", "0"), "maxSources"),
        (("conversation", "recall", "x", "--role", "me"), "roles[0]"),
    ],
)
def test_a_program_is_told_the_field_of_the_contract_and_no_option(run, line, field):
    proposed(run, "nine", "The vault opens at nine")
    refused = run(*line, "--json")
    told = refused.error["field"]
    assert (refused.code, told.removeprefix("operations[0].")) == (2, field)
    assert "--" not in refused.error["message"]
    assert refused.error["message"].startswith(told)


def test_what_is_rejected_is_kept_and_never_served(run):
    proposed(run, "ten", "The vault opens at ten")
    told = run("reject", "ten", "--reason", "a slip", "--actor", "ada", "--json").json["nodes"][0]
    assert (told["status"], told["reason"], told["actor"]) == ("tombstoned", "a slip", "ada")
    assert recalled(run) == []
    refused = run("activate", "ten", "--json")
    assert (refused.code, refused.error["details"]["kind"]) == (1, "invalid_transition")


def test_a_decision_on_another_revision_than_was_looked_at_is_refused(run):
    proposed(run, "ten", "The vault opens at ten")
    run("activate", "ten")
    refused = run("reject", "ten", "--revision", "1", "--json")
    assert refused.code == 1
    assert refused.error["details"] | {"nodeId": ""} == {
        "kind": "revision_conflict", "nodeId": "", "expected": 1, "actual": 2,
    }  # fmt: skip


def test_evidence_that_does_not_decide_activates_nothing(run):
    proposed(run, "ten", "The vault opens at ten")
    refused = run("activate", "ten", "--evidence", "x", "--digest", "d", "--kind", "artifact", "--json")
    assert (refused.code, refused.error["details"]["kind"]) == (2, "evidence_required")


@pytest.mark.parametrize(
    "line",
    [
        ("propose", "x", "--evidence", "a"),
        ("revise", "ten", "x", "--evidence", "a", "--digest", "d", "--mode", "dream"),
        ("dispute", "ten", "--with", "nine"),
        ("propose", "x", "--evidence", "a", "--quote", "q", "--label", "nothing"),
        ("propose", "x", "--evidence", "a", "--quote", "q", "--knowledge", "dream"),
        ("propose", " ", "--evidence", "a", "--quote", "q"),
        ("activate", "ten", "--quote", "q"),
        ("events", "--type", "dreamt"),
    ],
)
def test_what_is_wrong_is_told_and_makes_no_store(run, store_path, line):
    refused = run(*line, "--json")
    assert refused.code in (1, 2)
    assert refused.error["message"]
    assert not store_path.exists()


def test_a_quote_of_a_kept_turn_must_be_its_words(run):
    assert run("conversation", "remember", "monday", "1", "-", stdin=LINES).code == 0
    uri = ("--evidence", "perdure:turn/monday/1/t0", "--kind", "session_turn")
    refused = run("propose", "It never opens", *uri, "--quote", "never", "--json")
    assert (refused.code, refused.error["details"]["kind"]) == (2, "quote_not_found")
    assert run("propose", "It opens at nine", *uri, "--quote", "opens at nine").code == 0


def test_conversations_are_kept_recalled_listed_and_forgotten(run, tmp_path):
    file = tmp_path / "turns.jsonl"
    file.write_text(LINES)
    assert run("conversation", "remember", "monday", "1", str(file), "--json").json["outcome"] == "created"
    assert "existing" in run("conversation", "remember", "monday", "1", str(file)).out
    assert "The vault opens at nine" in run("conversation", "recall", "vault").out
    assert "monday" in run("conversation", "list").out
    assert run("conversation", "get", "monday", "2").code == 1
    preview = run("conversation", "forget", "monday", "--dry-run", "--json").json
    assert (len(preview["forgotten"]), preview["dryRun"]) == (2, True)
    assert run("conversation", "forget", "monday", stdin="n\n").code == 1
    assert run("conversation", "forget", "monday", stdin="y\n").out == "2 turns forgotten.\n"
    assert run("conversation", "list", "--json").json["total"] == 0


def test_what_cites_turns_is_not_counted_as_turns(run):
    assert run("conversation", "remember", "monday", "1", "-", stdin=LINES).code == 0
    uri = ("--evidence", "perdure:turn/monday/1/t0", "--kind", "session_turn", "--digest", "d")
    assert run("propose", "It opens at nine", *uri).code == 0
    forget = ("conversation", "forget", "monday", "--include-derived")
    told = "2 turns and 1 node or fact that cites them"
    assert f"{told} would go. Nothing was changed.\n" in run(*forget, "--dry-run").out
    assert run(*forget, "--yes").out == f"{told} forgotten.\n"


@pytest.mark.parametrize("told", ["{", b"\xff", "5"])
def test_turns_that_are_none_are_refused_by_line(run, store_path, told):
    refused = run("conversation", "remember", "monday", "1", "-", "--json", stdin=told)
    assert (refused.code, refused.error["code"]) == (2, "invalid_request")
    assert not store_path.exists()


def turn(**changed: object) -> str:
    told = {"sourceId": "t1", "role": "user", "text": "It opens at ten", "observationTime": "2024-05-31"}
    return json.dumps(told | changed)


@pytest.mark.parametrize(
    ("wrong", "told", "field"),
    [
        (turn(speaker="ann"), "turns[1] (line 3) has no field 'speaker'", "turns[1].speaker"),
        (turn(source_id="x"), "turns[1] (line 3) has no field 'source_id'", "turns[1].source_id"),
        ('{"sourceId": "x"}', "turns[1].role (line 3) is missing", "turns[1].role"),
        (
            turn(observationTime="soon"),
            "turns[1].observationTime (line 3) is not",
            "turns[1].observationTime",
        ),
        (turn(role="valid_from"), "turns[1].role (line 3) must be", "turns[1].role"),
        (turn(sourceId="t0"), "turns[1].sourceId (line 3) is that of turns[0] (line 1)", "turns[1].sourceId"),
        (turn(sourceId=7), "turns[1].sourceId (line 3) must be text", "turns[1].sourceId"),
        ("5", "turns[1] (line 3) must be an object", "turns[1]"),
    ],
)
@pytest.mark.parametrize("as_json", [True, False])
def test_what_is_wrong_in_a_file_of_turns_is_named_as_the_file_does_with_its_line(
    run, store_path, wrong, told, field, as_json
):
    lines = f"{turn(sourceId='t0')}\n\n{wrong}\n"
    how = ["--json"] if as_json else []
    refused = run("conversation", "remember", "monday", "1", "-", *how, stdin=lines)
    assert refused.code == 2
    assert refused.err.startswith(f"perdure: {told}")
    assert not store_path.exists()
    if as_json:
        assert (refused.error["field"], refused.error["details"]["line"]) == (field, 3)


def test_a_line_of_turns_that_is_no_json_is_told_with_its_line_and_column(run):
    refused = run("conversation", "remember", "monday", "1", "-", stdin=f'{turn()}\n{{"a": 1, "a": 2}}\n')
    assert "line 2 of the file of turns" in refused.err
    assert "duplicate key" in refused.err


def test_the_words_of_the_line_are_named_as_they_are_typed_beside_a_file_of_turns(run):
    assert "SESSION" in run("conversation", "remember", "", "1", "-", stdin=turn()).err
    assert run("conversation", "remember", "", "1", "-", "--json", stdin=turn()).error["field"] == "sessionId"


def test_events_tell_what_happened_by_whom_and_never_what_was_said(run):
    proposed(run, "ten", "The vault opens at ten")
    run("remember", "Ann lives in Paris", "--id", "paris")
    run("forget", "paris", "--yes")
    shown = run("events").out
    assert "forgotten" in shown
    assert "Paris" not in shown
    assert "vault" not in shown.replace("perdure:node", "")
    told = run("events", "--id", "paris", "--json").json["items"]
    assert [(one["type"], one["factId"]) for one in told] == [("created", None), ("forgotten", None)]
    assert run("events", "--all", "--json").json["total"] == run("events", "--json").json["total"] == 3
    assert run("events", "--type", "purged").out == "There are no such events.\n"


def test_verify_sees_an_audit_that_was_changed(run, store_path):
    run("remember", "Ann lives in Paris", "--id", "paris")
    run("events")
    assert run("verify").code == 0
    with sqlite3.connect(store_path / "audit" / "gen-1.db") as base:
        base.execute("UPDATE rec SET data = data || x'00' WHERE rid = (SELECT max(rid) FROM rec)")
    base.close()
    told = run("verify", "--json")
    assert (told.code, told.json["ok"]) == (1, False)
    assert len(told.json["findings"]) >= 1
    assert "finding" in run("verify").out
