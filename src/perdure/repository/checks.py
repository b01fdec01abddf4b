"""Shapes and limits of what is told to a repository, before anything is looked up.

Each function returns a value of the same type in which times are UTC datetimes, enums are enums and lists are tuples,
or raises InvalidRequest (a wrong form, a blank text) or LimitExceeded (too long, too many).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeVar

from msgspec import UNSET

from perdure.base.canonical import checked_text
from perdure.base.ids import refuse_control
from perdure.base.instants import Instant, to_datetime, to_millis
from perdure.base.members import within
from perdure.base.text import counted, shown_choice, shown_kind
from perdure.contract.limits import METADATA_KEY_RESERVED
from perdure.errors import InvalidRequest
from perdure.lexical.characters import is_blank
from perdure.model import node_limits as limits
from perdure.model.node import (
    AccessEvent,
    Evidence,
    EvidenceKind,
    NodeDraft,
    NodeKind,
    NodeStatus,
    Relation,
    RelationKind,
)
from perdure.model.node_change import (
    Activate,
    AddRelation,
    ChangeSet,
    Corroborate,
    Create,
    Operation,
    Relabel,
    RemoveRelation,
    Resolve,
    Revise,
    SetStatus,
)
from perdure.planning.checks import checked_count, checked_real, members_of, refuse_empty_interval
from perdure.planning.references import refuse_misspelt
from perdure.repository_errors import LimitExceeded

REVISION_MAX = 2**53 - 1
MODES = ("refinement", "correction")
E = TypeVar("E", bound=StrEnum)
T = TypeVar("T")


def checked_required(value: Any, field: str, bytes_max: int) -> str:
    """Return a text that is not blank and takes at most so many bytes."""
    text = checked_text(value, field=field)
    if not text.strip():
        raise InvalidRequest(f"{field} is blank", field=field)
    size = len(text) if text.isascii() else len(text.encode())
    if size > bytes_max:
        raise LimitExceeded(field, bytes_max, size)
    return text


def checked_identifier(value: Any, field: str) -> str:
    """Return an id, a key or a name of the caller's: 1 to 256 bytes, not blank, no control characters."""
    text = checked_required(value, field, limits.IDENTIFIER_BYTES_MAX)
    refuse_control(text, field=field)
    return text


def find_identifier(value: Any, field: str) -> str | None:
    """Return None for None and for the empty text, otherwise as `checked_identifier`."""
    return None if value is None or value == "" else checked_identifier(value, field)


def checked_content(value: Any, field: str) -> str:
    """Return a node's content: it can be seen, and takes at most 65,536 bytes."""
    text = checked_required(value, field, limits.CONTENT_BYTES_MAX)
    if is_blank(text):
        raise InvalidRequest(f"{field} holds nothing that can be seen", field=field)
    return text


def checked_share(value: Any, field: str) -> float:
    """Return a finite number from 0 to 1."""
    # -0 is 0, so that equal numbers have equal bytes.
    return checked_real(value, field, 0.0, 1.0) + 0.0


def checked_enum(value: Any, kind: type[E], field: str) -> E:
    """Return the member of the enum that is named."""
    if not isinstance(value, str) or value not in kind.__members__.values():
        raise InvalidRequest(
            f"{field} must be one of {', '.join(kind)}, got {shown_choice(value)}", field=field
        )
    return kind(value)


def checked_moment(value: Instant, field: str) -> datetime:
    """Return the instant as an aware UTC datetime, to the millisecond."""
    return to_datetime(to_millis(value, field=field))


def find_moment(value: Instant | None, field: str) -> datetime | None:
    return None if value is None else checked_moment(value, field)


def checked_evidence(values: Iterable[Evidence], field: str = "evidence") -> tuple[Evidence, ...]:
    """Return evidence in the order in which it was told; at most as many as a node may have."""
    told = _bounded(values, field, limits.EVIDENCE_MAX)
    return tuple(_one_evidence(value, f"{field}[{place}]") for place, value in enumerate(told))


def _one_evidence(told: Any, field: str) -> Evidence:
    if not isinstance(told, Evidence):
        raise InvalidRequest(f"{field} must be Evidence, got {shown_kind(told)}", field=field)
    quote = (
        None if told.quote is None else checked_required(told.quote, f"{field}.quote", limits.QUOTE_BYTES_MAX)
    )
    start, end = _place(told, quote, field)
    uri = checked_required(told.uri, f"{field}.uri", limits.URI_BYTES_MAX)
    refuse_misspelt(uri, field=f"{field}.uri")
    return Evidence(
        uri,
        checked_required(told.digest, f"{field}.digest", limits.DIGEST_BYTES_MAX),
        checked_enum(told.kind, EvidenceKind, f"{field}.kind"),
        checked_moment(told.occurred_at, f"{field}.occurred_at"),
        quote,
        start,
        end,
    )


