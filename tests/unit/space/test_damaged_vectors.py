"""A damaged vector is reported and never searched with; what is whole beside it is saved."""

from __future__ import annotations

import base64
import shutil

import numpy as np
import pytest

from crash.damage import change
from perdure import Corrupt, ManualClock, MemoryConfig, NewFact, Store, salvage, verify
from perdure.embedders import HashingEmbedder
from perdure.log.protocol import Batch
from perdure.log.records import VectorRecord, decode, encode

NOW = 1_700_000_000_000
DIMENSION = 16
BACKENDS = ("sqlite", "journal")
MANY = 1_100  # facts enough for the derived state to be kept in a cache


def vector_of(number):
    return np.random.default_rng(number).normal(size=DIMENSION).astype("<f4")


def open_store(path):
    return Store.open(path, clock=ManualClock(NOW), durability="normal")


@pytest.fixture(scope="module", params=BACKENDS)
def whole(request, tmp_path_factory):
    """A closed store of facts with a vector each, and a cache where the backend keeps one."""
    path = tmp_path_factory.mktemp("whole") / "store"
    with Store.open(path, backend=request.param, clock=ManualClock(NOW), durability="normal") as store:
        told = [NewFact(text=f"text {n}", id=str(n), embedding=vector_of(n)) for n in range(MANY)]
        store.memory().remember_many(told[:1_000])
        store.memory().remember_many(told[1_000:])
        store.log.scrub()
    with open_store(path) as store:
        store.purge()  # so that all records are in the database and none in the write-ahead log
        store.memory().list(limit=1)
    return path


@pytest.fixture
def path(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "store")


def place_of(path, number):
    """Return the file that holds a fact's vector, where in it the vector begins, and how long it is there."""
    plain = vector_of(number).tobytes()
    for form in (plain, base64.b64encode(plain).rstrip(b"=")[:-1]):
        for file in (*path.glob("gen-*.db"), *path.glob("journal-*.jsonl")):
            if (at := file.read_bytes().find(form)) >= 0:
                return file, at, len(form)
    raise AssertionError("the vector is in no file")


def flip(path, number, place, bit):
    file, at, size = place_of(path, number)
    data = bytearray(file.read_bytes())
    data[at + int(place * (size - 1))] ^= 1 << bit
    file.write_bytes(data)


FLIPS = [(0.0, 0), (0.4, 6), (0.7, 1), (1.0, 3)]


@pytest.mark.parametrize(("place", "bit"), FLIPS)
def test_a_flipped_bit_of_a_vector_is_found_and_no_search_gives_another_score_for_it(path, place, bit):
    flip(path, 7, place, bit)
    found = verify(path)
    assert found.findings
    with pytest.raises(Corrupt), open_store(path) as store:
        store.memory().recall("", embedding=vector_of(7))
    for file in path.glob("cache-*"):
        file.unlink()
    with pytest.raises(Corrupt), open_store(path) as store:
        store.memory().recall("text", mode="lexical")


def test_words_answer_from_what_was_kept_though_a_vector_is_damaged(path):
    if not list(path.glob("cache-*")):
        pytest.skip("a journal is read whole at each opening")
    flip(path, 7, 0.5, 2)
    with open_store(path) as store:
        assert store.memory().recall("text 7", k=1)[0].id == "7"
        with pytest.raises(Corrupt):
            store.memory().recall("text 7", embedding=vector_of(7))
        with pytest.raises(Corrupt):
            store.documents().index.vector("7")
        assert store.documents().index.vector("8").tolist() == vector_of(8).tolist()


def test_a_vector_of_zeros_is_no_vector_that_was_forgotten(path):
    if not list(path.glob("cache-*")):
        pytest.skip("a journal is read whole at each opening")
    with open_store(path) as store:
        records = store.log.read(1, 0, store.log.head(1).seq)
        (seq,) = [entry.seq for entry in records if vector_of(7).tobytes() in entry.data]
    change(
        path,
        "UPDATE rec SET data = zeroblob(length(data)), ck = zeroblob(16) WHERE seq = ?",
        seq,
        file=next(path.glob("gen-*.db")).name,
    )
    with open_store(path) as store:
        assert store.memory().recall("text 7", k=1)[0].id == "7"
        with pytest.raises(Corrupt):
            store.memory().recall("", embedding=vector_of(8))


