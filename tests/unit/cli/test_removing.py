"""forget, restore and unblock at the command line."""

from __future__ import annotations

import pytest

from perdure import MemoryConfig, Store
from perdure.policies import Consolidation
from unit.cli.command_line import remember, texts

CANARY = "XQZ-canary-7731"


def test_forget_shows_what_goes_and_asks(run):
    remember(run, "Alice lives in Paris", "--id", "a")
    refused = run("forget", "a", stdin="n\n")
    assert refused.code == 1
    assert "Alice lives in Paris" in refused.err
    assert "nothing was forgotten" in refused.err
    assert texts(run("list", "--json")) == ["Alice lives in Paris"]

    outcome = run("forget", "a", "--json", stdin="y\n")
    reply = outcome.json
    assert reply.pop("certificate")["operation"] == "forget"
    assert reply == {
        "forgotten": ["a"], "derived": [], "dryRun": False, "purged": False, "pending": False,
    }  # fmt: skip
    assert texts(run("list", "--json")) == []


def test_a_question_without_an_answer_forgets_nothing(run):
    remember(run, "Alice lives in Paris", "--id", "a")
    outcome = run("forget", "a", stdin="")
    assert outcome.code == 1
    assert texts(run("list", "--json")) == ["Alice lives in Paris"]


@pytest.mark.parametrize("answer", [b"\xff\n", b"yes please\n", b"\n"])
def test_an_answer_that_is_not_yes_forgets_nothing(run, answer):
    remember(run, "Alice lives in Paris", "--id", "a")
    assert run("forget", "a", stdin=answer).code == 1
    assert texts(run("list", "--json")) == ["Alice lives in Paris"]


def test_a_dry_run_changes_nothing_and_lists_what_would_go(run):
    remember(run, "Alice lives in Paris", "--id", "a")
    outcome = run("forget", "--containing", "paris", "--dry-run", "--json")
    assert (outcome.json["forgotten"], outcome.json["dryRun"]) == (["a"], True)
    assert "Alice lives in Paris" in run("forget", "a", "--dry-run", "--yes").out
    assert texts(run("list", "--json")) == ["Alice lives in Paris"]


@pytest.mark.parametrize(
    "scope",
    [
        ("a",),
        ("--id", "a"),
        ("--subject", "s"),
        ("--entity", "E"),
        ("--event-before", "2020-02-01"),
        ("--matching", '{"n":1}'),
        ("--filter", '{"n":1}'),
        ("--tag", "t"),
        ("--text", "red apple"),
        ("--containing", "APPLE"),
        ("--kind", "semantic"),
    ],
    ids=lambda scope: scope[0],
)
def test_each_scope_takes_what_it_names_and_leaves_the_rest(run, scope):
    remember(
        run, "red apple", "--id", "a", "--subject", "s", "--entity", "E", "--event-time", "2020-01-01",
        "--metadata", '{"n":1}', "--tag", "t", "--kind", "semantic",
    )  # fmt: skip
    remember(run, "red cherry", "--id", "b")
    assert run("forget", *scope, "--yes", "--json").json["forgotten"] == ["a"]
    assert texts(run("list", "--json")) == ["red cherry"]


def test_what_a_session_brought_goes_with_what_was_proposed_from_it(run):
    turn = "perdure:turn/monday/1/t0"
    remember(run, "red apple", "--id", "a", "--source", f'{{"uri":"{turn}"}}')
    remember(run, "red cherry", "--id", "b")
    proposal = ("propose", "It opens at nine", "--id", "n", "--evidence", turn, "--digest", "d")
    assert run(*proposal, "--kind", "session_turn").code == 0
    shown = run("forget", "--session", "monday", stdin="n\n")
    assert (shown.code, "red apple" in shown.err, "never served: n" in shown.err) == (1, True, True)
    gone = run("forget", "--session", "monday", "--json", stdin="y\n").json["forgotten"]
    assert gone == ["a", "perdure:node/n@1"]
    assert texts(run("list", "--json")) == ["red cherry"]
    assert run("review", "--json").json["total"] == 0


