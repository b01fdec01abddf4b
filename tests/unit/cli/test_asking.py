"""recall, explain, get, history, list and changes at the command line."""

from __future__ import annotations

import itertools

import pytest

from perdure import SystemClock
from unit.cli.command_line import remember, texts

QUESTION = "where does Alice live"


@pytest.fixture
def moved(run):
    """Alice lived in Paris (id p) and lives in Berlin (id b)."""
    remember(
        run, "Alice lives in Paris", "--id", "p", "--valid-from", "2020-01-01", "--subject", "alice/city"
    )
    remember(run, "Alice lives in Berlin", "--id", "b", "--valid-from", "2025-01-01", "--supersedes", "p")


@pytest.mark.usefixtures("moved")
def test_a_hit_has_the_fact_the_score_and_the_status(run):
    (hit,) = run("recall", QUESTION, "--json").json["results"]
    assert list(hit) == ["fact", "score", "status"]
    assert (hit["fact"]["id"], hit["status"]) == ("b", "current")
    assert hit["score"] > 0


@pytest.mark.usefixtures("moved")
def test_every_read_takes_both_times(run):
    as_of = ("--as-of", "2021-06-01")
    assert texts(run("recall", QUESTION, *as_of, "--json")) == ["Alice lives in Paris"]
    assert run("get", "p", *as_of, "--json").json["fact"]["status"] == "current"
    assert [fact["status"] for fact in run("history", "b", *as_of, "--json").json["history"]] == [
        "current",
        "not-yet-valid",
    ]
    assert texts(run("list", "--status", "current", *as_of, "--json")) == ["Alice lives in Paris"]
    assert run("explain", QUESTION, "p", *as_of, "--json").json["explanation"]["reason"] == "returned"

    before = ("--known-at", "2001-01-01")
    assert texts(run("recall", QUESTION, *before, "--json")) == []
    assert run("get", "p", *before, "--json").json["fact"] is None
    history = run("history", "p", *before, "--json")
    assert (history.code, history.json, history.err) == (0, {"history": []}, "")
    assert texts(run("list", *before, "--json")) == []
    assert run("explain", QUESTION, "p", *before, "--json").json["explanation"]["reason"] == "not-known"


@pytest.mark.usefixtures("moved")
def test_milliseconds_from_a_reply_are_accepted_as_a_time(run):
    start = run("get", "p", "--json").json["fact"]["validFrom"]
    assert texts(run("recall", QUESTION, "--as-of", str(start), "--json")) == ["Alice lives in Paris"]
    assert texts(run("recall", QUESTION, "--as-of", str(start - 1), "--json")) == []


def test_four_digits_are_no_time_as_they_may_be_a_year(run):
    outcome = run("recall", QUESTION, "--as-of", "2020")
    assert outcome.code == 2
    assert "--as-of" in outcome.err


@pytest.mark.usefixtures("moved")
def test_history_and_scopes_narrow_a_recall(run):
    assert texts(run("recall", QUESTION, "--history", "historical", "--json")) == ["Alice lives in Paris"]
    assert len(texts(run("recall", QUESTION, "--history", "all", "--json"))) == 2
    assert texts(run("recall", QUESTION, "--subject", "alice/city", "--json")) == []
    assert texts(run("recall", QUESTION, "--history", "all", "--k", "1", "--json")) != []
    assert texts(run("recall", QUESTION, "--min-score", "1000", "--json")) == []


def test_tags_entity_kind_and_filter_narrow_a_recall(run):
    remember(
        run,
        "red apple",
        "--tag",
        "a",
        "--tag",
        "b",
        "--entity",
        "E",
        "--kind",
        "semantic",
        "--metadata",
        '{"n":1}',
    )
    remember(run, "red cherry", "--tag", "a", "--metadata", '{"n":"1"}')
    for options in (
        ("--tag", "a", "--tag", "b"),
        ("--entity", "E"),
        ("--kind", "semantic"),
        ("--filter", '{"n":1}'),
    ):
        assert texts(run("recall", "red", *options, "--json")) == ["red apple"]


def test_pinned_facts_and_the_others_can_be_asked_for_alone(run):
    remember(run, "red apple", "--id", "a", "--pinned")
    remember(run, "red cherry", "--id", "c")
    for read in (("recall", "red"), ("list",)):
        assert texts(run(*read, "--pinned", "--json")) == ["red apple"]
        assert texts(run(*read, "--no-pinned", "--json")) == ["red cherry"]
        assert len(texts(run(*read, "--json"))) == 2
    assert run("explain", "red", "c", "--pinned", "--json").json["explanation"]["reason"] == "filtered"
    run("annotate", "a", "--no-pinned")
    assert texts(run("list", "--pinned", "--json")) == []


def test_an_explanation_shows_where_the_fact_is_from(run):
    remember(run, "red apple", "--id", "a", "--source", '{"uri":"book","position":3}')
    told = run("explain", "red", "a", "--json").json["explanation"]
    assert told["source"] == {"uri": "book", "position": 3}
    assert '{"position":3,"uri":"book"}' in run("explain", "red", "a").out


@pytest.mark.usefixtures("moved")
def test_explain_tells_why_a_fact_is_absent(run):
    explanation = run("explain", QUESTION, "p", "--json").json["explanation"]
    assert explanation["reason"] == "not-current"
    assert explanation["matchedTerms"] == ["Alice", "live"]
    assert [(link["id"], link["relation"]) for link in explanation["chain"]] == [
        ("p", "self"),
        ("b", "superseded-by"),
    ]


