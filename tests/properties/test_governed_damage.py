"""Verify and salvage know nodes, turns and the facts that are theirs: nothing is served that was not admitted."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from governed import change, create_active, revise, set_status, successor, supersession
from governed_run import SECRET, WORDS, Governed
from perdure import ManualClock, Store
from perdure.base.acting import acting
from perdure.log.memory import MemoryLog
from perdure.log.protocol import Batch, Entry
from perdure.log.records import (
    AccessRecord,
    ByRecord,
    ChangeSetRecord,
    ConversationRecord,
    EndRecord,
    FactRecord,
    LinkRecord,
    NodeRecord,
    Record,
    SpaceRecord,
    TurnRecord,
    decode,
    encode,
)
from perdure.model.namespace import Namespace
from perdure.space.folding import fold
from perdure.space.names import hashed_name
from perdure.space.salvaging import mend

QUERY = " ".join((*WORDS, "omega", "content"))
seeds = st.integers(0, 2**32)


def entries(space: Governed, number: int) -> list[Entry]:
    log = space.store.log
    return list(log.read(number, 0, log.head(number).seq))


def written(spaces: list[list[Record]], now: int) -> Governed:
    """A store that holds these records."""
    log = MemoryLog(SECRET)
    for records in spaces:
        first = records[0]
        assert isinstance(first, SpaceRecord)
        number = log.create_space(hashed_name(SECRET, Namespace(first.principal, first.scope)), encode(first))
        log.append(number, log.head(number), Batch([encode(record) for record in records[1:]]))
    return Governed(Store.open(log=log, clock=ManualClock(now)))


def salvaged(space: Governed, random: Random, share: float) -> Governed:
    """What is saved when each record but the first is lost by a chance of `share`."""
    kept = []
    for number in space.store.log.spaces():
        there = entries(space, number)
        left = [entry for entry in there if entry.seq == 1 or random.random() >= share]
        mended = mend(number, len(there), lambda left=left: iter(left))
        if mended.gone:
            continue
        records = list(
            fold(
                number, lambda mended=mended: mended.entries(mended.first, receipts=True, blocks=True), SECRET
            )
        )
        if records:
            kept.append(records)
    return written(kept, space.clock.now())


@given(seeds)
@settings(max_examples=examples(24), deadline=None)
def test_whatever_records_are_lost_what_is_saved_holds_together_and_serves_what_was_admitted(seed):
    random = Random(seed)
    space = Governed().live(random, 40)
    saved = salvaged(space, random, random.choice((0.02, 0.1, 0.3)))
    assert saved.store.verify().findings == ()
    governed = {fact.id for fact in saved.memory.list(limit=1_000).items if fact.id.startswith("perdure:")}
    heads = [saved.repository.get(id_) for id_ in "abcdef"]
    served = {hit.id for hit in saved.memory.recall(QUERY, k=1_000)} & governed
    assert served <= {head.fact for head in heads if head is not None and head.status == "active"}
    turns = {
        turn.uri
        for entry in saved.conversation.list(limit=100).items
        for turn in saved.conversation.get(entry.session_id, entry.version).turns
    }
    assert {source.uri for source in saved.conversation.recall(QUERY).sources} <= turns


@given(seeds)
@settings(max_examples=examples(8), deadline=None)
def test_where_nothing_is_lost_all_is_saved(seed):
    random = Random(seed)
    space = Governed().live(random, 40)
    saved = salvaged(space, random, 0)
    for one in (space, saved):
        one.store.purge()  # which puts spaces into one order
    lines = [b"".join(one.store.export_lines()).split(b"\n", 1)[1] for one in (space, saved)]
    assert lines[0] == lines[1]


def lost(space: Governed, is_lost: Any) -> tuple[Governed, list[str]]:
    """Salvage a space without the records that a predicate picks; also return what was found."""
    number = 1
    there = entries(space, number)
    left = [entry for entry in there if entry.seq == 1 or not is_lost(decode(entry.data))]
    mended = mend(number, len(there), lambda: iter(left))
    records = list(fold(number, lambda: mended.entries(mended.first, receipts=True, blocks=True), SECRET))
    return written([records], space.clock.now()), [finding.message for finding in mended.lost]


def recalled(space: Governed) -> list[str]:
    return sorted(hit.text for hit in space.memory.recall("content", k=100))


@pytest.mark.parametrize("revision", [1, 2])
def test_a_node_of_which_a_revision_is_lost_is_left_out_whole_and_told_of(revision):
    space = Governed()
    space.repository.apply(change("k", create_active("n"), create_active("m")))
    space.repository.apply(change("l", revise("n", 1, "content anew")))
    saved, found = lost(
        space, lambda one: isinstance(one, NodeRecord) and (one.id, one.revision) == ("n", revision)
    )
    assert saved.repository.get("n") is None
    assert recalled(saved) == ["the content of m"]
    assert any("node 0 is left out: not all of it is whole" in message for message in found)


@pytest.mark.parametrize("kind", [EndRecord, LinkRecord])
def test_a_lost_link_or_end_brings_no_version_back(kind):
    space = Governed()
    space.repository.apply(change("k", create_active("n"), create_active("m"), create_active("o")))
    space.repository.apply(change("l", revise("n", 1, "content anew")))
    space.repository.apply(change("d", set_status("m", 1, "tombstoned")))
    space.repository.apply(change("s", *supersession("o", 1, successor("p", "o"))))
    saved, _ = lost(space, lambda one: isinstance(one, kind))
    assert recalled(saved) == recalled(space) == ["content anew", "the content of p"]


def test_what_a_lost_node_had_superseded_does_not_come_back():
    space = Governed()
    space.repository.apply(change("k", create_active("o")))
    space.repository.apply(change("s", *supersession("o", 1, successor("p", "o"))))
    saved, _ = lost(space, lambda one: isinstance(one, NodeRecord) and one.id == "p")
    assert recalled(saved) == []
    assert saved.repository.get("o").status == "superseded"


# Verifying


def damaged(space: Governed, scope: str, change_record: Any) -> list[str]:
    """What verify finds where every record of a space is put through a function that returns records in its place."""
    spaces = []
    for number in space.store.log.spaces():
        records = [decode(entry.data) for entry in entries(space, number)]
        if records[0].scope == scope:
            records = [other for record in records for other in change_record(record)]
        spaces.append(records)
    return [finding.message for finding in written(spaces, space.clock.now()).store.verify().findings]


def dropping(kind: type, **fields: Any) -> Any:
    def change_record(record: Record) -> list[Record]:
        is_it = isinstance(record, kind) and all(
            getattr(record, name) == value for name, value in fields.items()
        )
        return [] if is_it else [record]

    return change_record


def changing(kind: type, **fields: Any) -> Any:
    def change_record(record: Record) -> list[Record]:
        return [msgspec.structs.replace(record, **fields)] if isinstance(record, kind) else [record]

    return change_record


def doubling(kind: type) -> Any:
    return lambda record: [record, record] if isinstance(record, kind) else [record]


@pytest.mark.parametrize(
    ("scope", "how", "finding"),
    [
        ("work", dropping(NodeRecord, revision=1), "tells of a node that is not there before it"),
        ("work", doubling(NodeRecord), "is not the next revision of its node"),
        ("work", changing(NodeRecord, id="x"), "has the id of node 0"),
        ("work", changing(NodeRecord, fact=-1), "is governed, but no node or turn is seen as it"),
        ("work", changing(NodeRecord, fact=99), "is seen as fact 99, which is not there"),
        ("work", changing(NodeRecord, fact=0), "is seen as fact 0, as another record is"),
        ("work", changing(NodeRecord, relations=(("related_to", 9),)), "names node 9, which there never was"),
        ("work", changing(FactRecord, governed=False), "which is not there as one that is governed"),
        ("work", changing(ChangeSetRecord, nodes=((8, 1),)), "tells of node 8, which is not there"),
        ("work", changing(ChangeSetRecord, nodes=((0, 9),)), "tells of revision 9 of node 0"),
        ("work", changing(AccessRecord, node=8), "tells of node 8, which is not there"),
        ("work", changing(AccessRecord, revision=9), "tells of revision 9 of node 0"),
        ("work", changing(ByRecord, count=99), "who wrote the 99 records before it, of which there are fewer"),
        ("work#conversation", dropping(ConversationRecord), "is a turn of no conversation before it"),
        ("work#conversation", doubling(ConversationRecord), "repeats the conversation"),
        ("work#conversation", doubling(TurnRecord), "repeats turn"),
        ("work#conversation", changing(TurnRecord, position=7), "is a turn of no conversation before it"),
        ("work#conversation", dropping(TurnRecord, position=0), "is governed, but no node or turn is seen as it"),
        ("work#conversation", dropping(FactRecord, number=0), "is seen as fact 0, which is not there"),
    ],
)  # fmt: skip
def test_verify_tells_what_does_not_hold_together(scope, how, finding):
    space, random = Governed(), Random(2)
    with acting("bob"):
        space.repository.apply(change("k", create_active("a"), create_active("b")))
        space.repository.apply(change("l", revise("a", 1, "content anew")))
        space.access(random, "a", space.repository.get("a"))
        while not space.conversation.list().items:
            space.step(random, "tell")
    assert damaged(space, scope, lambda record: [record]) == []
    found = damaged(space, scope, how)
    assert any(finding in message for message in found), found
