"""Processes that propose, activate, revise and forget in one repository: no revision is lost or given out twice."""

from __future__ import annotations

import json
from contextlib import ExitStack

import pytest

from governed import change, create_active
from perdure import Store
from processes.running import Child

pytestmark = pytest.mark.slow  # each process takes most of a second to start

PROCESSES, OWN, SHARED = 4, 6, 8

WRITER = """
import json, sys
from governed import activate, change, create, evidence, revise
from perdure import Store
from perdure.repository_errors import RevisionConflict
name, own, shared = sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
proof = lambda n: evidence(f"{name} {n}", "verification")
with Store.open(sys.argv[1]) as store:
    repository = store.repository("alice")
    print("ready", flush=True)
    sys.stdin.readline()
    for n in range(own):
        id_ = f"{name} {n}"
        repository.apply(change(f"propose {id_}", create(id_, f"what {id_} says")))
        told = repository.apply(change(f"admit {id_}", activate(id_, 1, proof(f"admit {n}"))))
        assert (told.nodes[0].revision, told.nodes[0].status.value) == (2, "active")
        if n % 2:
            assert repository.forget([id_]).forgotten == (id_,)
    made = []
    while len(made) < shared:
        seen = repository.get("shared").revision
        content = f"revision {seen + 1} of {name}"
        step = revise("shared", seen, content, evidence=[proof(f"shared {seen}")])
        try:
            told = repository.apply(change(f"{name} on {seen}", step))
        except RevisionConflict as conflict:
            assert (conflict.expected, conflict.actual > seen) == (seen, True)
            continue
        made.append([told.nodes[0].revision, content])
    print(json.dumps(made), flush=True)
    sys.stdin.readline()
    nodes = repository.query(limit=100, statuses=["active"]).items
    recalled = store.memory("alice").recall("says revision", k=100)
    print(json.dumps([sorted(hit.node.id for hit in nodes), sorted(hit.text for hit in recalled)]), flush=True)
    print(json.dumps([repository.change_token().sequence, repository.change_token().head_digest]), flush=True)
"""


def test_four_processes_lose_and_double_no_revision_and_see_all_that_the_others_did(tmp_path):
    with Store.open(tmp_path / "s") as store:
        store.repository("alice").apply(change("shared", create_active("shared", "revision 1")))
    names = [f"writer-{n}" for n in range(PROCESSES)]
    with ExitStack() as stack:
        writers = [Child(WRITER, tmp_path / "s", name, OWN, SHARED) for name in names]
        children = [stack.enter_context(child) for child in writers]
        assert [child.hear() for child in children] == ["ready"] * PROCESSES
        for child in children:
            child.tell("go")
        made = [json.loads(child.hear()) for child in children]
        for child in children:
            child.tell("look")
        seen = [(child.hear(), child.hear()) for child in children]
        for child in children:
            child.finish()
    revisions = sorted(one for mine in made for one in map(tuple, mine))
    assert [revision for revision, _ in revisions] == list(range(2, 2 + PROCESSES * SHARED))
    assert len(set(seen)) == 1
    (ids, texts), (sequence, digest) = map(json.loads, seen[0])
    left = sorted(f"{name} {n}" for name in names for n in range(0, OWN, 2))
    assert ids == sorted(["shared", *left])
    assert texts == sorted([revisions[-1][1], *(f"what {id_} says" for id_ in left)])
    steps = PROCESSES * (2 * OWN + OWN // 2 + SHARED) + 1
    assert sequence == steps
    with Store.open(tmp_path / "s") as store:
        repository = store.repository("alice")
        kept = repository.revisions("shared", limit=100).items
        assert [(node.revision, node.content) for node in kept][1:] == revisions
        assert repository.change_token().head_digest == digest
        assert store.verify().ok
