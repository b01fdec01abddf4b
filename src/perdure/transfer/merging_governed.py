"""What a line about a node or a conversation means to a space: new, there before, or refused. Pure in its draft.

Nodes are compared by id and revision, so that a later export goes on where an earlier one ended. A fact that is one's
own is taken only together with its owner, and only if it says what the owner says: so an import serves nothing that
the file does not say was admitted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from perdure.base.text import counted
from perdure.errors import Blocked
from perdure.log.records import (
    NO_FACT,
    NO_NODE,
    AccessRecord,
    ChangeSetRecord,
    ConversationRecord,
    FactRecord,
    NodeRecord,
    Record,
    TurnRecord,
)
from perdure.model.conversation_forms import chunk_id, turn_uri
from perdure.model.node import NodeStatus
from perdure.model.node_forms import fact_id
from perdure.planning.blocks import refuse_among, refuse_blocked
from perdure.space.draft import Draft
from perdure.space.nodes import access_key
from perdure.space.state import SpaceState
from perdure.transfer.book import Book
from perdure.transfer.governed import ToldConversation, owned_by
from perdure.transfer.reading import Refused


def _merge_node(draft: Draft, book: Book, record: NodeRecord, line: int) -> bool:
    governed, state = book.governed, draft.state
    told = governed.find_node(record.number)
    if told is None:
        told = governed.first_here(record)
    elif (record.id, record.revision) != (told.id, told.revision + 1):
        raise Refused(f"is not revision {told.revision + 1} of the node of its number")
    head = state.nodes.heads.get(told.here)
    there = 0 if head is None else head.revision
    here = _node_here(draft, book, record, told.here)
    if head is not None and record.revision <= there:
        stored = governed.stored(draft, head.seqs[record.revision - 1])
        if not _is_same_node(state, stored, here):
            raise Refused(f"conflict: revision {record.revision} of this node is stored with other content")
        governed.note_node(record.number, told._replace(revision=record.revision), is_new=False)
        return False
    if record.revision != there + told.pending + 1:
        raise Refused("names a node that was forgotten meanwhile")
    _refuse_blocked(draft, book, fact_id(record.id, record.revision), record.content)
    draft.add(here)
    now = told._replace(revision=record.revision, pending=told.pending + 1)
    governed.note_node(record.number, now, is_new=True)
    return True


def _node_here(draft: Draft, book: Book, record: NodeRecord, number: int) -> NodeRecord:
    """Return the revision as it is stored here. Raises Refused."""
    relations = tuple((kind, book.governed.target(draft.state, target)) for kind, target in record.relations)
    fact = NO_FACT
    if record.fact != NO_FACT:
        seen = book.governed.facts.get(record.fact)
        if seen is None:
            raise Refused(
                f"is seen as fact {record.fact}, which does not stand before it as one that is governed"
            )
        _refuse_other_fact(record, seen)
        fact = book.number(record.fact)
    return msgspec.structs.replace(record, number=number, relations=relations, fact=fact)


def _refuse_other_fact(record: NodeRecord, fact: FactRecord) -> None:
    if record.status != NodeStatus.ACTIVE:
        raise Refused(f"is {record.status}, and so is seen as no fact")
    if (fact.id, fact.text) != (fact_id(record.id, record.revision), record.content):
        raise Refused(f"is seen as fact {record.fact}, which has another id or says something else")
    if fact.source is not None and fact.source.quote is not None:
        raise Refused(f"is seen as fact {record.fact}, which has a quote of its own: only its node keeps one")


def _is_same_node(state: SpaceState, stored: Record, here: NodeRecord) -> bool:
    """Whether a stored revision is the told one; when it was recorded makes no other of it.

    What a relation leads to may have been forgotten in either place.
    """
    if not isinstance(stored, NodeRecord) or stored.fact != here.fact:
        return False
    plain = {"recorded_at": 0, "relations": (), "retold": 0}
    if msgspec.structs.replace(stored, **plain) != msgspec.structs.replace(here, **plain):
        return False
    if len(stored.relations) != len(here.relations):
        return False
    return all(
        kind == other and (NO_NODE in (target, told) or target == told or target not in state.nodes.heads)
        for (kind, target), (other, told) in zip(stored.relations, here.relations, strict=True)
    )


def _merge_change_set(draft: Draft, book: Book, record: ChangeSetRecord, line: int) -> bool:
    nodes = tuple(
        sorted(
            (book.governed.node(draft.state, number, revision), revision) for number, revision in record.nodes
        )
    )
    if book.governed.is_known(record.key):
        raise Refused("repeats the key of an earlier line")
    if record.key in draft.state.nodes.receipts:
        return False
    draft.add(msgspec.structs.replace(record, nodes=nodes))
    return True


def _merge_access(draft: Draft, book: Book, record: AccessRecord, line: int) -> bool:
    here = msgspec.structs.replace(record, node=book.governed.node(draft.state, record.node, record.revision))
    key = access_key(record.kind, record.id, draft.secret)
    if book.governed.is_known(key):
        raise Refused("repeats the id of an earlier line")
    seq = draft.state.nodes.access.get(key)
    if seq is None:
        draft.add(here)
        return True
    stored = book.governed.stored(draft, seq)
    if not isinstance(stored, AccessRecord) or msgspec.structs.replace(
        stored, recorded_at=record.recorded_at
    ) != (here):
        raise Refused("conflict: this id is stored with another event")
    return False


def _merge_conversation(draft: Draft, book: Book, record: ConversationRecord, line: int) -> bool:
    governed = book.governed
    head = draft.state.conversations.find(record.session, record.version)
    if head is not None and head.told != record.turns:
        raise Refused(
            f"conflict: this version of the session is stored with {counted(head.told, 'turn')}, the file has {record.turns}"
        )
    here = governed.next_conversation(draft.state) if head is None else head.number
    told = ToldConversation(here, record.session, record.version, record.turns)
    governed.note_conversation(record.number, told, is_new=head is None)
    if head is None:
        draft.add(msgspec.structs.replace(record, number=here))
    return head is None


def _merge_turn(draft: Draft, book: Book, record: TurnRecord, line: int) -> bool:
    governed = book.governed
    told = governed.conversation(record.conversation)
    if record.position >= told.turns:
        raise Refused(f"is turn {record.position} of a version of {told.turns}; they count from 0")
    chunks = governed.chunks(record)
    _refuse_other_chunks(told, record, chunks)
    first = _place_of(draft, [chunk.id for chunk in chunks])
    here = msgspec.structs.replace(record, conversation=told.here, first=first)
    head = draft.state.conversations.heads.get(told.here)
    turn = None if head is None else head.turns.get(record.position)
    if turn is not None:
        stored = governed.stored(draft, turn.seq)
        same = msgspec.structs.replace(here, recorded_at=0)
        if not isinstance(stored, TurnRecord) or msgspec.structs.replace(stored, recorded_at=0) != same:
            raise Refused(f"conflict: turn {record.position} of this version is stored with other content")
        governed.note_turn(record.conversation, record.position)
        return False
    if first != draft.next_number:
        raise Refused("conflict: its parts are stored as those of another turn")
    _refuse_blocked(draft, book, turn_uri(told.session, told.version, record.source_id), record.text)
    governed.note_turn(record.conversation, record.position)
    governed.placed[line] = range(first, first + record.chunks)
    draft.add(here)
    return True


def _refuse_other_chunks(told: ToldConversation, record: TurnRecord, chunks: list[FactRecord]) -> None:
    uri = turn_uri(told.session, told.version, record.source_id)
    if [chunk.id for chunk in chunks] != [chunk_id(uri, index) for index in range(record.chunks)]:
        raise Refused("is seen as facts whose ids are not those of its parts")
    if "".join(chunk.text for chunk in chunks) != record.text:
        raise Refused("is seen as facts that say something else")


def _place_of(draft: Draft, ids: list[str]) -> int:
    """Return the number of the first of facts that stand in a row here, or are to be added in a row. Raises Refused."""
    numbers = [draft.find_number(id_) for id_ in ids]
    if all(number is None for number in numbers):
        return draft.next_number
    first = numbers[0]
    if first is None or numbers != list(range(first, first + len(numbers))):
        raise Refused("conflict: some of its parts are stored, others are not")
    return first


def _refuse_blocked(draft: Draft, book: Book, id_: str, text: str) -> None:
    try:
        refuse_blocked(draft, id_, text)
        refuse_among(book.block_keys, book.is_blocked, id_, text)
    except Blocked as error:
        raise Refused(error.message) from error


MERGES: dict[type, Callable[[Draft, Book, Any, int], bool]] = {
    NodeRecord: _merge_node,
    ChangeSetRecord: _merge_change_set,
    AccessRecord: _merge_access,
    ConversationRecord: _merge_conversation,
    TurnRecord: _merge_turn,
}


def merge_governed(draft: Draft, book: Book, record: Record, line: int) -> bool:
    """Plan what such a record of the file adds; return whether it adds anything. Raises Refused as `merging.merge`."""
    if (refused := book.governed.left_out.get(line)) is not None:
        raise refused
    return MERGES[type(record)](draft, book, record, line)


def is_torn(book: Book, record: Record, line: int) -> bool:
    """Whether a turn that a plan adds has not got the facts that it is seen as."""
    placed = book.governed.placed.get(line)
    return placed is not None and [book.notes.find(number) for number in owned_by(record)] != list(placed)