@pytest.mark.parametrize(
    ("facts", "served", "waiting", "told"),
    [
        (1, 0, 0, "1 fact"),
        (0, 0, 1, "1 node"),
        (0, 0, 2, "2 nodes"),
        (1, 1, 1, "2 facts and 1 node"),
        (0, 22, 0, "22 facts"),
    ],
)
def test_a_preview_a_question_and_a_forget_count_facts_and_nodes_alike(run, facts, served, waiting, told):
    turn = "perdure:turn/monday/1/t0"
    for number in range(facts):
        remember(run, f"apple {number}", "--source", f'{{"uri":"{turn}"}}')
    for number in range(served + waiting):
        proposal = ("propose", f"It opens at {number}", "--id", f"n{number}", "--evidence", turn)
        assert run(*proposal, "--digest", "d", "--kind", "session_turn").code == 0
        if number < served:
            assert run("activate", f"n{number}").code == 0
    shown = run("forget", "--session", "monday", "--dry-run").out
    assert f"\n{told} would go. Nothing was changed.\n" in f"\n{shown}"
    assert ("never served" in shown) == bool(waiting)
    assert f"\nForget {told}? " in f"\n{run('forget', '--session', 'monday', stdin='n').err}"
    assert run("forget", "--session", "monday", "--yes").out == f"{told} forgotten.\n"


@pytest.mark.parametrize("how", [(), ("--dry-run",), ("--soft",), ("--block",), ("--include-chain",)])
@pytest.mark.parametrize("asked", [("nobody",), ("--tag", "none"), ("--session", "none")])
def test_where_nothing_was_there_to_forget_the_exit_code_says_so(run, asked, how):
    remember(run, "red apple", "--id", "a")
    outcome = run("forget", *asked, *how, "--yes", "--json")
    assert (outcome.code, outcome.json["forgotten"]) == (1, [])
    assert ("not found: nobody" if asked == ("nobody",) else "nothing was forgotten") in outcome.err


def test_a_purge_that_is_made_up_for_is_something_though_nothing_is_there_any_more(run):
    remember(run, "red apple", "--id", "a")
    assert run("forget", "a", "--yes").code == 0
    assert run("forget", "a", "--yes", "--purge").code == 0


def test_the_replay_of_a_key_is_no_failure(run):
    remember(run, "red apple", "--id", "a")
    again = [run("forget", "a", "--yes", "--idempotency-key", "k") for _ in range(2)]
    assert [outcome.code for outcome in again] == [0, 0]


@pytest.mark.parametrize("scope", [("--all",), ("--ingested-before", "2999-01-01")], ids=lambda s: s[0])
def test_all_and_ingested_before_take_everything_that_they_name(run, scope):
    ids = sorted(remember(run, text) for text in ("one", "two"))
    assert run("forget", *scope, "--yes", "--json").json["forgotten"] == ids


def test_exactly_one_scope_is_needed(run):
    remember(run, "x", "--id", "a")
    for scopes in ((), ("a", "--all"), ("--subject", "s", "--tag", "t")):
        outcome = run("forget", *scopes, "--yes")
        assert outcome.code == 2
        assert "exactly one" in outcome.err
    assert run("forget", "--matching", "{}", "--yes").code == 2
    assert texts(run("list", "--json")) == ["x"]


def test_include_chain_takes_every_version(run):
    remember(run, "Paris", "--id", "p")
    remember(run, "Berlin", "--id", "b", "--supersedes", "p")
    assert run("forget", "p", "--include-chain", "--dry-run", "--json").json["forgotten"] == ["b", "p"]
    assert run("forget", "p", "--include-chain", "--json", stdin="y\n").json["forgotten"] == ["b", "p"]


def test_softly_forgotten_facts_come_back(run):
    remember(run, "Paris", "--id", "p")
    run("forget", "p", "--soft", "--yes")
    assert texts(run("list", "--json")) == []
    assert texts(run("list", "--hidden", "--json")) == ["Paris"]
    assert run("restore", "p", "nope", "--json").json == {"restored": ["p"]}
    assert texts(run("list", "--json")) == ["Paris"]