@pytest.mark.usefixtures("moved")
def test_people_see_a_bar_per_part_of_the_score_and_the_chain(run):
    shown = run("explain", QUESTION, "b").out
    assert "returned" in shown
    assert "lexical" in shown
    assert "█" in shown
    assert "Alice lives in Paris" in shown


@pytest.mark.usefixtures("moved")
@pytest.mark.parametrize(
    ("id_", "own", "other", "relation"),
    [("p", "2020-01-01", "b", "superseded-by"), ("b", "2025-01-01", "p", "supersedes")],
)
def test_people_see_when_the_newer_of_two_facts_takes_over(run, id_, own, other, relation):
    shown = run("explain", QUESTION, id_).out
    assert "Chain, in the order in which its facts take effect:\ntakes over at  " in shown
    rows = [line.split() for line in shown.splitlines()]
    assert [row[:2] for row in rows if relation in row] == [["2025-01-01T00:00:00Z", relation]]
    assert [id_, "takes", "effect", f"{own}T00:00:00Z"] in rows
    assert [other] in rows


@pytest.mark.usefixtures("moved")
def test_people_see_that_the_status_is_that_of_the_moment_asked(run):
    shown = run("explain", QUESTION, "p", "--as-of", "2026-01-01").out
    assert "superseded (as of 2026-01-01T00:00:00Z)" in shown


@pytest.mark.usefixtures("moved")
def test_recall_with_explain_gives_the_explanation_that_explain_gives(run):
    (hit,) = run("recall", QUESTION, "--as-of", "2026-01-01", "--explain", "--json").json["results"]
    alone = run("explain", QUESTION, "b", "--as-of", "2026-01-01", "--json").json["explanation"]
    assert hit["explanation"] == alone


def test_what_is_not_there_is_exit_code_1(run):
    remember(run, "x")
    assert run("explain", "x", "nope", "--json").error["code"] == "not_found"
    for command in ("get", "history"):
        outcome = run(command, "nope", "--json")
        assert (outcome.code, outcome.json) == (1, {"fact": None} if command == "get" else {"history": []})
        assert "no fact" in outcome.err


@pytest.mark.usefixtures("moved")
def test_a_fact_that_was_not_known_then_is_told_from_one_that_is_not_there(run):
    before = ("--known-at", "2001-01-01")
    later = run("history", "p", *before)
    assert later.code == 0
    assert "recorded after --known-at" in later.out
    assert "recorded after --known-at" in run("get", "p", *before).err
    for command in ("get", "history"):
        outcome = run(command, "nope", *before)
        assert (outcome.code, outcome.out) == (1, "")
        assert "no fact" in outcome.err


def test_no_match_is_an_empty_answer_and_no_failure(run):
    remember(run, "x")
    outcome = run("recall", "football")
    assert (outcome.code, outcome.out.strip()) == (0, "Nothing matches.")


def test_a_listing_goes_on_with_its_cursor(run, monkeypatch):
    moments = itertools.count(SystemClock().now())  # each a millisecond later than the one before
    monkeypatch.setattr(SystemClock, "now", lambda self: next(moments))
    for number in range(5):
        remember(run, f"fact {number}", "--id", f"f{number}")
    page = run("list", "--limit", "3", "--order", "-ingest", "--json").json
    assert (page["total"], page["hasMore"], len(page["items"])) == (5, True, 3)
    rest = run("list", "--limit", "3", "--order", "-ingest", "--cursor", page["cursor"], "--json").json
    assert [fact["id"] for fact in page["items"] + rest["items"]] == ["f4", "f3", "f2", "f1", "f0"]
    assert not rest["hasMore"]
    assert "--cursor" in run("list", "--limit", "3").out


def test_changes_are_a_feed_with_a_cursor(run):
    remember(run, "one", "--id", "a")
    feed = run("changes", "--json").json
    assert [change["ids"] for change in feed["items"]] == [["a"]]
    assert run("changes", "--since", feed["cursor"], "--json").json["items"] == []


def test_a_read_where_there_is_no_store_sees_an_empty_one_says_so_and_makes_none(run, store_path):
    outcome = run("recall", "anything", "--json")
    assert (outcome.code, outcome.json) == (0, {"results": []})
    assert "no store" in outcome.err
    assert not store_path.exists()


def test_principals_and_scopes_do_not_see_one_another(run):
    remember(run, "the locker is number 12", "--principal", "alice")
    assert texts(run("recall", "locker", "--principal", "alice", "--json")) == ["the locker is number 12"]
    for other in (("--principal", "bob"), ("--principal", "alice", "--scope", "work"), ()):
        assert texts(run("recall", "locker", *other, "--json")) == []
    assert run("spaces", "--json").json == {"spaces": [{"principal": "alice", "scope": ""}]}


def test_a_recall_of_a_memory_that_is_not_there_says_so(run):
    remember(run, "the locker is number 12", "--principal", "alice")
    for other in (("--principal", "bob"), ("--principal", "alice", "--scope", "work")):
        outcome = run("recall", "locker", *other)
        assert (outcome.code, outcome.out) == (0, "Nothing matches.\n")
        assert outcome.err == "perdure: there is no memory of that name; perdure spaces shows the names\n"
    assert "perdure spaces shows" in run("recall", "locker").err
    assert run("recall", "football", "--principal", "alice").err == ""
    assert run("recall", "locker", "--principal", "alice").err == ""
