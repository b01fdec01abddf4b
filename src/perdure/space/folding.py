"""What of a space's records survives a purge or an export: its logical content, in order, numbered anew.

Live facts stay in their order of arrival and take dense new numbers, and so do the records that speak of
them: what they quote of turns that are left, the last annotations and vectors of each, the last link of each pair, ends and uses, hidings that hold still, blocks
that hold still, receipts whose facts all live, the configuration that a store keeps. Living nodes keep all their
revisions, one that was told again where it stood first, and conversations their living turns. Removals, lost receipts, who wrote what and whatever was replaced are
left out, and so is a space of which nothing but its name is left.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from perdure.base.text import counted
from perdure.errors import Corrupt
from perdure.log.protocol import ANY_ADVICE, Read
from perdure.log.records import (
    NO_FACT,
    NO_NODE,
    AccessRecord,
    AnnotationRecord,
    BlockRecord,
    ChangeSetRecord,
    ConfigRecord,
    ConversationRecord,
    EndRecord,
    FactRecord,
    GoneRecord,
    HideRecord,
    LinkRecord,
    MarkRecord,
    NodeRecord,
    QuoteRecord,
    ReceiptItem,
    ReceiptRecord,
    Record,
    RemovalRecord,
    RestoreRecord,
    SpaceRecord,
    TurnRecord,
    UnblockRecord,
    UseRecord,
    VectorRecord,
    decode,
)
from perdure.space.nodes import RevisionSum

NOWHERE = -1  # in place of a new number: the old one is no living fact's


@dataclass(slots=True)
class _Survey:
    """What the first pass finds out: for each thing that may be told again, the seq of the record that holds."""

    new_numbers: array[int] = field(default_factory=lambda: array("q"))  # by old number
    next_number: int = 0
    annotations: dict[int, int] = field(default_factory=dict)
    vectors: dict[tuple[int, int], int] = field(default_factory=dict)  # by number and unit
    links: dict[tuple[int, int, bool], int] = field(default_factory=dict)
    told: set[tuple[int, int]] = field(default_factory=set)
    hidden: dict[int, int] = field(default_factory=dict)
    receipts: dict[bytes, int] = field(default_factory=dict)
    blocks: dict[tuple[bytes, bytes], int] = field(default_factory=dict)  # by key and digest
    block_keys: set[bytes] = field(default_factory=set)
    erased: set[int] = field(default_factory=set)
    covered: set[int] = field(default_factory=set)
    config: int = 0
    nodes: dict[int, int] = field(default_factory=dict)  # new number by old
    retold: dict[int, NodeRecord] = field(
        default_factory=dict
    )  # by the place, erased since, where it stood first
    conversations: dict[int, int] = field(default_factory=dict)
    gone: bool = False

    def new(self, number: int) -> int:
        """Return the fact's new number, or NOWHERE."""
        return self.new_numbers[number] if 0 <= number < len(self.new_numbers) else NOWHERE


def fold(space: int, read: Read, secret: bytes) -> Iterator[Record]:
    """Yield the records that a purge keeps of a space, its SpaceRecord first; none when nothing is left.

    Reads the space twice and keeps a few numbers per fact in memory, no texts but those of nodes that were told again. Equal logical content in equal
    order gives equal records, whatever else the space has held.

    Args:
        space: its number in the log, for errors.
        read: yields all its entries in order, the same ones at each call.
        secret: of the store that keeps the records: what names the history of nodes is made with it.

    Raises:
        Corrupt: a record was zeroed without another that says so, a record is no record, or record 1 is not
            the space's own, or a fact's number is repeated.
        Unavailable: a newer build wrote a record that this one does not know.
    """
    survey = _survey(space, read)
    first: SpaceRecord | None = None
    nodes = RevisionSum(secret)
    for seq, record in _records(space, read, survey):
        keep = _KEEPS.get(type(record))
        kept = None if keep is None else keep(record, seq, survey)
        if kept is None:
            continue
        if isinstance(kept, SpaceRecord):
            first = kept  # held back until something follows
            continue
        if first is not None:
            # When a space was created tells of what it held first; as kept, that is what follows.
            yield msgspec.structs.replace(first, created_at=_moment(kept, first.created_at))
            first = None
        if isinstance(kept, NodeRecord):
            nodes.add(kept)
        yield kept
    if survey.nodes:
        yield MarkRecord(nodes.digest)


def _moment(record: Record, otherwise: int) -> int:
    """Return when the record was made; a link says when it is known from."""
    for name in ("ingest_time", "recorded_at", "known_from"):
        found = getattr(record, name, None)
        if isinstance(found, int):
            return found
    return otherwise


def _records(space: int, read: Read, survey: _Survey) -> Iterator[tuple[int, Record]]:
    for seq, data in read():
        if data is None:
            if seq in survey.retold:
                yield seq, survey.retold[seq]
            continue
        record = decode(data, space=space, seq=seq)
        if not (isinstance(record, NodeRecord) and record.retold in survey.retold):
            yield seq, record