def test_blocked_content_is_refused_until_it_is_unblocked(run):
    remember(run, "The pin is 9", "--id", "p")
    run("forget", "p", "--block", "--yes")
    outcome = run("remember", "the  PIN is 9", "--json")
    assert (outcome.code, outcome.error["code"]) == (1, "blocked")
    assert run("unblock", "p", "--text", "The pin is 9", "--json").json == {"unblocked": 2}
    assert run("remember", "The pin is 9", "--id", "p").code == 0


def test_a_forgotten_text_is_in_no_file_of_the_store(run, store_path):
    remember(run, f"The code is {CANARY}", "--id", "c", "--tag", CANARY, "--subject", CANARY)
    files = [path for path in store_path.rglob("*") if path.is_file()]
    assert any(CANARY.encode() in path.read_bytes() for path in files), "the control: it was there"
    run("forget", "c", "--yes")
    for path in store_path.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            assert CANARY.encode() not in data
            assert CANARY.lower().encode() not in data


class Together:
    """A consolidation policy that merges all facts."""

    def plan(self, facts, now):
        return [Consolidation(text="all of it", sources=tuple(fact.id for fact in facts))]


@pytest.fixture
def merged(run, store_path):
    """Return the id of a fact that was merged from a and b."""
    for id_ in ("a", "b"):
        remember(run, f"fact {id_}", "--id", id_)
    with Store.open(store_path) as store:
        memory = store.memory(config=MemoryConfig(consolidation=Together()))
        return memory.consolidate(dry_run=False).created[0]


def test_forget_shows_what_was_made_from_what_goes(run, merged):
    assert run("forget", "a", "--dry-run", "--json").json["derived"] == [merged]
    shown = run("forget", "a", "--dry-run").out
    assert "Made from them, and staying (--include-derived takes them along):" in shown
    assert "all of it" in shown
    refused = run("forget", "a", stdin="n\n")
    assert "all of it" in refused.err
    done = run("forget", "a", "--yes").out
    assert "1 fact forgotten.\nMade from them, and staying:\n" in done
    assert "all of it" in done
    assert "Made from them" not in run("forget", merged, "--yes").out


@pytest.mark.parametrize("asked", [("--yes",), ()])
def test_include_derived_takes_along_what_was_made_from_what_goes(run, merged, asked):
    told = run("forget", "a", "--include-derived", *asked, "--json", stdin="y\n").json
    assert (told["forgotten"], told["derived"]) == (sorted(["a", merged]), [])
    assert texts(run("list", "--json")) == ["fact b"]


@pytest.mark.parametrize(
    "command",
    [
        ("forget", "--all", "--yes"), ("restore", "a"), ("unblock", "a"), ("end", "a"), ("retract", "a"),
        ("annotate", "a", "--tag", "t"), ("correct", "new", "--id", "a"), ("apply-forgetting", "--apply", "--yes"),
        ("consolidate", "--apply", "--yes"),
    ],
    ids=lambda command: command[0],
)  # fmt: skip
def test_what_changes_a_store_makes_none(run, store_path, command):
    outcome = run(*command, "--json")
    assert (outcome.code, outcome.error["code"]) == (1, "failed")
    assert str(store_path) in outcome.error["message"]
    assert not store_path.exists()


def test_ids_of_nothing_are_named(run):
    remember(run, "Alice lives in Paris", "--id", "a")
    outcome = run("forget", "a", "b", "c", "--yes")
    assert (outcome.code, outcome.err) == (0, "perdure: not found: b, c\n")


def test_where_nothing_comes_back_and_nothing_was_blocked_the_exit_code_is_1(run):
    remember(run, "The pin is 9", "--id", "p")
    for line, empty in ((("restore", "nope"), {"restored": []}), (("unblock", "p"), {"unblocked": 0})):
        told = run(*line, "--json")
        assert (told.code, told.json) == (1, empty)
        assert told.err.startswith("perdure: nothing ")
        assert run(*line).code == 1
    run("forget", "p", "--soft", "--yes")
    assert run("restore", "p").out == "1 of 1 fact came back.\n"
    run("forget", "p", "--block", "--yes")
    assert run("unblock", "p").out == "Lifted: 1 block.\n"
