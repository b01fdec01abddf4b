"""Snapshots and tokens by themselves: what they hold can be recomputed by anyone."""

import hashlib

import msgspec
import pytest

from governed import change, create, create_active, opened, revise
from perdure.base.canonical import canonical_json
from perdure.errors import InvalidRequest
from perdure.model.node import NodeStatus
from perdure.model.node_change import ChangeToken
from perdure.model.node_forms import NO_HISTORY, canonical_node
from perdure.model.node_snapshot import Snapshot, SnapshotRequest
from perdure.repository_errors import InvariantViolation, LimitExceeded, StatusNotSelected

BOTH = SnapshotRequest(("candidate", "active"))


@pytest.fixture
def taken():
    with opened(None, "memory") as store:
        repository = store.repository("alice", "work")
        repository.apply(change("k", create("b"), create_active("a", "one")))
        repository.apply(change("l", revise("a", 1, "two")))
        yield repository.snapshot(BOTH)


def test_the_digest_is_that_of_the_canonical_payload(taken):
    nodes = [
        {**msgspec.json.decode(canonical_node(node)), "historyDigest": history}
        for node, history in zip(taken.nodes, taken.histories, strict=True)
    ]
    payload = canonical_json(
        {
            "namespace": {"principal": "alice", "scope": "work"},
            "nodes": nodes,
            "profile": "perdure.space-snapshot.v1",
            "statuses": ["candidate", "active"],
        }
    )
    assert taken.byte_count == len(payload)
    digest = hashlib.sha256(b"perdure.space-snapshot.v1\0" + payload).hexdigest()
    assert taken.digest == "sha256:" + digest


def test_a_snapshot_that_was_changed_does_not_verify(taken):
    taken.verify(BOTH)
    replaced = {
        "digest": "sha256:" + "f" * 64,
        "byte_count": taken.byte_count + 1,
        "nodes": taken.nodes[:1],
        "histories": (NO_HISTORY, NO_HISTORY),
        "profile": "another",
        "statuses": (NodeStatus.ACTIVE,),
        "namespace": msgspec.structs.replace(taken.namespace, scope="home"),
    }
    for name, value in replaced.items():
        with pytest.raises(InvariantViolation):
            msgspec.structs.replace(taken, **{name: value}).verify(BOTH)


def test_the_budget_is_no_part_of_the_digest(taken):
    tight = SnapshotRequest(("active", "candidate", "active"), 2, taken.byte_count)
    taken.verify(tight)
    with pytest.raises(LimitExceeded):
        taken.verify(SnapshotRequest(BOTH.statuses, 2, taken.byte_count - 1))


def test_a_snapshot_is_made_of_nodes_in_any_order(taken):
    entries = list(zip(taken.nodes, taken.histories, strict=True))
    assert Snapshot.of(BOTH, taken.namespace, reversed(entries)) == taken


def test_a_snapshot_takes_no_other_status_and_no_id_twice(taken):
    entries = list(zip(taken.nodes, taken.histories, strict=True))
    with pytest.raises(StatusNotSelected) as caught:
        Snapshot.of(SnapshotRequest(), taken.namespace, entries)
    assert (caught.value.node_id, caught.value.node_status) == ("b", "candidate")
    with pytest.raises(InvariantViolation):
        Snapshot.of(BOTH, taken.namespace, [*entries, entries[0]])


@pytest.mark.parametrize(
    ("told", "kind"),
    [
        ({"statuses": ()}, InvalidRequest),
        ({"statuses": "active"}, InvalidRequest),
        ({"statuses": ("gone",)}, InvalidRequest),
        ({"max_nodes": 0}, InvalidRequest),
        ({"max_bytes": True}, InvalidRequest),
        ({"max_nodes": 100_001}, LimitExceeded),
        ({"max_bytes": 268_435_457}, LimitExceeded),
    ],
)
def test_a_request_that_cannot_be_met_is_refused(told, kind):
    with pytest.raises(kind):
        SnapshotRequest(**told).checked()


def test_a_token_goes_through_json_and_is_checked():
    token = ChangeToken(3, "0" * 64, "a" * 64)
    again = msgspec.json.decode(msgspec.json.encode(token), type=ChangeToken)
    again.verify()
    assert again == token
    for told in (
        {"profile": "another"},
        {"sequence": -1},
        {"history_id": "A" * 64},
        {"head_digest": "a" * 63},
    ):
        with pytest.raises(InvariantViolation):
            msgspec.structs.replace(token, **told).verify()
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'{"sequence":1,"history_id":"","head_digest":"","more":1}', type=ChangeToken)
