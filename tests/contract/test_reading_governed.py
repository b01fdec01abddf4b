"""What a client reads back of governed knowledge, conversations and events is what the engine gave."""

from __future__ import annotations

import msgspec
import pytest

from contract.stores import MORNING, PRINCIPAL, SCOPE, caller_of, open_store
from perdure import errors, repository_errors
from perdure.client.telling import change_set_request, context_request, conversation_request
from perdure.contract import reading, replies, wire
from perdure.contract import reading_governed as governed
from perdure.contract import wire_governed as told
from perdure.contract.decoding import decode_request
from perdure.contract.operations import OPERATIONS
from perdure.contract.requests import told as fields_of
from perdure.conversation.calling import context_of
from perdure.model.conversation import ConversationInput, ConversationTurn
from perdure.model.node import Evidence, NodeDraft, Relation
from perdure.model.node_change import (
    Activate,
    AddRelation,
    ChangeSet,
    Corroborate,
    Create,
    Relabel,
    RemoveRelation,
    Resolve,
    Revise,
    SetStatus,
)
from perdure.model.node_snapshot import SnapshotRequest
from perdure.repository.calling import change_set_of
from perdure.repository.checks import checked_change_set


@pytest.fixture(scope="module")
def store():
    with open_store("full") as opened:
        yield opened


@pytest.fixture
def repository(store):
    return store.repository(PRINCIPAL, SCOPE)


def sent(plain, kind):
    """Return a reply after its way over a wire."""
    return msgspec.json.decode(msgspec.json.encode(plain), type=kind)


def test_nodes_of_every_status_and_pages_of_them(repository):
    statuses = ["candidate", "active", "superseded", "conflicted", "tombstoned"]
    page = repository.query(statuses=statuses)
    assert {hit.node.status.value for hit in page.items} == set(statuses)
    object_ = wire.page_object(page, told.node_hit_object)
    assert governed.read_nodes_found(sent(object_, replies.NodesFound)) == page
    for id_ in ("opens-nine", "opens-ten", "clash"):
        history = repository.revisions(id_)
        object_ = wire.page_object(history, told.node_object)
        assert governed.read_node_page(sent(object_, replies.NodePage)) == history


def test_snapshots_verify_after_their_way_over_a_wire(repository):
    request = SnapshotRequest(statuses=("active", "candidate", "superseded"))
    snapshot = repository.snapshot(request)
    read = governed.read_snapshot(sent(told.snapshot_object(snapshot), replies.SnapshotReply))
    assert read == snapshot
    read.verify(request)


def test_feeds_tokens_access_events_and_counts(repository):
    changes = repository.changes()
    read = governed.read_node_changes(sent(told.node_changes_object(changes), replies.NodeChangesReply))
    assert read == changes
    read.token.verify()
    assert {change.kind for change in changes.items} == {"applied", "erased"}
    page = repository.access_events("opens-nine")
    object_ = wire.page_object(page, told.access_event_object)
    assert governed.read_access_events(sent(object_, replies.AccessEventPage)) == page
    usage = repository.usage("opens-ten")
    assert governed.read_usage(sent(told.usage_object(usage), replies.UsageReply)) == usage


def test_conversations_and_contexts_whose_sources_take_the_bytes_that_they_say(store):
    conversations = store.conversation(PRINCIPAL, SCOPE)
    found = conversations.get("monday", "1")
    assert (
        governed.read_conversation(sent(told.conversation_object(found), replies.ConversationObject)) == found
    )
    page = conversations.list()
    object_ = wire.page_object(page, told.conversation_entry_object)
    assert governed.read_conversations(sent(object_, replies.ConversationPage)) == page
    context = conversations.recall("when does the vault open")
    object_ = told.context_object(context)
    assert governed.read_context(sent(object_, replies.ConversationContextObject)) == context
    assert len(msgspec.json.encode(object_["sources"])) == context.byte_count == object_["byteCount"]


def test_a_context_can_be_told_again(store):
    context = store.conversation(PRINCIPAL, SCOPE).recall("vault")
    request = decode_request(OPERATIONS["expandConversation"], context_request(context, None))
    assert context_of(fields_of(request.context)) == context
    reply = caller_of(store).call("expandConversation", context_request(context, None))
    assert governed.read_context(sent(reply["context"], replies.ConversationContextObject)) == context


def test_events_and_the_node_of_an_explanation(store):
    memory = store.memory(PRINCIPAL, SCOPE)
    page = memory.events(limit=100)
    object_ = wire.page_object(page, told.event_object)
    assert governed.read_events(sent(object_, replies.EventPage)) == page
    explanation = memory.explain("vault", "perdure:node/opens-nine@3")
    read = reading.read_explanation(sent(wire.explanation_object(explanation), replies.ExplanationObject))
    assert read.node == explanation.node
    assert read.node.evidence[0].quote == "opens at nine"


