"""Vectors are forgotten as texts are: gone from every read at once, from every file, and after a purge never there."""

from __future__ import annotations

import random
import struct

import numpy as np
import pytest

from erasure.pairs import kept_bytes
from erasure.scan import found
from perdure import ManualClock, MemoryConfig, Store
from perdure.embedders import HashingEmbedder
from perdure.vectors.coding import new_coding

SECRET = bytes(range(32))
DIMENSION = 16
MODES = ({"mode": "semantic"}, {"mode": "hybrid"}, {"fusion": "rrf"}, {"mode": "hybrid", "context": True})
BACKENDS = ("sqlite", "journal")


def vector_of(rng):
    return [rng.gauss(0, 1) for _ in range(DIMENSION)]


def open_store(path, backend, clock):
    return Store.open(path, backend=backend, secret=SECRET, clock=clock)


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
        store = open_store(tmp_path / side, backend, clock)
        memory, secrets = store.memory(), []
        for number in range(24):
            clock.advance(1000)
            secret, vector = rng.random() < 0.4, vector_of(rng)
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
            store.documents().put("d", "a red boat of the secret", embedding=vector_of(random.Random(1)))
            store.documents().delete("d")
            memory.forget(ids=secrets)
        stores.append(store)
    queries = [vector_of(random.Random(n)) for n in range(4)]
    first, second = (answers(store, queries) for store in stores)
    assert first == second
    for store in stores:
        store.purge()
    assert answers(stores[0], queries) == answers(stores[1], queries)
    for store in stores:
        store.close()
    if backend == "sqlite":
        one, other = kept_bytes(tmp_path / "first"), kept_bytes(tmp_path / "second")
    else:
        one, other = (
            {f.name: f.read_bytes() for f in (tmp_path / s).iterdir() if f.suffix == ".jsonl"}
            for s in ("first", "second")
        )
        one, other = sorted(one.values()), sorted(other.values())
    assert one == other
    assert one


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("computed", [False, True])
def test_no_bytes_of_a_forgotten_vector_are_in_any_file(tmp_path, backend, computed):
    config = MemoryConfig(embedder=HashingEmbedder(dimension=DIMENSION)) if computed else MemoryConfig()
    store = open_store(tmp_path / "store", backend, ManualClock(1_700_000_000_000))
    memory = store.memory(config=config)
    rng = random.Random(7)
    secret = vector_of(rng)
    memory.remember("what is kept", id="kept", embedding=None if computed else vector_of(rng))
    memory.remember("the quokka sleeps", id="secret", embedding=None if computed else secret)
    if computed:
        secret = list(config.embedder_object.embed_documents(["the quokka sleeps"])[0])
    memory.recall("quokka", embedding=None if computed else secret)
    memory.reindex(b=0.5)  # a snapshot is written
    data = np.asarray(secret, dtype="<f4").tobytes()
    forms = {"whole": data, "run": data[16:32], "hex": data.hex().encode(), "base64 run": _base64_run(data)}
    forms["codes"] = _codes(secret)
    before = found(tmp_path / "store", forms)
    assert any({"whole", "hex", "base64 run"} & set(names) for names in before.values()), (
        "the control finds it"
    )
    memory.forget(ids=["secret"])
    assert found(tmp_path / "store", forms) == {}
    memory.remember("more", id="more")
    store.purge()
    assert found(tmp_path / "store", forms) == {}
    store.close()
    assert found(tmp_path / "store", forms) == {}


def _base64_run(data):
    import base64  # noqa: PLC0415

    return base64.b64encode(data)[8:40]


def _codes(vector):
    unit = np.asarray(vector, dtype=np.float64)
    scale = np.abs(unit).max() / 127
    return np.rint(unit / scale).astype(np.int8).tobytes()


def test_the_codes_of_the_marker_scan_are_those_that_the_index_keeps():
    assert new_coding(DIMENSION) is not None
    codes = np.frombuffer(_codes([1.0, -0.5] + [0.25] * (DIMENSION - 2)), dtype=np.int8)
    assert codes[0] == 127
    assert codes[1] in (-63, -64)


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