def _place(told: Evidence, quote: str | None, field: str) -> tuple[int | None, int | None]:
    """Return where the quote stands; the end follows from the start."""
    if told.start is None and told.end is None:
        return None, None
    if quote is None:
        raise InvalidRequest(f"{field} has a place without a quote: give both", field=f"{field}.quote")
    if told.start is None:
        raise InvalidRequest(f"{field}.end is given without {field}.start", field=f"{field}.start")
    start = checked_count(told.start, f"{field}.start", 0, REVISION_MAX)
    end = start + len(quote)
    if told.end is not None and checked_count(told.end, f"{field}.end", 0, REVISION_MAX) != end:
        raise InvalidRequest(
            f"{field}.end must be {end}, where the quote of {counted(len(quote), 'character')} ends, got {told.end}",
            field=f"{field}.end",
        )
    return start, end


def checked_relation(told: Any, field: str = "relation") -> Relation:
    """Return a relation to a node that is named."""
    if not isinstance(told, Relation):
        raise InvalidRequest(f"{field} must be a Relation, got {shown_kind(told)}", field=field)
    return Relation(
        checked_enum(told.kind, RelationKind, f"{field}.kind"),
        checked_identifier(told.target, f"{field}.target"),
    )


def checked_labels(value: Any, field: str = "labels") -> dict[str, str]:
    """Return labels sorted by key; None is none."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidRequest(f"{field} must be an object, got {shown_kind(value)}", field=field)
    if len(value) > limits.LABELS_MAX:
        raise LimitExceeded(field, limits.LABELS_MAX, len(value))
    found = {
        checked_required(key, f"{field}[{place}].key", limits.LABEL_KEY_BYTES_MAX): checked_required(
            told, f"{field}[{place}].value", limits.LABEL_VALUE_BYTES_MAX
        )
        for place, (key, told) in enumerate(value.items())
    }
    if METADATA_KEY_RESERVED in found:
        raise InvalidRequest(f"{field} has the key {METADATA_KEY_RESERVED!r}, which is reserved", field=field)
    return dict(sorted(found.items()))


def find_subject(value: Any, field: str = "subject") -> str | None:
    """Return the slot that a node fills; None is none."""
    return None if value is None else checked_required(value, field, limits.SUBJECT_BYTES_MAX)


def check_validity(valid_from: datetime | None, valid_to: datetime | None) -> None:
    """Raise InvalidRequest unless the interval is open at an end or holds an instant."""
    if valid_from is not None and valid_to is not None:
        refuse_empty_interval(
            to_millis(valid_from, field="valid_from"), to_millis(valid_to, field="valid_to")
        )


def checked_draft(told: Any, occurred_at: datetime) -> NodeDraft:
    """Return a draft; without a time of its own it has that of its change set."""
    if not isinstance(told, NodeDraft):
        raise InvalidRequest(f"a NodeDraft is wanted here, got {shown_kind(told)}")
    valid_from, valid_to = find_moment(told.valid_from, "valid_from"), find_moment(told.valid_to, "valid_to")
    check_validity(valid_from, valid_to)
    return NodeDraft(
        checked_identifier(told.id, "id"),
        checked_enum(told.kind, NodeKind, "kind"),
        checked_content(told.content, "content"),
        checked_enum(told.status, NodeStatus, "status"),
        checked_share(told.confidence, "confidence"),
        checked_share(told.importance, "importance"),
        checked_evidence(told.evidence),
        tuple(
            checked_relation(one, f"relations[{place}]")
            for place, one in enumerate(_bounded(told.relations, "relations", limits.RELATIONS_MAX))
        ),
        checked_labels(told.labels),
        find_subject(told.subject),
        valid_from,
        valid_to,
        occurred_at if told.created_at is None else checked_moment(told.created_at, "created_at"),
    )


def checked_operation(told: Any, occurred_at: datetime) -> Operation:
    """Return an operation of any kind."""
    if not isinstance(told, Operation):
        raise InvalidRequest(f"an operation is wanted here, got {shown_kind(told)}")
    common: dict[str, Any] = {
        "actor": find_identifier(told.actor, "actor"),
        "reason": None
        if told.reason is None or told.reason == ""
        else checked_required(told.reason, "reason", limits.REASON_BYTES_MAX),
    }
    if isinstance(told, Create):
        with within("draft"):
            return Create(draft=checked_draft(told.draft, occurred_at), **common)
    if type(told) not in _REST:
        raise InvalidRequest(f"there is no operation of the type {type(told).__name__}")
    common["node_id"] = checked_identifier(told.node_id, "node_id")  # type: ignore[attr-defined]
    common["expected_revision"] = checked_count(
        told.expected_revision,  # type: ignore[attr-defined]
        "expected_revision",
        1,
        REVISION_MAX,
    )
    common["evidence"] = checked_evidence(told.evidence)  # type: ignore[attr-defined]
    return type(told)(**common, **_REST[type(told)](told))


def _rest_of_revise(told: Revise) -> dict[str, Any]:
    if not isinstance(told.mode, str) or told.mode not in MODES:
        raise InvalidRequest(
            f"mode must be one of {', '.join(MODES)}, got {shown_choice(told.mode)}", field="mode"
        )
    return {
        "content": checked_content(told.content, "content"),
        "mode": str.__str__(told.mode),
        "confidence": None if told.confidence is None else checked_share(told.confidence, "confidence"),
        "importance": None if told.importance is None else checked_share(told.importance, "importance"),
    }


def _rest_of_relabel(told: Relabel) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if told.labels is not UNSET:
        found["labels"] = checked_labels(told.labels)
    if told.subject is not UNSET:
        found["subject"] = find_subject(told.subject)
    for name in ("valid_from", "valid_to"):
        if (value := getattr(told, name)) is not UNSET:
            found[name] = find_moment(value, name)
    if not found:
        raise InvalidRequest(
            "relabel changes nothing: give labels, subject, valid_from or valid_to", field="labels"
        )
    return found


def _rest_of_relation(told: AddRelation | RemoveRelation) -> dict[str, Any]:
    return {"relation": checked_relation(told.relation)}


def _rest_of_status(told: SetStatus) -> dict[str, Any]:
    return {"status": checked_enum(told.status, NodeStatus, "status")}


def _no_rest(told: Any) -> dict[str, Any]:
    return {}


_REST: dict[type[Operation], Callable[[Any], dict[str, Any]]] = {
    Activate: _no_rest,
    Corroborate: _no_rest,
    Revise: _rest_of_revise,
    Relabel: _rest_of_relabel,
    AddRelation: _rest_of_relation,
    RemoveRelation: _rest_of_relation,
    SetStatus: _rest_of_status,
    Resolve: _no_rest,
}


def checked_change_set(told: Any) -> ChangeSet:
    """Return a change set of 1 to 128 operations."""
    if not isinstance(told, ChangeSet):
        raise InvalidRequest(f"change_set must be a ChangeSet, got {shown_kind(told)}", field="change_set")
    key = checked_identifier(told.idempotency_key, "idempotency_key")
    occurred_at = checked_moment(told.occurred_at, "occurred_at")
    operations = _bounded(told.operations, "operations", limits.OPERATIONS_MAX)
    if not operations:
        raise InvalidRequest("operations is empty; a change set changes something", field="operations")
    checked = []
    for place, one in enumerate(operations):
        with within(f"operations[{place}]"):
            checked.append(checked_operation(one, occurred_at))
    return ChangeSet(key, occurred_at, tuple(checked))


def checked_event(told: Any, kind: str) -> AccessEvent:
    """Return an access event as one of this kind."""
    if not isinstance(told, AccessEvent):
        raise InvalidRequest(f"event must be an AccessEvent, got {shown_kind(told)}", field="event")
    return AccessEvent(
        checked_identifier(told.id, "id"),
        checked_identifier(told.node_id, "node_id"),
        checked_count(told.node_revision, "node_revision", 1, REVISION_MAX),
        checked_moment(told.occurred_at, "occurred_at"),
        find_identifier(told.context_id, "context_id"),
        find_identifier(told.actor, "actor"),
        "use" if kind == "use" else "admission",
    )


def _bounded(values: Any, field: str, at_most: int) -> list[Any]:
    found: list[Any] = []
    for value in members_of(values, field, "members"):
        found.append(value)
        if len(found) > at_most:
            raise LimitExceeded(field, at_most, len(found))
    return found
