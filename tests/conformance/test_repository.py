"""What a repository does, on every log: change sets, lifecycle, graph, reads, snapshots, tokens, access records."""

from __future__ import annotations

import threading

import pytest

from governed import (
    BACKENDS,
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
    remove_edge,
    revise,
    set_status,
    successor,
    supersession,
)
from perdure import MemoryConfig
from perdure import repository_errors as refusals
from perdure.errors import Blocked, Conflict, InvalidRequest, NotFound
from perdure.model.node import AccessEvent, NodeStatus, Relation
from perdure.model.node_change import Create, Relabel, Resolve
from perdure.model.node_snapshot import SnapshotRequest

EVERYTHING = SnapshotRequest(tuple(NodeStatus))


@pytest.fixture(params=BACKENDS)
def backend(request):
    return request.param


@pytest.fixture
def store(tmp_path, backend):
    with opened(tmp_path, backend) as store:
        yield store


@pytest.fixture
def repository(store):
    return store.repository("alice", "work")


@pytest.fixture
def memory(store):
    return store.memory("alice", "work")


def contents(memory, words="content"):
    return sorted(hit.text for hit in memory.recall(words, k=100))


def admission(id_="a1", node="n", revision=1, at=0.0, **more):
    return AccessEvent(id_, node, revision, moment(at), **more)


# Change sets


def test_an_equal_change_set_under_the_same_key_gives_the_first_answer_again(repository):
    first = repository.apply(change("k", create_active("n")))
    repository.apply(change("later", revise("n", 1, "something else")))
    assert repository.apply(change("k", create_active("n"))) == first
    assert repository.get("n").revision == 2


def test_another_change_set_under_the_same_key_is_a_conflict(repository):
    repository.apply(change("k", create("n")))
    with pytest.raises(refusals.IdempotencyConflict) as caught:
        repository.apply(change("k", create("m")))
    assert (caught.value.key, caught.value.details["kind"]) == ("k", "idempotency_conflict")
    assert repository.get("m") is None


def test_a_replay_is_decided_before_any_other_check(repository):
    told = change("k", create_active("n"))
    repository.apply(told)
    repository.apply(change("gone", set_status("n", 1, "tombstoned")))
    assert repository.apply(told).nodes[0].status is NodeStatus.ACTIVE


def test_a_key_of_a_change_set_that_failed_may_be_used_again(repository):
    with pytest.raises(refusals.NodeNotFound):
        repository.apply(change("k", activate("n", 1)))
    assert repository.apply(change("k", create("n"))).nodes[0].id == "n"


def test_a_stale_operation_takes_the_whole_change_set_with_it(repository):
    repository.apply(change("k", create_active("a"), create_active("b")))
    with pytest.raises(refusals.RevisionConflict) as caught:
        repository.apply(change("stale", revise("a", 1, "new"), revise("b", 2, "new")))
    assert (caught.value.node_id, caught.value.expected, caught.value.actual) == ("b", 2, 1)
    assert [repository.get(id_).revision for id_ in "ab"] == [1, 1]
    assert repository.revisions("a").total == 1


def test_operations_see_what_those_before_them_did(repository):
    told = repository.apply(change("k", create("n"), activate("n", 1), revise("n", 2, "better")))
    assert [(node.id, node.revision, node.content) for node in told.nodes] == [("n", 3, "better")]
    assert [node.status for node in repository.revisions("n").items] == ["candidate", "active", "active"]


def test_the_answer_holds_every_changed_node_ascending_by_id(repository):
    told = repository.apply(change("k", create("c"), create("a"), create("b")))
    assert [node.id for node in told.nodes] == ["a", "b", "c"]


def test_the_same_id_names_different_nodes_in_two_spaces(store, repository):
    other = store.repository("alice", "home")
    repository.apply(change("k", create_active("n", "here")))
    other.apply(change("k", create_active("n", "there")))
    assert [one.get("n").content for one in (repository, other)] == ["here", "there"]
    assert [hit.node.content for hit in other.query("here there").items] == ["there"]


def test_a_key_counts_in_its_own_space_alone(store, repository):
    repository.apply(change("k", create("n")))
    store.repository("bob").apply(change("k", create("m")))
    assert store.repository("bob").get("n") is None


