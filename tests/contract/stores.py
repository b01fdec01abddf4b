"""The two stores that the shared fixtures are asked of, each with a fixed clock and secret, so that replies are exact."""

from __future__ import annotations

from datetime import UTC, datetime
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
OTHER: list[tuple[str, dict[str, object]]] = [
    ("remember", {"id": "paris", "text": "Bob lives in Paris too", "subject": "bob/city"}),
]


def open_store(
    kind: str, path: str | Path = ":memory:", *, config: MemoryConfig | None = None, backend: Any = None
) -> Store:
    """Return the store "empty" or "full", at a path or in memory, with its clock standing at NOW."""
    clock = ManualClock(NOW)
    store = Store.open(path, clock=clock, secret=SECRET, backend=backend)
    if kind == "full":
        for name, story in ((Namespace(PRINCIPAL, SCOPE), STORY), (Namespace("bob", SCOPE), OTHER)):
            teller = Caller(store, name, config)
            for op, request in story:
                teller.call(op, request)
                clock.advance(60_000)
    return store


def caller_of(store: Store, limits: SurfaceLimits = HTTP, *, config: MemoryConfig | None = None) -> Caller:
    """Return who asks the fixtures' questions of a store."""
    return Caller(store, Namespace(PRINCIPAL, SCOPE), config, limits)
