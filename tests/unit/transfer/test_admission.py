"""A file brings no node that the lifecycle rules out; and a store that holds one is told of by a verify."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from backends import fresh
from governed import (
    START,
    activate,
    add_edge,
    change,
    corroborate,
    create,
    create_active,
    set_status,
    successor,
    supersession,
)
from governed_run import SECRET, Governed
from perdure import ImportFailed, ManualClock
from perdure.log.protocol import Batch
from perdure.log.records import EndRecord, LinkRecord, NodeRecord, decode, encode
from perdure.model.namespace import Namespace
from perdure.space.names import hashed_name

EVIDENCE = {"uri": "u", "digest": "d", "kind": "manual", "occurredAt": START}


def source() -> Governed:
    """A candidate c; n active, corroborated; o superseded by s; x and y in conflict; t tombstoned."""
    space = Governed()
    apply = space.repository.apply
    apply(change("c", create("c", "quokka claims")))
    apply(change("n", create_active("n", "quokka facts")))
    apply(change("n2", corroborate("n", 1)))
    apply(change("o", create_active("o", "quokka once")))
    apply(change("s", *supersession("o", 1, successor("s", "o", "quokka now"))))
    apply(change("x", create_active("x", "quokka left"), create_active("y", "quokka right")))
    apply(
        change(
            "xy",
            add_edge("x", 1, "conflicts_with", "y"),
            add_edge("y", 1, "conflicts_with", "x"),
            set_status("x", 2, "conflicted"),
            set_status("y", 2, "conflicted"),
        )
    )
    apply(change("t", create_active("t", "quokka gone")))
    apply(change("t2", set_status("t", 1, "tombstoned")))
    return space


def lines_of(space: Governed) -> list[dict[str, Any]]:
    return [json.loads(line) for line in b"".join(space.store.export_lines()).splitlines()]


def target() -> Governed:
    return Governed(fresh(clock=ManualClock(START + 10_000), secret=SECRET))


def told(lines: list[dict[str, Any]]) -> list[bytes]:
    return [json.dumps(line).encode() + b"\n" for line in lines]


def last(lines: list[dict[str, Any]], id_: str) -> dict[str, Any]:
    return next(line for line in reversed(lines) if line.get("type") == "node" and line["id"] == id_)


def number(lines: list[dict[str, Any]], id_: str) -> int:
    return last(lines, id_)["number"]


def relation(lines: list[dict[str, Any]], kind: str, other: str) -> dict[str, Any]:
    return {"kind": kind, "node": number(lines, other)}


TAMPERED = {
    "a candidate without evidence": (
        "c", lambda lines: {"evidence": []}, "is a node without evidence",
    ),
    "one evidence twice": (
        "c", lambda lines: {"evidence": [EVIDENCE, EVIDENCE]}, "has one evidence twice",
    ),
    "active without a fact": (
        "c", lambda lines: {"status": "active"}, "is active, but seen as no fact",
    ),
    "active from a candidate by corroboration": (
        "n", lambda lines: {"status": "candidate", "fact": -1}, "makes a node that is active one that is candidate",
    ),
    "another importance than its fact": (
        "s", lambda lines: {"importance": 0.9, "fact": -1}, "is active, but seen as no fact|is governed, but no node",
    ),
    "begun as conflicted": (
        "c", lambda lines: {"status": "conflicted"}, "begins as conflicted",
    ),
    "begun as superseded": (
        "c", lambda lines: {"status": "superseded"}, "begins as superseded",
    ),
    "conflicted without a conflict": (
        "x", lambda lines: {"relations": []}, "has no relation of the kind conflicts_with|no conflicts_with at its other",
    ),
    "superseding itself": (
        "c", lambda lines: {"relations": [relation(lines, "supersedes", "c")]}, "has a relation to itself",
    ),
    "a relation without its inverse": (
        "c", lambda lines: {"relations": [relation(lines, "related_to", "n")]}, "has no related_to at its other end",
    ),
    "superseding an active node": (
        "n", lambda lines: {"relations": [relation(lines, "supersedes", "s")]}, "has no superseded_by at its other end",
    ),
    "made later than it was changed": (
        "c", lambda lines: {"createdAt": START + 5_000}, "not told as the making of a node",
    ),
    "another kind than before": (
        "n", lambda lines: {"kind": "episodic"}, "has another kind",
    ),
    "retracted, seen all the same": (
        "s",
        lambda lines: {"status": "tombstoned", "change": "created", "fact": -1},
        "begins as tombstoned",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TAMPERED)
def test_a_node_that_the_lifecycle_rules_out_is_refused_and_not_served(name):
    id_, fields, reason = TAMPERED[name]
    lines = lines_of(source())
    last(lines, id_).update(fields(lines))
    into = target()
    with pytest.raises(ImportFailed, match=reason):
        into.store.import_(told(lines))
    assert into.repository.query(statuses=("candidate", "active")).items == ()
    report = into.store.import_(told(lines), strict=False)
    assert report.problems
    assert into.store.verify().findings == ()
    stored = into.repository.get(id_)
    assert stored is None or stored.revision < last(lines, id_)["revision"]


@pytest.mark.parametrize("kind", ["link", "retraction"])
def test_a_file_without_what_ends_a_fact_does_not_bring_it_back(kind):
    lines = lines_of(source())
    kept = [line for line in lines if line.get("type") != kind]
    assert len(kept) < len(lines)
    into = target()
    into.store.import_(told(kept), strict=False)
    assert into.store.verify().findings == ()
    served = {hit.text for hit in into.memory.recall("quokka", k=100)}
    assert served <= {"quokka facts", "quokka now"}


def test_nodes_that_supersede_each_other_in_a_circle_are_told_of():
    lines = lines_of(source())
    edges = {"s": "o", "o": "s"}
    for id_, other in edges.items():
        both = [relation(lines, kind, other) for kind in ("supersedes", "superseded_by")]
        last(lines, id_)["relations"] = both
    for line in lines:
        if line.get("type") == "node" and line["id"] == "s":
            line.update(status="active")
    with pytest.raises(ImportFailed, match=r"in a circle|supersedes a node that is active"):
        target().store.import_(told(lines))


def rewritten(space: Governed, replace: Any) -> Governed:
    """A store of records of which some are others, or none."""
    into = target()
    log = into.store.log
    for space_number in space.store.log.spaces():
        head = space.store.log.head(space_number)
        records = [
            decode(entry.data) for entry in space.store.log.read(space_number, 0, head.seq) if entry.data
        ]
        first, kept = records[0], [new for record in records[1:] if (new := replace(record)) is not None]
        name = hashed_name(SECRET, Namespace(first.principal, first.scope))
        made = log.create_space(name, encode(first))
        log.append(made, log.head(made), Batch([encode(record) for record in kept]))
    return into


def changing(id_: str, revision: int, **fields: Any) -> Any:
    def replace(record):
        if isinstance(record, NodeRecord) and (record.id, record.revision) == (id_, revision):
            return msgspec.structs.replace(record, **fields)
        return record

    return replace


DAMAGED = {
    "a candidate that was made active": (changing("c", 1, status="active"), "is active, but seen as no fact"),
    "no evidence": (changing("c", 1, evidence=()), "is a node without evidence"),
    "no conflict": (changing("x", 3, relations=()), "has no relation of the kind conflicts_with"),
    "itself": (changing("c", 1, relations=(("supersedes", 0),)), "has a relation to itself"),
    "no inverse": (changing("c", 1, relations=(("related_to", 1),)), "has no related_to at its other end"),
    "no end": (lambda record: None if isinstance(record, EndRecord) else record, "is not over"),
    "no link": (lambda record: None if isinstance(record, LinkRecord) else record, "is not over"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_verify_finds_nodes_that_the_lifecycle_rules_out(name):
    replace, what = DAMAGED[name]
    found = rewritten(source(), replace).store.verify().findings
    assert any(what in finding.message for finding in found)


def test_a_store_whose_records_are_as_they_were_has_no_such_findings():
    assert rewritten(source(), lambda record: record).store.verify().findings == ()


def test_a_node_that_was_made_active_in_the_file_alone_is_seen_by_no_corroboration():
    space = rewritten(source(), changing("c", 1, status="active"))
    node = space.repository.apply(change("more", corroborate("c", 1), at=20)).nodes[0]
    assert (node.status, node.fact) == ("active", None)
    assert "quokka claims" not in {hit.text for hit in space.memory.recall("quokka", k=100)}


def test_a_candidate_of_a_file_is_decided_as_any_other():
    into = target()
    into.store.import_(told(lines_of(source())))
    into.repository.apply(change("decide", activate("c", 1), at=20))
    assert "quokka claims" in {hit.text for hit in into.memory.recall("quokka", k=100)}
