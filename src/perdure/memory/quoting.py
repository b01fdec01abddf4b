"""Erasing what is quoted of turns that are forgotten: the words are the turn's, wherever they stand."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from itertools import dropwhile

from msgspec import structs

from perdure.errors import Corrupt
from perdure.log.records import EvidenceFields, NodeRecord
from perdure.planning.certificates import Removed
from perdure.space.draft import Draft
from perdure.space.facts import FactReader
from perdure.space.nodes import NodeHead
from perdure.space.space import Space
from perdure.space.state import SpaceState

CAUSE = "source"  # as the audit has it: what was erased came from something that was forgotten


def erase_quotes(beside: Space, uris: AbstractSet[str]) -> Removed:
    """Erase what nodes and facts quote of these turns; that a turn vouches for them stays known.

    Of such evidence uri, digest, kind and time are left, of a fact's source all but the quote and its place. All
    revisions of a node from the first one that quotes a turn on are erased and told again, which is a step of the
    sequence of changes; what a change set came to then has no quote either. All is one append. Writes nothing where
    nothing is quoted.

    Returns:
        How many records were erased; no node and no fact is removed.
    """
    if not beside.read(lambda state, _: is_quoted(state, uris)):
        return Removed(beside.log.secret)
    return beside.write(lambda draft: _plan(draft, uris), alone=True)


def find_quoted(beside: Space, prefix: str) -> frozenset[str]:
    """Return the uris of this beginning that nodes or facts quote."""

    def work(state: SpaceState, _: FactReader) -> frozenset[str]:
        nodes = (uri for head in state.nodes.heads.values() for uri in head.quoted)
        facts = (state.uri_of[number] for number in state.quote_seqs)
        return frozenset(uri for uri in (*nodes, *facts) if uri.startswith(prefix))

    return beside.read(work)


def is_quoted(state: SpaceState, uris: AbstractSet[str]) -> bool:
    """Whether a node or a fact quotes one of these turns."""
    return any(_quoting(state, uris)) or any(_quoting_facts(state, uris))


def _quoting(state: SpaceState, uris: AbstractSet[str]) -> Iterator[NodeHead]:
    """Yield the nodes that quote one of the turns; evidence is only ever added, so the last revision tells."""
    return (head for head in state.nodes.heads.values() if not uris.isdisjoint(head.quoted))


def _quoting_facts(state: SpaceState, uris: AbstractSet[str]) -> Iterator[int]:
    """Yield the seqs at which facts quote one of the turns."""
    return (seq for number, seq in state.quote_seqs.items() if state.uri_of.get(number) in uris)


def _plan(draft: Draft, uris: AbstractSet[str]) -> Removed:
    removed = Removed(draft.secret)
    heads = sorted(_quoting(draft.state, uris), key=lambda head: head.number)
    told = [one for head in heads for one in _retold(draft, head, uris)]
    seqs = tuple(sorted([*(seq for seq, _ in told), *_quoting_facts(draft.state, uris)]))
    if seqs:
        blanked = tuple((head.number, head.revision) for head in heads)
        step = draft.state.nodes.sequence + 1 if blanked else 0
        draft.remove((), seqs, step=step, cause=CAUSE, blanked=blanked)
        for _, record in told:
            draft.add(record)
        removed.records = len(seqs)
    return removed


def _retold(draft: Draft, head: NodeHead, uris: AbstractSet[str]) -> list[tuple[int, NodeRecord]]:
    """Return the seqs of the revisions from the first that quotes a turn on, each with what is told in its place."""
    revisions = zip(head.seqs, draft.records(head.seqs), strict=True)
    found = []
    for seq, record in dropwhile(lambda one: not _quotes(one[1], uris), revisions):
        if not isinstance(record, NodeRecord):
            raise Corrupt(f"record {seq} is no revision of a node: run a verify", seq=seq)
        evidence = tuple(_without_quote(one) if one.uri in uris else one for one in record.evidence)
        found.append((seq, structs.replace(record, evidence=evidence, retold=record.retold or seq)))
    return found


def _quotes(record: object, uris: AbstractSet[str]) -> bool:
    return isinstance(record, NodeRecord) and any(
        one.uri in uris and one.quote is not None for one in record.evidence
    )


def _without_quote(told: EvidenceFields) -> EvidenceFields:
    return structs.replace(told, quote=None, start=None, end=None)
