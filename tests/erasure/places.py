"""Every place where a person's words, or what is made of them, may come to lie, and what takes them away again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np

from erasure.scan import Hits, forms_of, found, vector_forms
from perdure import ManualClock, MemoryConfig, NewFact, Store
from perdure.policies import Consolidation, ExpiredFor

MARKER = "Xqzcanaryings 鰭鱗鯨鮫"
NOW = "2026-01-01T00:00:00Z"
FILLER = 1_100  # records enough for the derived state to be kept in a cache file
REPLACE = MemoryConfig(on_id_conflict="replace")
DIMENSION = 16


def vector_of(text: str) -> list[float]:
    """Return a vector that no other text has, in none of its numbers."""
    random = Random(text)
    return [random.gauss(0, 1) for _ in range(DIMENSION)]


class Scattering:
    """Embeds without sense, so that no two texts have a number in common."""

    model, dimension, query_task = "scattering.v1", DIMENSION, None

    def embed_documents(self, texts: Sequence[str]) -> Any:
        return np.array([vector_of(text) for text in texts], dtype=np.float32)

    def embed_query(self, text: str) -> Any:
        return self.embed_documents([text])[0]


EMBEDDING = MemoryConfig(embedder=Scattering())
VECTOR = vector_of("planted")  # where a caller gives one
OTHER_VECTOR = vector_of("another")  # of what stays
MADE_OF = f"they say {MARKER} here"  # the text that an embedder gets to see


class Place(NamedTuple):
    """`plant` writes the marker; `remove` does what erases it. `kept_in_cache`: the state holds it too.

    `form`: how the names of forms begin of which one is in a file then.
    """

    plant: Callable[[Store], object]
    remove: Callable[[Store], object]
    kept_in_cache: bool = False
    form: str = ""

    def is_planted(self, hits: Hits) -> bool:
        """Whether files hold what was planted, in a form that is its own."""
        forms = {form for there in hits.values() for form in there}
        return any(form.startswith(self.form) for form in forms)


def open_store(path: Any, **options: Any) -> Store:
    """Open a store whose clock stands still; without the wait for the disk, which no scan depends on."""
    return Store.open(path, **{"clock": ManualClock(NOW), "durability": "normal", **options})


@cache
def _forms() -> dict[str, bytes]:
    made = vector_of(MADE_OF)
    given = {f"given {name}": form for name, form in vector_forms(VECTOR).items()}
    return forms_of(MARKER) | given | {f"made {name}": form for name, form in vector_forms(made).items()}


def traces(directory: Path) -> Hits:
    """Return which files under the directory hold the marker or a marked vector, and in which forms."""
    return found(directory, _forms())


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


_text = _told(text=MADE_OF)
_vector = _told(embedding=VECTOR)


def _search(store: Store) -> object:
    # From here on the vectors are in memory as well.
    return store.memory().recall("", embedding=OTHER_VECTOR)


def _embedded(store: Store) -> object:
    return store.memory(config=EMBEDDING).remember(MADE_OF, id="x")


def _embedded_later(store: Store) -> object:
    return store.memory(config=EMBEDDING).embed_missing()


def _embedded_anew(store: Store) -> object:
    return store.memory(config=EMBEDDING).reindex(embeddings=True)


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
    "vector": Place(_vector, _forget(), form="given"),
    "vector that was searched": Place(_after(_vector, _search), _forget(), form="given"),
    "vector of a fact that was hidden and restored": Place(
        _after(_vector, _search, _on("forget", ids=["x"], soft=True), _on("restore", ["x"])),
        _forget(),
        form="given",
    ),
    "vector of a hidden fact": Place(
        _after(_vector, _on("forget", ids=["x"], soft=True)), _forget(), form="given"
    ),
    "vector of a correction": Place(
        _after(_told(), _on("correct", "a right fact", id="x", new_id="y", embedding=VECTOR)),
        _forget(ids=["y"]),
        form="given",
    ),
    "vectors of a batch": Place(
        _on("remember_many", [{"text": f"{n}", "tags": ["t"], "embedding": VECTOR} for n in range(9)]),
        _forget(tag="t"),
        form="given",
    ),
    "vector of a replaced fact": Place(_after(_vector, _search), _replaced, form="given"),
    "vector told under an idempotency key": Place(
        _told(embedding=VECTOR, idempotency_key="k"), _forget(), form="given"
    ),
    "vector that an embedder made": Place(_embedded, _forget(), form="made"),
    "vector that was made later": Place(_after(_text, _embedded_later, _search), _forget(), form="made"),
    "vector that was made anew": Place(_after(_embedded, _embedded_anew), _forget(), form="made"),
    "vector of a document": Place(_after(_put("a text", embedding=VECTOR), _search), _delete, form="given"),
    "vector of a replaced document": Place(
        _put("a text", embedding=VECTOR), _put("another text"), form="given"
    ),
    "vectors of a long document": Place(
        _after(_put("so on, " * 6_000, embedding=[OTHER_VECTOR, VECTOR, VECTOR]), _search),
        _delete,
        form="given",
    ),
}
"""By name; "x" is the id of what is planted, unless the place says otherwise."""
