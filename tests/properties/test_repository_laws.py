"""Laws of digests, tokens and races: equal content, equal digest; one winner for each revision."""

from __future__ import annotations

import shutil
import tempfile
import threading
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from governed import (
    activate,
    add_edge,
    change,
    corroborate,
    create,
    create_active,
    draft,
    evidence,
    moment,
    opened,
    revise,
    successor,
    supersession,
)
from perdure import Store
from perdure.base.canonical import canonical_json
from perdure.errors import PerdureError
from perdure.model.node import NodeStatus, Relation
from perdure.model.node_change import Create
from perdure.model.node_forms import canonical_node, history_digest
from perdure.model.node_snapshot import Snapshot, SnapshotRequest
from perdure.repository_errors import HistoryChanged, RevisionConflict

EVERYTHING = SnapshotRequest(tuple(NodeStatus))
WRITERS = 16
OTHERS = 10_000
scripts = st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 5)), max_size=12)


def live(repository, script):
    """Do what the script says, as far as it can be done; the same script does the same to equal content."""
    for number, (id_, what) in enumerate(script):
        node = repository.get(id_)
        revision = 1 if node is None else node.revision
        proof = evidence(f"proof {number}", "verification")
        operations = {
            0: [create(id_)],
            1: [create_active(id_)],
            2: [activate(id_, revision, proof)],
            3: [revise(id_, revision, f"content {number}", evidence=[proof])],
            4: [corroborate(id_, revision, proof)],
            5: [create(f"{id_}{number}"), corroborate(id_, revision, proof)],
        }[what]
        try:
            repository.apply(change(f"key {number}", *operations, at=number))
        except PerdureError:
            continue


@settings(max_examples=examples(8), deadline=None)
@given(scripts)
def test_equal_content_has_an_equal_digest_on_every_log_and_after_every_rebuild(script):
    directory = Path(tempfile.mkdtemp())
    try:
        digests = set()
        for backend in ("memory", "sqlite", "journal"):
            with opened(directory, backend) as store:
                live(store.repository("alice"), script)
                digests.add(store.repository("alice").snapshot(EVERYTHING).digest)
                store.purge()
                digests.add(store.repository("alice").snapshot(EVERYTHING).digest)
            if backend != "memory":
                with opened(directory, backend) as store:
                    digests.add(store.repository("alice").snapshot(EVERYTHING).digest)
        assert len(digests) == 1
    finally:
        shutil.rmtree(directory)


@settings(max_examples=examples(10), deadline=None)
@given(scripts, scripts)
def test_digests_are_equal_where_the_content_is_and_only_there(one, other):
    told = []
    for script in (one, other):
        with opened(None, "memory") as store:
            repository = store.repository("alice")
            live(repository, script)
            taken = repository.snapshot(EVERYTHING)
            histories = [canonical_node(node) for node in taken.nodes] + [
                canonical_node(node)
                for head in taken.nodes
                for node in repository.revisions(head.id, limit=100).items
            ]
            told.append((taken.digest, histories))
    assert (told[0][0] == told[1][0]) == (told[0][1] == told[1][1])


@settings(max_examples=examples(10), deadline=None)
@given(st.permutations("abcdef"))
def test_nodes_that_are_made_in_any_order_give_the_same_digest(order):
    def digest(ids):
        with opened(None, "memory") as store:
            for id_ in ids:
                store.repository("alice").apply(change(f"key {id_}", create_active(id_)))
            return store.repository("alice").snapshot().digest

    assert digest(order) == digest("abcdef")


@settings(max_examples=examples(8), deadline=None)
@given(scripts)
def test_a_history_digest_is_that_of_the_revisions_before_the_head(script):
    with opened(None, "memory") as store:
        repository = store.repository("alice")
        live(repository, script)
        taken = repository.snapshot(EVERYTHING)
        for node, history in zip(taken.nodes, taken.histories, strict=True):
            assert history == history_digest(repository.revisions(node.id, limit=100).items[:-1])


@settings(max_examples=examples(10), deadline=None)
@given(scripts, st.integers(0, 12), st.integers(1, 4))
def test_a_copy_that_went_on_by_itself_is_told_apart_by_its_token(script, cut, later):
    """A backup is put in place and written to: a token from after it was made is not taken."""
    with opened(None, "memory", secret=b"s" * 32) as store, opened(None, "memory", secret=b"s" * 32) as copy:
        original, restored = store.repository("alice"), copy.repository("alice")
        live(original, script)
        live(restored, script[:cut])
        behind = original.change_token().sequence - restored.change_token().sequence
        token = original.change_token()
        for number in range(behind + later):
            restored.apply(change(f"other {number}", create(f"other {number}"), at=99))
        if behind:
            with pytest.raises(HistoryChanged):
                restored.changes(token)
        else:
            assert len(restored.changes(token).items) == later


