"""Governed steps of the histories of paired stores: change sets, accesses, conversations, sessions, candidates.

What is secret has nodes, sessions and versions of its own; what is kept names none of them, so that no secret decides
about it. Both kinds lie in the same spaces, and those are there from the beginning.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from governed import moment
from perdure import PerdureError, Store
from perdure.extraction import CandidateDraft, Extraction, Quote
from perdure.model.conversation import ConversationInput, ConversationTurn
from perdure.model.node import AccessEvent, Evidence, NodeDraft, NodeStatus, Relation
from perdure.model.node_change import (
    Activate,
    AddRelation,
    ChangeSet,
    Corroborate,
    Create,
    Relabel,
    Revise,
    SetStatus,
)
from properties.memory_run import QUERY
from properties.strategies import TEXTS, Call, Chooser

WORD = "quokka"  # in every secret text and in no other
KEPT_NODES, SECRET_NODES = ("n0", "n1", "n2"), ("s0", "s1", "s2")
KEPT_TALKS, SECRET_TALKS = ("kept", "kept too"), ("secret", "secret too")
STATUSES = tuple(NodeStatus)


class Claims:
    """Proposes what each turn says, in other words."""

    def extract(self, turns: Any) -> list[CandidateDraft]:
        return [
            CandidateDraft(f"claimed: {turn.text}", (Quote(place, turn.text),), labels={"by": "claims"})
            for place, turn in enumerate(turns)
        ]


def planting() -> list[Call]:
    """Return calls by which the spaces of all that is governed come into being, with something that stays."""
    return [
        ("apply", {"change_set": ChangeSet("plant", moment(0), (_create("n0", "alpha stays", "plant"),))}),
        (
            "talk",
            {"session": KEPT_TALKS[0], "version": "v", "texts": ("alpha was said", "beta was answered")},
        ),
        ("turn", {"session": KEPT_TALKS[0], "text": "alpha goes on"}),
    ]


def a_governed_call(random: Chooser, *, is_secret: bool) -> Call:
    """Choose a call about governed knowledge, of secrets alone or of what is kept alone."""
    nodes, talks = (SECRET_NODES, SECRET_TALKS) if is_secret else (KEPT_NODES, KEPT_TALKS)
    text = f"{random.choice(TEXTS)} {WORD if is_secret else 'stays'}"
    kind = random.choice(("apply",) * 5 + ("access", "talk", "turn", "turn", "hand over", "unsay", "unmake"))
    if kind == "apply":
        return kind, {"change_set": _change_set(random, nodes, text)}
    if kind == "access":
        told = {
            "id": f"event {random.choice(range(3))} of {nodes[0]}",
            "node_id": random.choice(nodes),
            "node_revision": random.choice((1, 2, 3)),
            "occurred_at": moment(1),
            "context_id": text[:40].strip() or None,
        }
        return random.choice(("record_use", "record_admission")), {"event": AccessEvent(**told)}
    if kind == "unmake":
        return "forget nodes", {"ids": [random.choice(nodes)]}
    told = {"session": random.choice(talks)}
    if kind == "talk":
        told |= {"version": random.choice(("v", "w")), "texts": (text, random.choice(TEXTS))}
    if kind == "turn":
        told |= {"text": text}
    return kind, told


def _change_set(random: Chooser, nodes: tuple[str, ...], text: str) -> ChangeSet:
    key = f"key {random.choice(range(40))} of {nodes[0]}"
    id_, other = random.choice(nodes), random.choice(nodes)
    proof = (Evidence(f"file:{text}", f"digest {key}", "verification", moment(0), text, 0),)
    named: dict[str, Any] = {"node_id": id_, "expected_revision": random.choice((1, 1, 2, 3)), "reason": text}
    kind = random.choice(
        ("create", "create", "activate", "revise", "relabel", "status", "corroborate", "pair")
    )
    operations: tuple[Any, ...]
    if kind == "create":
        operations = (_create(id_, text, key, status=random.choice(("candidate", "active"))),)
    elif kind == "activate":
        operations = (Activate(evidence=proof, **named),)
    elif kind == "revise":
        mode = random.choice(("correction", "refinement"))
        operations = (Revise(content=text, mode=mode, evidence=proof, **named),)
    elif kind == "relabel":
        operations = (
            Relabel(labels={"about": text[:40]}, subject=random.choice(("s", None)), evidence=proof, **named),
        )
    elif kind == "status":
        operations = (SetStatus(status="tombstoned", evidence=proof, **named),)
    elif kind == "corroborate":
        operations = (Corroborate(evidence=proof, **named),)
    else:  # two nodes in conflict or related, an edge written at both ends
        edge = Relation("related_to", other)
        operations = (
            AddRelation(relation=edge, evidence=proof, **named),
            AddRelation(relation=Relation("related_to", id_), evidence=proof, **{**named, "node_id": other}),
        )
    return ChangeSet(key, moment(1), operations)


def _create(id_: str, text: str, key: str, status: str = "active") -> Create:
    proof = Evidence(f"file:{key}", f"digest {text}", "manual", moment(0), text)
    told = NodeDraft(
        id_, "semantic", text, status=status, evidence=[proof], labels={"l": text[:40]}, subject="s"
    )
    return Create(draft=told, actor="bot", reason=text)


def run_governed(store: Store, call: Call) -> Any:
    """Return the reply, or the code of the error; None for a call about something else."""
    name, told = call
    try:
        return _CALLS[name](store, told)
    except PerdureError as error:
        return error.code


def _talk(store: Store, told: dict[str, Any]) -> object:
    turns = [
        ConversationTurn(source_id=f"t{n}", role=role, text=text, observation_time=moment(n))
        for n, (role, text) in enumerate(zip(("user", "assistant"), told["texts"], strict=True))
    ]
    return store.conversation().remember(
        ConversationInput(session_id=told["session"], version=told["version"], turns=tuple(turns))
    )


def _hand_over(store: Store, told: dict[str, Any]) -> object:
    extraction = Extraction(store.repository(), Claims(), actor="claims")
    return store.session(told["session"]).handover(store.conversation(), version="h", extraction=extraction)


_CALLS: dict[str, Any] = {
    "apply": lambda store, told: store.repository().apply(**told),
    "record_use": lambda store, told: store.repository().record_use(**told),
    "record_admission": lambda store, told: store.repository().record_admission(**told),
    "forget nodes": lambda store, told: store.repository().forget(**told),
    "talk": _talk,
    "turn": lambda store, told: store.session(told["session"]).add_turn("user", told["text"]),
    "hand over": _hand_over,
    "unsay": lambda store, told: store.conversation().forget(told["session"]),
}
GOVERNED = frozenset(_CALLS)


def forget_governed_secrets(store: Store) -> None:
    """Forget every secret node, candidate, conversation and session."""
    repository = store.repository()
    found = [node.id for node in _nodes(repository) if WORD in node.content]
    repository.forget([*SECRET_NODES, *found])
    for session in SECRET_TALKS:
        store.session(session).clear()
        store.conversation().forget(session)


def _nodes(repository: Any) -> list[Any]:
    nodes, cursor = [], None
    while True:
        page = repository.query(statuses=STATUSES, limit=100, cursor=cursor)
        nodes += [hit.node for hit in page.items]
        cursor = page.cursor
        if cursor is None:
            return nodes


def governed_answers(store: Store, *, purged: bool) -> Iterator[tuple[str, Any]]:
    """Yield all that reads of nodes, conversations and sessions show, by name."""
    repository, talks = store.repository(), store.conversation()
    nodes = _nodes(repository)
    yield "nodes", nodes
    for node in nodes:
        yield f"revisions of {node.id}", repository.revisions(node.id, limit=100).items
        yield f"usage of {node.id}", repository.usage(node.id)
        yield f"accesses of {node.id}", repository.access_events(node.id, limit=100).items
    yield "review queue", repository.review_queue(limit=100).items
    for query in (QUERY, "alpha", WORD, "claimed"):
        found = repository.query(query, statuses=STATUSES, limit=100).items
        yield f"nodes by {query}", [(hit.node.id, hit.score.hex()) for hit in found]
    yield "conversations", [(one.session_id, one.version, one.turns) for one in talks.list(limit=1_000).items]
    for session in (*KEPT_TALKS, *SECRET_TALKS):
        yield f"turns of {session}", store.session(session).get_turns()
        for version in ("v", "w", "h"):
            yield f"version {version} of {session}", talks.get(session, version)
    for query in ("alpha", WORD):
        yield f"said about {query}", talks.recall(query)
    if purged:  # until then a token counts what was erased
        yield "token", repository.change_token()
