"""Vectors are forgotten as texts are: gone from every read at once, from every file, and after a purge never there."""

from __future__ import annotations

import gc
import pickle
import random
import shutil
import struct

import pytest

from erasure.killing import kill_at, steps_of
from erasure.pairs import SECRET, kept_bytes
from erasure.places import (
    DIMENSION,
    EMBEDDING,
    MADE_OF,
    NOW,
    OTHER_VECTOR,
    REPLACE,
    VECTOR,
    fill,
    open_store,
    traces,
    vector_of,
)
from erasure.scan import found, vector_forms
from perdure import ManualClock, MemoryConfig, NewFact, Store
from perdure.embedders import HashingEmbedder
from perdure.vectors.coding import kernel_name
from perdure.vectors.exact import ExactIndex

MODES = ({"mode": "semantic"}, {"mode": "hybrid"}, {"fusion": "rrf"}, {"mode": "hybrid", "context": True})
BACKENDS = ("sqlite", "journal")


def a_vector(rng):
    return [rng.gauss(0, 1) for _ in range(DIMENSION)]


def bits(hits):
    return [(hit.id, struct.pack("d", hit.score), hit.status) for hit in hits]


def answers(store, queries):
    memory, documents = store.memory(), store.documents()
    told = [
        bits(memory.recall("red boat", k=20, embedding=query, **mode)) for query in queries for mode in MODES
    ]
    told += [
        [(hit.id, struct.pack("d", hit.score)) for hit in documents.search("boat", embedding=query, k=20)]
        for query in queries
    ]
    told.append([fact.id for fact in memory.list(limit=100).items])
    told.append(memory.capabilities().features)
    told.append((documents.index.unit_count, documents.index.total_length))
    return told


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("seed", range(6))
def test_hybrid_and_semantic_answers_and_files_are_those_of_a_store_that_never_held_the_secret(
    tmp_path, backend, seed
):
    stores = []
    for side in ("first", "second"):
        rng, clock = random.Random(seed), ManualClock(1_700_000_000_000)
        store = Store.open(tmp_path / side, backend=backend, secret=SECRET, clock=clock)
        memory, secrets = store.memory(), []
        for number in range(24):
            clock.advance(1000)
            secret, vector = rng.random() < 0.4, a_vector(rng)
            text = f"{rng.choice(['red', 'blue'])} {rng.choice(['boat', 'kite'])} {number}"
            source = {"uri": "talk", "position": number}
            if not secret:
                memory.remember(
                    text, id=f"k{number}", embedding=vector if number % 3 else None, source=source
                )
            elif side == "first":
                memory.remember(text, id=f"s{number}", embedding=vector, source={**source, "uri": "secret"})
                secrets.append(f"s{number}")
            if number == 12 and side == "first":
                memory.recall("boat", embedding=vector)  # the vectors are in memory from here on
        if side == "first":
            store.documents().put("d", "a red boat of the secret", embedding=a_vector(random.Random(1)))
            store.documents().delete("d")
            memory.forget(ids=secrets)
        stores.append(store)
    queries = [a_vector(random.Random(n)) for n in range(4)]
    first, second = (answers(store, queries) for store in stores)
    assert first == second
    for store in stores:
        store.purge()
    assert answers(stores[0], queries) == answers(stores[1], queries)
    for store in stores:
        store.close()
    one, other = kept_bytes(tmp_path / "first"), kept_bytes(tmp_path / "second")
    assert one == other
    assert one


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_vectors_of_another_model_are_in_no_file_once_all_is_embedded_anew(tmp_path, backend):
    path = tmp_path / "store"
    with Store.open(path, backend=backend, durability="normal") as store:
        store.memory(config=EMBEDDING).remember_many([MADE_OF, "another text"])
        store.memory().remember("by its caller", embedding=OTHER_VECTOR)
        made = vector_forms(vector_of("another text"))
        assert found(path, made) != {}
        store.memory(config=MemoryConfig(embedder=HashingEmbedder(DIMENSION))).reindex(embeddings=True)
        assert found(path, made) == {}
        assert found(path, vector_forms(OTHER_VECTOR)) != {}  # what callers gave stays
        store.memory().forget(all=True)
        assert found(path, vector_forms(OTHER_VECTOR)) == {}
    assert found(path, made | vector_forms(OTHER_VECTOR)) == {}


def test_what_helps_to_open_a_store_holds_where_vectors_are_and_none_of_their_numbers(tmp_path):
    with open_store(tmp_path / "store") as store:
        fill(store)
        store.memory().remember(MADE_OF, embedding=VECTOR)
        store.memory().recall("", embedding=VECTOR)
    hits = found(tmp_path / "store", vector_forms(VECTOR) | {"text": b"note"})
    assert "vector" in {form for name, forms in hits.items() if name.startswith("gen-") for form in forms}
    assert hits["cache-1.db"] == ["text"]


