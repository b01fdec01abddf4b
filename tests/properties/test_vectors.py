"""Vectors side by side: whatever is told, hidden, forgotten, purged, opened again, each unit has the vector it should.

Stores in memory, in SQLite files (through two handles in turn) and in a journal live through the same calls and are
held to a plain table, to cosines that are worked out by brute force, and to states that are built from their logs anew.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from effort import examples
from perdure import ManualClock, MemoryConfig, PerdureError, Store
from perdure.documents.units import cuts_of
from properties.test_memory_rebuild import keep_snapshot

NOW = 1_700_000_000_000
SECRET = bytes(range(32))
DIMENSION = 3
IDS = ("a", "b", "c")
TEXTS = ("red kite", "blue kite", "red boat", "a cup of tea")
LONG = ("kettle " * 4_097, "teapot " * 8_193)  # two and three units
NUMBERS = (-2.0, -0.5, 0.0, 0.25, 1.0, 3.0)
QUERIES = ([1.0, 0.5, -0.25], [-1.0, 2.0, 0.125])
TINY = 1e-12  # two ways of adding three products in float64 are closer

Vector = list[float]
Call = tuple[str, dict[str, Any]]


class Small:
    """An embedder of a few numbers that differ from text to text; of "a cup of tea" it can make nothing."""

    dimension, query_task = DIMENSION, None

    def __init__(self, model: str) -> None:
        self.model = model

    def embed_documents(self, texts: Any) -> Any:
        return np.array([self.of(text) for text in texts], dtype=np.float32).reshape(-1, DIMENSION)

    def embed_query(self, text: str) -> Any:
        return self.embed_documents([text])[0]

    def of(self, text: str) -> Vector:
        if text == TEXTS[3]:
            return [0.0] * DIMENSION
        digest = zlib.crc32(f"{self.model} {text}".encode())
        return [float(digest >> shift & 255) - 127.5 for shift in (0, 8, 16)]


PLAIN = MemoryConfig(on_id_conflict="replace")
MODELS = {name: Small(name) for name in ("one", "two")}
CONFIGS = {"": PLAIN} | {
    name: MemoryConfig(on_id_conflict="replace", embedder=model) for name, model in MODELS.items()
}


@dataclass
class Text:
    """One text of the table: its units, their vectors, and the model of each ("" where told)."""

    units: list[str]
    vectors: list[Vector | None]
    models: list[str]
    hidden: bool = False


@dataclass
class Table:
    """What the space should hold, by id, in no order."""

    texts: dict[str, Text] = field(default_factory=dict)

    def put(self, id_: str, text: str, told: list[Vector] | None, by: str, *, is_fact: bool) -> None:
        bounds = (0, *cuts_of(text), len(text)) if not is_fact else (0, len(text))
        units = [text[start:end] for start, end in pairwise(bounds)]
        self.texts[id_] = Text(units, [None] * len(units), [""] * len(units))
        for place, unit in enumerate(units):
            if told is not None:
                self.texts[id_].vectors[place] = told[place]
            elif by:
                self._embed(self.texts[id_], place, unit, by)

    def _embed(self, text: Text, place: int, unit: str, by: str) -> None:
        made = MODELS[by].of(unit)
        if any(made):
            text.vectors[place], text.models[place] = made, by

    def embed_missing(self, by: str) -> None:
        for text in self.texts.values():
            for place, unit in enumerate(text.units):
                if text.vectors[place] is None:
                    self._embed(text, place, unit, by)

    def embed_anew(self, by: str) -> None:
        for text in self.texts.values():
            for place, model in enumerate(text.models):
                if model:
                    text.vectors[place], text.models[place] = None, ""
        self.embed_missing(by)

    def status(self) -> tuple[int, int, int | None, dict[str, int]]:
        """Return count, missing, dimension and models as the index should tell them."""
        live = [text for text in self.texts.values() if not text.hidden]
        there = [
            (vector, model) for text in live for vector, model in zip(text.vectors, text.models, strict=True)
        ]
        made = [model for vector, model in there if vector is not None]
        lengths = {len(v) for text in self.texts.values() for v in text.vectors if v is not None}
        assert len(lengths) <= 1
        models = {model: made.count(model) for model in sorted(set(made))}
        return len(made), len(there) - len(made), lengths.pop() if lengths else None, models

    def best(self, query: Vector) -> dict[str, tuple[float, set[int]]]:
        """Return the score of each text by its best unit, and which units have it, by brute force."""
        found = {}
        for id_, text in self.texts.items():
            if text.hidden:
                continue
            scores = {unit: score(query, v) for unit, v in enumerate(text.vectors) if v is not None}
            if scores:
                top = max(scores.values())
                found[id_] = top, {unit for unit, one in scores.items() if one > top - TINY}
        return found


def score(query: Vector, vector: Vector) -> float:
    one, other = (np.asarray(np.float32(numbers), dtype=np.float64) for numbers in (query, vector))
    return float((1 + one @ other / np.sqrt(one @ one) / np.sqrt(other @ other)) / 2)


class Side:
    """One store, opened again and purged at will; the calls go through its handles in turn."""

    def __init__(
        self, place: Path | str, backend: Literal["sqlite", "journal"] | None, handles: int = 1
    ) -> None:
        self.place, self.backend, self.turn = place, backend, 0
        self.clock = ManualClock(NOW)
        self.stores = [self._open() for _ in range(handles)]

    def _open(self) -> Store:
        how: dict[str, Any] = {} if self.backend is None else {"backend": self.backend}
        return Store.open(self.place, clock=self.clock, secret=SECRET, durability="normal", **how)

    @property
    def store(self) -> Store:
        return self.stores[self.turn % len(self.stores)]

    def reopen(self) -> None:
        if self.backend is not None:
            self.close()
            self.stores = [self._open() for _ in self.stores]

    def run(self, call: Call) -> Any:
        name, told = call[0], dict(call[1])
        self.turn += 1
        if name == "reopen":
            return self.reopen()
        if name == "purge":
            return self.store.purge().records
        config = CONFIGS[told.pop("by", "")]
        try:
            if name in ("put", "delete"):
                reply = getattr(self.store.documents(config=config), name)(**told)
                return reply.outcome if name == "put" else reply.deleted
            reply = getattr(self.store.memory(config=config), name)(**told)
        except PerdureError as error:
            return error.code
        return getattr(reply, "outcome", getattr(reply, "forgotten", getattr(reply, "embedded", reply)))

    def close(self) -> None:
        for store in self.stores:
            store.close()


def answers(store: Store, table: Table) -> list[Any]:
    """What a store shows of its vectors, scores as bits."""
    index, memory, documents = store.documents().index, store.memory(), store.documents()
    told: list[Any] = [index.vectors()]
    for id_ in IDS:
        told.append([None if (v := index.vector(id_, unit)) is None else v.tolist() for unit in range(3)])
    if table.status()[2] == DIMENSION:
        for query in QUERIES:
            for k in (2, 100):
                how: dict[str, Any] = {"embedding": query, "k": k}
                hits = memory.recall("red kite", mode="semantic", history="all", **how)
                told.append([(hit.id, hit.score.hex()) for hit in hits])
                found = documents.search("red kite", mode="semantic", **how)
                told.append([(hit.id, hit.unit, hit.score.hex()) for hit in found])
                told.append([(hit.id, hit.score.hex()) for hit in memory.recall("red kite", **how)])
    return told


def check(table: Table, told: list[Any]) -> None:
    """Hold the answers of a store to the table."""
    seen = told[0]
    assert (seen.count, seen.missing, seen.dimension, seen.models) == table.status()
    for id_, vectors in zip(IDS, told[1:], strict=False):
        text = table.texts.get(id_)
        expected = [] if text is None or text.hidden else text.vectors
        assert vectors == [*expected, *[None] * (3 - len(expected))]
    rest = told[1 + len(IDS) :]
    for place, query in enumerate(QUERIES if rest else ()):
        few_facts, few, _, facts, texts, _ = rest[6 * place : 6 * place + 6]
        assert few_facts == facts[:2]
        assert few == texts[:2]
        held_to([(id_, None, bits) for id_, bits in facts], table.best(query))
        held_to(texts, table.best(query))


def held_to(hits: list[Any], best: dict[str, tuple[float, set[int]]]) -> None:
    scores = [float.fromhex(bits) for _, _, bits in hits]
    assert scores == sorted(scores, reverse=True)
    assert {id_ for id_, _, _ in hits} == best.keys()
    for (id_, unit, _), found in zip(hits, scores, strict=True):
        assert abs(found - best[id_][0]) < TINY
        assert unit is None or unit in best[id_][1]


def follow(table: Table, call: Call, reply: Any) -> None:
    """Bring the table to where the stores should be after a call that they answered so."""
    name, told = call
    by = told.get("by", "")
    if name in ("remember", "put") and reply in ("created", "replaced"):
        vectors = told.get("embedding")
        if vectors is not None and name == "remember":
            vectors = [vectors]
        table.put(told["id"], told["text"], vectors, by, is_fact=name == "remember")
    elif name == "correct" and reply == "created":
        vectors = told.get("embedding")
        table.put(told["new_id"], told["new_text"], None if vectors is None else [vectors], by, is_fact=True)
    elif name == "forget" and isinstance(reply, tuple):
        for id_ in reply:
            if told.get("soft"):
                table.texts[id_].hidden = True
            else:
                del table.texts[id_]
    elif name == "restore" and isinstance(reply, tuple):
        for id_ in reply:
            table.texts[id_].hidden = False
    elif name == "delete" and reply is True:
        del table.texts[told["id"]]
    elif name == "embed_missing" and isinstance(reply, int):
        table.embed_missing(by)
    elif name == "reindex" and isinstance(reply, int):
        table.embed_anew(by)


vectors = st.lists(st.sampled_from(NUMBERS), min_size=DIMENSION, max_size=DIMENSION).filter(any)
odd = st.just([1.0, 2.0])  # of another length: refused while there is any of the usual one
told_vectors = st.none() | vectors | vectors | vectors | odd
ids = st.sampled_from(IDS)
models = st.sampled_from(("", "", "one", "one", "two"))


def _put(draw: Callable[[Any], Any]) -> dict[str, Any]:
    text, units = draw(st.sampled_from([*((text, 1) for text in TEXTS), (LONG[0], 2), (LONG[1], 3)]))
    told = {"id": draw(ids), "text": text, "by": draw(models)}
    if draw(st.booleans()):
        told["embedding"] = [draw(vectors) for _ in range(units)]
    return told


@st.composite
def calls(draw: Any) -> Call:
    kind = draw(st.sampled_from((
        *("remember",) * 7, *("put",) * 4, "correct", "correct", *("hide",) * 3, *("restore",) * 3, "forget",
        "delete", *("embed_missing",) * 2, "reindex", "purge", "reopen",
    )))  # fmt: skip
    if kind == "remember":
        text = draw(st.sampled_from(TEXTS))
        return kind, {"id": draw(ids), "text": text, "embedding": draw(told_vectors), "by": draw(models)}
    if kind == "put":
        return kind, _put(draw)
    if kind == "correct":
        told = {"id": draw(ids), "new_id": draw(ids), "new_text": draw(st.sampled_from(TEXTS))}
        return kind, {**told, "embedding": draw(told_vectors), "by": draw(models)}
    if kind in ("hide", "forget"):
        return "forget", {"ids": [draw(ids)], "soft": kind == "hide"}
    if kind == "restore":
        return kind, {"ids": [draw(ids), draw(ids)]}
    if kind == "delete":
        return kind, {"id": draw(ids)}
    if kind in ("embed_missing", "reindex"):
        told = {"embeddings": True} if kind == "reindex" else {}
        return kind, {**told, "by": draw(st.sampled_from(("one", "two")))}
    return kind, {}


def live_through(script: list[Call]) -> None:
    with TemporaryDirectory() as folder:
        sides = [
            Side(":memory:", None),
            Side(Path(folder) / "files", "sqlite", handles=2),
            Side(Path(folder) / "journal", "journal"),
        ]
        table = Table()
        try:
            for call in script:
                replies = [side.run(call) for side in sides]
                assert replies[0] == replies[1] == replies[2]
                follow(table, call, replies[0])
                told = answers(sides[0].store, table)
                check(table, told)
                for store in (*sides[1].stores, sides[2].store):
                    assert answers(store, table) == told
            check_rebuilt(sides, table)
        finally:
            for side in sides:
                side.close()


def check_rebuilt(sides: list[Side], table: Table) -> None:
    """Hold states that are built anew, from the records and from a snapshot, to those that grew."""
    for side in sides:
        expected = answers(side.store, table)
        rebuilt = Store.open(log=side.store.log, clock=side.clock)
        assert answers(rebuilt, table) == expected
        if side.backend is None:
            keep_snapshot(side)
            rebuilt = Store.open(log=side.store.log, clock=side.clock)
            assert answers(rebuilt, table) == expected


AXES = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
HIDDEN_AND_EMBEDDED: list[Call] = [
    ("remember", {"id": "a", "text": "red kite", "by": ""}),
    ("remember", {"id": "b", "text": "blue kite", "by": "one"}),
    ("forget", {"ids": ["a", "b"], "soft": True}),
    ("embed_missing", {"by": "one"}),
    ("reopen", {}),
    ("restore", {"ids": ["a"]}),
]
LONG_AND_REPLACED: list[Call] = [
    ("put", {"id": "a", "text": LONG[1], "embedding": AXES, "by": ""}),
    ("put", {"id": "b", "text": LONG[0], "embedding": AXES[:2], "by": ""}),
    ("forget", {"ids": ["a"], "soft": True}),
    ("put", {"id": "b", "text": LONG[1], "embedding": AXES[::-1], "by": ""}),
    ("restore", {"ids": ["a"]}),
    ("delete", {"id": "a"}),
]


scripts = st.lists(calls(), min_size=3, max_size=18)


@given(scripts)
@example(HIDDEN_AND_EMBEDDED)
@example(LONG_AND_REPLACED)
@settings(max_examples=examples(10), deadline=None)
def test_every_unit_has_its_vector_and_meaning_finds_what_brute_force_finds_on_every_backend(script):
    live_through(script)


@pytest.mark.soak
@given(scripts)
@settings(max_examples=2_000, deadline=None)
def test_thousands_of_histories_leave_every_unit_its_vector_on_every_backend(script):
    live_through(script)
