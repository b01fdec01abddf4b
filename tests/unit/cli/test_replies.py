"""Each operation of the contract has a command, whose --json output is the contract's reply."""

from __future__ import annotations

import json

import msgspec
import pytest

from perdure.contract.operations import OPERATIONS
from perdure.contract.wire import error_object
from perdure.dispatch import Caller
from perdure.errors import PerdureError
from perdure.model.namespace import Namespace
from perdure.store import Store
from unit.cli.command_line import remember

AT = "2030-01-01"
FEW = '{"team":"a"}'
TURN = '{"sourceId":"t0","role":"user","text":"The vault opens at nine","observationTime":"2026-01-01"}'
VECTOR = "[1, 0, 0.5]"
COMMANDS = {
    "remember": ("remember", "a third fact"),
    "recall": ("recall", "fact", "--as-of", AT, "--explain", "--filter", FEW),
    "trace": ("trace", "fact", "--as-of", AT, "--k", "1"),
    "explain": ("explain", "fact", "a", "--as-of", AT),
    "get": ("get", "a", "--as-of", AT),
    "history": ("history", "a", "--as-of", AT),
    "list": ("list", "--as-of", AT, "--tag", "t"),
    "correct": ("correct", "a better fact", "--id", "a"),
    "annotate": ("annotate", "a", "--importance", "0.5"),
    "end": ("end", "a"),
    "retract": ("retract", "a"),
    "changes": ("changes",),
    "diff": ("diff", f"2001-01-01/{AT}", "--as-of", AT, "--pinned"),
    "forget": ("forget", "a", "--yes"),
    "restore": ("restore", "a"),
    "unblock": ("unblock", "a"),
    "applyForgetting": ("apply-forgetting",),
    "consolidate": ("consolidate",),
    "recordUse": ("record-use", "a", "--context", "turn 1"),
    "merge": ("merge", "a", "b", "--dry-run"),
    "events": ("events",),
    "storeEvents": ("events", "--all"),
    "applyChanges": ("activate", "n"),
    "revisions": ("revisions", "n"),
    "reviewQueue": ("review", "--limit", "2"),
    "forgetNodes": ("forget-node", "n", "--yes"),
    "rememberConversation": ("conversation", "remember", "monday", "2", "-"),
    "recallConversation": ("conversation", "recall", "vault"),
    "conversation": ("conversation", "get", "monday", "1"),
    "conversations": ("conversation", "list"),
    "forgetConversation": ("conversation", "forget", "monday", "--yes"),
    "capabilities": ("capabilities",),
    "reindex": ("reindex", "--k1", "1.5"),
    "embedMissing": ("embed-missing", "--limit", "1"),
    "putDocument": ("documents", "put", "note", "a longer text"),
    "hasDocument": ("documents", "has", "a"),
    "getDocument": ("documents", "get", "a"),
    "deleteDocument": ("documents", "delete", "a", "--yes"),
    "searchDocuments": ("documents", "search", "fact", "--k", "2"),
    "listDocuments": ("documents", "list", "--limit", "1"),
    "spaces": ("spaces",),
    "stats": ("stats",),
    "verify": ("verify",),
    "purge": ("purge", "--yes"),
    "erase": ("erase", "--principal", "ann", "--yes"),
}
FOR_PROGRAMS = {
    "node",
    "queryNodes",
    "snapshot",
    "nodeChanges",
    "changeToken",
    "recordAdmission",
    "recordNodeUse",
    "accessEvents",
    "usageSummary",
    "expandConversation",
}
"""What only a program asks for, which keeps tokens and counts what it put into prompts."""
READS = {
    "events": {},
    "storeEvents": {},
    "revisions": {"id": "n"},
    "reviewQueue": {"limit": 2},
    "recallConversation": {"query": "vault"},
    "conversation": {"sessionId": "monday", "version": "1"},
    "conversations": {},
    "recall": {"query": "fact", "asOf": AT, "explain": True, "filter": {"team": "a"}},
    "trace": {"query": "fact", "asOf": AT, "k": 1},
    "explain": {"query": "fact", "id": "a", "asOf": AT},
    "get": {"id": "a", "asOf": AT},
    "history": {"id": "a", "asOf": AT},
    "list": {"asOf": AT, "tags": ["t"]},
    "changes": {},
    "diff": {"knownAt": ["2001-01-01", AT], "asOf": AT, "pinned": True},
    "applyForgetting": {},
    "consolidate": {},
    "merge": {"keep": "a", "ids": ["b"], "dryRun": True},
    "capabilities": {},
    "hasDocument": {"id": "a"},
    "getDocument": {"id": "a"},
    "searchDocuments": {"query": "fact", "k": 2},
    "listDocuments": {"limit": 1},
    "spaces": {},
    "stats": {},
    "verify": {},
}