def _survey(space: int, read: Read) -> _Survey:
    survey = _Survey()
    for seq, data in read():
        if data is None:
            survey.erased.add(seq)
            continue
        record = decode(data, space=space, seq=seq)
        if isinstance(record, SpaceRecord) != (seq == 1):
            raise Corrupt(
                f"record {seq} of space {space} is not what stands there: {ANY_ADVICE}",
                space=space,
                seq=seq,
            )
        look = _LOOKS.get(type(record))
        if look is not None:
            look(survey, seq, record)
    missing = set() if survey.gone else survey.erased - survey.covered
    if missing:
        raise Corrupt(
            f"of space {space} {counted(len(missing), 'record was', 'records were')} zeroed without a removal that covers them: {ANY_ADVICE}",
            space=space,
            seq=min(missing),
        )
    # Numbers are given out in order of arrival, which is not that of the records where some were told again.
    survey.nodes = {number: place for place, number in enumerate(sorted(survey.nodes))}
    return survey


def _see_fact(survey: _Survey, seq: int, record: FactRecord) -> None:
    if record.number < len(survey.new_numbers):
        raise Corrupt(f"record {seq} repeats the fact number {record.number}: run a verify", seq=seq)
    survey.new_numbers.extend([NOWHERE] * (record.number - len(survey.new_numbers)))
    for _ in range(1 + len(record.cuts)):
        survey.new_numbers.append(survey.next_number)
        survey.next_number += 1


def _see_link(survey: _Survey, seq: int, record: LinkRecord) -> None:
    survey.links[record.newer, record.older, record.corrects] = seq
    if record.told:
        survey.told.add((record.newer, record.older))


def _see_annotation(survey: _Survey, seq: int, record: AnnotationRecord) -> None:
    survey.annotations[record.number] = seq


def _see_vector(survey: _Survey, seq: int, record: VectorRecord) -> None:
    survey.vectors[record.number, record.unit] = seq


def _see_hide(survey: _Survey, seq: int, record: HideRecord) -> None:
    for number in record.numbers:
        survey.hidden.setdefault(number, seq)


def _see_restore(survey: _Survey, seq: int, record: RestoreRecord) -> None:
    for number in record.numbers:
        survey.hidden.pop(number, None)


def _see_removal(survey: _Survey, seq: int, record: RemovalRecord) -> None:
    survey.covered.update(record.seqs)


def _see_receipt(survey: _Survey, seq: int, record: ReceiptRecord) -> None:
    survey.receipts[record.key] = seq


def _see_block(survey: _Survey, seq: int, record: BlockRecord) -> None:
    survey.block_keys.add(record.key)
    for digest in record.digests:
        survey.blocks.setdefault((record.key, digest), seq)


def _see_unblock(survey: _Survey, seq: int, record: UnblockRecord) -> None:
    for digest in record.digests:
        for key in survey.block_keys:
            survey.blocks.pop((key, digest), None)


def _see_gone(survey: _Survey, seq: int, record: GoneRecord) -> None:
    survey.gone = True


def _see_config(survey: _Survey, seq: int, record: ConfigRecord) -> None:
    survey.config = seq if record.data else 0


def _see_node(survey: _Survey, seq: int, record: NodeRecord) -> None:
    survey.nodes[record.number] = NOWHERE
    if record.retold in survey.erased:
        survey.retold[record.retold] = record


def _see_conversation(survey: _Survey, seq: int, record: ConversationRecord) -> None:
    survey.conversations[record.number] = len(survey.conversations)


def _see_change_set(survey: _Survey, seq: int, record: ChangeSetRecord) -> None:
    survey.receipts[record.key] = seq


_LOOKS: dict[type, Callable[[_Survey, int, Any], None]] = {
    FactRecord: _see_fact,
    LinkRecord: _see_link,
    AnnotationRecord: _see_annotation,
    VectorRecord: _see_vector,
    HideRecord: _see_hide,
    RestoreRecord: _see_restore,
    RemovalRecord: _see_removal,
    ReceiptRecord: _see_receipt,
    BlockRecord: _see_block,
    UnblockRecord: _see_unblock,
    GoneRecord: _see_gone,
    ConfigRecord: _see_config,
    NodeRecord: _see_node,
    ChangeSetRecord: _see_change_set,
    ConversationRecord: _see_conversation,
}


def _kept_space(record: SpaceRecord, seq: int, survey: _Survey) -> SpaceRecord:
    return record


def _kept_fact(record: FactRecord, seq: int, survey: _Survey) -> FactRecord:
    sources = _living(record.made_from, survey)
    return msgspec.structs.replace(record, number=survey.new(record.number), made_from=sources)


def _kept_end(record: EndRecord, seq: int, survey: _Survey) -> EndRecord | None:
    new = survey.new(record.number)
    return None if new == NOWHERE else msgspec.structs.replace(record, number=new)


