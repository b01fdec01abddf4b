"""Random histories of a repository, the memory it governs and conversations beside them; and all that they show."""

from __future__ import annotations

from contextlib import suppress
from random import Random
from typing import Any

from governed import START, change, draft, evidence
from perdure import ManualClock, PerdureError, Store
from perdure.model.conversation import ConversationInput, ConversationTurn
from perdure.model.node import AccessEvent, NodeStatus, Relation
from perdure.model.node_change import (
    Activate,
    AddRelation,
    Corroborate,
    Create,
    Relabel,
    RemoveRelation,
    Resolve,
    Revise,
    SetStatus,
)
from perdure.model.node_snapshot import SnapshotRequest

SECRET = bytes(range(32))
NODES = ("a", "b", "c", "d", "e", "f")
SESSIONS = ("s 1", "s/2")
VERSIONS = ("v1", "v2")
WORDS = ("alpha", "beta", "gamma", "delta", "epsilon")
EVERYTHING = SnapshotRequest(tuple(NodeStatus))
LONG = "omega " * 400  # three chunks
OPERATIONS = (
    *("create",) * 4, "activate", "activate", "corroborate", "revise", "revise", "relabel", "relate", "unrelate",
    "supersede", "supersede", "conflict", "resolve", "tombstone", "access", "access", "tell", "tell", "remember",
    "forget node", "forget fact", "forget turn", "advance",
)  # fmt: skip


