"""Shapes and limits of what is told to a repository."""

import pytest

from governed import change, create, draft, evidence, moment
from perdure.errors import InvalidRequest
from perdure.model.node import AccessEvent, Evidence, NodeDraft, Relation
from perdure.model.node_change import Activate, ChangeSet, Create, Relabel, Revise
from perdure.repository.checks import checked_change_set, checked_event
from perdure.repository_errors import LimitExceeded


def checked(**told):
    (operation,) = checked_change_set(change("k", Create(draft=draft("n", **told)))).operations
    return operation.draft


def test_what_is_within_the_limits_is_taken():
    found = checked(
        content="x" * 65_536,
        labels={"k" * 128: "v" * 1_024, **{f"k{n}": "v" for n in range(63)}},
        subject="s" * 1_024,
        evidence=[evidence(n) for n in range(64)],
        relations=[Relation("related_to", f"m{n}") for n in range(256)],
        confidence=0,
        importance=1,
    )
    assert (found.confidence, found.importance) == (0.0, 1.0)
    assert len(found.evidence) == 64


@pytest.mark.parametrize(
    ("told", "resource", "limit", "actual"),
    [
        ({"content": "ü" * 32_769}, "content", 65_536, 65_538),
        ({"labels": {f"k{n}": "v" for n in range(65)}}, "labels", 64, 65),
        ({"labels": {"k" * 129: "v"}}, "labels.key", 128, 129),
        ({"labels": {"k": "v" * 1_025}}, "labels.value", 1_024, 1_025),
        ({"evidence": [evidence(n) for n in range(65)]}, "evidence", 64, 65),
        ({"relations": [Relation("related_to", f"m{n}") for n in range(257)]}, "relations", 256, 257),
        ({"subject": "s" * 1_025}, "subject", 1_024, 1_025),
        ({"evidence": [Evidence("u" * 2_049, "d", "manual", 0)]}, "evidence.uri", 2_048, 2_049),
        ({"evidence": [Evidence("u", "d" * 257, "manual", 0)]}, "evidence.digest", 256, 257),
        ({"evidence": [Evidence("u", "d", "manual", 0, "q" * 65_537)]}, "evidence.quote", 65_536, 65_537),
    ],
)
def test_what_is_over_a_limit_is_refused_with_the_limit(told, resource, limit, actual):
    with pytest.raises(LimitExceeded) as caught:
        checked(**told)
    assert (caught.value.resource, caught.value.limit, caught.value.actual) == (resource, limit, actual)


@pytest.mark.parametrize(
    ("told", "field"),
    [
        ({"content": " \t"}, "content"),
        ({"content": "\u200b"}, "content"),
        ({"content": "\ud800"}, "content"),
        ({"kind": "working"}, "kind"),
        ({"status": "gone"}, "status"),
        ({"confidence": 1.1}, "confidence"),
        ({"importance": float("nan")}, "importance"),
        ({"confidence": True}, "confidence"),
        ({"labels": {"a": "v", "": "v"}}, "labels[1].key"),
        ({"labels": {"k": " "}}, "labels[0].value"),
        ({"labels": {"j": "v", "k": 1}}, "labels[1].value"),
        ({"labels": {"perdure": "v"}}, "labels"),
        ({"labels": ["k"]}, "labels"),
        ({"subject": ""}, "subject"),
        ({"valid_from": 5, "valid_to": 5}, "valid_to"),
        ({"created_at": "soon"}, "created_at"),
        ({"evidence": "file:x"}, "evidence"),
        ({"evidence": ["file:x"]}, "evidence[0]"),
        ({"evidence": [Evidence("", "d", "manual", 0)]}, "evidence[0].uri"),
        ({"evidence": [Evidence("u", "d", "rumour", 0)]}, "evidence[0].kind"),
        ({"evidence": [Evidence("u", "d", "manual", "soon")]}, "evidence[0].occurred_at"),
        ({"evidence": [Evidence("u", "d", "manual", 0, " ")]}, "evidence[0].quote"),
        ({"evidence": [Evidence("u", "d", "manual", 0, None, 3)]}, "evidence[0].quote"),
        ({"evidence": [Evidence("u", "d", "manual", 0, "q", None, 3)]}, "evidence[0].start"),
        ({"evidence": [Evidence("u", "d", "manual", 0, "q", -1)]}, "evidence[0].start"),
        ({"evidence": [Evidence("u", "d", "manual", 0, "quote", 3, 7)]}, "evidence[0].end"),
        ({"relations": [("related_to", "m")]}, "relations[0]"),
        ({"relations": [Relation("likes", "m")]}, "relations[0].kind"),
        ({"relations": [Relation("related_to", None)]}, "relations[0].target"),
    ],
)
def test_what_has_a_wrong_form_is_refused_by_its_field(told, field):
    with pytest.raises(InvalidRequest) as caught:
        checked(**told)
    assert caught.value.field == f"operations[0].draft.{field}"