def _kept_annotation(record: AnnotationRecord, seq: int, survey: _Survey) -> AnnotationRecord | None:
    new = survey.new(record.number)
    last = survey.annotations[record.number] == seq
    return msgspec.structs.replace(record, number=new) if last and new != NOWHERE else None


def _kept_quote(record: QuoteRecord, seq: int, survey: _Survey) -> QuoteRecord | None:
    new = survey.new(record.number)
    return None if new == NOWHERE else msgspec.structs.replace(record, number=new)


def _kept_vector(record: VectorRecord, seq: int, survey: _Survey) -> VectorRecord | None:
    new = survey.new(record.number)
    last = survey.vectors[record.number, record.unit] == seq
    return msgspec.structs.replace(record, number=new) if last and new != NOWHERE else None


def _kept_hide(record: HideRecord, seq: int, survey: _Survey) -> HideRecord | None:
    held = _living((n for n in record.numbers if survey.hidden.get(n) == seq), survey)
    return msgspec.structs.replace(record, numbers=held) if held else None


def _kept_use(record: UseRecord, seq: int, survey: _Survey) -> UseRecord | None:
    living = _living(record.numbers, survey)
    return msgspec.structs.replace(record, numbers=living) if living else None


def _kept_block(record: BlockRecord, seq: int, survey: _Survey) -> BlockRecord | None:
    held = sorted(d for d in record.digests if survey.blocks.get((record.key, d)) == seq)
    return msgspec.structs.replace(record, digests=tuple(held)) if held else None


def _kept_link(record: LinkRecord, seq: int, survey: _Survey) -> LinkRecord | None:
    newer, older = survey.new(record.newer), survey.new(record.older)
    last = survey.links[record.newer, record.older, record.corrects] == seq
    if NOWHERE in (newer, older) or not last:
        return None
    told = (record.newer, record.older) in survey.told
    return msgspec.structs.replace(record, newer=newer, older=older, told=told)


def _living(numbers: Iterable[int], survey: _Survey) -> tuple[int, ...]:
    return tuple(new for number in numbers if (new := survey.new(number)) != NOWHERE)


def _kept_receipt(record: ReceiptRecord, seq: int, survey: _Survey) -> ReceiptRecord | None:
    if record.lost or survey.receipts[record.key] != seq:
        return None
    items: list[ReceiptItem] = []
    for item in record.items:
        number = survey.new(item.number)
        if number == NOWHERE and item.number != NO_FACT:
            return None
        items.append(
            msgspec.structs.replace(
                item,
                number=NO_FACT if item.number == NO_FACT else number,
                supersedes=_living(item.supersedes, survey),
                superseded_by=_living(item.superseded_by, survey),
            )
        )
    return msgspec.structs.replace(record, items=tuple(items))


def _kept_config(record: ConfigRecord, seq: int, survey: _Survey) -> ConfigRecord | None:
    return msgspec.structs.replace(record, actor=None) if survey.config == seq else None


def _kept_node(record: NodeRecord, seq: int, survey: _Survey) -> NodeRecord:
    relations = tuple((kind, survey.nodes.get(target, NO_NODE)) for kind, target in record.relations)
    fact = NO_FACT if record.fact == NO_FACT else survey.new(record.fact)
    number = survey.nodes[record.number]
    return msgspec.structs.replace(record, number=number, relations=relations, fact=fact, retold=0)


def _kept_change_set(record: ChangeSetRecord, seq: int, survey: _Survey) -> ChangeSetRecord | None:
    if record.lost or not record.key or survey.receipts[record.key] != seq:
        return None
    nodes = tuple((survey.nodes[number], revision) for number, revision in record.nodes)
    return msgspec.structs.replace(record, nodes=nodes, step=0)


def _kept_access(record: AccessRecord, seq: int, survey: _Survey) -> AccessRecord:
    return msgspec.structs.replace(record, node=survey.nodes[record.node])


def _kept_conversation(record: ConversationRecord, seq: int, survey: _Survey) -> ConversationRecord:
    return msgspec.structs.replace(record, number=survey.conversations[record.number])


def _kept_turn(record: TurnRecord, seq: int, survey: _Survey) -> TurnRecord:
    number = survey.conversations[record.conversation]
    return msgspec.structs.replace(record, conversation=number, first=survey.new(record.first))


_KEEPS: dict[type, Callable[[Any, int, _Survey], Record | None]] = {
    SpaceRecord: _kept_space,
    FactRecord: _kept_fact,
    EndRecord: _kept_end,
    QuoteRecord: _kept_quote,
    AnnotationRecord: _kept_annotation,
    VectorRecord: _kept_vector,
    LinkRecord: _kept_link,
    HideRecord: _kept_hide,
    UseRecord: _kept_use,
    ReceiptRecord: _kept_receipt,
    BlockRecord: _kept_block,
    ConfigRecord: _kept_config,
    NodeRecord: _kept_node,
    ChangeSetRecord: _kept_change_set,
    AccessRecord: _kept_access,
    ConversationRecord: _kept_conversation,
    TurnRecord: _kept_turn,
}
