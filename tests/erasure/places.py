"""Every place where a person's words may come to lie, and what takes them away again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from perdure import ManualClock, MemoryConfig, NewFact, Store
from perdure.policies import Consolidation, ExpiredFor

MARKER = "Xqzcanaryings 鰭鱗鯨鮫"
NOW = "2026-01-01T00:00:00Z"
FILLER = 1_100  # records enough for the derived state to be kept in a cache file
REPLACE = MemoryConfig(on_id_conflict="replace")


class Place(NamedTuple):
    """`plant` writes the marker; `remove` does what erases it. `kept_in_cache`: the state holds it too."""

    plant: Callable[[Store], object]
    remove: Callable[[Store], object]
    kept_in_cache: bool = False


def open_store(path: Any, **options: Any) -> Store:
    """Open a store whose clock stands still; without the wait for the disk, which no scan depends on."""
    return Store.open(path, **{"clock": ManualClock(NOW), "durability": "normal", **options})


def fill(store: Store) -> None:
    """Put facts without the marker into the store, enough for a cache to be worth it."""
    store.memory().remember_many([NewFact(text=f"note {n % 97} about {n}") for n in range(FILLER)])


def _told(**fields: Any) -> Callable[[Store], object]:
    return lambda store: store.memory().remember(**{"text": "a plain fact", "id": "x", **fields})


def _after(plant: Callable[[Store], object], *steps: Callable[[Store], object]) -> Callable[[Store], object]:
    def run(store: Store) -> None:
        for step in (plant, *steps):
            step(store)

    return run


def _forget(**scope: Any) -> Callable[[Store], object]:
    return lambda store: store.memory().forget(
        **{"ids": ["x"]} | scope if "ids" in scope or not scope else scope
    )


def _on(name: str, *told: Any, **fields: Any) -> Callable[[Store], object]:
    return lambda store: getattr(store.memory(), name)(*told, **fields)


def _put(text: str, **fields: Any) -> Callable[[Store], object]:
    return lambda store: store.documents().put("x", text, **fields)


def _delete(store: Store) -> object:
    return store.documents().delete("x")


def _replaced(store: Store) -> object:
    return store.memory(config=REPLACE).remember("a clean fact", id="x")


def _extracted(store: Store) -> object:
    return store.memory(config=MemoryConfig(extractor=lambda text: [MARKER])).remember("a fact", id="x")


def _apply_forgetting(store: Store) -> object:
    config = MemoryConfig(forgetting=ExpiredFor(grace_ms=0))
    return store.memory(config=config).apply_forgetting(dry_run=False)


class _Merge:
    """Puts one clean fact in the place of x."""

    def plan(self, facts: Any, now: int) -> list[Consolidation]:
        there = tuple(fact.id for fact in facts if fact.id == "x")
        return [Consolidation(text="merged", sources=there, remove_sources=True)] if there else []


def _consolidate(store: Store) -> object:
    config = MemoryConfig(consolidation=_Merge())
    return store.memory(config=config).consolidate(dry_run=False, allow_destructive=True)


_text = _told(text=f"they say {MARKER} here")

PLACES: dict[str, Place] = {
    "text": Place(_text, _forget(), kept_in_cache=True),
    "a long text": Place(_told(text=f"{MARKER} and " * 300), _forget(), kept_in_cache=True),
    "id": Place(_told(id=MARKER), _forget(ids=[MARKER])),
    "subject": Place(_told(subject=MARKER), _forget(subject=MARKER), kept_in_cache=True),
    "entity": Place(_told(entities=["Ann", MARKER]), _forget(entity=MARKER), kept_in_cache=True),
    "entity found by an extractor": Place(_extracted, _forget(), kept_in_cache=True),
    "tag": Place(_told(tags=[MARKER]), _forget(tag=MARKER), kept_in_cache=True),
    "metadata": Place(_told(metadata={"k": {"deep": [MARKER]}}), _forget()),
    "key of metadata": Place(_told(metadata={MARKER: 1}), _forget(matching={MARKER: 1})),
    "address of a source": Place(_told(source={"uri": f"file:{MARKER}"}), _forget()),
    "quote of a source": Place(_told(source={"quote": f"“{MARKER}”"}), _forget()),
    "actor of a source": Place(_told(source={"actor": MARKER}), _forget()),
    "later tags": Place(
        _after(_told(), _on("annotate", "x", tags=["t", MARKER])), _forget(), kept_in_cache=True
    ),
    "later metadata": Place(
        _after(_told(), _on("annotate", "x", metadata={"k": MARKER})), _forget(), kept_in_cache=True
    ),
    "annotations that were changed since": Place(
        _after(
            _told(),
            _on("annotate", "x", tags=[MARKER], metadata={"k": MARKER}),
            _on("annotate", "x", tags=["t"], metadata={}),
        ),
        _forget(),
    ),
    "reason of an end": Place(_after(_told(), _on("end", "x", reason=MARKER)), _forget(), kept_in_cache=True),
    "reason of a retraction": Place(
        _after(_told(), _on("retract", "x", reason=MARKER)), _forget(), kept_in_cache=True
    ),
    "reason of an end of what was corrected": Place(
        _after(_told(), _on("end", "x", reason=MARKER), _on("correct", "a right fact", id="x", new_id="y")),
        _forget(ids=["x", "y"]),
        kept_in_cache=True,
    ),
    "correction": Place(
        _after(_told(), _on("correct", f"it is {MARKER}", id="x", new_id="y")),
        _forget(ids=["y"]),
        kept_in_cache=True,
    ),
    "what was corrected": Place(
        _after(_text, _on("correct", "a right fact", id="x")), _forget(), kept_in_cache=True
    ),
    "what was superseded, and its id told": Place(
        _after(_told(id=MARKER, text=MARKER), _on("remember", "newer", supersedes=[MARKER])),
        _forget(ids=[MARKER]),
        kept_in_cache=True,
    ),
    "a chain": Place(
        _after(_text, *(_on("remember", f"{MARKER} {n}", id=f"x{n}", supersedes=["x"]) for n in range(3))),
        _forget(ids=["x"], include_chain=True),
        kept_in_cache=True,
    ),
    "one batch of many": Place(
        _on("remember_many", [{"text": f"{MARKER} {n}", "tags": ["t"]} for n in range(40)]),
        _forget(tag="t"),
        kept_in_cache=True,
    ),
    "what was hidden before": Place(
        _after(_text, _on("forget", ids=["x"], soft=True)), _forget(), kept_in_cache=True
    ),
    "what was hidden and restored": Place(
        _after(_text, _on("forget", ids=["x"], soft=True), _on("restore", ["x"])),
        _forget(),
        kept_in_cache=True,
    ),
    "what is blocked from now on": Place(_text, _forget(ids=["x"], block=True), kept_in_cache=True),
    "fact told under an idempotency key": Place(
        _told(text=MARKER, subject=MARKER, idempotency_key=MARKER), _forget(), kept_in_cache=True
    ),
    "what a policy names": Place(
        _told(text=MARKER, valid_to="2025-01-01"), _apply_forgetting, kept_in_cache=True
    ),
    "what another fact stands for": Place(_text, _consolidate, kept_in_cache=True),
    "text of a scope": Place(_text, _forget(text=f"they say {MARKER} here"), kept_in_cache=True),
    "part of a scope": Place(_text, _forget(containing=MARKER), kept_in_cache=True),
    "replaced text": Place(_text, _replaced, kept_in_cache=True),
    "replaced annotations": Place(
        _after(_told(), _on("annotate", "x", tags=[MARKER])), _replaced, kept_in_cache=True
    ),
    "document": Place(_put(f"about {MARKER}", metadata={"k": MARKER}), _delete, kept_in_cache=True),
    "long document": Place(_put(f"{MARKER} and so on, " * 6_000), _delete, kept_in_cache=True),
    "replaced document": Place(_put(f"about {MARKER}"), _put("about nothing"), kept_in_cache=True),
    "document that was a fact": Place(_text, _delete, kept_in_cache=True),
}
"""By name; "x" is the id of what is planted, unless the place says otherwise."""
