"""The operations of a repository as requests and replies of the contract: the same for every surface."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from perdure.contract import requests as a
from perdure.contract import wire, wire_governed
from perdure.contract.requests import told
from perdure.contract.wire import JsonObject
from perdure.errors import InvalidRequest
from perdure.model import node_change as change
from perdure.model.node import AccessEvent, Evidence, NodeDraft, Relation
from perdure.model.node_snapshot import SnapshotRequest

if TYPE_CHECKING:
    from perdure.repository.repository import Repository

# What a relabelling may take away, by its name on the wire.
CLEARED: Mapping[str, str] = {
    "labels": "labels",
    "subject": "subject",
    "validFrom": "valid_from",
    "validTo": "valid_to",
}


def answer(repository: Repository, request: a.Request) -> JsonObject:
    """Return the reply to a request as an object of JSON; raises as the method of the repository does."""
    return _HANDLERS[type(request)](repository, request)


def change_set_of(request: a.ApplyChanges) -> change.ChangeSet:
    """Return the change set that a request describes, not yet checked."""
    operations = tuple(_operation(one) for one in request.operations)
    return change.ChangeSet(request.idempotency_key, request.occurred_at, operations)


def _operation(asked: a.ChangeOperation) -> change.Operation:
    if isinstance(asked, a.CreateOperation):
        return change.Create(draft=_draft(asked.draft), actor=asked.actor, reason=asked.reason)
    fields = _given(asked)
    fields["evidence"] = _evidence(fields.get("evidence", ()))
    if isinstance(asked, a.RelabelOperation):
        fields = _cleared(fields)
    if "relation" in fields:
        fields["relation"] = Relation(**_given(fields["relation"]))
    return _OPERATIONS[type(asked)](**fields)


def _draft(asked: a.DraftInput) -> NodeDraft:
    fields = _given(asked)
    fields["evidence"] = _evidence(asked.evidence)
    fields["relations"] = tuple(Relation(**_given(one)) for one in asked.relations or ())
    return NodeDraft(**fields)


def _evidence(asked: Iterable[a.EvidenceInput]) -> tuple[Evidence, ...]:
    return tuple(Evidence(**_given(one)) for one in asked)


def _given(asked: a.Request) -> dict[str, Any]:
    """Return the fields that are given, as they are; what is nested stays as it is."""
    return {name: value for name in asked.__struct_fields__ if (value := getattr(asked, name)) is not None}


def _cleared(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a relabelling with None in place of those that `clear` names."""
    given = dict(fields)
    for place, name in enumerate(given.pop("clear", ())):
        if name not in CLEARED:
            raise InvalidRequest(
                f"clear[{place}] must be one of {', '.join(CLEARED)}", field=f"clear[{place}]"
            )
        if CLEARED[name] in fields:
            raise InvalidRequest(f"{name} is both given and cleared; do one of the two", field=name)
        given[CLEARED[name]] = None
    return given


_OPERATIONS: Mapping[type[a.ChangeOperation], type[change.Operation]] = {
    a.ActivateOperation: change.Activate,
    a.CorroborateOperation: change.Corroborate,
    a.ReviseOperation: change.Revise,
    a.RelabelOperation: change.Relabel,
    a.AddRelationOperation: change.AddRelation,
    a.RemoveRelationOperation: change.RemoveRelation,
    a.SetStatusOperation: change.SetStatus,
    a.ResolveOperation: change.Resolve,
}


def _node(repository: Repository, asked: dict[str, Any]) -> JsonObject:
    node = repository.get(**asked)
    return {"node": None if node is None else wire_governed.node_object(node)}


def _changes(repository: Repository, asked: dict[str, Any]) -> JsonObject:
    since = asked.pop("since", None)
    token = None if since is None else change.ChangeToken(**since)
    return wire_governed.node_changes_object(repository.changes(token, **asked))


def _record(repository: Repository, asked: dict[str, Any], kind: str) -> JsonObject:
    event = AccessEvent(**asked)
    if kind == "use":
        repository.record_use(event)
    else:
        repository.record_admission(event)
    return {"recorded": True}


def _pages(
    name: str, item: Callable[[Any], JsonObject]
) -> Callable[[Repository, dict[str, Any]], JsonObject]:
    return lambda repository, asked: wire.page_object(getattr(repository, name)(**asked), item)


def _plain(
    handler: Callable[[Repository, dict[str, Any]], JsonObject],
) -> Callable[[Repository, Any], JsonObject]:
    """Return a handler of the request itself from one of its fields as plain values."""
    return lambda repository, request: handler(repository, told(request))


_HANDLERS: Mapping[type[a.Request], Callable[[Repository, Any], JsonObject]] = {
    a.ApplyChanges: lambda repository, asked: wire_governed.result_object(
        repository.apply(change_set_of(asked))
    ),
    a.GetNode: _plain(_node),
    a.Revisions: _plain(_pages("revisions", wire_governed.node_object)),
    a.QueryNodes: _plain(_pages("query", wire_governed.node_hit_object)),
    a.TakeSnapshot: _plain(
        lambda repository, asked: wire_governed.snapshot_object(repository.snapshot(SnapshotRequest(**asked)))
    ),
    a.NodeChanges: _plain(_changes),
    a.GetChangeToken: _plain(
        lambda repository, asked: {"token": wire_governed.token_object(repository.change_token(**asked))}
    ),
    a.RecordAdmission: _plain(lambda repository, asked: _record(repository, asked, "admission")),
    a.RecordNodeUse: _plain(lambda repository, asked: _record(repository, asked, "use")),
    a.AccessEvents: _plain(_pages("access_events", wire_governed.access_event_object)),
    a.UsageSummary: _plain(lambda repository, asked: wire_governed.usage_object(repository.usage(**asked))),
    a.ReviewQueue: _plain(_pages("review_queue", wire_governed.node_object)),
    a.ForgetNodes: _plain(lambda repository, asked: wire.forgotten_object(repository.forget(**asked))),
}