class Governed:
    """One space of a store with its repository and its conversations."""

    def __init__(self, store: Store | None = None, name: tuple[str, str] = ("alice", "work")) -> None:
        self.clock = ManualClock(START)
        self.store = store or Store.open(":memory:", clock=self.clock, secret=SECRET)
        if store is not None:
            self.clock = store.clock
        self.repository = self.store.repository(*name)
        self.memory = self.store.memory(*name)
        self.conversation = self.store.conversation(*name)
        self.told = self.proofs = 0

    def live(self, random: Random, size: int) -> Governed:
        """Take so many random steps; what is refused changes nothing."""
        for _ in range(size):
            self.step(random)
        return self

    def step(self, random: Random, kind: str | None = None) -> None:
        self.told += 1
        kind = random.choice(OPERATIONS) if kind is None else kind
        with suppress(PerdureError):
            self._do(random, kind, random.choice(NODES))

    def _do(self, random: Random, kind: str, node: str) -> None:
        there = self.repository.get(node)
        if kind == "advance":
            self.clock.advance(random.randint(1, 5_000))
        elif kind == "remember":
            self.memory.remember(_text(random), subject=random.choice((None, "topic")))
        elif kind == "tell":
            self.conversation.remember(_conversation(random))
        elif kind == "forget turn":
            chosen = {
                "version": random.choice((None, *VERSIONS)),
                "source_id": random.choice((None, "t0", "t1")),
            }
            self.conversation.forget(random.choice(SESSIONS), **chosen)
        elif kind == "forget node":
            self.repository.forget([node])
        elif kind == "forget fact":
            if there is not None and there.fact is not None:
                self.memory.forget(ids=[there.fact])
        elif kind == "access":
            self.access(random, node, there)
        else:
            operations = self._operations(random, kind, node, there)
            self.repository.apply(change(f"key {self.told}", *operations, at=self._now()))

    def _now(self) -> float:
        return (self.clock.now() - START) / 1000

    def _proof(self) -> Any:
        self.proofs += 1
        return evidence(f"proof {self.proofs}", at=0, quote="it says so", start=4)

    def access(self, random: Random, node: str, there: Any) -> None:
        if there is None:
            return
        event = AccessEvent(
            f"event {self.told}", node, there.revision, self.clock.now(), f"prompt {self.told}", "bot"
        )
        note = random.choice((self.repository.record_admission, self.repository.record_use))
        note(event)

    def _operations(self, random: Random, kind: str, node: str, there: Any) -> list[Any]:
        proof = [self._proof()]
        if kind == "create":
            return [
                Create(draft=self._draft(random, node, random.choice(("candidate", "active"))), actor="ann")
            ]
        if kind == "supersede":
            return self._supersession(random, node, there)
        revision = 1 if there is None else there.revision
        told: dict[str, Any] = {
            "node_id": node,
            "expected_revision": revision,
            "evidence": proof,
            "reason": "why",
        }
        if kind == "revise":
            mode = random.choice(("correction", "refinement"))
            return [Revise(content=_text(random), mode=mode, importance=random.random(), **told)]
        if kind == "relabel":
            return [
                Relabel(labels={"team": random.choice("xy")}, subject=random.choice((None, "topic")), **told)
            ]
        if kind in ("relate", "unrelate"):
            return self._edge(random, node, told, AddRelation if kind == "relate" else RemoveRelation)
        if kind == "conflict":
            return self._conflict(random, node, told)
        if kind == "tombstone":
            return [SetStatus(status="tombstoned", **told)]
        return [{"activate": Activate, "corroborate": Corroborate, "resolve": Resolve}[kind](**told)]

    def _draft(self, random: Random, node: str, status: str, relations: Any = ()) -> Any:
        return draft(
            node,
            _text(random),
            status=status,
            kind=random.choice(("semantic", "episodic", "procedural")),
            evidence=[evidence(f"first {self.told}")],
            labels=random.choice(({}, {"team": "x"})),
            confidence=random.choice((0.0, 0.25, 1.0)),
            relations=relations,
            valid_from=random.choice((None, START - 10_000)),
        )

    def _edge(self, random: Random, node: str, told: dict[str, Any], kind: type) -> list[Any]:
        other = self.repository.get(random.choice(NODES))
        if other is None or other.id == node:
            return []
        edge = random.choice(("related_to", "conflicts_with"))
        back = told | {"node_id": other.id, "expected_revision": other.revision}
        return [kind(relation=Relation(edge, other.id), **told), kind(relation=Relation(edge, node), **back)]

    def _conflict(self, random: Random, node: str, told: dict[str, Any]) -> list[Any]:
        others = [
            there for name in NODES if name != node and (there := self.repository.get(name)) is not None
        ]
        if not others:
            return []
        other = random.choice(others)
        back = told | {"node_id": other.id, "expected_revision": other.revision}
        later = told | {"expected_revision": told["expected_revision"] + 1, "evidence": [self._proof()]}
        return [
            AddRelation(relation=Relation("conflicts_with", other.id), **told),
            AddRelation(relation=Relation("conflicts_with", node), **back),
            SetStatus(status="conflicted", **later),
        ]

    def _supersession(self, random: Random, node: str, there: Any) -> list[Any]:
        old = random.choice(NODES)
        free = there is None and self.repository.get(old) is not None
        return self._supersession_by(random, node, old) if free else []

    def _supersession_by(self, random: Random, node: str, old: str) -> list[Any]:
        other = self.repository.get(old)
        new = self._draft(random, node, "active", [Relation("supersedes", old)])
        return [Create(draft=new), *self._superseded(other, node)]

    def _superseded(self, old: Any, by: str) -> list[Any]:
        edge, proofs = Relation("superseded_by", by), ([self._proof()], [self._proof()])
        return [
            AddRelation(node_id=old.id, expected_revision=old.revision, relation=edge, evidence=proofs[0]),
            SetStatus(
                node_id=old.id, expected_revision=old.revision + 1, status="superseded", evidence=proofs[1]
            ),
        ]

    def fill(self) -> Governed:
        """Have at least one of everything: a node of each status, a gap, a forgotten node, receipts, accesses."""
        random = Random(1)
        for kind, node, status in (
            ("create", "a", "active"), ("create", "b", "candidate"), ("create", "c", "active"),
            ("create", "d", "active"), ("create", "f", "active"),
        ):  # fmt: skip
            self.told += 1
            made = self._draft(random, node, status)
            self.repository.apply(change(f"{kind} {node}", Create(draft=made)))
        steps = (
            ("revise", "a"), ("access", "a"), ("conflict", "c"), ("tombstone", "d"), ("relabel", "f"), ("access", "f"),
        )  # fmt: skip
        for kind, node in steps:
            self.told += 1
            self.clock.advance(1_000)
            self._do(random, kind, node)
        self.told += 1
        self.repository.apply(change("supersede", *self._supersession_by(random, "e", "f"), at=self._now()))
        self.told += 1
        gone = self._draft(random, "gone", "active", [Relation("related_to", "a")])
        a = self.repository.get("a")
        edge = AddRelation(
            node_id="a",
            expected_revision=a.revision,
            relation=Relation("related_to", "gone"),
            evidence=[self._proof()],
        )
        self.repository.apply(change("edge", Create(draft=gone), edge, at=self._now()))
        self.repository.forget(["gone"])
        for version in VERSIONS:
            self.conversation.remember(_conversation(random, SESSIONS[0], version, 3))
        self.conversation.forget(SESSIONS[0], version="v1", source_id="t1")
        self.memory.remember("a plain fact", id="plain")
        return self