def test_a_salvage_saves_every_fact_and_every_vector_but_the_damaged_one(path, tmp_path):
    flip(path, 7, 0.5, 2)
    saved = salvage(path, tmp_path / "saved")
    assert len(saved.lost) == 1
    with open_store(tmp_path / "saved") as store:
        index, memory = store.documents().index, store.memory()
        assert (memory.list(limit=1).total, index.vectors().count) == (MANY, MANY - 1)
        assert index.vector("7") is None
        assert index.vector("8").tolist() == vector_of(8).tolist()
        assert memory.recall("", embedding=vector_of(8), k=1)[0].id == "8"
        assert memory.recall("text 7", k=1)[0].id == "7"
        assert store.verify().ok
        embedded = store.memory(config=MemoryConfig(embedder=HashingEmbedder(DIMENSION))).embed_missing()
        assert (embedded.embedded, embedded.missing) == (1, 0)


@pytest.fixture
def log():
    """The log of a space: a fact with a vector, a fact that was forgotten, and a document of two units."""
    with Store.open(":memory:") as store:
        memory = store.memory()
        memory.remember_many([NewFact(text=n, id=n, embedding=[1.0, 2.0]) for n in ("a", "b")])
        store.documents().put("long", "kettle " * 5_000)
        memory.forget(ids=["b"])
        yield store.log


def vector(number, unit, *numbers):
    return VectorRecord(number, unit, np.array(numbers, dtype="<f4").tobytes(), "", NOW)


def test_the_last_vector_that_is_told_of_a_unit_holds_and_is_the_one_that_a_purge_keeps(log):
    log.append(1, log.head(1), Batch([encode(vector(0, 0, 3.0, 4.0)), encode(vector(0, 0, 5.0, 6.0))]))
    with Store.open(log=log) as store:
        index = store.documents().index
        assert index.vector("a").tolist() == [5.0, 6.0]
        assert (index.vectors().count, index.vectors().models) == (1, {"": 1})
        assert store.verify().ok
        store.purge()
        assert index.vector("a").tolist() == [5.0, 6.0]
        records = [decode(entry.data) for entry in log.read(1, 0, log.head(1).seq)]
        assert sum(isinstance(record, VectorRecord) for record in records) == 1


def test_every_vector_that_was_told_of_a_unit_goes_with_its_fact(log):
    log.append(1, log.head(1), Batch([encode(vector(0, 0, 3.0, 4.0)), encode(vector(2, 1, 5.0, 6.0))]))
    with Store.open(log=log) as store:
        store.memory().forget(all=True)
        records = [decode(e.data) for e in log.read(1, 0, log.head(1).seq) if e.data is not None]
        assert not any(isinstance(record, VectorRecord) for record in records)
        assert store.verify().ok


WRONG = {
    "a unit that a fact has not": vector(0, 1, 1.0, 2.0),
    "a unit that a document has not": vector(2, 2, 1.0, 2.0),
    "a unit below the first": vector(2, -1, 1.0, 2.0),
    "a fact that there is not": vector(9, 0, 1.0, 2.0),
    "another length": vector(2, 0, 1.0, 2.0, 3.0),
    "no number": vector(2, 0),
    "a number and a half": VectorRecord(2, 0, b"123456", "", NOW),
    "a fact that was forgotten": vector(1, 0, 1.0, 2.0),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_a_vector_that_no_store_would_have_written_is_a_finding(log, wrong):
    with Store.open(log=log) as store:
        assert store.verify().ok
        log.append(1, log.head(1), Batch([encode(wrong)]))
        found = store.verify()
        assert len(found.findings) == 1
        assert found.findings[0].space == 1


@pytest.mark.parametrize(
    "wrong", [wrong for name, wrong in WRONG.items() if not name.startswith("a fact")], ids=str
)
def test_a_vector_that_fits_nothing_is_corrupt_where_it_is_read(log, wrong):
    log.append(1, log.head(1), Batch([encode(wrong)]))
    with Store.open(log=log) as store, pytest.raises(Corrupt):
        store.memory().recall("", embedding=[1.0, 2.0])