def proof(name="e"):
    return Evidence(uri=name, digest="d", kind="manual", occurred_at=MORNING, quote="q", start=3)


ON = {"node_id": "n", "expected_revision": 2}
DRAFT = NodeDraft(
    id="n", kind="semantic", content="x", status="active", confidence=1, importance=0.25, evidence=[proof()],
    relations=(Relation("related_to", "m"),), labels={"a": "b"}, subject="s", valid_from=0, valid_to=MORNING,
    created_at=5,
)  # fmt: skip
EVERY = [
    Create(draft=DRAFT, actor="a", reason="r"),
    Activate(**ON, evidence=(proof(),)),
    Corroborate(**ON, evidence=[proof("x"), proof("y")]),
    Revise(**ON, evidence=[proof()], content="y", mode="refinement", confidence=0.5),
    Relabel(**ON, labels={"a": "b"}, valid_from=None),
    Relabel(**ON, labels=None, subject=None, valid_to=9),
    AddRelation(**ON, relation=Relation("related_to", "m"), evidence=[proof()]),
    RemoveRelation(**ON, relation=Relation("related_to", "m")),
    SetStatus(**ON, status="conflicted", evidence=[proof()]),
    Resolve(**ON, evidence=iter([proof()]), actor="a"),
]


def test_a_change_set_of_every_operation_arrives_as_it_was_told():
    wanted = checked_change_set(
        ChangeSet("k", MORNING, [*EVERY[:-1], Resolve(**ON, evidence=[proof()], actor="a")])
    )
    request = msgspec.json.decode(
        msgspec.json.encode(change_set_request(ChangeSet("k", MORNING, iter(EVERY))))
    )
    told_again = change_set_of(decode_request(OPERATIONS["applyChanges"], request))
    assert checked_change_set(told_again) == wanted


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: change_set_request({"operations": []}), "change_set"),
        (lambda: change_set_request(ChangeSet("k", 0, [DRAFT])), "operations"),
        (lambda: change_set_request(ChangeSet("k", 0, [Create(draft={"id": "x"})])), "draft"),
        (lambda: change_set_request(ChangeSet("k", 0, [Activate(**ON, evidence=["x"])])), "evidence"),
        (lambda: change_set_request(ChangeSet("k", "never", [])), "occurred_at"),
        (lambda: conversation_request("said"), "conversation"),
        (
            lambda: conversation_request(ConversationInput(session_id="s", version="1", turns=("said",))),
            "turns",
        ),
        (
            lambda: conversation_request(
                ConversationInput(
                    session_id="s",
                    version="1",
                    turns=(ConversationTurn(source_id="t", role="user", text="x", observation_time="never"),),
                )
            ),
            "observation_time",
        ),
    ],
)
def test_what_is_of_another_type_is_refused_before_it_is_sent(make, field):
    with pytest.raises(errors.InvalidRequest) as refused:
        make()
    assert refused.value.field == field


ERRORS = [
    repository_errors.EvidenceRequired("n", decision_kinds=("manual",)),
    repository_errors.QuoteNotFound("it is not there", uri="u"),
    repository_errors.StatusNotSelected("n", "active"),
    repository_errors.LimitExceeded("operations", 128, 129),
    repository_errors.NodeNotFound("n"),
    repository_errors.NodeRevisionNotFound("n", 3),
    repository_errors.RelationTargetNotFound("n", "m"),
    repository_errors.NodeAlreadyExists("n"),
    repository_errors.RevisionConflict("n", 1, 2),
    repository_errors.IdempotencyConflict("k"),
    repository_errors.InvalidTransition("n", "active", "candidate"),
    repository_errors.InvariantViolation("it contradicts itself", node_id="n"),
    repository_errors.AdmissionNotAllowed("n", 1, 2, "superseded"),
    repository_errors.HistoryChanged(),
]


def test_every_kind_of_error_is_tried():
    assert {type(error) for error in ERRORS} == set(repository_errors.BY_KIND.values())


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_comes_back_as_its_class_with_its_attributes(error):
    plain = msgspec.json.decode(msgspec.json.encode(wire.error_object(error)))
    assert plain["error"]["details"]["kind"] in repository_errors.BY_KIND
    read = reading.read_error(plain)
    assert (type(read), str(read), read.field) == (type(error), str(error), error.field)
    for name in set(error.details) - {"kind"}:
        if hasattr(error, name):
            assert getattr(read, name) == getattr(error, name)


def test_a_kind_under_another_code_is_read_by_its_code():
    read = reading.read_error(
        {"error": {"code": "busy", "message": "x", "details": {"kind": "node_not_found"}}}
    )
    assert type(read) is errors.Busy