def shown(space: Governed, *, tokens: bool = False) -> dict[str, Any]:
    """Return all that reads show, by name; what counts steps only with `tokens`."""
    repository, memory, conversation = space.repository, space.memory, space.conversation
    snapshot = repository.snapshot(EVERYTHING)
    found: dict[str, Any] = {"snapshot": snapshot.digest}
    for node in (*NODES, "gone"):
        there = repository.get(node)
        found[f"node {node}"] = there
        if there is not None:
            found[f"revisions {node}"] = repository.revisions(node, limit=100).items
            found[f"usage {node}"] = repository.usage(node)
            found[f"events {node}"] = repository.access_events(node, limit=100).items
    found["queue"] = [node.id for node in repository.review_queue(limit=100).items]
    for query in ("alpha beta", None):
        hits = repository.query(query, statuses=tuple(NodeStatus), limit=100).items
        found[f"query {query}"] = [(hit.node.id, hit.score.hex(), hit.coverage) for hit in hits]
    words = " ".join((*WORDS, "omega", "plain"))
    for times in ({}, {"history": "all"}, {"known_at": START + 2_000, "history": "all"}):
        hits = memory.recall(words, k=100, **times)
        found[f"recall {times}"] = [(hit.id, hit.text, hit.status, hit.score.hex()) for hit in hits]
    facts = memory.list(limit=1_000).items
    found["facts"] = facts
    found["histories"] = [memory.history(fact.id) for fact in facts]
    for entry in conversation.list(limit=100).items:
        found[f"entry {entry.session_id} {entry.version}"] = entry
        found[f"conversation {entry.session_id} {entry.version}"] = conversation.get(
            entry.session_id, entry.version
        )
    context = conversation.recall(words)
    found["context"] = (context.sources, [(anchor.source, anchor.score.hex()) for anchor in context.anchors])
    if tokens:
        found["token"] = repository.change_token()
        found["changes"] = repository.changes()
    return found


def _text(random: Random) -> str:
    return " ".join(random.choice(WORDS) for _ in range(random.randint(1, 6)))


def _conversation(random: Random, session: str = "", version: str = "", size: int = 0) -> ConversationInput:
    turns = tuple(
        ConversationTurn(
            source_id=f"t{place}",
            role="assistant" if place % 2 else "user",
            text=f"{_text(random)} {LONG if random.random() < 0.2 or (size and not place) else ''}.",
            observation_time=START + 1_000 * place,
        )
        for place in range(size or random.randint(1, 4))
    )
    return ConversationInput(
        session_id=session or random.choice(SESSIONS), version=version or random.choice(VERSIONS), turns=turns
    )