def test_of_two_changes_at_once_one_wins_and_the_other_is_told_so(repository):
    repository.apply(change("k", create_active("n")))
    outcomes = []

    def write(name):
        try:
            outcomes.append(repository.apply(change(name, revise("n", 1, name))).nodes[0].revision)
        except refusals.RevisionConflict as error:
            outcomes.append(error.actual)

    threads = [threading.Thread(target=write, args=(f"writer {n}",)) for n in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes == [2, 2]
    assert repository.get("n").revision == 2
    assert repository.change_token().sequence == 2


def test_a_change_set_before_the_last_update_of_a_node_is_refused(repository):
    repository.apply(change("k", create_active("n"), at=10))
    with pytest.raises(InvalidRequest, match="occurred_at must not lie before"):
        repository.apply(change("early", revise("n", 1, "new"), at=9))


# Lifecycle and evidence


def test_a_candidate_is_in_no_default_query_and_in_no_recall(repository, memory):
    repository.apply(change("k", create("n", labels={"topic": "content"})))
    assert repository.query().items == ()
    assert repository.query("content").items == ()
    assert contents(memory) == []


def test_an_activated_node_is_recalled_with_its_labels(repository, memory):
    repository.apply(change("k", create("n", labels={"topic": "home"}, subject="slot")))
    told = repository.apply(change("ok", activate("n", 1, evidence("seen", "verification"))))
    (hit,) = memory.recall("content", subject="slot", filter={"topic": "home"})
    assert hit.id == told.nodes[0].fact == "perdure:node/n@2"
    assert hit.fact.source.uri == "file:n-first"
    assert [one.kind for one in told.nodes[0].evidence] == ["user_statement", "verification"]


def test_a_candidate_without_evidence_is_refused(repository):
    with pytest.raises(refusals.EvidenceRequired):
        repository.apply(change("k", create("n", evidence=[])))


@pytest.mark.parametrize("kind", ["user_statement", "tool_result", "artifact", "session_turn"])
def test_only_evidence_that_decides_makes_a_node_active(repository, kind):
    repository.apply(change("k", create("n")))
    with pytest.raises(refusals.EvidenceRequired) as caught:
        repository.apply(change("bad", activate("n", 1, evidence("x", kind))))
    assert caught.value.decision_kinds == ("manual", "verification")
    assert caught.value.message == (
        f"operations[0].evidence is of the kind {kind}, which does not decide: this operation needs at least one of "
        "the kinds manual, verification"
    )
    with pytest.raises(refusals.EvidenceRequired):
        repository.apply(change("bad", create_active("m", evidence=[evidence("x", kind)])))
    assert repository.get("n").revision == 1


def test_a_space_may_let_other_evidence_decide(store):
    repository = store.repository("alice", "work", config=MemoryConfig(decision_kinds=("tool_result",)))
    repository.apply(change("k", create("n"), activate("n", 1, evidence("x", "tool_result"))))
    with pytest.raises(refusals.EvidenceRequired):
        repository.apply(change("bad", set_status("n", 2, "tombstoned", evidence("y", "manual"))))


def test_activation_without_evidence_is_refused_whatever_the_status(repository):
    repository.apply(change("k", create_active("n")))
    bare = activate("n", 1).__class__(node_id="n", expected_revision=1)
    with pytest.raises(refusals.EvidenceRequired, match=r"operations\[0\]\.evidence is missing"):
        repository.apply(change("bad", bare))


def test_a_node_goes_the_ways_of_the_lifecycle_and_no_other(repository):
    repository.apply(change("k", create("n")))
    for status in ("superseded", "conflicted"):
        with pytest.raises(refusals.InvalidTransition) as caught:
            repository.apply(change("bad", set_status("n", 1, status)))
        assert (caught.value.source, caught.value.target) == ("candidate", status)
    repository.apply(change("gone", set_status("n", 1, "tombstoned")))
    for operation in (set_status("n", 2, "tombstoned"), activate("n", 2)):
        with pytest.raises(refusals.InvalidTransition):
            repository.apply(change("bad", operation))
    with pytest.raises(InvalidRequest, match="activate makes"):
        repository.apply(change("bad", set_status("n", 2, "active")))
    with pytest.raises(refusals.InvalidTransition, match="absent to superseded"):
        repository.apply(change("bad", create("m", status="superseded")))


def test_an_active_node_needs_evidence_that_decides_to_end(repository):
    repository.apply(change("k", create_active("n")))
    with pytest.raises(refusals.EvidenceRequired):
        repository.apply(change("bad", set_status("n", 1, "tombstoned", evidence("x", "artifact"))))


def test_a_conflict_takes_a_node_out_of_recall_until_it_is_resolved(repository, memory):
    repository.apply(change("k", create_active("a"), create("b")))
    edges = [add_edge("a", 1, "conflicts_with", "b"), add_edge("b", 1, "conflicts_with", "a")]
    repository.apply(change("clash", *edges, set_status("a", 2, "conflicted")))
    assert contents(memory) == []
    assert [node.id for node in repository.review_queue().items] == ["a", "b"]
    resolve = Resolve(node_id="a", expected_revision=3, evidence=[evidence()], actor="eve", reason="checked")
    told = repository.apply(change("ok", resolve, at=1)).nodes[0]
    assert (told.status, told.revision_kind, told.actor, told.reason) == (
        "active",
        "resolved",
        "eve",
        "checked",
    )
    assert contents(memory) == ["the content of a"]


def test_a_conflict_needs_a_node_to_conflict_with(repository):
    repository.apply(change("k", create_active("n")))
    with pytest.raises(refusals.InvariantViolation, match="conflicts_with"):
        repository.apply(change("bad", set_status("n", 1, "conflicted")))


def test_resolving_what_is_in_no_conflict_is_refused(repository):
    repository.apply(change("k", create_active("n")))
    with pytest.raises(refusals.InvalidTransition):
        repository.apply(change("bad", Resolve(node_id="n", expected_revision=1, evidence=[evidence()])))


def test_evidence_differs_by_uri_or_digest_within_a_node(repository):
    repository.apply(change("k", create("n", evidence=[evidence("x")])))
    with pytest.raises(refusals.InvariantViolation, match="comes twice"):
        repository.apply(change("bad", corroborate("n", 1, evidence("x"))))
    other = evidence("x").__class__("file:x", "another digest", "manual", moment(0))
    assert len(repository.apply(change("ok", corroborate("n", 1, other))).nodes[0].evidence) == 2


def test_evidence_from_after_the_change_set_is_refused(repository):
    with pytest.raises(InvalidRequest, match=r"evidence\.occurred_at"):
        repository.apply(change("k", create("n", evidence=[evidence("x", at=5)])))


def test_a_node_that_ended_can_no_longer_be_changed(repository):
    repository.apply(change("k", create_active("old")))
    repository.apply(change("new", *supersession("old", 1, successor("new", "old"))))
    for operation in (
        revise("old", 3, "again"),
        corroborate("old", 3),
        add_edge("old", 3, "related_to", "new"),
        Relabel(node_id="old", expected_revision=3, labels={}),
    ):
        with pytest.raises(refusals.InvariantViolation):
            repository.apply(change("bad", operation))
    assert repository.get("old").revision == 3


def test_labels_subject_and_validity_change_by_relabelling(repository, memory):
    repository.apply(change("k", create_active("n", labels={"a": "1", "b": "2"})))
    operation = Relabel(
        node_id="n", expected_revision=1, labels={"a": "3"}, subject="slot", valid_from=moment(-10)
    )
    node = repository.apply(change("new", operation)).nodes[0]
    assert (node.labels, node.subject, node.revision_kind) == ({"a": "3"}, "slot", "relabelled")
    (hit,) = memory.recall("content")
    assert (hit.fact.metadata, hit.fact.subject) == ({"a": "3"}, "slot")
    cleared = Relabel(node_id="n", expected_revision=2, subject=None)
    assert repository.apply(change("clear", cleared)).nodes[0].subject is None


# The graph


def test_correct_then_supersede_keeps_every_revision(repository, memory):
    repository.apply(change("k", create("old", "first words")))
    repository.apply(change("ok", activate("old", 1)))
    repository.apply(change("fix", revise("old", 2, "second words")))
    repository.apply(change("new", *supersession("old", 3, successor("new", "old", "third words"))))
    old = repository.get("old")
    assert (old.status, old.revision) == ("superseded", 5)
    assert [node.content for node in repository.revisions("old").items] == [
        "first words",
        "first words",
        "second words",
        "second words",
        "second words",
    ]
    assert [hit.node.id for hit in repository.query().items] == ["new"]
    assert contents(memory, "words") == ["third words"]
    assert [hit.status for hit in memory.recall("second", history="historical")] == ["superseded"]


def test_an_edge_needs_its_inverse_in_the_same_change_set(repository):
    repository.apply(change("k", create("a"), create("b")))
    with pytest.raises(refusals.InvariantViolation, match="other end"):
        repository.apply(change("bad", add_edge("a", 1, "related_to", "b")))
    both = (add_edge("a", 1, "related_to", "b"), add_edge("b", 1, "related_to", "a"))
    repository.apply(change("ok", *both))
    with pytest.raises(refusals.InvariantViolation, match="other end"):
        repository.apply(change("bad", remove_edge("a", 2, "related_to", "b")))


def test_an_edge_to_a_node_that_is_not_there_is_refused(store, repository):
    store.repository("bob").apply(change("k", create("elsewhere")))
    with pytest.raises(refusals.RelationTargetNotFound) as caught:
        repository.apply(change("bad", create("n", relations=[Relation("related_to", "elsewhere")])))
    assert (caught.value.node_id, caught.value.target_id) == ("n", "elsewhere")


def test_a_node_has_no_edge_to_itself(repository):
    with pytest.raises(refusals.InvariantViolation, match="itself"):
        repository.apply(change("bad", create("n", relations=[Relation("related_to", "n")])))


def test_a_candidate_cannot_supersede(repository):
    repository.apply(change("k", create_active("old")))
    new = create("new", relations=[Relation("supersedes", "old")])
    with pytest.raises(refusals.InvariantViolation, match="only an active node"):
        repository.apply(change("bad", *supersession("old", 1, new)))


def test_what_is_superseded_must_say_so(repository):
    repository.apply(change("k", create_active("old")))
    with pytest.raises(refusals.InvariantViolation, match="superseded or tombstoned"):
        repository.apply(change("bad", successor("new", "old"), add_edge("old", 1, "superseded_by", "new")))


def test_two_nodes_cannot_supersede_each_other(repository):
    repository.apply(change("k", create_active("a")))
    repository.apply(change("ab", *supersession("a", 1, successor("b", "a"))))
    with pytest.raises(Conflict):
        repository.apply(change("ba", add_edge("a", 3, "supersedes", "b")))


def test_a_tombstoned_predecessor_does_not_freeze_its_successor(repository):
    repository.apply(change("k", create_active("old")))
    repository.apply(change("new", *supersession("old", 1, successor("new", "old"))))
    repository.apply(change("gone", set_status("old", 3, "tombstoned")))
    assert repository.apply(change("fix", revise("new", 1, "goes on"))).nodes[0].revision == 2


def test_relation_changes_on_an_active_node_need_evidence(repository):
    repository.apply(change("k", create_active("a"), create_active("b")))
    bare = add_edge("a", 1, "related_to", "b").__class__(
        node_id="a", expected_revision=1, relation=Relation("related_to", "b")
    )
    with pytest.raises(refusals.EvidenceRequired):
        repository.apply(change("bad", bare, add_edge("b", 1, "related_to", "a")))


# Projection


def test_a_correction_of_a_node_corrects_its_fact(repository, memory):
    repository.apply(change("k", create_active("n", "in Paris")))
    told = repository.apply(change("fix", revise("n", 1, "in Berlin"))).nodes[0]
    assert contents(memory, "in Paris Berlin") == ["in Berlin"]
    assert memory.get(told.fact).supersedes == ("perdure:node/n@1",)


def test_a_refinement_supersedes_the_fact_from_then_on(repository, memory):
    repository.apply(change("k", create_active("n", "in Paris", valid_from=moment(-100))))
    repository.apply(change("fix", revise("n", 1, "in Paris, near the river", "refinement")))
    assert contents(memory, "Paris") == ["in Paris, near the river"]


def test_a_tombstone_retracts_the_fact(repository, memory):
    repository.apply(change("k", create_active("n")))
    repository.apply(change("gone", set_status("n", 1, "tombstoned")))
    assert contents(memory) == []
    (fact,) = memory.list().items
    assert (fact.status, fact.ends[0].at) == ("expired", None)


def test_only_the_end_of_a_change_set_is_projected(repository, memory):
    repository.apply(
        change("k", create("n"), activate("n", 1), revise("n", 2, "one"), revise("n", 3, "the content, two"))
    )
    assert [fact.text for fact in memory.list(status=None).items] == ["the content, two"]


def test_nothing_of_a_set_that_ends_inactive_is_projected(repository, memory):
    repository.apply(change("k", create("n"), activate("n", 1), set_status("n", 2, "tombstoned")))
    assert memory.list().total == 0


def test_only_what_a_fact_shows_makes_a_new_one(repository, memory):
    repository.apply(change("k", create_active("a"), create("b")))
    bare = [
        type(edge)(node_id=edge.node_id, expected_revision=1, relation=edge.relation, evidence=proof)
        for edge, proof in (
            (add_edge("a", 1, "related_to", "b"), [evidence()]),
            (add_edge("b", 1, "related_to", "a"), []),
        )
    ]
    repository.apply(change("edge", *bare))
    assert memory.list().total == 2  # the new evidence of `a` shows, that of a candidate does not


def test_an_explanation_names_node_revision_and_evidence(repository, memory):
    proof = evidence("doc", quote="very words", start=3)
    repository.apply(change("k", create_active("n", evidence=[proof])))
    told = memory.explain("content", "perdure:node/n@1")
    assert (told.node.id, told.node.revision, told.node.status) == ("n", 1, "active")
    assert [(one.quote, one.start, one.end) for one in told.node.evidence] == [("very words", 3, 13)]
    assert memory.get("perdure:node/n@1").source.quote == "very words"
    assert memory.explain("plain", memory.remember("a plain fact").id).node is None


@pytest.mark.parametrize(
    "call",
    [
        lambda memory, id_: memory.remember("mine now", supersedes=[id_]),
        lambda memory, id_: memory.correct("mine now", id=id_),
        lambda memory, id_: memory.annotate(id_, tags=["x"]),
        lambda memory, id_: memory.end(id_),
        lambda memory, id_: memory.retract(id_),
        lambda memory, id_: memory.forget(ids=[id_], soft=True),
    ],
)
def test_a_governed_fact_is_changed_by_its_node_alone(repository, memory, call):
    repository.apply(change("k", create_active("n")))
    with pytest.raises(Conflict) as caught:
        call(memory, "perdure:node/n@1")
    assert (caught.value.kind, caught.value.details["node"]) == ("governed", "n")
    assert contents(memory) == ["the content of n"]


# Forgetting


def test_forgetting_a_node_takes_its_facts_along(repository, memory):
    repository.apply(change("k", create_active("n")))
    repository.apply(change("fix", revise("n", 1, "other content")))
    assert repository.forget(["n", "unknown"]).forgotten == ("n",)
    assert repository.get("n") is None
    assert memory.list().total == 0


def test_forgetting_a_fact_takes_its_node_along(repository, memory):
    repository.apply(change("k", create_active("n")))
    repository.apply(change("fix", revise("n", 1, "other content")))
    assert memory.forget(ids=["perdure:node/n@1"]).forgotten == ("perdure:node/n@1", "perdure:node/n@2")
    assert repository.get("n") is None


def test_relations_to_a_forgotten_node_stay_without_a_target(repository, memory):
    repository.apply(change("k", create_active("old")))
    repository.apply(change("new", *supersession("old", 1, successor("new", "old"))))
    repository.forget(["new"])
    old = repository.get("old")
    assert (old.status, old.relations) == ("superseded", (Relation("superseded_by", None),))
    assert contents(memory) == []
    assert repository.apply(change("gone", set_status("old", 3, "tombstoned"))).nodes[0].revision == 4


def test_a_dry_run_forgets_nothing(repository):
    repository.apply(change("k", create("n")))
    assert repository.forget(["n"], dry_run=True).forgotten == ("n",)
    assert repository.get("n") is not None


def test_the_key_of_a_change_set_is_spent_when_its_node_is_forgotten(repository):
    repository.apply(change("k", create("n")))
    repository.forget(["n"])
    with pytest.raises(NotFound) as caught:
        repository.apply(change("k", create("n")))
    assert caught.value.details["reason"] == "forgotten"
    assert repository.apply(change("again", create("n"))).nodes[0].revision == 1


def test_blocked_content_is_in_no_node(repository, memory):
    repository.apply(change("k", create_active("n", "the secret content")))
    memory.forget(ids=["perdure:node/n@1"], block=True)
    with pytest.raises(Blocked) as refused:
        repository.apply(change("again", create("o"), create("m", "The secret  content")))
    assert refused.value.field == "operations[1].draft.content"
    assert refused.value.message.startswith("operations[1].draft: the content was forgotten")
    with pytest.raises(Blocked) as refused:
        repository.apply(change("anew", create("n", "something else")))
    assert refused.value.field == "operations[0].draft.id"
    repository.apply(change("other", create("o")))
    with pytest.raises(Blocked) as refused:
        repository.apply(change("last", revise("o", 1, "the SECRET content")))
    assert refused.value.field == "operations[0].content"


# Reads


def test_a_repeated_query_gives_the_same_and_changes_nothing(repository):
    repository.apply(change("k", create_active("n")))
    before = repository.snapshot(EVERYTHING)
    assert repository.query("content") == repository.query("content")
    assert repository.snapshot(EVERYTHING) == before


def test_a_part_of_a_phrase_finds_a_node_in_chinese(repository):
    repository.apply(change("k", create_active("n", "部署前执行数据库迁移并验证架构版本")))
    (hit,) = repository.query("数据库迁移验证").items
    assert hit.coverage == 5 / 7
    assert hit.score == hit.bm25 > 0


def test_two_matching_words_outrank_one(repository):
    repository.apply(
        change(
            "k", create_active("a", "red apples"), create_active("b", "red cars"), create_active("c", "tea")
        )
    )
    assert [hit.node.id for hit in repository.query("red apples").items] == ["a", "b"]


def test_ties_go_to_what_was_updated_last_and_then_by_id(repository):
    repository.apply(change("k", create_active("b", "same words"), create_active("a", "same words")))
    repository.apply(change("l", create_active("z", "same words"), at=1))
    assert [hit.node.id for hit in repository.query("same").items] == ["z", "a", "b"]
    assert [hit.node.id for hit in repository.query().items] == ["z", "a", "b"]


def test_candidates_are_ranked_by_the_same_formula_where_they_are_asked_for(repository):
    repository.apply(change("k", create_active("a", "red apples"), create("b", "red apples")))
    scores = {hit.node.id: hit.score for hit in repository.query("apples", statuses=tuple(NodeStatus)).items}
    assert scores["a"] == scores["b"] > 0


def test_filters_narrow_a_query(repository):
    repository.apply(change("k", create_active("a", kind="episodic", labels={"x": "1"}, subject="s")))
    repository.apply(change("l", create_active("b", labels={"x": "2", "y": "1"}), at=5))

    def found(**told):
        return [hit.node.id for hit in repository.query(**told).items]

    assert found(kinds=["episodic"]) == ["a"]
    assert found(labels={"x": "1"}) == ["a"]
    assert found(labels={"x": ["1", "2"]}) == ["b", "a"]
    assert found(labels={"y": None}) == ["a"]
    assert found(subject="s") == ["a"]
    assert found(updated_after=moment(5)) == ["b"]
    assert found(updated_before=moment(5)) == ["a"]
    assert found(created_after=moment(1), created_before=moment(9)) == ["b"]
    assert found(evidence_uri="file:a-first") == ["a"]
    assert found(evidence_uri="file:elsewhere") == []


def test_pages_of_a_query_hold_every_node_once(repository):
    for n in range(7):
        repository.apply(change(f"k{n}", create_active(f"n{n}", "same words " * (n % 3 + 1)), at=n))
    for text in (None, "words"):
        whole = [hit.node.id for hit in repository.query(text).items]
        pages, cursor = [], None
        while True:
            page = repository.query(text, limit=2, cursor=cursor)
            assert page.total == 7
            pages += [hit.node.id for hit in page.items]
            cursor = page.cursor
            if not page.has_more:
                break
        assert pages == whole


def test_a_cursor_goes_with_its_own_query_alone(repository):
    repository.apply(change("k", *(create_active(f"n{n}") for n in range(3))))
    cursor = repository.query(limit=1).cursor
    with pytest.raises(InvalidRequest, match="cursor"):
        repository.query("content", limit=1, cursor=cursor)


@pytest.mark.parametrize("told", [{"limit": 0}, {"statuses": []}, {"text": " "}, {"kinds": ["working"]}])
def test_a_query_that_asks_for_nothing_is_refused(repository, told):
    with pytest.raises(InvalidRequest):
        repository.query(**told)


def test_a_query_for_too_many_is_refused_whole(repository):
    with pytest.raises(refusals.LimitExceeded) as caught:
        repository.query(limit=101)
    assert (caught.value.resource, caught.value.limit, caught.value.actual) == ("limit", 100, 101)


def test_past_revisions_are_read_one_by_one_and_in_pages(repository):
    repository.apply(change("k", create_active("n", "revision 1")))
    for revision in range(1, 5):
        repository.apply(change(f"r{revision}", revise("n", revision, f"revision {revision + 1}")))
    assert repository.get("n", revision=2).content == "revision 2"
    first = repository.revisions("n", limit=3)
    rest = repository.revisions("n", limit=3, cursor=first.cursor)
    assert [node.revision for node in (*first.items, *rest.items)] == [1, 2, 3, 4, 5]
    with pytest.raises(refusals.NodeRevisionNotFound) as caught:
        repository.get("n", revision=99)
    assert caught.value.revision == 99
    with pytest.raises(refusals.NodeNotFound):
        repository.revisions("unknown")


def test_the_review_queue_begins_with_what_waits_longest(repository):
    repository.apply(change("k", create("late"), at=9))
    repository.apply(change("l", create("early"), create_active("settled"), at=1))
    assert [node.id for node in repository.review_queue().items] == ["early", "late"]
    first = repository.review_queue(limit=1)
    assert [node.id for node in repository.review_queue(limit=1, cursor=first.cursor).items] == ["late"]


# Snapshots


def test_a_snapshot_of_active_nodes_says_what_it_holds_and_verifies(repository):
    repository.apply(change("k", create("n"), create("m")))
    repository.apply(change("ok", activate("n", 1)))
    taken = repository.snapshot()
    assert (taken.profile, taken.namespace.scope, taken.statuses) == (
        "perdure.space-snapshot.v1",
        "work",
        (NodeStatus.ACTIVE,),
    )
    assert [(node.id, node.revision) for node in taken.nodes] == [("n", 2)]
    assert taken.byte_count > 0
    assert taken.digest.startswith("sha256:")
    assert repository.snapshot() == taken
    taken.verify(SnapshotRequest())


def test_a_snapshot_of_an_unknown_space_is_empty_and_verifies(repository):
    taken = repository.snapshot()
    assert taken.nodes == ()
    taken.verify(SnapshotRequest())


def test_a_snapshot_over_its_budget_is_refused_and_never_cut(repository):
    repository.apply(change("k", create_active("b"), create_active("a")))
    assert [node.id for node in repository.snapshot().nodes] == ["a", "b"]
    with pytest.raises(refusals.LimitExceeded) as caught:
        repository.snapshot(SnapshotRequest(max_nodes=1))
    assert (caught.value.resource, caught.value.limit, caught.value.actual) == ("snapshot nodes", 1, 2)
    with pytest.raises(refusals.LimitExceeded) as caught:
        repository.snapshot(SnapshotRequest(max_bytes=1))
    assert (caught.value.resource, caught.value.limit, caught.value.actual) == ("snapshot bytes", 1, 2)


def test_every_revision_shows_in_the_digest_of_a_snapshot(repository):
    repository.apply(change("k", create_active("n", "one")))
    before = repository.snapshot().digest
    repository.apply(change("there", revise("n", 1, "two")))
    assert repository.snapshot().digest != before


# Tokens and the feed


def test_the_token_counts_change_sets_and_nothing_else(store, repository, memory):
    empty = repository.change_token()
    empty.verify()
    assert empty.sequence == 0
    told = change("k", create_active("n"))
    repository.apply(told)
    token = repository.change_token()
    assert token.sequence == 1
    repository.apply(told)
    repository.record_admission(admission())
    repository.record_use(admission())
    memory.remember("a fact of its own")
    with pytest.raises(refusals.RevisionConflict):
        repository.apply(change("bad", revise("n", 7, "x")))
    repository.query("content")
    store.repository("bob").apply(change("k", create("m")))
    assert repository.change_token() == token


def test_the_feed_tells_each_change_once(repository):
    begin = repository.change_token()
    repository.apply(change("k", create("n"), create("m")))
    repository.apply(change("l", activate("n", 1), revise("n", 2, "x")))
    first = repository.changes(begin, limit=1)
    assert [(one.kind, one.nodes) for one in first.items] == [("applied", (("m", 1), ("n", 1)))]
    rest = repository.changes(first.token)
    assert [(one.sequence, one.nodes) for one in rest.items] == [(2, (("n", 3),))]
    assert not rest.has_more
    assert rest.token == repository.change_token()
    assert repository.changes(rest.token).items == ()
    repository.forget(["n"])
    assert [(one.kind, one.forgotten) for one in repository.changes(rest.token).items] == [("erased", 1)]


def test_a_purge_begins_a_new_history(store, repository):
    repository.apply(change("k", create_active("n")))
    before = repository.change_token()
    store.purge()
    after = repository.change_token()
    assert after.sequence == 0
    assert after.history_id != before.history_id
    with pytest.raises(refusals.HistoryChanged) as caught:
        repository.changes(before)
    assert caught.value.kind == "history_changed"
    repository.apply(change("l", revise("n", 1, "x")))
    assert [one.nodes for one in repository.changes(after).items] == [(("n", 2),)]


# Access records


def test_an_access_counts_once_however_often_it_is_told(repository):
    repository.apply(change("k", create_active("n")))
    for _ in range(2):
        repository.record_admission(admission())
        repository.record_use(admission())
    usage = repository.usage("n")
    assert (usage.admissions, usage.uses) == (1, 1)
    assert [event.kind for event in repository.access_events("n").items] == ["admission", "use"]
    assert [event.kind for event in repository.access_events("n", kind="use").items] == ["use"]


def test_another_access_under_the_same_id_is_a_conflict(repository):
    repository.apply(change("k", create_active("n")))
    repository.record_use(admission())
    with pytest.raises(refusals.IdempotencyConflict):
        repository.record_use(admission(at=5))


def test_only_the_active_head_is_admitted(repository):
    repository.apply(change("k", create_active("n")))
    repository.apply(change("fix", revise("n", 1, "x")))
    with pytest.raises(refusals.AdmissionNotAllowed) as caught:
        repository.record_admission(admission())
    assert (caught.value.current_revision, caught.value.current_status) == (2, "active")
    repository.apply(change("gone", set_status("n", 2, "tombstoned")))
    with pytest.raises(refusals.AdmissionNotAllowed):
        repository.record_admission(admission(revision=3))
    repository.record_use(admission(revision=1))
    assert repository.usage("n").uses == 1


def test_an_access_names_a_revision_that_is_there_and_comes_after_it(repository):
    with pytest.raises(refusals.NodeNotFound):
        repository.record_use(admission())
    repository.apply(change("k", create_active("n"), at=5))
    with pytest.raises(refusals.NodeRevisionNotFound):
        repository.record_use(admission(revision=2, at=9))
    with pytest.raises(InvalidRequest, match="occurred_at"):
        repository.record_use(admission(at=4))


def test_accesses_are_listed_in_pages(repository):
    repository.apply(change("k", create_active("n")))
    for number in range(5):
        repository.record_use(admission(f"e{number}", context_id="prompt", actor="bot"))
    first = repository.access_events("n", limit=3)
    rest = repository.access_events("n", limit=3, cursor=first.cursor)
    assert [event.id for event in (*first.items, *rest.items)] == [f"e{n}" for n in range(5)]
    assert {(event.context_id, event.actor) for event in first.items} == {("prompt", "bot")}


# Limits


def test_a_content_over_its_limit_stores_nothing(repository):
    with pytest.raises(refusals.LimitExceeded) as caught:
        repository.apply(change("k", create("n", "x" * 65_537)))
    assert (caught.value.limit, caught.value.actual) == (65_536, 65_537)
    assert repository.get("n") is None
    assert repository.apply(change("k", create("n", "x" * 65_536))).nodes[0].revision == 1


def test_a_change_set_of_too_many_operations_is_refused(repository):
    with pytest.raises(refusals.LimitExceeded):
        repository.apply(change("k", *(create(f"n{n}") for n in range(129))))
    with pytest.raises(InvalidRequest, match="empty"):
        repository.apply(change("k"))


def test_a_node_of_a_taken_id_is_refused(repository):
    repository.apply(change("k", create("n")))
    with pytest.raises(refusals.NodeAlreadyExists):
        repository.apply(change("l", create("n")))
    with pytest.raises(refusals.NodeAlreadyExists):
        repository.apply(change("l", create("m"), create("m")))


def test_a_draft_has_the_time_of_its_change_set_or_an_earlier_one(repository):
    with pytest.raises(InvalidRequest, match="created_at"):
        repository.apply(change("k", Create(draft=draft("n", created_at=moment(1)))))
    node = repository.apply(change("k", Create(draft=draft("n", created_at=moment(-9))))).nodes[0]
    assert node.created_at == node.updated_at
    assert node.created_at.timestamp() * 1000 == moment(-9)


# What outlives the process


@pytest.mark.parametrize("kept", ["sqlite", "journal"])
def test_everything_is_there_when_the_store_is_opened_again(tmp_path, kept):
    told = change("k", create_active("n"))
    with opened(tmp_path, kept) as store:
        repository = store.repository("alice")
        first = repository.apply(told)
        repository.apply(change("fix", revise("n", 1, "x")))
        repository.record_admission(admission(revision=2))
        before = (repository.snapshot(), repository.change_token(), repository.revisions("n"))
    with opened(tmp_path, kept) as store:
        repository = store.repository("alice")
        assert (repository.snapshot(), repository.change_token(), repository.revisions("n")) == before
        assert repository.apply(told) == first
        assert repository.usage("n").admissions == 1
        assert repository.change_token() == before[1]
