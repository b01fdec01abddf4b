"""Nodes, evidence and change sets of tests. Times are milliseconds; moment n is n seconds after the start."""

from __future__ import annotations

from itertools import count
from typing import Any

from backends import chosen, open_at
from perdure import ManualClock, Store
from perdure.model.node import Evidence, NodeDraft, Relation
from perdure.model.node_change import (
    Activate,
    AddRelation,
    ChangeSet,
    Corroborate,
    Create,
    RemoveRelation,
    Revise,
    SetStatus,
)

START = 1_760_000_000_000
BACKENDS = chosen("memory", "sqlite", "journal")
_fresh = count()


def moment(seconds: float) -> int:
    return START + int(seconds * 1000)


def opened(path: Any, backend: str, clock: Any = None, **options: Any) -> Store:
    """Open a store of a backend; one in memory is new each time."""
    how = {"clock": clock or ManualClock(START), "durability": "normal", **options}
    return open_at(path and path / backend, backend, **how)


def evidence(name: Any = None, kind: str = "manual", at: float = 0, **more: Any) -> Evidence:
    """Return evidence; without a name one that no other has."""
    name = f"fresh-{next(_fresh)}" if name is None else name
    return Evidence(f"file:{name}", f"digest-{name}", kind, moment(at), **more)


def draft(id_: str, content: str = "", **more: Any) -> NodeDraft:
    told = {"evidence": [evidence(f"{id_}-first", "user_statement")], **more}
    return NodeDraft(id_, told.pop("kind", "semantic"), content or f"the content of {id_}", **told)


def create(id_: str, content: str = "", **more: Any) -> Create:
    return Create(draft=draft(id_, content, **more))


def create_active(id_: str, content: str = "", **more: Any) -> Create:
    told = {"evidence": [evidence(f"{id_}-first")], "status": "active", **more}
    return Create(draft=draft(id_, content, **told))


def activate(id_: str, revision: int, *proof: Evidence) -> Activate:
    return Activate(node_id=id_, expected_revision=revision, evidence=proof or [evidence()])


def corroborate(id_: str, revision: int, *proof: Evidence) -> Corroborate:
    return Corroborate(node_id=id_, expected_revision=revision, evidence=proof or [evidence()])


def revise(id_: str, revision: int, content: str, mode: str = "correction", **more: Any) -> Revise:
    told = {"evidence": [evidence()], **more}
    return Revise(node_id=id_, expected_revision=revision, content=content, mode=mode, **told)


def set_status(id_: str, revision: int, status: str, *proof: Evidence) -> SetStatus:
    return SetStatus(node_id=id_, expected_revision=revision, status=status, evidence=proof or [evidence()])


def add_edge(id_: str, revision: int, kind: str, target: str) -> AddRelation:
    return AddRelation(
        node_id=id_, expected_revision=revision, relation=Relation(kind, target), evidence=[evidence()]
    )


def remove_edge(id_: str, revision: int, kind: str, target: str) -> RemoveRelation:
    return RemoveRelation(
        node_id=id_, expected_revision=revision, relation=Relation(kind, target), evidence=[evidence()]
    )


def supersession(old: str, revision: int, new: Create) -> tuple[Any, ...]:
    """Return the operations by which a new active node, with a relation to it, supersedes an old one."""
    return (
        new,
        add_edge(old, revision, "superseded_by", new.draft.id),
        set_status(old, revision + 1, "superseded"),
    )


def successor(id_: str, old: str, content: str = "") -> Create:
    """Return the making of an active node that supersedes another one."""
    return create_active(id_, content, relations=[Relation("supersedes", old)])


def change(key: str, *operations: Any, at: float = 0) -> ChangeSet:
    return ChangeSet(key, moment(at), operations)
