"""Export and import lose nothing of nodes and conversations, and let nothing in that was not admitted."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from governed import change, create_active, revise
from governed_run import NODES, SECRET, WORDS, Governed, shown
from perdure import ImportFailed, ManualClock, Store
from perdure.model.conversation import ConversationInput, ConversationTurn
from perdure.model.node import NodeStatus
from perdure.transfer import importing

QUERY = " ".join((*WORDS, "omega"))
seeds = st.integers(0, 2**32)


def exported(space: Governed, **options: Any) -> bytes:
    return b"".join(space.store.export_lines(**options))


def body(lines: bytes) -> bytes:
    return lines.split(b"\n", 1)[1]


def target(source: Governed, secret: bytes = SECRET) -> Governed:
    return Governed(Store.open(":memory:", clock=ManualClock(source.clock.now()), secret=secret))


def compare_moved(source: Governed) -> None:
    lines, into = exported(source), target(source)
    report = into.store.import_([lines])
    assert (report.problems, report.skipped, report.existing) == ((), 0, 0)
    assert body(exported(into)) == body(lines)
    assert shown(into) == shown(source)
    assert into.store.verify().findings == ()
    assert into.store.import_([lines]).created == 0


def test_a_space_with_all_there_is_of_nodes_and_conversations_is_moved_whole():
    source = Governed().fill()
    statuses = {source.repository.get(node).status for node in NODES}
    assert statuses == set(NodeStatus)
    compare_moved(source)


@given(seeds)
@settings(max_examples=examples(10), deadline=None)
def test_any_history_of_nodes_and_conversations_is_moved_whole(seed):
    compare_moved(Governed().live(Random(seed), 50))


@given(seeds)
@settings(max_examples=examples(8), deadline=None)
def test_transactions_of_any_size_give_the_same_space(seed):
    random = Random(seed)
    source, into = Governed().live(random, 40), None
    lines = exported(source)
    chunk = importing.CHUNK_RECORDS
    importing.CHUNK_RECORDS = random.choice((1, 2, 5))
    try:
        into = target(source)
        into.store.import_([lines])
    finally:
        importing.CHUNK_RECORDS = chunk
    assert body(exported(into)) == body(lines)
    assert shown(into) == shown(source)


@given(seeds)
@settings(max_examples=examples(8), deadline=None)
def test_a_later_export_goes_on_where_an_earlier_one_ended(seed):
    random = Random(seed)
    source = Governed()
    into = target(source)
    kinds = ("create", "activate", "revise", "relabel", "relate", "supersede", "access", "tell", "advance")
    for _ in range(4):
        for _ in range(12):
            source.step(random, random.choice(kinds))
        assert into.store.import_([exported(source)]).problems == ()
    into.clock.set(source.clock.now())
    assert shown(into) == shown(source)


@given(seeds)
@settings(max_examples=examples(8), deadline=None)
def test_an_import_goes_on_where_an_earlier_one_was_cut_off(seed):
    random = Random(seed)
    source = Governed().live(random, 40)
    lines = exported(source).splitlines(keepends=True)
    into = target(source)
    for _ in range(3):
        into.store.import_([b"".join(lines[: random.randint(1, len(lines))])], strict=False)
        assert into.store.verify().findings == ()
    assert into.store.import_([b"".join(lines)]).problems == ()
    assert shown(into) == shown(source)


@given(seeds)
@settings(max_examples=examples(16), deadline=None)
def test_whatever_lines_are_missing_nothing_is_served_that_the_rest_does_not_admit(seed):
    random = Random(seed)
    source = Governed().live(random, 40)
    lines = exported(source).splitlines(keepends=True)
    kept = [line for line in lines if b'"type"' not in line or random.random() < 0.85 or _frames(line)]
    into = target(source)
    into.store.import_([b"".join(kept)], strict=False)
    assert into.store.verify().findings == ()
    told = [json.loads(line) for line in kept]
    admitted = {line["content"] for line in told if line.get("status") == "active"}
    plain = {line["text"] for line in told if line.get("type") == "fact" and not line.get("governed")}
    assert {hit.text for hit in into.memory.recall(QUERY, k=100, history="all")} <= admitted | plain


def _frames(line: bytes) -> bool:
    return json.loads(line)["type"] in ("space", "space-end", "total")


def test_another_secret_keeps_the_answers_of_change_sets_for_the_next_export_and_counts_them():
    source = Governed().fill()
    lines, into = exported(source), target(source, secret=bytes(32))
    report = into.store.import_([lines])
    assert report.foreign_receipts == lines.count(b'"change-set"') > 0
    assert shown(into)["node a"] == shown(source)["node a"]
    assert body(exported(into)) == body(lines)


def test_under_the_same_secret_a_change_set_is_known_again_after_an_import():
    source = Governed()
    told = change("k", create_active("n"))
    first = source.repository.apply(told)
    into = target(source)
    into.store.import_([exported(source)])
    assert into.repository.apply(told) == first
    assert into.repository.get("n").revision == 1


def test_what_an_import_adds_is_a_step_of_the_change_tokens():
    source = Governed().fill()
    into = target(source)
    before = into.repository.change_token()
    into.store.import_([exported(source)])
    after = into.repository.change_token()
    assert after.sequence == before.sequence + 1
    changes = into.repository.changes(before)
    assert [(item.kind, {node for node, _ in item.nodes}) for item in changes.items] == [
        ("applied", set(NODES))
    ]
    into.store.import_([exported(source)])
    assert into.repository.change_token() == after


def test_a_purge_of_source_and_target_leaves_equal_tokens():
    source = Governed().live(Random(5), 60)
    into = target(source)
    into.store.import_([exported(source)])
    source.store.purge()
    into.store.purge()
    assert into.repository.change_token() == source.repository.change_token()
    assert body(exported(into)) == body(exported(source))


def test_a_dry_run_says_what_the_import_does():
    source = Governed().live(Random(8), 80)
    lines, into = exported(source), target(source)
    chunk = importing.CHUNK_RECORDS
    importing.CHUNK_RECORDS = 3
    try:
        dry = into.store.import_([lines], dry_run=True)
        assert into.store.log.spaces() == []
        done = into.store.import_([lines])
    finally:
        importing.CHUNK_RECORDS = chunk
    assert (dry.created, dry.facts, dry.problems) == (done.created, done.facts, done.problems)


# Files by hand


def changed(source: Governed, kind: str, **fields: Any) -> bytes:
    """The export of a source, with fields of the first line of a type changed."""
    lines = exported(source).splitlines(keepends=True)
    place = next(at for at, line in enumerate(lines) if json.loads(line).get("type") == kind)
    lines[place] = json.dumps(json.loads(lines[place]) | fields).encode() + b"\n"
    return b"".join(lines)


def one_node() -> Governed:
    source = Governed()
    source.repository.apply(change("k", create_active("n", "the content")))
    return source


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"content": "other words"}, "says something else"),
        ({"id": "m"}, "has another id"),
        ({"status": "candidate"}, "is candidate, and so is seen as no fact"),
        ({"status": "approved"}, "status must be one of candidate"),
        ({"fact": 7}, "is governed, but no node"),
        ({"fact": -1}, "is governed, but no node"),
        ({"revision": 2}, "tells revision 2 of a node"),
        ({"relations": [{"kind": "related_to", "node": 4}]}, "names node 4"),
        ({"confidence": 2.0}, "confidence must be"),
        ({"labels": {str(n): "x" for n in range(65)}}, "labels has 65 members"),
        (
            {"evidence": [{"uri": "", "digest": "d", "kind": "manual", "occurredAt": 1}]},
            "evidence.uri must take",
        ),
    ],
)
def test_a_node_that_does_not_hold_together_is_refused_with_its_fact(fields, reason):
    source = one_node()
    lines = changed(source, "node", **fields)
    into = target(source)
    with pytest.raises(ImportFailed, match=reason):
        into.store.import_([lines])
    into.store.import_([lines], strict=False)
    assert into.memory.recall("content words", k=10) == []
    assert into.store.verify().findings == ()


@pytest.mark.parametrize(
    ("kind", "fields", "reason"),
    [
        ("fact", {"id": "n"}, "governed is for facts whose id starts with one of"),
        ("fact", {"governed": False}, "which is reserved"),
        ("fact", {"type": "document", "version": 1}, "governed is for facts"),
        ("fact", {"text": "other words"}, "says something else"),
        ("change-set", {"nodes": [{"node": 3, "revision": 1}]}, "names revision 1 of node 3"),
    ],
)
def test_a_fact_or_receipt_that_does_not_fit_its_node_is_refused(kind, fields, reason):
    source = one_node()
    with pytest.raises(ImportFailed, match=reason):
        target(source).store.import_([changed(source, kind, **fields)])


@pytest.mark.parametrize(
    "line",
    [
        '{"type":"annotation","fact":0,"recordedAt":1,"tags":["x"]}',
        '{"type":"hidden","facts":[0],"recordedAt":1}',
    ],
)
def test_no_line_but_its_owner_changes_a_governed_fact(line):
    source = one_node()
    lines = exported(source).splitlines(keepends=True)
    lines.insert(-2, line.encode() + b"\n")
    with pytest.raises(ImportFailed, match="names fact 0, which is governed"):
        target(source).store.import_([b"".join(lines)])


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"text": "something else"}, "facts that say something else"),
        ({"sourceId": "t9"}, "ids are not those of its parts"),
        ({"position": 9}, "turn 9 of a version of 2"),
        ({"chunks": 2}, "ids are not those of its parts"),
        ({"chunks": 5}, "facts that do not stand behind it"),
        ({"chunks": 10**6}, "chunks must be"),
        ({"conversation": 4}, "names conversation 4"),
    ],
)
def test_a_turn_that_does_not_hold_together_is_refused_with_its_parts(fields, reason):
    source = Governed()
    turns = tuple(
        ConversationTurn(source_id=f"t{n}", role="user", text=f"alpha {n}", observation_time=1)
        for n in (0, 1)
    )
    source.conversation.remember(ConversationInput(session_id="s", version="v", turns=turns))
    lines = changed(source, "turn", **fields)
    into = target(source)
    with pytest.raises(ImportFailed, match=reason):
        into.store.import_([lines])
    into.store.import_([lines], strict=False)
    assert [turn.text for turn in into.conversation.get("s", "v").turns] == ["alpha 1"]
    assert into.store.verify().findings == ()


def test_a_node_that_went_on_in_two_places_is_refused():
    source = one_node()
    into = target(source)
    into.store.import_([exported(source)])
    source.repository.apply(change("more", revise("n", 1, "said here")))
    into.repository.apply(change("more", revise("n", 1, "said there")))
    with pytest.raises(ImportFailed, match="conflict: "):
        into.store.import_([exported(source)])
    assert into.repository.get("n").content == "said there"


def test_what_is_blocked_in_the_target_comes_back_as_no_node():
    source = Governed().fill()
    into = Governed()
    text = source.repository.get("b").content  # a candidate: no fact says it
    into.memory.remember(text, id="y")
    into.memory.forget(ids=["y"], block=True)
    with pytest.raises(ImportFailed, match="was forgotten with block: true"):
        into.store.import_([exported(source)])


# Filters


@given(seeds, st.sampled_from([{"team": "x"}, {"kind": "semantic"}, {"text": "plain"}, {"subject": "topic"}]))
@settings(max_examples=examples(10), deadline=None)
def test_a_filtered_export_holds_what_is_left_where_all_that_does_not_match_is_forgotten(seed, tree):
    source = Governed().live(Random(seed), 50)
    lines, into = exported(source, filter=tree), target(source)
    assert into.store.import_([lines]).problems == ()
    assert into.store.verify().findings == ()
    matching = {fact.id for fact in source.memory.list(limit=1_000, filter=tree).items}
    kept = {fact.id for fact in into.memory.list(limit=1_000).items}
    assert kept <= matching
    for node in NODES:
        there = source.repository.get(node)
        seen = (
            set()
            if there is None
            else {fact for fact in _all_facts(source) if fact.startswith(f"perdure:node/{node}@")}
        )
        assert (into.repository.get(node) is not None) == (bool(seen) and seen <= matching)
    served = {hit.id for hit in into.memory.recall(QUERY, k=100)}
    assert served <= {hit.id for hit in source.memory.recall(QUERY, k=100)}
    again = target(into)
    again.store.import_([exported(into)])
    assert body(exported(again)) == body(exported(into)) == body(lines)


def _all_facts(source: Governed) -> set[str]:
    return {fact.id for fact in source.memory.list(limit=1_000).items}


def test_what_sessions_keep_is_moved_and_erased_with_their_scope():
    source = Governed()
    source.store.session("chat/1", "alice", "work").add_turn("user", "alpha said")
    into = target(source)
    assert into.store.import_([exported(source)]).problems == ()
    turns = into.store.session("chat/1", "alice", "work").get_turns()
    assert [turn.content for turn in turns] == ["alpha said"]
    assert [space.scope for space in into.store.erase("alice", "work").spaces] == ["work#sessions"]
