"""What commands take as evidence where it is not told in full: the quote's digest, the decision itself."""

from __future__ import annotations

import hashlib

import pytest

TEXT = "The vault opens at ten"


def node(run, id_):
    return run("revisions", id_, "--json").json["items"][-1]


def test_the_digest_of_evidence_is_that_of_its_quote_where_none_is_told(run):
    assert run("propose", TEXT, "--id", "ten", "--evidence", "chat/3", "--quote", "at ten").code == 0
    told = node(run, "ten")["evidence"][0]["digest"]
    assert told == f"sha256:{hashlib.sha256(b'at ten').hexdigest()}"


def test_a_second_witness_makes_a_candidate_of_its_own_and_the_same_one_none(run):
    for uri in ("chat/3", "chat/4"):
        assert run("propose", TEXT, "--evidence", uri, "--quote", "at ten").code == 0
    waiting = [one["id"] for one in run("review", "--json").json["items"]]
    assert len(set(waiting)) == 2
    assert run("propose", TEXT, "--evidence", "chat/3", "--quote", "at ten").code == 1
    assert [one["id"] for one in run("review", "--json").json["items"]] == waiting


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ((), ("perdure:decision", "manual")),
        (("--evidence", "ticket/8", "--digest", "d", "--kind", "verification"), ("ticket/8", "verification")),
    ],
)
def test_a_decision_is_its_own_evidence_unless_something_better_is_named(run, line, told):
    assert run("propose", TEXT, "--id", "ten", "--evidence", "chat/3", "--quote", "at ten").code == 0
    assert run("activate", "ten", *line).code == 0
    found = {(one["uri"], one["kind"]) for one in node(run, "ten")["evidence"]}
    assert found == {("chat/3", "user_statement"), told}
