"""A query of nodes gives what a look at every node gives, however they came to look as they do."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from governed import activate, change, create, opened, revise, set_status
from perdure.model.node import NodeHit, NodeStatus
from perdure.model.node_change import Relabel

IDS = ["a", "b", "c", "d"]
KINDS = ["semantic", "episodic", "procedural"]
STATUSES = [status.value for status in NodeStatus]
labels = st.dictionaries(st.sampled_from(["team", "tier"]), st.sampled_from(["1", "2", "3"]))
subjects = st.none() | st.sampled_from(["x", "y"])
steps = st.one_of(
    st.tuples(st.just("create"), st.sampled_from(IDS), st.sampled_from(KINDS), labels, subjects),
    st.tuples(st.just("relabel"), st.sampled_from(IDS), labels, subjects),
    st.tuples(st.sampled_from(["activate", "revise", "tombstone", "forget"]), st.sampled_from(IDS)),
    st.tuples(st.just("reopen")),
)
queries = st.fixed_dictionaries(
    {
        "statuses": st.lists(st.sampled_from(STATUSES), min_size=1, unique=True),
        "kinds": st.lists(st.sampled_from(KINDS), unique=True),
        "subject": subjects,
        "labels": st.dictionaries(
            st.sampled_from(["team", "tier"]),
            st.none() | st.lists(st.sampled_from(["1", "2", "3"]), min_size=1, unique=True),
        ),
    }
)


def carry_out(repository, place, step):
    """Do what a step says where the node is such that it can be done."""
    name, id_, *rest = step
    node = repository.get(id_)
    if name == "forget":
        repository.forget([id_])
    elif name == "create" and node is None:
        kind, told, subject = rest
        made = create(id_, "red words", kind=kind, labels=told, subject=subject)
        repository.apply(change(f"k{place}", made))
    elif node is None or node.status is NodeStatus.TOMBSTONED:
        return
    elif name == "relabel":
        told, subject = rest
        made = Relabel(node_id=id_, expected_revision=node.revision, labels=told, subject=subject)
        repository.apply(change(f"k{place}", made))
    elif name == "activate" and node.status is NodeStatus.CANDIDATE:
        repository.apply(change(f"k{place}", activate(id_, node.revision)))
    elif name == "revise":
        repository.apply(change(f"k{place}", revise(id_, node.revision, f"red words {place}")))
    elif name == "tombstone" and node.status is NodeStatus.ACTIVE:
        repository.apply(change(f"k{place}", set_status(id_, node.revision, "tombstoned")))


def passes(hit: NodeHit, query) -> bool:
    node = hit.node
    return (
        node.status in query["statuses"]
        and (not query["kinds"] or node.kind in query["kinds"])
        and query["subject"] in (None, node.subject)
        and all(
            node.labels.get(key) in values if values else key not in node.labels
            for key, values in query["labels"].items()
        )
    )


@settings(max_examples=60)
@given(st.lists(steps, max_size=14), st.lists(queries, min_size=1, max_size=4))
def test_a_query_finds_the_nodes_that_a_look_at_all_of_them_finds(tmp_path_factory, done, asked):
    place = tmp_path_factory.mktemp("nodes")
    store = opened(place, "sqlite")
    for number, step in enumerate(done):
        if step == ("reopen",):
            store.close()
            store = opened(place, "sqlite")
        else:
            carry_out(store.repository("ann"), number, step)
    with store:
        repository = store.repository("ann")
        for text in (None, "red"):
            every = repository.query(text, statuses=STATUSES, limit=100).items
            for query in asked:
                found = repository.query(text, **query, limit=100).items
                assert found == tuple(hit for hit in every if passes(hit, query))