OPERATIONS = {
    "forget": "memory.forget(ids=['x'])",
    "forget and purge": "memory.forget(ids=['x'], purge=True)",
    "delete": "store.documents().delete('x')",
}


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.1, 0.6, 1.0])
@pytest.mark.parametrize("expression", OPERATIONS.values(), ids=OPERATIONS)
def test_an_erasure_in_a_journal_killed_at_any_step_leaves_no_number_of_a_vector_once_it_is_whole(
    tmp_path, expression, share
):
    path = tmp_path / "store"
    with Store.open(path, backend="journal", clock=ManualClock(NOW)) as store:
        memory = store.memory()
        memory.remember(MADE_OF, id="x", embedding=VECTOR)
        memory.remember("what stays", id="y", embedding=OTHER_VECTOR)
    assert traces(path) != {}
    steps = steps_of(shutil.copytree(path, tmp_path / "whole"), expression)
    kill_at(path, expression, max(1, int(steps * share)))
    with open_store(path) as store:
        memory = store.memory()
        if memory.get("x") is None:
            assert traces(path) == {}
        memory.forget(ids=["x"])
        assert traces(path) == {}
        assert [hit.id for hit in memory.recall("", embedding=VECTOR)] == ["y"]


def held_in_memory():
    """All that the vector indexes of this process hold, as bytes."""
    gc.collect()
    return b"".join(pickle.dumps(thing) for thing in gc.get_objects() if isinstance(thing, ExactIndex))


REMOVALS = {
    "forgotten": lambda store: store.memory().forget(ids=["x"]),
    "hidden, then forgotten": lambda store: [
        store.memory().forget(ids=["x"], soft=soft) for soft in (True, False)
    ],
    "forgotten and purged": lambda store: store.memory().forget(ids=["x"], purge=True),
    "replaced": lambda store: store.memory(config=REPLACE).remember("clean", id="x"),
    "deleted": lambda store: store.documents().delete("x"),
    "erased": lambda store: store.erase(""),
}


@pytest.mark.parametrize("remove", REMOVALS.values(), ids=REMOVALS)
@pytest.mark.parametrize("others", [0, 600])
def test_the_index_in_memory_keeps_no_number_and_no_code_of_what_was_removed(remove, others):
    forms = vector_forms(VECTOR)
    forms = {name: forms[name] for name in ("vector", "numbers 0", "numbers 13")}
    if kernel_name() == "compiled":
        forms["codes"] = vector_forms(VECTOR)["codes"]
    with Store.open(":memory:") as store:
        told = [NewFact(text=f"{n}", embedding=vector_of(str(n))) for n in range(others)]
        store.memory().remember_many([NewFact(text="x", id="x", embedding=VECTOR), *told])
        store.memory().recall("", embedding=OTHER_VECTOR)
        store.memory().remember("told after the index was read", embedding=OTHER_VECTOR)
        before = held_in_memory()
        assert [name for name, form in forms.items() if form not in before] == []
        remove(store)
        store.memory().recall("", embedding=OTHER_VECTOR)
        after = held_in_memory()
        assert [name for name, form in forms.items() if form in after] == []


def test_what_one_handle_forgets_is_in_the_memory_of_none_that_has_searched_since(tmp_path):
    with open_store(tmp_path / "store") as first, open_store(tmp_path / "store") as second:
        first.memory().remember("x", id="x", embedding=VECTOR)
        first.memory().remember("y", id="y", embedding=OTHER_VECTOR)
        for store in (first, second):
            assert [hit.id for hit in store.memory().recall("", embedding=VECTOR)] == ["x", "y"]
        form = vector_forms(VECTOR)["vector"]
        assert held_in_memory().count(form) == 2
        first.memory().forget(ids=["x"])
        assert [hit.id for hit in second.memory().recall("", embedding=VECTOR)] == ["y"]
        assert form not in held_in_memory()


def test_a_forgotten_and_a_hidden_vector_are_found_by_no_search_and_a_restored_one_is():
    with Store.open(":memory:") as store:
        memory = store.memory()
        memory.remember("a", id="a", embedding=[1.0, 0.0])
        memory.remember("b", id="b", embedding=[0.0, 1.0])
        find = lambda: [hit.id for hit in memory.recall("", embedding=[1.0, 0.1])]  # noqa: E731
        assert find() == ["a", "b"]
        memory.forget(ids=["a"], soft=True)
        assert find() == ["b"]
        memory.restore(["a"])
        assert find() == ["a", "b"]
        memory.forget(ids=["a"])
        assert find() == ["b"]
        memory.forget(all=True)
        assert find() == []
        memory.remember("of another length", id="c", embedding=[1.0, 2.0, 3.0])
        assert [hit.id for hit in memory.recall("", embedding=[1.0, 0.0, 0.0])] == ["c"]
