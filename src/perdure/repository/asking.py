"""What is asked of a repository's nodes, checked: filters, text, pages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from perdure.base.canonical import canonical_json
from perdure.base.instants import Instant, find_millis
from perdure.base.text import shown_kind
from perdure.errors import InvalidRequest
from perdure.model import node_limits as limits
from perdure.model.node import NodeKind, NodeStatus
from perdure.model.node_snapshot import checked_statuses
from perdure.planning.checks import checked_count, members_of
from perdure.repository.checks import checked_enum, checked_required
from perdure.repository_errors import LimitExceeded
from perdure.space.node_index import Trait
from perdure.space.nodes import NodeHead

LabelFilter = Mapping[str, str | Iterable[str] | None]
"""For each label the value that it must have, or several of which it must have one, or None: it must be absent."""


class NodeQuery(msgspec.Struct, frozen=True):
    """A checked query. Times are milliseconds; a window takes in its start and not its end."""

    text: str | None
    kinds: tuple[NodeKind, ...]
    statuses: tuple[NodeStatus, ...]
    labels: tuple[tuple[str, tuple[str, ...]], ...]  # by key; no value: absent
    updated: tuple[int | None, int | None]
    created: tuple[int | None, int | None]
    evidence_uri: str | None
    subject: str | None

    def key(self) -> bytes:
        """Return bytes that equal queries share and no others."""
        return canonical_json(msgspec.to_builtins(self))

    @property
    def narrows(self) -> bool:
        """Whether there is a filter beside the statuses."""
        windows = (*self.updated, *self.created)
        others = (self.kinds, self.labels, self.subject, self.evidence_uri)
        return any(one is not None for one in windows) or any(others)

    def filters(self) -> list[list[Trait]]:
        """Return the filters that are exact: each passes a node that has one of its traits."""
        found: list[list[Trait]] = [[("status", status.value) for status in self.statuses]]
        if self.kinds:
            found.append([("kind", kind.value) for kind in self.kinds])
        if self.subject is not None:
            found.append([("subject", self.subject)])
        return found + [[("label", key, one) for one in values] for key, values in self.labels if values]

    def matches(self, head: NodeHead) -> bool:
        """Whether the node passes all filters; the text is no filter."""
        return (
            head.status in self.statuses
            and (not self.kinds or head.kind in self.kinds)
            and (self.subject is None or head.subject == self.subject)
            and (self.evidence_uri is None or self.evidence_uri in head.uris)
            and _is_within(head.updated_at, self.updated)
            and _is_within(head.created_at, self.created)
            and (not self.labels or self._has_labels(dict(head.labels)))
        )

    def _has_labels(self, told: dict[str, str]) -> bool:
        return all(told.get(key) in values if values else key not in told for key, values in self.labels)


def _is_within(at: int, window: tuple[int | None, int | None]) -> bool:
    after, before = window
    return (after is None or after <= at) and (before is None or at < before)


def checked_query(told: Mapping[str, Any]) -> NodeQuery:
    """Return the query of these arguments of `Repository.query`."""
    statuses = checked_statuses(told["statuses"])
    kinds = {
        checked_enum(one, NodeKind, f"kinds[{place}]")
        for place, one in enumerate(members_of(told["kinds"] or (), "kinds", "kinds"))
    }
    text, uri, subject = told["text"], told["evidence_uri"], told["subject"]
    return NodeQuery(
        None if text is None else checked_required(text, "text", limits.NODE_QUERY_BYTES_MAX),
        tuple(kind for kind in NodeKind if kind in kinds),
        statuses,
        _labels(told["labels"]),
        _window(told, "updated"),
        _window(told, "created"),
        None if uri is None else checked_required(uri, "evidence_uri", limits.URI_BYTES_MAX),
        None if subject is None else checked_required(subject, "subject", limits.SUBJECT_BYTES_MAX),
    )


def checked_limit(value: int, *, at_most: int = limits.QUERY_LIMIT_MAX) -> int:
    """Return how many are asked for, at least 1. Raises LimitExceeded for more than there may be."""
    if type(value) is int and value > at_most:
        raise LimitExceeded("limit", at_most, value)
    return checked_count(value, "limit", 1, at_most)


def _window(told: Mapping[str, Any], name: str) -> tuple[int | None, int | None]:
    after: Instant | None = told[f"{name}_after"]
    before: Instant | None = told[f"{name}_before"]
    return find_millis(after, field=f"{name}_after"), find_millis(before, field=f"{name}_before")


def _labels(told: Any) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if told is None:
        return ()
    if not isinstance(told, Mapping):
        raise InvalidRequest(f"labels must be an object, got {shown_kind(told)}", field="labels")
    if len(told) > limits.LABELS_MAX:
        raise LimitExceeded("labels", limits.LABELS_MAX, len(told))
    found = {}
    for place, (key, value) in enumerate(told.items()):
        name = checked_required(key, f"labels[{place}].key", limits.LABEL_KEY_BYTES_MAX)
        found[name] = () if value is None else _values(value, f"labels[{place}].value")
    return tuple(sorted(found.items()))


def _values(told: Any, field: str) -> tuple[str, ...]:
    if isinstance(told, str):
        return (checked_required(told, field, limits.LABEL_VALUE_BYTES_MAX),)
    values = tuple(members_of(told, field, "texts"))
    if not 1 <= len(values) <= limits.LABELS_MAX:
        raise InvalidRequest(f"{field} must be a text, 1 to {limits.LABELS_MAX} texts, or None", field=field)
    checked = (
        checked_required(one, f"{field}[{place}]", limits.LABEL_VALUE_BYTES_MAX)
        for place, one in enumerate(values)
    )
    return tuple(sorted(set(checked)))