def test_the_end_of_a_quote_follows_from_its_start():
    (found,) = checked(evidence=[Evidence("u", "d", "manual", 0, "quote", 3)]).evidence
    assert (found.start, found.end) == (3, 8)


@pytest.mark.parametrize("id_", ["", "  ", "a\nb", 5, None, "\ud800"])
def test_an_id_is_a_text_that_can_be_seen_in_one_line(id_):
    with pytest.raises(InvalidRequest) as caught:
        checked_change_set(change("k", Create(draft=NodeDraft(id_, "semantic", "x"))))
    assert caught.value.field == "operations[0].draft.id"


def test_an_id_takes_256_bytes_at_most():
    checked_change_set(change("k", create("n" * 256, "x", evidence=[evidence()])))
    with pytest.raises(LimitExceeded):
        checked_change_set(change("k", create("n" * 257, "x", evidence=[evidence()])))


@pytest.mark.parametrize(
    ("operation", "field"),
    [
        ("create", ""),
        (Create(draft="n"), "draft"),
        (Activate(node_id="n", expected_revision=0, evidence=[]), "expected_revision"),
        (Activate(node_id="n", expected_revision=True, evidence=[]), "expected_revision"),
        (Activate(node_id="n", expected_revision=1, actor="a\0"), "actor"),
        (Activate(node_id="n", expected_revision=1, reason=" "), "reason"),
        (Revise(node_id="n", expected_revision=1, content="x", mode="rewrite"), "mode"),
        (Revise(node_id="n", expected_revision=1, content="", mode="correction"), "content"),
        (
            Revise(node_id="n", expected_revision=1, content="x", mode="correction", confidence=2),
            "confidence",
        ),
        (Relabel(node_id="n", expected_revision=1), "labels"),
    ],
)
def test_an_operation_of_a_wrong_form_is_refused_by_its_field(operation, field):
    with pytest.raises(InvalidRequest) as caught:
        checked_change_set(change("k", operation))
    assert caught.value.field == ".".join(filter(None, ("operations[0]", field)))


@pytest.mark.parametrize("told", [{}, "set", None])
def test_a_change_set_is_a_change_set(told):
    with pytest.raises(InvalidRequest, match="ChangeSet"):
        checked_change_set(told)


def test_a_change_set_has_a_key_and_a_time():
    for told in (ChangeSet("", 0, [create("n")]), ChangeSet("k", "now", [create("n")])):
        with pytest.raises(InvalidRequest):
            checked_change_set(told)


def test_the_method_says_of_which_kind_an_event_is():
    told = AccessEvent("e", "n", 1, moment(0), kind="use")
    assert checked_event(told, "admission").kind == "admission"
    with pytest.raises(InvalidRequest):
        checked_event("event", "use")


def test_no_message_shows_what_people_said():
    secret = "hunter2"
    for told in (
        {"kind": secret + " said so"},
        {"labels": {secret: " "}},
        {"evidence": [Evidence(secret, "", "manual", 0)]},
        {"evidence": [Evidence("u", "d", "manual", 0, secret, 1, 2)]},
    ):
        with pytest.raises(InvalidRequest) as caught:
            checked(**told)
        assert secret not in str(caught.value)
