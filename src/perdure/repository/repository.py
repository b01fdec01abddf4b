"""Repository: the governed knowledge of one space."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from perdure.audit.audited_log import follow_first
from perdure.base.canonical import canonical_json
from perdure.base.instants import Instant
from perdure.contract.decoding import decode_request, operation_of
from perdure.errors import Busy, InvalidRequest
from perdure.model import node_limits as limits
from perdure.model.conversation_forms import conversation_of
from perdure.model.namespace import Namespace
from perdure.model.node import AccessEvent, EvidenceKind, Node, NodeHit, NodeKind, NodeStatus, Usage
from perdure.model.node_change import ChangeResult, ChangeSet, ChangeToken, NodeChanges
from perdure.model.node_forms import NO_HISTORY, history_digest
from perdure.model.node_snapshot import Snapshot, SnapshotRequest
from perdure.model.replies import Forgotten, Page
from perdure.planning.certificates import conclude
from perdure.planning.checks import checked_choice, checked_count, checked_flag, members_of
from perdure.planning.embedding import Embedding, Vectors
from perdure.planning.removing import remove_certified
from perdure.repository.accesses import list_events, plan_access
from perdure.repository.applying import Request, find_result, find_texts, plan_apply
from perdure.repository.asking import LabelFilter, checked_limit, checked_query
from perdure.repository.calling import answer
from perdure.repository.checks import (
    REVISION_MAX,
    checked_change_set,
    checked_enum,
    checked_event,
    checked_identifier,
)
from perdure.repository.feed import Feed
from perdure.repository.finding import Place, Placed, find_nodes, paged
from perdure.repository.quotes import CheckedQuotes, TurnsMoved, check_quotes, quoting
from perdure.repository.stored import StoredNodes
from perdure.repository_errors import LimitExceeded, NodeNotFound, NodeRevisionNotFound
from perdure.search.cursors import CursorCodec
from perdure.space.draft import Draft, confirm
from perdure.space.nodes import NodeHead
from perdure.space.space import Space

T = TypeVar("T")
ATTEMPTS = 8  # to have quotes still in their turns when the writer's turn comes
NO_EMBEDDING = Embedding(None, None)
_WAITING = (NodeStatus.CANDIDATE, NodeStatus.CONFLICTED)


class Repository:
    """The nodes of one space. Use `Store.repository(...)` to get one. Thread-safe and synchronous.

    Nodes live in the log of the space beside its facts. What is active is also a fact there, so that recalls find it;
    nothing else of a node is. Every write is one change set, whole or not at all. No read writes anything.
    """

    def __init__(
        self,
        space: Space,
        decision_kinds: Iterable[str],
        *,
        find_space: Callable[[Namespace], Space],
        embedding: Embedding = NO_EMBEDDING,
    ) -> None:
        self.space, self._find_space, self._embedding = space, find_space, embedding
        self._secret = space.log.secret
        self.decision_kinds = checked_decision_kinds(decision_kinds)

    # Changing

    def apply(self, change_set: ChangeSet) -> ChangeResult:
        """Carry out a change set; it is durable, and seen by every read, when this returns.

        An equal set under the same key gives the first answer again and changes nothing, however much has changed
        since. Operations run in order, each on what those before it left; then the graph is checked.

        Raises:
            InvalidRequest: a field is malformed, or evidence is missing (EvidenceRequired), or a quote is not in
                its turn (QuoteNotFound). LimitExceeded: something is too large.
            NotFound: a node (NodeNotFound) or the target of a relation (RelationTargetNotFound) is not there.
            Conflict: RevisionConflict, IdempotencyConflict, NodeAlreadyExists, InvalidTransition, InvariantViolation.
            Blocked: the content was forgotten with block=True.
            Busy, StorageFull, Unavailable. In each case nothing is changed and the key is unused.
        """
        request = Request.of(checked_change_set(change_set), self._secret)
        told = quoting(request.changes)
        for _ in range(ATTEMPTS):
            quotes = None
            if told:
                # A turn may have been forgotten since the set was told first, which a repetition does not ask about.
                known = self._read(lambda nodes: find_result(nodes.state, nodes, request))
                if known is not None:
                    self.space.write(confirm)
                    return known
                quotes = check_quotes(self._find_space(conversation_of(self.space.namespace)), told)
            with suppress(TurnsMoved):
                return self._apply(request, quotes)
        raise Busy("turns of conversations are being forgotten again and again; retry")

    def _apply(self, request: Request, quotes: CheckedQuotes | None) -> ChangeResult:
        log, kinds, vectors = self.space.log, self.decision_kinds, self._vectors(request)
        return self.space.write(
            lambda draft: plan_apply(draft, log, request, kinds, vectors, quotes), alone=True
        )

    def _vectors(self, request: Request) -> dict[str, Vectors]:
        """Return the vectors of what recalls will see of a change set, where there is an embedder."""
        if self._embedding.embedder is None:
            return {}
        texts = self._read(lambda nodes: find_texts(nodes.state, nodes, request, self.decision_kinds))
        return dict(zip(texts, self._embedding.made(texts), strict=True))

    def record_admission(self, event: AccessEvent) -> None:
        """Note that the active head of a node went into a prompt. The same event again changes nothing.

        Raises:
            NodeNotFound, NodeRevisionNotFound. AdmissionNotAllowed: take the node out of the prompt.
            IdempotencyConflict: the id stands for another event. InvalidRequest: a field is malformed.
        """
        self._record(event, "admission")

    def record_use(self, event: AccessEvent) -> None:
        """Note that a revision of a node, any of its past ones too, was used by an answer.

        Raises as `record_admission`, but never AdmissionNotAllowed.
        """
        self._record(event, "use")

    def forget(
        self, ids: Iterable[str], *, dry_run: bool | None = False, purge: bool | None = False
    ) -> Forgotten:
        """Erase nodes: all revisions, evidence, access records, and the facts that they were seen as.

        Relations of other nodes to them stay, without a target. What they superseded does not come back. Unknown ids
        are ignored. `forgotten` of the answer are the ids of the nodes, sorted. Nothing is blocked: the same content may be
        proposed again; `Memory.forget` with block=True refuses it.

        Args:
            dry_run: erase nothing; tell what would go.
            purge: rewrite the store afterwards, so that not even its places are left.

        Raises Busy, StorageFull, Unavailable as `Memory.forget`.
        """
        told = enumerate(members_of(ids, "ids", "ids"))
        named = sorted({checked_identifier(one, f"ids[{place}]") for place, one in told})
        dry_run, purge = checked_flag(dry_run, "dry_run"), checked_flag(purge, "purge")

        def plan(draft: Draft) -> tuple[tuple[str, ...], Any, int]:
            heads = [head for id_ in named if (head := draft.state.nodes.find(id_)) is not None]
            gone = tuple(head.id for head in heads)
            if dry_run:
                return gone, None, draft.now
            return gone, remove_certified(draft, (), nodes=[head.number for head in heads]), draft.now

        if not dry_run:
            follow_first(self.space.log, self.space.number)
        gone, removed, at = self.space.write(plan, alone=True)
        if dry_run:
            return Forgotten(gone, (), dry_run=True, purged=False, pending=False)
        pending, purged, certificate = conclude(self.space.log, "forget", removed, at, purge=purge)
        return Forgotten(gone, (), False, purged is not None, pending, certificate)

    # Asking

    def get(self, id: str, revision: int | None = None) -> Node | None:
        """Return a node as it is, or as a past revision of it was; None where there is no such node.

        Raises NodeRevisionNotFound where the node is there and has no such revision.
        """
        named = checked_identifier(id, "id")
        wanted = None if revision is None else checked_count(revision, "revision", 1, REVISION_MAX)

        def work(nodes: StoredNodes) -> Node | None:
            head = nodes.table.find(named)
            if head is None:
                return None
            if wanted is not None and wanted > head.revision:
                raise NodeRevisionNotFound(named, wanted)
            return nodes.revisions([(head, wanted or head.revision)])[0]

        return self._read(work)

    def query(
        self,
        text: str | None = None,
        *,
        kinds: Iterable[NodeKind | str] | None = None,
        statuses: Iterable[NodeStatus | str] = (NodeStatus.ACTIVE,),
        labels: LabelFilter | None = None,
        subject: str | None = None,
        updated_after: Instant | None = None,
        updated_before: Instant | None = None,
        created_after: Instant | None = None,
        created_before: Instant | None = None,
        evidence_uri: str | None = None,
        limit: int = limits.QUERY_LIMIT_DEFAULT,
        cursor: str | None = None,
    ) -> Page[NodeHit]:
        """Return nodes as they are that pass every filter and, where a text is given, hold a word of it.

        Best score first, then those updated last, then by id. Only contents are searched.

        Args:
            text: words to find; None ranks by time alone.
            kinds: of these kinds; None or empty means all.
            statuses: of these statuses; at least one.
            labels: see `LabelFilter`; all must hold.
            updated_after, created_after: at that moment or later. updated_before, created_before: before it.
            evidence_uri: with an evidence of that uri.
            limit: 1 to 100.
            cursor: of the page before, asked with the same arguments.

        Raises InvalidRequest, LimitExceeded; Conflict (kind "epoch") for a cursor from before a purge.
        """
        query = checked_query(
            {
                "text": text,
                "kinds": kinds,
                "statuses": statuses,
                "labels": labels,
                "subject": subject,
                "updated_after": updated_after,
                "updated_before": updated_before,
                "created_after": created_after,
                "created_before": created_before,
                "evidence_uri": evidence_uri,
            }
        )
        at_most = checked_limit(limit)
        return self._read(
            lambda nodes: find_nodes(
                nodes.state, nodes, query, at_most, cursor, self._codec(nodes, b"nodes\0" + query.key())
            )
        )

    def revisions(
        self, id: str, *, limit: int = limits.QUERY_LIMIT_DEFAULT, cursor: str | None = None
    ) -> Page[Node]:
        """Return all revisions of a node, the first one first. Raises NodeNotFound; else as `query`."""
        named, at_most = checked_identifier(id, "id"), checked_limit(limit)

        def work(nodes: StoredNodes) -> Page[Node]:
            head = _existing(nodes, named)
            codec = self._codec(nodes, canonical_json(["revisions", named]))
            start = 0 if cursor is None else codec.decode(cursor)
            last = min(start + at_most, head.revision)
            found = nodes.revisions([(head, revision) for revision in range(start + 1, last + 1)])
            has_more = last < head.revision
            return Page(tuple(found), head.revision, has_more, codec.encode(last) if has_more else None)

        return self._read(work)

    def review_queue(
        self, *, limit: int = limits.QUERY_LIMIT_DEFAULT, cursor: str | None = None
    ) -> Page[Node]:
        """Return what waits for a decision: candidates and conflicted nodes, those updated first coming first.

        Raises as `query`.
        """
        at_most = checked_limit(limit)

        def work(nodes: StoredNodes) -> Page[Node]:
            placed = [
                Placed(Place((0.0, head.updated_at), head.id), head)
                for head in nodes.table.narrowed([[("status", status) for status in _WAITING]])
                if head.status in _WAITING
            ]
            codec = self._codec(nodes, b"review queue")
            return paged(placed, at_most, cursor, codec, lambda heads: tuple(nodes.heads(heads)))

        return self._read(work)

    def snapshot(self, request: SnapshotRequest | None = None) -> Snapshot:
        """Return all nodes of some statuses as they are at one moment, with a digest; see `Snapshot`.

        Equal content has an equal digest in every store. Raises LimitExceeded where the view is over a budget.
        """
        asked = (SnapshotRequest() if request is None else request).checked()

        def work(nodes: StoredNodes) -> Snapshot:
            heads = [head for head in nodes.table.heads.values() if head.status in asked.statuses]
            if len(heads) > asked.max_nodes:
                raise LimitExceeded("snapshot nodes", asked.max_nodes, len(heads), field="max_nodes")
            entries = zip(nodes.heads(heads), (_history(nodes, head) for head in heads), strict=True)
            return Snapshot.of(asked, self.space.namespace, entries)

        return self._read(work)

    def change_token(self) -> ChangeToken:
        """Return where the content stands; see `ChangeToken`. Cheap."""
        return self._read(lambda nodes: Feed(nodes.state, nodes.reader, self._secret).token())

    def changes(
        self, since: ChangeToken | None = None, *, limit: int = limits.CHANGES_LIMIT_DEFAULT
    ) -> NodeChanges:
        """Return what changed after a token, each step once and in order; since the history began without one.

        Raises HistoryChanged where the token is of another history: after a purge, or of another copy of the store.
        """
        at_most = checked_limit(limit, at_most=limits.CHANGES_LIMIT_MAX)
        return self._read(lambda nodes: Feed(nodes.state, nodes.reader, self._secret).since(since, at_most))

    def usage(self, id: str) -> Usage:
        """Return how often a node was admitted and used. Raises NodeNotFound."""
        named = checked_identifier(id, "id")

        def work(nodes: StoredNodes) -> Usage:
            head = _existing(nodes, named)
            return Usage(head.admissions, head.uses)

        return self._read(work)

    def access_events(
        self,
        id: str,
        *,
        kind: str | None = None,
        limit: int = limits.QUERY_LIMIT_DEFAULT,
        cursor: str | None = None,
    ) -> Page[AccessEvent]:
        """Return the access events of a node, of one kind or both, in the order in which they were recorded.

        Raises NodeNotFound; else as `query`.
        """
        named, at_most = checked_identifier(id, "id"), checked_limit(limit)
        wanted = None if kind is None else checked_choice(kind, "kind", ("admission", "use"))

        def work(nodes: StoredNodes) -> Page[AccessEvent]:
            codec = self._codec(nodes, canonical_json(["access", named, wanted]))
            return list_events(nodes, _existing(nodes, named), wanted, at_most, cursor, codec)

        return self._read(work)

    def call(self, op: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Carry out an operation of the contract: a request and a reply of plain JSON, as on every surface.

        Raises NotFound where there is no such operation of repositories; else as `Memory.call`.
        """
        return answer(self, decode_request(operation_of(op, "repository"), request))

    def _record(self, event: AccessEvent, kind: str) -> None:
        checked = checked_event(event, kind)
        self.space.write(lambda draft: plan_access(draft, self.space.log, checked), alone=True)

    def _read(self, work: Callable[[StoredNodes], T]) -> T:
        return self.space.read(lambda state, reader: work(StoredNodes(state, reader)))

    def _codec(self, nodes: StoredNodes, bound: bytes) -> CursorCodec:
        return CursorCodec(self._secret, self.space.namespace.key(), nodes.state, bound)


def checked_decision_kinds(values: Iterable[str]) -> tuple[EvidenceKind, ...]:
    """Return the kinds of evidence that decide, in their order; at least one."""
    told = {
        checked_enum(one, EvidenceKind, f"decision_kinds[{place}]")
        for place, one in enumerate(members_of(values, "decision_kinds", "kinds"))
    }
    if not told:
        raise InvalidRequest(
            "decision_kinds is empty, so that nothing could be decided", field="decision_kinds"
        )
    return tuple(kind for kind in EvidenceKind if kind in told)


def _existing(nodes: StoredNodes, id_: str) -> NodeHead:
    head = nodes.table.find(id_)
    if head is None:
        raise NodeNotFound(id_, field="id")
    return head


def _history(nodes: StoredNodes, head: NodeHead) -> str:
    if head.revision == 1:
        return NO_HISTORY
    return history_digest(nodes.revisions([(head, revision) for revision in range(1, head.revision)]))
