"""What was shown is what goes, also where others write while the question waits for its answer."""

from __future__ import annotations

import json

import pytest

from perdure import Store
from unit.cli.command_line import remember, texts

TURN = "perdure:turn/monday/1/t0"


@pytest.fixture
def run_meanwhile(run, store_path, monkeypatch):
    """Returns what runs a command whose question is answered with yes after something else was done to its store."""

    def run_(act, *args):
        class Answer:
            def readline(self):
                with Store.open(store_path) as store:
                    act(store)
                return b"y\n"

        with monkeypatch.context() as patch:
            patch.setattr("perdure.cli.previews.standard_input", Answer)
            return run(*args)

    return run_


def tell(text, **more):
    return lambda store: store.memory().remember(text, **more)


def propose(run, id_, turn=TURN):
    asked = ("propose", f"the text of {id_}", "--id", id_, "--evidence", turn, "--digest", id_)
    assert run(*asked, "--kind", "session_turn").code == 0


def waiting(run):
    return sorted(node["id"] for node in run("review", "--json").json["items"])


@pytest.mark.parametrize("how", [(), ("--block",), ("--purge",)])
def test_a_session_that_brought_more_after_it_was_shown_is_not_forgotten(run, run_meanwhile, how):
    propose(run, "shown")
    told = tell("came in between", source={"uri": TURN})
    outcome = run_meanwhile(told, "forget", "--session", "monday", *how, "--json")
    assert (outcome.code, outcome.json["error"]["code"]) == (1, "failed")
    assert "has changed meanwhile" in outcome.err
    assert (waiting(run), texts(run("list", "--json"))) == (["shown"], ["came in between"])
    assert run("forget", "--session", "monday", stdin="y\n").code == 0
    assert (waiting(run), texts(run("list", "--json"))) == ([], [])


def test_a_candidate_that_became_active_after_it_was_shown_stays(run, run_meanwhile):
    propose(run, "shown")

    def activate(store):
        found = store.repository().get("shown")
        moment = found.created_at
        store.repository().call(
            "applyChanges",
            {
                "idempotencyKey": "k",
                "occurredAt": int(moment.timestamp() * 1000),
                "operations": [
                    {
                        "operation": "activate",
                        "nodeId": "shown",
                        "expectedRevision": 1,
                        "evidence": [
                            {
                                "uri": "file:desk",
                                "digest": "d",
                                "kind": "manual",
                                "occurredAt": int(moment.timestamp() * 1000),
                            }
                        ],
                    }
                ],
            },
        )

    assert run_meanwhile(activate, "forget", "--session", "monday").code == 1
    assert texts(run("list", "--json")) == ["the text of shown"]


@pytest.mark.parametrize("scope", [("--tag", "t"), ("--all",), ("--containing", "shown")], ids=lambda s: s[0])
def test_any_scope_that_means_more_after_it_was_shown_is_not_forgotten(run, run_meanwhile, scope):
    remember(run, "shown", "--tag", "t")
    outcome = run_meanwhile(tell("shown later", tags=["t"]), "forget", *scope)
    assert (outcome.code, "look again" in outcome.err) == (1, True)
    assert texts(run("list", "--json")) == ["shown", "shown later"]


def test_what_came_in_between_and_is_not_meant_is_no_reason_to_ask_again(run, run_meanwhile):
    remember(run, "shown", "--tag", "t")
    assert run_meanwhile(tell("something else"), "forget", "--tag", "t").code == 0
    assert texts(run("list", "--json")) == ["something else"]


def test_a_candidate_is_forgotten_by_the_id_that_answers_name_it_by(run):
    propose(run, "shown")
    propose(run, "other")
    assert run("forget", "perdure:node/shown@2", "--yes").code == 1
    assert run("forget", "perdure:node/shown@1", "--soft", "--yes").code == 1
    gone = run("forget", "perdure:node/shown@1", "--yes", "--json").json["forgotten"]
    assert (gone, waiting(run)) == (["perdure:node/shown@1"], ["other"])


@pytest.fixture
def monday(run, tmp_path):
    """A version of a session of two turns."""
    turns = [
        {
            "sourceId": f"t{place}",
            "role": "user",
            "text": f"turn {place}",
            "observationTime": 1_700_000_000_000,
        }
        for place in range(2)
    ]
    file = tmp_path / "turns.jsonl"
    file.write_text("".join(json.dumps(turn) + "\n" for turn in turns))

    def keep(version):
        assert run("conversation", "remember", "monday", version, str(file)).code == 0

    keep("1")
    return keep


def said(run, version):
    reply = run("conversation", "get", "monday", version, "--json").json
    return [turn["text"] for turn in reply["conversation"]["turns"]]


def keep_version(store):
    turn = {"sourceId": "t9", "role": "user", "text": "later", "observationTime": 1_700_000_000_000}
    store.conversation().call(
        "rememberConversation", {"sessionId": "monday", "version": "2", "turns": [turn]}
    )


def test_a_conversation_with_another_version_after_it_was_shown_is_not_forgotten(run, run_meanwhile, monday):
    outcome = run_meanwhile(keep_version, "conversation", "forget", "monday")
    assert (outcome.code, "look again" in outcome.err) == (1, True)
    assert (said(run, "1"), said(run, "2")) == (["turn 0", "turn 1"], ["later"])
    assert run_meanwhile(lambda store: None, "conversation", "forget", "monday").code == 0


@pytest.mark.parametrize("derived", [False, True])
def test_the_answer_to_a_yes_is_that_of_a_forget_that_does_not_ask(run, monday, derived):
    propose(run, "citing")
    flags = ("--include-derived",) if derived else ()
    asked = run("conversation", "forget", "monday", *flags, "--json", stdin="y\n").json
    if derived:
        propose(run, "citing")
    monday("2")
    unasked = run("conversation", "forget", "monday", *flags, "--yes", "--json").json
    wanted = ["citing"] if derived else []
    assert asked["forgotten"] == [*wanted, "perdure:turn/monday/1/t0", "perdure:turn/monday/1/t1"]
    assert asked["derived"] == ([] if derived else ["citing"])
    assert asked.keys() == unasked.keys()
    assert asked["certificate"].keys() == unasked["certificate"].keys()
    assert waiting(run) == ["citing"]
