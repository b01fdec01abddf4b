"""Taking facts out of a plan: re-linking, erasing, losing receipts. Used by forget and by replace."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import msgspec

from perdure.audit.rows import FactDigests
from perdure.log.records import NO_FACT, EndRecord, NodeRecord, TurnRecord
from perdure.model.namespace import Namespace
from perdure.planning.certificates import Removed
from perdure.planning.receipts import lose_receipts
from perdure.space.draft import Deferred, Draft
from perdure.space.governed import Whole, originals_of, seqs_of, whole_of
from perdure.space.nodes import ChangeReceipt
from perdure.space.state import SpaceState
from perdure.temporal.columns import BEGINNING
from perdure.temporal.links import effective_time, relinks


def remove(
    draft: Draft,
    numbers: Iterable[int],
    *,
    nodes: Iterable[int] = (),
    replaced: bool = False,
    cause: str = "",
) -> None:
    """Remove facts that the log holds, so that no older version comes back while a newer one stays.

    Links over the removed facts are bridged first; the records, the bytes and the links go together. A node or a
    turn goes whole: with every fact that it is seen as.

    Args:
        nodes: by number, nodes that live; those of the facts need not be named.
        cause: why, for the audit, where nobody asked for these by name.
    """
    named = set(numbers)
    # What is erased with a fact is what the log holds: records that are still to be written would stay.
    if any(number >= draft.state.next_number for number in named) or draft.is_spoken_of(named):
        raise Deferred
    state = draft.state
    whole = whole_of(state, named, nodes)
    gone = whole.facts
    bridges = relinks(gone, draft)
    ends = _lasting_ends(draft, whole)
    seqs = {state.seqs[number] for number in gone}
    seqs.update(seq for number in gone for seq in state.owned.get(number, ()))
    seqs.update(seqs_of(state, whole))
    lost = _lost_change_sets(state, whole.nodes)
    seqs.update(kept.seq for kept in lost)
    told: dict[str, Any] = {"replaced": replaced, "cause": cause, "nodes": tuple(sorted(whole.nodes))}
    told["ids"] = _digests(draft, whole)
    if whole.nodes:
        told["step"] = state.nodes.sequence + 1
    draft.remove(sorted(gone), sorted(seqs), turns=tuple(sorted(whole.turns)), **told)
    lose_receipts(draft, gone)
    for kept in lost:
        left = tuple(one for one in kept.record.nodes if one[0] not in whole.nodes)
        draft.add(msgspec.structs.replace(kept.record, request=b"", nodes=left, lost=True))
    for link in bridges:
        draft.add_link(link)
    for end in ends:
        draft.add(end)


def _digests(draft: Draft, whole: Whole) -> tuple[bytes, ...]:
    """Return what the audit names the ids by, when the records that held them are gone."""
    settings, heads = draft.state.settings, draft.state.nodes.heads
    digests = FactDigests(draft.secret, Namespace(settings.principal, settings.scope).key())
    facts = (draft.fact(number).id for number in sorted(whole.facts))
    nodes = (heads[number].id for number in sorted(whole.nodes))
    return tuple(digests.of(id_) for id_ in (*facts, *nodes))


def _lost_change_sets(state: SpaceState, nodes: Collection[int]) -> list[ChangeReceipt]:
    if not nodes:
        return []
    return [
        kept
        for kept in state.nodes.receipts.values()
        if any(number in nodes for number, _ in kept.record.nodes)
    ]


def _lasting_ends(draft: Draft, whole: Whole) -> list[EndRecord]:
    """Return ends for what forgotten nodes superseded: with the link gone, the older fact would come back."""
    table, ends = draft.state.nodes, {}
    for node in whole.nodes:
        for kind, target in table.heads[node].relations:
            head = table.heads.get(target)
            if kind != "supersedes" or head is None or target in whole.nodes or head.fact == NO_FACT:
                continue
            links = [link for link in draft.above(head.fact) if link.newer in whole.facts]
            if links:
                first = min(links, key=lambda link: effective_time(link, draft))
                at = effective_time(first, draft)
                start = draft.fact(head.fact).valid_from
                never = at == BEGINNING or (start is not None and at <= start)
                ends[head.fact] = EndRecord(head.fact, None if never else at, first.known_from, "superseded")
    return [end for number, end in sorted(ends.items()) if end.at is None or end.at < draft.valid_to(number)]


def remove_certified(
    draft: Draft, numbers: Sequence[int], *, nodes: Iterable[int] = (), cause: str = ""
) -> Removed:
    """Remove facts and nodes as `remove` does; return what goes, for a certificate."""
    removed, before = Removed(draft.secret), len(draft.erased)
    settings = draft.state.settings
    namespace = Namespace(settings.principal, settings.scope)
    whole = whole_of(draft.state, numbers, nodes)
    for number in sorted(whole.facts):
        removed.add(namespace, draft.fact(number))
    for record in draft.records(originals_of(draft.state, whole)):
        if isinstance(record, NodeRecord):
            removed.add_revision(namespace, record)
        elif isinstance(record, TurnRecord):
            removed.add_turn(namespace, record)
    if whole.facts or whole.nodes:
        remove(draft, whole.facts, nodes=whole.nodes, cause=cause)
    removed.records = len(draft.erased) - before
    return removed