def test_an_old_copy_is_told_apart_by_a_newer_token():
    directory = Path(tempfile.mkdtemp())
    try:
        with opened(directory, "sqlite") as store:
            repository = store.repository("alice")
            repository.apply(change("k", create_active("n")))
            store.backup(directory / "copy")
            repository.apply(change("l", revise("n", 1, "later")))
            token = repository.change_token()
        with Store.open(directory / "copy") as store, pytest.raises(HistoryChanged):
            store.repository("alice").changes(token)
    finally:
        shutil.rmtree(directory)


def test_of_many_writers_one_wins_each_revision_and_the_others_hear_which_is_current():
    with opened(None, "memory") as store:
        repository = store.repository("alice")
        repository.apply(change("k", create_active("n")))
        barrier, outcomes = threading.Barrier(WRITERS), []

        def write(number):
            barrier.wait()
            revision = 1
            while True:
                try:
                    told = change(f"writer {number}", revise("n", revision, f"writer {number}"))
                    outcomes.append(("won", repository.apply(told).nodes[0].revision))
                    return
                except RevisionConflict as error:
                    outcomes.append(("lost", error.actual - error.expected))
                    revision = error.actual

        threads = [threading.Thread(target=write, args=(number,)) for number in range(WRITERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        won = sorted(revision for what, revision in outcomes if what == "won")
        assert won == list(range(2, WRITERS + 2))
        assert all(ahead > 0 for what, ahead in outcomes if what == "lost")
        assert repository.get("n").revision == WRITERS + 1
        assert repository.change_token().sequence == WRITERS + 1
        assert len(store.memory("alice").recall("writer", k=100)) == 1


@pytest.mark.slow
def test_a_replay_after_very_many_other_changes_gives_the_first_answer():
    with opened(None, "memory") as store:
        repository = store.repository("alice")
        told = change("k", create_active("n"))
        first = repository.apply(told)
        for number in range(OTHERS):
            repository.apply(change(f"other {number}", create(f"other {number}", "x")))
        assert repository.apply(told) == first
        assert repository.change_token().sequence == OTHERS + 1


def test_a_chain_of_supersessions_serves_its_end_alone():
    with opened(None, "memory") as store:
        repository, memory = store.repository("alice"), store.memory("alice")
        repository.apply(change("0", create_active("n0", "version 0")))
        for number in range(1, 20):
            new = successor(f"n{number}", f"n{number - 1}", f"version {number}")
            repository.apply(change(f"{number}", *supersession(f"n{number - 1}", 1, new)))
        assert [hit.text for hit in memory.recall("version")] == ["version 19"]
        order = list(range(20))
        Random(1).shuffle(order)
        for number in order:
            repository.forget([f"n{number}"])
            expected = [] if number == 19 or repository.get("n19") is None else ["version 19"]
            assert [hit.text for hit in memory.recall("version")] == expected


@settings(max_examples=examples(12), deadline=None)
@given(
    st.dictionaries(st.text(min_size=1, max_size=5).filter(str.strip), st.text(min_size=1).filter(str.strip))
)
def test_a_node_is_told_back_as_it_was_told(labels):
    labels.pop("perdure", None)
    told = draft(
        "n",
        "  content\n",
        labels=labels,
        subject="slot",
        valid_from=moment(-5),
        valid_to=moment(5),
        confidence=0.25,
        evidence=[evidence("e", "user_statement", quote="very words", start=2)],
    )
    with opened(None, "memory") as store:
        repository = store.repository("alice")
        answer = repository.apply(change("k", Create(draft=told, actor="eve", reason="why"))).nodes[0]
        assert repository.get("n") == answer
        assert (answer.content, answer.labels, answer.subject) == (told.content, labels, "slot")
        assert (answer.actor, answer.reason, answer.confidence) == ("eve", "why", 0.25)
        (found,) = answer.evidence
        assert (found.uri, found.quote, found.start, found.end) == ("file:e", "very words", 2, 12)
        assert canonical_json({"labels": answer.labels}) == canonical_json({"labels": labels})


def test_edges_are_seen_from_both_ends():
    with opened(None, "memory") as store:
        repository = store.repository("alice")
        repository.apply(change("k", create("a"), create("b")))
        edges = (add_edge("a", 1, "conflicts_with", "b"), add_edge("b", 1, "conflicts_with", "a"))
        repository.apply(change("l", *edges))
        assert repository.get("a").relations == (Relation("conflicts_with", "b"),)
        assert repository.get("b").relations == (Relation("conflicts_with", "a"),)


def test_a_snapshot_can_be_made_again_from_what_it_holds():
    with opened(None, "memory") as store:
        repository = store.repository("alice")
        repository.apply(change("k", create_active("a"), create("b")))
        taken = repository.snapshot(EVERYTHING)
        again = Snapshot.of(EVERYTHING, taken.namespace, zip(taken.nodes, taken.histories, strict=True))
        assert again == taken
