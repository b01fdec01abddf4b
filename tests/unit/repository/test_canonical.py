"""Canonical forms: equal values have equal bytes, and different ones do not."""

import msgspec
import pytest

from governed import change, create, create_active, draft, evidence, moment, revise
from perdure.base.canonical import canonical_json
from perdure.base.instants import to_datetime, to_iso
from perdure.model.node import AccessEvent, Node, NodeKind, NodeStatus, Relation, RevisionKind
from perdure.model.node_change import ChangeSet, Create, Relabel
from perdure.model.node_forms import NO_HISTORY, canonical_node, history_digest
from perdure.repository.canonical import canonical_change_set, canonical_event
from perdure.repository.checks import checked_change_set, checked_event


def form(changes):
    return canonical_change_set(checked_change_set(changes))


def node(**told):
    at = to_datetime(moment(0))
    return Node(
        **{
            "id": "n",
            "revision": 1,
            "kind": NodeKind.SEMANTIC,
            "status": NodeStatus.ACTIVE,
            "content": "x",
            "confidence": 0.5,
            "importance": 1.0,
            "evidence": (),
            "relations": (),
            "labels": {},
            "subject": None,
            "valid_from": None,
            "valid_to": None,
            "created_at": at,
            "updated_at": at,
            "revision_kind": RevisionKind.CREATED,
            **told,
        }
    )


def test_times_may_be_told_in_any_form():
    told = create("n")
    same = [ChangeSet("k", at, [told]) for at in (moment(1), to_iso(moment(1)), to_datetime(moment(1)))]
    assert len({form(one) for one in same}) == 1


def test_lists_may_be_told_in_any_form_and_keep_their_order():
    first, second = evidence("a"), evidence("b")
    assert form(change("k", create("n", evidence=[first, second]))) == form(
        change("k", create("n", evidence=iter((first, second))))
    )
    assert form(change("k", create("n", evidence=[first, second]))) != form(
        change("k", create("n", evidence=[second, first]))
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (create("n"), create("m")),
        (create("n"), create_active("n", evidence=[evidence("n-first", "user_statement")])),
        (create("n"), Create(draft=draft("n"), actor="eve")),
        (create("n"), Create(draft=draft("n"), reason="why")),
        (revise("n", 1, "x", evidence=[evidence("e")]), revise("n", 2, "x", evidence=[evidence("e")])),
        (
            revise("n", 1, "x", evidence=[evidence("e")]),
            revise("n", 1, "x", "refinement", evidence=[evidence("e")]),
        ),
        (
            Relabel(node_id="n", expected_revision=1, labels={}),
            Relabel(node_id="n", expected_revision=1, labels={}, subject=None),
        ),
    ],
)
def test_what_differs_in_anything_has_other_bytes(one, other):
    assert form(change("k", one)) != form(change("k", other))


def test_a_node_is_compact_json_with_sorted_names_and_shortest_numbers():
    told = canonical_node(
        node(
            labels={"b": "2", "a": "1"},
            evidence=(evidence("e", quote="q", start=1, end=2),),
            relations=(Relation("related_to", None),),
            valid_to=to_datetime(5),
        )
    )
    plain = msgspec.json.decode(told)
    assert canonical_json(plain) == told
    assert plain["importance"] == 1
    assert b'"importance":1,' in told
    assert plain["evidence"][0] == {
        "digest": "digest-e",
        "end": 2,
        "kind": "manual",
        "occurredAt": moment(0),
        "quote": "q",
        "start": 1,
        "uri": "file:e",
    }
    assert plain["relations"] == [{"kind": "related_to"}]
    assert plain["validTo"] == 5


def test_the_fact_that_a_node_is_seen_as_is_no_part_of_it():
    assert canonical_node(node()) == canonical_node(node(fact="perdure:node/n@1"))


def test_a_history_depends_on_every_revision_and_on_their_order():
    first, second = node(), node(revision=2, content="y")
    told = [(), (first,), (second,), (first, second), (second, first)]
    assert len({history_digest(one) for one in told}) == len(told)
    assert history_digest(()) == NO_HISTORY


def test_access_events_differ_by_everything_that_they_say():
    told = {"id": "e", "node_id": "n", "node_revision": 1, "occurred_at": moment(0)}
    others = [{"context_id": "c"}, {"actor": "a"}, {"node_revision": 2}, {"occurred_at": moment(1)}]
    forms = {canonical_event(checked_event(AccessEvent(**told), kind)) for kind in ("use", "admission")}
    forms |= {canonical_event(checked_event(AccessEvent(**{**told, **more}), "use")) for more in others}
    assert len(forms) == 6
