"""apply-forgetting and consolidate at the command line."""

from __future__ import annotations

import io
import json
import sys

import pytest

from perdure import InvalidRequest, MemoryConfig, Store
from perdure.cli.failures import Failed
from perdure.cli.maintaining import consolidate
from perdure.cli.session import Session
from perdure.policies import Consolidation
from unit.cli.command_line import remember, texts


@pytest.fixture
def one(tmp_path):
    """Options of a configuration that keeps one fact."""
    path = tmp_path / "one.json"
    path.write_text('{"forgetting":{"kind":"max-facts","limit":1}}')
    return ("--config", str(path))


@pytest.fixture
def three(run):
    for id_ in ("a", "b", "c"):
        remember(run, f"fact {id_}", "--id", id_)


@pytest.mark.usefixtures("three")
def test_without_apply_it_is_only_shown(run, one):
    told = run("apply-forgetting", *one, "--yes", "--json").json
    assert (told["forgotten"], told["dryRun"]) == (["a", "b"], True)
    shown = run("apply-forgetting", *one)
    assert "fact a" in shown.out
    assert "2 facts would go. Nothing was changed." in shown.out
    assert len(texts(run("list", "--json"))) == 3


@pytest.mark.usefixtures("three")
def test_apply_shows_what_goes_and_asks(run, one):
    refused = run("apply-forgetting", *one, "--apply", stdin="n\n")
    assert refused.code == 1
    assert "fact a" in refused.err
    assert len(texts(run("list", "--json"))) == 3
    told = run("apply-forgetting", *one, "--apply", "--json", stdin="y\n").json
    assert (told["forgotten"], told["dryRun"]) == (["a", "b"], False)
    assert texts(run("list", "--json")) == ["fact c"]
    assert run("apply-forgetting", *one, "--apply", "--json").json["forgotten"] == []


@pytest.mark.usefixtures("three")
def test_yes_does_not_ask(run, one):
    assert run("apply-forgetting", *one, "--apply", "--yes").out == "2 facts forgotten.\n"
    assert texts(run("list", "--json")) == ["fact c"]


def test_every_version_goes_along_where_that_is_asked_for(run, one):
    for id_, *options in (("old",), ("new", "--supersedes", "old")):
        remember(run, id_, "--id", id_, *options)
    alone = run("apply-forgetting", *one, "--json").json["forgotten"]
    assert alone == ["old"]
    assert run("apply-forgetting", *one, "--include-chain", "--json").json["forgotten"] == ["new", "old"]


def test_a_read_of_what_would_go_makes_no_store(run, store_path):
    assert run("apply-forgetting").code == 0
    assert run("consolidate", "--json").json == {
        "created": [],
        "forgotten": [],
        "dryRun": True,
        "pending": False,
    }
    assert not store_path.exists()


@pytest.mark.usefixtures("three")
def test_a_configuration_that_merges_nothing_merges_nothing(run):
    assert run("consolidate", "--apply", "--json").json == {
        "created": [],
        "forgotten": [],
        "dryRun": False,
        "pending": False,
    }
    assert len(texts(run("list", "--json"))) == 3


class Together:
    """Merges the first facts into one. Its answer number `other` is another one, as after a write."""

    def __init__(self, other: int = 0) -> None:
        self.other, self.asked = other, 0

    def plan(self, facts, now):
        current = sorted(fact.id for fact in facts if fact.status == "current" and fact.number < 3)
        self.asked += 1
        if len(current) < 2:
            return []
        if self.asked == self.other:
            current = current[1:]
        return [Consolidation(text="all", sources=tuple(current), remove_sources=True)]


@pytest.fixture
def session(store_path):
    with Store.open(store_path) as store:
        store.memory().remember_many([{"id": id_, "text": f"fact {id_}"} for id_ in ("a", "b", "c")])

    def session_(policy: object, *, as_json: bool = False) -> Session:
        return Session(str(store_path), None, None, as_json, MemoryConfig(consolidation=policy))

    return session_


def stored(store_path) -> list[str]:
    with Store.open(store_path) as store:
        return [fact.text for fact in store.memory().list().items]


def answering(monkeypatch, answer: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(answer.encode())))


def test_a_merge_is_shown_and_asked_for(session, store_path, monkeypatch, capsys):
    policy = Together()
    consolidate(session(policy), allow_destructive=True)
    shown = capsys.readouterr().out
    assert "fact a" in shown
    assert "1 fact would be added and 3 facts would go. Nothing was changed." in shown

    answering(monkeypatch, "n\n")
    with pytest.raises(Failed, match="nothing was changed"):
        consolidate(session(policy), allow_destructive=True, apply=True)
    assert stored(store_path) == ["fact a", "fact b", "fact c"]

    answering(monkeypatch, "y\n")
    capsys.readouterr()
    consolidate(session(policy), allow_destructive=True, apply=True)
    assert capsys.readouterr().out == "1 fact added, 3 facts forgotten.\n"
    assert stored(store_path) == ["all"]


def test_merged_facts_stay_where_their_removal_is_not_allowed(session, store_path, capsys):
    consolidate(session(Together()), apply=True, yes=True)
    assert capsys.readouterr().out == "1 fact added, 0 facts forgotten.\n"
    assert len(stored(store_path)) == 4


def test_a_plan_that_changed_during_the_question_is_not_carried_out(session, store_path, monkeypatch):
    answering(monkeypatch, "y\n")
    with pytest.raises(Failed, match="another one"):
        consolidate(session(Together(other=2)), allow_destructive=True, apply=True)
    assert stored(store_path) == ["fact a", "fact b", "fact c"]


def test_a_wrong_plan_is_refused(session, store_path):
    class Wrong:
        def plan(self, facts, now):
            return ["all"]

    with pytest.raises(InvalidRequest, match="Consolidation"):
        consolidate(session(Wrong()), apply=True, yes=True)
    assert len(stored(store_path)) == 3


@pytest.mark.usefixtures("three")
def test_what_a_policy_removes_may_be_purged_and_certified(run, one, tmp_path):
    file = tmp_path / "certificate.json"
    told = run("apply-forgetting", *one, "--apply", "--yes", "--purge", "--certificate", str(file), "--json")
    assert (told.json["forgotten"], told.json["purged"]) == (["a", "b"], True)
    assert json.loads(file.read_text())["steps"][-1] == {"name": "overwritten", "done": True}


def test_apply_forgetting_takes_along_what_was_made_from_what_goes_when_asked(run, one, store_path, three):
    with Store.open(store_path) as store:
        memory = store.memory(config=MemoryConfig(consolidation=Together()))
        (merged,) = memory.consolidate(dry_run=False).created
    shown = run("apply-forgetting", *one, "--json").json
    assert (shown["forgotten"], shown["derived"]) == (["a", "b", "c"], [merged])
    told = run("apply-forgetting", *one, "--include-derived", "--apply", "--yes", "--json").json
    assert (told["forgotten"], told["derived"]) == (sorted(["a", "b", "c", merged]), [])


@pytest.mark.usefixtures("three")
@pytest.mark.parametrize(
    ("command", "setting"), [("apply-forgetting", "forgetting"), ("consolidate", "consolidation")]
)
def test_without_a_policy_it_is_said_that_there_is_none(run, one, command, setting):
    for more in ((), ("--json",), ("--apply", "--yes")):
        outcome = run(command, *more)
        assert outcome.code == 0
        assert outcome.err.startswith(f"perdure: no {setting} policy is configured")
    assert "no forgetting policy" not in run("apply-forgetting", *one).err
