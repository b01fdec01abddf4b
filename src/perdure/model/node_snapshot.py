"""A verified view of a repository: the heads of its nodes at one moment, with a digest that anyone can recompute."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

import msgspec

from perdure.base.canonical import canonical_json
from perdure.base.text import counted, shown_choice, shown_kind
from perdure.errors import InvalidRequest
from perdure.model.namespace import Namespace
from perdure.model.node import Node, NodeStatus
from perdure.model.node_forms import DIGEST_PREFIX, canonical_node
from perdure.model.node_limits import SNAPSHOT_BYTES_MAX, SNAPSHOT_NODES_MAX
from perdure.repository_errors import InvariantViolation, LimitExceeded, StatusNotSelected

SNAPSHOT_PROFILE = "perdure.space-snapshot.v1"
_COMMA = b","


class SnapshotRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a snapshot shall hold.

    Args:
        statuses: of the nodes; at least one.
        max_nodes: refuse a view of more, 1 to 100,000.
        max_bytes: refuse a view of which the payload would take more, 1 to 268,435,456.
    """

    statuses: Iterable[NodeStatus | str] = (NodeStatus.ACTIVE,)
    max_nodes: int = SNAPSHOT_NODES_MAX
    max_bytes: int = SNAPSHOT_BYTES_MAX

    def checked(self) -> SnapshotRequest:
        """Return it with statuses in their order, each once. Raises InvalidRequest, or LimitExceeded."""
        return SnapshotRequest(
            checked_statuses(self.statuses),
            _budget(self.max_nodes, "max_nodes", SNAPSHOT_NODES_MAX),
            _budget(self.max_bytes, "max_bytes", SNAPSHOT_BYTES_MAX),
        )


class Snapshot(msgspec.Struct, frozen=True):
    """Nodes of some statuses, whole, ascending by id, with the digest of each one's history (in the same order).

    `digest` is `sha256:` and SHA-256 over the profile's name, a zero byte and the payload: canonical JSON of
    namespace, nodes, profile and statuses. `byte_count` is the payload's length.
    """

    profile: str
    namespace: Namespace
    statuses: tuple[NodeStatus, ...]
    nodes: tuple[Node, ...]
    histories: tuple[str, ...]
    byte_count: int
    digest: str

    @classmethod
    def of(
        cls, request: SnapshotRequest, namespace: Namespace, nodes: Iterable[tuple[Node, str]]
    ) -> Snapshot:
        """Return the snapshot of heads, each with the digest of its history, in any order.

        Raises:
            InvalidRequest: the request is malformed. LimitExceeded: the view is over a budget; never cut.
            StatusNotSelected: a node has another status. InvariantViolation: an id comes twice.
        """
        request = request.checked()
        statuses = tuple(NodeStatus(one) for one in request.statuses)
        told = sorted(nodes, key=lambda entry: entry[0].id)
        if len(told) > request.max_nodes:
            raise LimitExceeded("snapshot nodes", request.max_nodes, len(told), field="max_nodes")
        _refuse_strangers(told, statuses)
        digest = hashlib.sha256(SNAPSHOT_PROFILE.encode() + b"\0")
        size = 0
        for piece in _payload(namespace, statuses, told):
            size += len(piece)
            if size > request.max_bytes:
                raise LimitExceeded(
                    "snapshot bytes", request.max_bytes, request.max_bytes + 1, field="max_bytes"
                )
            digest.update(piece)
        return cls(
            SNAPSHOT_PROFILE,
            namespace,
            statuses,
            tuple(node for node, _ in told),
            tuple(history for _, history in told),
            size,
            DIGEST_PREFIX + digest.hexdigest(),
        )

    def verify(self, request: SnapshotRequest) -> None:
        """Raise InvariantViolation unless it is what the request gives from these very nodes."""
        if len(self.nodes) != len(self.histories):
            raise InvariantViolation("the snapshot has not one history for each node", field="histories")
        made = Snapshot.of(request, self.namespace, zip(self.nodes, self.histories, strict=True))
        for name in self.__struct_fields__:
            if getattr(made, name) != getattr(self, name):
                raise InvariantViolation(f"the snapshot's {name} is not what its nodes give", field=name)

    def __repr__(self) -> str:
        return f"<Snapshot of {counted(len(self.nodes), 'node')}, {self.byte_count} bytes>"


def checked_statuses(values: Iterable[NodeStatus | str]) -> tuple[NodeStatus, ...]:
    """Return the statuses in their order, each once. Raises InvalidRequest for none, and for what is none."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InvalidRequest(f"statuses must be a list, got {shown_kind(values)}", field="statuses")
    told = set()
    for value in values:
        if not isinstance(value, str) or value not in NodeStatus.__members__.values():
            raise InvalidRequest(
                f"statuses must be of {', '.join(NodeStatus)}, got {shown_choice(value)}", field="statuses"
            )
        told.add(NodeStatus(value))
    if not told:
        raise InvalidRequest("statuses is empty; name at least one", field="statuses")
    return tuple(status for status in NodeStatus if status in told)


def _budget(value: int, field: str, cap: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidRequest(f"{field} must be an integer of at least 1", field=field)
    if value > cap:
        raise LimitExceeded(field, cap, value)
    return value


def _refuse_strangers(told: list[tuple[Node, str]], statuses: tuple[NodeStatus, ...]) -> None:
    before: str | None = None
    for node, _ in told:
        if node.status not in statuses:
            raise StatusNotSelected(node.id, node.status.value)
        if node.id == before:
            raise InvariantViolation("two nodes of the snapshot have one id", field="nodes", node_id=node.id)
        before = node.id


def _payload(
    namespace: Namespace, statuses: tuple[NodeStatus, ...], told: list[tuple[Node, str]]
) -> Iterator[bytes]:
    """Yield the payload in pieces: an object of which the keys are sorted."""
    name = {"principal": namespace.principal, "scope": namespace.scope}
    yield b'{"namespace":' + canonical_json(name) + b',"nodes":['
    for position, (node, history) in enumerate(told):
        yield (_COMMA if position else b"") + canonical_node(node, history_digest=history)
    tail = {"profile": SNAPSHOT_PROFILE, "statuses": [status.value for status in statuses]}
    yield b"]," + canonical_json(tail)[1:]
