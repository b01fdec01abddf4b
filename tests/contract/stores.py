"""The two stores that the shared fixtures are asked of, each with a fixed clock and secret, so that replies are exact."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from perdure import ManualClock, MemoryConfig, Store
from perdure.contract.limits import HTTP, SurfaceLimits
from perdure.dispatch import Caller
from perdure.model.namespace import Namespace

PRINCIPAL, SCOPE = "ada", "work"
SECRET = bytes(range(32))
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)

# What the full store was told, in order, a minute apart. Each is a request of the contract.
STORY: list[tuple[str, dict[str, object]]] = [
    (
        "remember",
        {
            "id": "paris",
            "text": "Ann lives in Paris",
            "subject": "ann/city",
            "validFrom": "2020-01-01",
            "tags": ["home"],
        },
    ),
    (
        "remember",
        {
            "id": "berlin",
            "text": "Ann lives in Berlin",
            "subject": "ann/city",
            "validFrom": "2025-01-01",
            "supersedes": ["paris"],
            "entities": ["Ann", "Berlin"],
            "importance": 0.8,
        },
    ),
    (
        "remember",
        {
            "id": "tea",
            "text": "Ann drinks green tea in the morning",
            "metadata": {"team": "a", "cups": 3, "nested": {"list": [1, 2.5, None, True]}},
            "kind": "semantic",
            "source": {"uri": "chat/1", "position": 4, "actor": "Ann"},
        },
    ),
    ("remember", {"id": "cafe", "text": "今日はカフェで会議 ☕ naïve café", "tags": ["odd", "home"]}),
    ("remember", {"id": "visa", "text": "The visa of Ann runs out", "validTo": "2025-06-01"}),
    ("remember", {"id": "moves", "text": "Ann moves to Oslo", "validFrom": "2027-01-01"}),
    ("remember", {"id": "bike", "text": "Ann has a blue bike", "embedding": [1, 0, 0.5]}),
    ("correct", {"id": "bike", "newText": "Ann has a red bike", "newId": "bike-2"}),
    ("remember", {"id": "secret", "text": "Ann hides a present", "tags": ["hidden"]}),
    ("forget", {"scope": {"kind": "ids", "ids": ["secret"]}, "soft": True}),
    ("remember", {"id": "gone", "text": "Ann said something to forget"}),
    ("forget", {"scope": {"kind": "ids", "ids": ["gone"]}, "block": True}),
    ("end", {"id": "tea", "at": "2026-02-01", "reason": "coffee now"}),
    ("recordUse", {"ids": ["berlin"], "contextId": "turn-1"}),
    ("putDocument", {"id": "notes", "text": "Notes on the kettle and the tea", "metadata": {"team": "b"}}),
    ("putDocument", {"id": "notes", "text": "Notes on the kettle, the tea and the pot", "ifVersion": 1}),
]
MORNING = "2026-03-01T12:00:00Z"
_TURN = "perdure:turn/monday/1/t0"


def evidence(uri: str, kind: str = "manual", /, **more: object) -> dict[str, object]:
    return {"uri": uri, "digest": f"digest of {uri}", "kind": kind, "occurredAt": MORNING, **more}


def changes(key: str, *operations: dict[str, object]) -> tuple[str, dict[str, object]]:
    return "applyChanges", {"idempotencyKey": key, "occurredAt": MORNING, "operations": list(operations)}


def drafted(id_: str, content: str, /, **more: object) -> dict[str, object]:
    told = {"kind": "semantic", "evidence": [evidence(f"chat/{id_}", "user_statement")], **more}
    return {"operation": "create", "draft": {"id": id_, "content": content, **told}, "actor": "agent"}


def step(operation: str, id_: str, revision: int, /, **more: object) -> dict[str, object]:
    told = {"evidence": [evidence(f"review/{id_}/{revision}")], **more}
    return {"operation": operation, "nodeId": id_, "expectedRevision": revision, **told}


# What it was told after that of governed knowledge and of conversations: a node of every status, one that is gone.
STORY += [
    (
        "rememberConversation",
        {
            "sessionId": "monday",
            "version": "1",
            "turns": [
                {
                    "sourceId": "t0",
                    "role": "user",
                    "text": "The vault opens at nine",
                    "observationTime": MORNING,
                },
                {
                    "sourceId": "t1",
                    "role": "assistant",
                    "text": "Noted: nine it is",
                    "observationTime": MORNING,
                },
                {
                    "sourceId": "t2",
                    "role": "user",
                    "text": "And it closes at noon",
                    "observationTime": MORNING,
                },
                {
                    "sourceId": "t3",
                    "role": "user",
                    "text": "Strike what I say now",
                    "observationTime": MORNING,
                },
            ],
        },
    ),
    ("forgetConversation", {"sessionId": "monday", "sourceId": "t3"}),
    changes(
        "first",
        drafted("opens-ten", "The vault opens at ten", labels={"site": "north"}),
        drafted(
            "opens-nine",
            "The vault opens at nine",
            subject="vault/opening",
            evidence=[evidence(_TURN, "session_turn", quote="opens at nine", start=10)],
        ),
        drafted("clash", "The vault has one key"),
        drafted("rival", "The vault has two keys"),
        drafted(
            "waits", "The vault closes at noon", kind="procedural", validFrom="2026-01-01", confidence=0.9
        ),
        drafted("dropped", "The vault is blue"),
        drafted("gone-node", "The vault is to be forgotten"),
    ),
    changes("second", step("activate", "opens-ten", 1), step("activate", "clash", 1, reason="seen")),
    changes(
        "third",
        step("activate", "opens-nine", 1),
        step("add_relation", "opens-nine", 2, relation={"kind": "supersedes", "target": "opens-ten"}),
        step("add_relation", "opens-ten", 2, relation={"kind": "superseded_by", "target": "opens-nine"}),
        step("set_status", "opens-ten", 3, status="superseded"),
    ),
    changes(
        "fourth",
        step("set_status", "clash", 2, status="conflicted"),
        step("add_relation", "clash", 3, relation={"kind": "conflicts_with", "target": "rival"}),
        step("add_relation", "rival", 1, relation={"kind": "conflicts_with", "target": "clash"}),
        step("set_status", "dropped", 1, status="tombstoned", actor="grace", reason="wrong"),
    ),
    ("forgetNodes", {"ids": ["gone-node"]}),
    (
        "recordAdmission",
        {"id": "a1", "nodeId": "opens-nine", "nodeRevision": 3, "occurredAt": MORNING, "contextId": "p1"},
    ),
    (
        "recordNodeUse",
        {"id": "u1", "nodeId": "opens-ten", "nodeRevision": 2, "occurredAt": MORNING, "actor": "agent"},
    ),
]
OTHER: list[tuple[str, dict[str, object]]] = [
    ("remember", {"id": "paris", "text": "Bob lives in Paris too", "subject": "bob/city"}),
]


def open_store(
    kind: str, path: str | Path = ":memory:", *, config: MemoryConfig | None = None, **how: Any
) -> Store:
    """Return the store "empty" or "full", at a place or in memory, with its clock standing at NOW."""
    clock = ManualClock(NOW)
    store = Store.open(path, clock=clock, secret=SECRET, **how)
    if kind == "full":
        for name, story in ((Namespace(PRINCIPAL, SCOPE), STORY), (Namespace("bob", SCOPE), OTHER)):
            teller = Caller(store, name, config)
            for op, request in story:
                teller.call(op, request)
                clock.advance(60_000)
    return store


@cache
def shared_store(kind: str) -> Store:
    """Return a store in memory for what changes nothing: one of each kind, kept as long as the process."""
    return open_store(kind)


def caller_of(store: Store, limits: SurfaceLimits = HTTP, *, config: MemoryConfig | None = None) -> Caller:
    """Return who asks the fixtures' questions of a store."""
    return Caller(store, Namespace(PRINCIPAL, SCOPE), config, limits)