@pytest.fixture
def full(run, monkeypatch, tmp_path):
    """A memory with two facts, in a store whose configuration has an embedder."""
    config = tmp_path / "config.json"
    config.write_text('{"embedder":"hashing"}')
    remember(run, "one fact", "--id", "a", "--tag", "t", "--metadata", FEW, "--pinned", "--principal", "ann")
    remember(run, "another fact", "--id", "b", "--principal", "ann")
    proposal = ("propose", "The vault opens at nine", "--id", "n", "--evidence", "c", "--quote", "at nine")
    assert run(*proposal, "--principal", "ann").code == 0
    assert run("conversation", "remember", "monday", "1", "-", "--principal", "ann", stdin=TURN).code == 0
    assert run("config", "--config", str(config), "--save").code == 0
    return run


def test_every_operation_that_answers_with_an_object_has_a_command():
    assert {name for name, one in OPERATIONS.items() if not one.streams} == {*COMMANDS, *FOR_PROGRAMS}


FINDS_NOTHING = ("restore", "unblock")  # the fact that they name is there


@pytest.mark.parametrize("name", COMMANDS)
def test_the_output_of_a_command_has_the_form_of_the_reply(full, name):
    shared = () if "--principal" in COMMANDS[name] else ("--principal", "ann")
    outcome = full(*COMMANDS[name], *shared, "--json", stdin=TURN)
    assert outcome.code == (1 if name in FINDS_NOTHING else 0), outcome.err
    reply = msgspec.json.decode(outcome.out, type=OPERATIONS[name].reply)
    assert json.loads(msgspec.json.encode(reply)) == outcome.json


@pytest.mark.parametrize("name", READS)
def test_a_read_gives_byte_for_byte_what_the_contract_gives(full, store_path, name):
    out = full(*COMMANDS[name], "--principal", "ann", "--json").out
    with Store.open(store_path) as store:
        reply = Caller(store, Namespace("ann")).call(name, READS[name])
    assert out == json.dumps(reply, ensure_ascii=False, separators=(",", ":")) + "\n"


def test_an_export_on_standard_output_and_its_import_are_those_of_the_contract(full, store_path, tmp_path):
    out = full("export", "--all-spaces").out
    with Store.open(store_path) as store:
        lines = b"".join(Caller(store).export_lines({})).decode().splitlines()
    assert out.splitlines()[1:] == lines[1:]  # the first has the moment
    outcome = full("import", "-", "--store", str(tmp_path / "other"), "--json", stdin=out)
    reply = msgspec.json.decode(outcome.out, type=OPERATIONS["import"].reply)
    assert reply.facts == 3  # two that were told, and the piece of a turn


@pytest.mark.parametrize(
    ("command", "op", "request_"),
    [
        (("get", "a", "--as-of", "soon"), "get", {"id": "a", "asOf": "soon"}),
        (("end", "nobody"), "end", {"id": "nobody"}),
        (("list", "--limit", "0"), "list", {"limit": 0}),
        (("recall", "fact", "--mode", "odd"), "recall", {"query": "fact", "mode": "odd"}),
        (("list", "--filter", '{"$odd":1}'), "list", {"filter": {"$odd": 1}}),
        (("documents", "put", "a", "x", "--if-version", "7"), "putDocument", {"id": "a", "text": "x", "ifVersion": 7}),
    ],
)  # fmt: skip
def test_an_error_is_that_of_the_contract(full, store_path, command, op, request_):
    told = full(*command, "--principal", "ann", "--json").json
    with Store.open(store_path) as store, pytest.raises(PerdureError) as raised:
        Caller(store, Namespace("ann")).call(op, request_)
    assert told == error_object(raised.value)


def test_a_vector_comes_out_of_a_file(full, tmp_path):
    (tmp_path / "v.json").write_text(VECTOR)
    given = ("--embedding-file", str(tmp_path / "v.json"), "--principal", "ben", "--json")
    config = tmp_path / "none.json"
    config.write_text('{"embeddingDimension":3}')
    elsewhere = ("--store", str(tmp_path / "other"), "--config", str(config))
    assert full("remember", "a fact", "--id", "v", *given, *elsewhere).code == 0
    assert full("documents", "put", "d", "a text", *given, *elsewhere).code == 0
    hits = full("recall", " ", "--mode", "semantic", *given, *elsewhere).json["results"]
    assert {hit["fact"]["id"] for hit in hits} == {"v", "d"}
    found = full("documents", "search", "text", *given, *elsewhere).json["results"]
    assert found[0]["id"] == "d"
    assert full("correct", "another", "--id", "v", *given, *elsewhere).json["outcome"] == "created"
