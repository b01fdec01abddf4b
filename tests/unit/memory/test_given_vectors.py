"""Vectors that callers give: a part of what a fact is, of one length a memory, checked like every other field."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure import Conflict, InvalidRequest, Memory, MemoryConfig, NewFact, NotFound, Store
from perdure.contract.limits import DIMENSION_MAX
from perdure.embedders import HashingEmbedder

EAST, NORTH = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]
REPLACE = MemoryConfig(on_id_conflict="replace")


@pytest.fixture
def memory(store):
    return store.memory()


def vector(store, id_):
    found = store.documents().index.vector(id_)
    return None if found is None else found.tolist()


# What is taken


TAKEN = {
    "list": [0.5, -1, 2.0],
    "tuple": (0.5, -1.0, 2.0),
    "float64": np.array([0.5, -1.0, 2.0]),
    "float32": np.array([0.5, -1.0, 2.0], dtype=np.float32),
    "float16": np.array([0.5, -1.0, 2.0], dtype=np.float16),
    "long double": np.array([0.5, -1.0, 2.0], dtype=np.longdouble),
    "other byte order": np.array([0.5, -1.0, 2.0], dtype=">f8"),
    "every other number": np.array([0.5, 9, -1.0, 9, 2.0, 9])[::2],
    "read-only": np.frombuffer(np.array([0.5, -1.0, 2.0]).tobytes()),
    "numbers of numpy": [np.float32(0.5), np.float64(-1), np.int8(2)],
    "range of memory": memoryview(np.array([0.5, -1.0, 2.0])),
}


@pytest.mark.parametrize("told", TAKEN.values(), ids=TAKEN)
def test_a_vector_may_come_as_any_list_of_real_numbers(store, memory, told):
    assert memory.remember("text", id="a", embedding=told).created
    assert vector(store, "a") == [0.5, -1.0, 2.0]
    assert memory.remember("text", id="a", embedding=[0.5, -1.0, 2.0]).outcome == "existing"
    assert memory.recall("", embedding=told)[0].score == 1.0


@pytest.mark.parametrize("told", [np.array([3, -1, 0], dtype=kind) for kind in ("i1", "i8")] + [[3, -1, 0]])
def test_whole_numbers_are_numbers(store, memory, told):
    memory.remember("text", id="a", embedding=told)
    assert vector(store, "a") == [3.0, -1.0, 0.0]


def test_a_vector_is_kept_as_it_was_when_it_was_told(store, memory):
    told = np.array(EAST)
    memory.remember("text", id="a", embedding=told)
    told[:] = 7
    assert vector(store, "a") == EAST


def test_zero_has_no_sign_in_what_makes_a_vector_the_same(memory):
    memory.remember("text", id="a", embedding=[1.0, 0.0, -0.0])
    assert memory.remember("text", id="a", embedding=[1.0, -0.0, 0.0]).outcome == "existing"


@given(st.lists(st.floats(-(2.0**100), 2.0**100, width=32), min_size=1, max_size=20).filter(any))
def test_any_float32_numbers_come_back_as_they_are(numbers):
    with Store.open(":memory:") as store:
        store.memory().remember("text", id="a", embedding=numbers)
        assert store.documents().index.vector("a").tolist() == numbers
        assert store.memory().recall("", embedding=numbers)[0].score == pytest.approx(1.0, abs=1e-12)


def test_the_longest_vector_that_is_allowed_is_taken(store, memory):
    numbers = np.linspace(-1, 1, DIMENSION_MAX)
    memory.remember("text", id="a", embedding=numbers)
    assert len(vector(store, "a")) == DIMENSION_MAX
    assert memory.recall("", embedding=numbers)[0].id == "a"


# What is refused


class Strange:
    def __array__(self, *_, **__):
        raise ValueError("no array")


REFUSED = {
    "nothing in it": [],
    "one too many": [0.5] * (DIMENSION_MAX + 1),
    "all zero": [0.0, 0.0],
    "all too small for float32": [1e-60, -1e-60],
    "not a number": [1.0, float("nan")],
    "infinite": [1.0, float("inf")],
    "too large for float32": [1.0, 1e39],
    "a whole number too large": [1, 10**400],
    "truth": [True, False],
    "truth among numbers": [1.0, True, 0.0],
    "an array of truth": np.array([True, False]),
    "texts": ["1.0", "2.0"],
    "a text among numbers": [1.0, "2.0"],
    "a text": "1.0, 2.0",
    "bytes": b"\x00\x00\x80\x3f",
    "an object": {0: 1.0},
    "a set": {1.0, 2.0},
    "a generator": (n for n in (1.0, 2.0)),
    "a number": 1.0,
    "an array without dimensions": np.array(1.0),
    "lists in a list": [[1.0, 2.0]],
    "lists of unlike lengths": [[1.0], [2.0, 3.0]],
    "a list among numbers": [1.0, [2.0]],
    "a table": np.eye(2),
    "nothing among numbers": [1.0, None],
    "complex numbers": [1j, 1.0],
    "decimals": [Decimal(1), Decimal(2)],
    "fractions": [Fraction(1, 2)],
    "moments": np.array(["2024-01-01"], dtype="datetime64[D]"),
    "objects in an array": np.array([1.0, 2.0], dtype=object),
    "a structure": np.zeros(2, dtype=[("a", "f4")]),
    "what is no array": Strange(),
}


@pytest.mark.parametrize("wrong", REFUSED.values(), ids=REFUSED)
def test_what_is_no_vector_is_refused_by_name_wherever_it_is_told_and_leaves_nothing(memory, wrong):
    calls = [
        lambda: memory.remember("text", embedding=wrong),
        lambda: memory.recall("text", embedding=wrong),
        lambda: memory.explain("text", "kept", embedding=wrong),
        lambda: memory.correct("new text", id="kept", embedding=wrong),
    ]
    memory.remember("kept", id="kept")
    for call in calls:
        with pytest.raises(InvalidRequest) as refused:
            call()
        assert refused.value.field == "embedding"
        assert refused.value.message.startswith("embedding ")
        assert len(refused.value.message) < 200
    assert [fact.id for fact in memory.list().items] == ["kept"]


@pytest.mark.parametrize(
    "wrong", [[float("nan"), 1.0, 1.0], [0.0] * 3, [True] * 3, "abc", [1.0, 2.0], np.eye(3)]
)
def test_a_batch_with_one_bad_vector_stores_nothing_and_names_its_place(memory, wrong):
    told = [NewFact(text=f"text {n}", embedding=EAST) for n in range(3)]
    with pytest.raises(InvalidRequest) as refused:
        memory.remember_many([*told[:2], NewFact(text="bad", embedding=wrong), told[2]])
    assert refused.value.message.startswith("facts[2].embedding ")
    assert (refused.value.details["index"], refused.value.field) == (2, "facts[2].embedding")
    assert memory.list().total == 0


def test_the_first_vector_of_a_batch_decides_the_length_only_if_all_of_it_is_stored(memory):
    with pytest.raises(InvalidRequest):
        memory.remember_many([NewFact(text="a", embedding=EAST), NewFact(text="b", embedding=[1.0])])
    assert memory.remember("of one number", embedding=[1.0]).created


# One length a memory


def test_another_length_is_refused_with_both_lengths_until_the_last_vector_is_gone(store, memory):
    memory.remember("text", id="a", embedding=EAST)
    for call in (
        lambda: memory.remember("other", embedding=[1.0, 2.0]),
        lambda: memory.recall("other", embedding=[1.0, 2.0]),
        lambda: store.documents().put("d", "other", embedding=[1.0, 2.0]),
        lambda: store.documents().search("other", embedding=[1.0, 2.0]),
    ):
        with pytest.raises(InvalidRequest, match=r"embedding has 2 dimensions.* 3") as refused:
            call()
        assert refused.value.field == "embedding"
    memory.forget(ids=["a"], soft=True)
    with pytest.raises(InvalidRequest):
        memory.remember("other", embedding=[1.0, 2.0])
    memory.forget(ids=["a"])
    assert memory.remember("other", id="b", embedding=[1.0, 2.0]).created
    assert [hit.id for hit in memory.recall("", embedding=[1.0, 2.0])] == ["b"]


def test_the_length_is_of_one_memory_and_not_of_the_store(store, memory):
    memory.remember("text", embedding=EAST)
    assert store.memory("ann").remember("text", embedding=[1.0]).created


def test_a_length_that_the_configuration_names_holds_from_the_first_vector_on(store):
    memory = store.memory(config=MemoryConfig(embedding_dimension=2))
    for call in (lambda: memory.remember("text", embedding=EAST), lambda: memory.recall("", embedding=EAST)):
        with pytest.raises(InvalidRequest, match=r"3 dimensions.*2"):
            call()
    assert memory.remember("text", embedding=[1.0, 2.0]).created


def test_a_memory_without_vectors_takes_a_question_of_any_length_and_finds_by_words(memory):
    memory.remember("red kite", id="a")
    assert memory.recall("", embedding=EAST) == []
    assert [hit.id for hit in memory.recall("kite", embedding=[1.0] * 7)] == ["a"]


# What makes a fact the one it is


@pytest.mark.parametrize("id_", ["a", None])
def test_the_same_text_with_another_vector_is_another_payload_under_the_same_id(store, memory, id_):
    first = memory.remember("text", id=id_, embedding=EAST)
    assert memory.remember("text", id=id_, embedding=EAST).outcome == "existing"
    for other in (NORTH, None):
        with pytest.raises(Conflict) as refused:
            memory.remember("text", id=id_, embedding=other)
        assert refused.value.kind == "id"
    assert vector(store, first.id) == EAST
    replaced = store.memory(config=REPLACE).remember("text", id=id_, embedding=NORTH)
    assert (replaced.outcome, replaced.id) == ("replaced", first.id)
    assert vector(store, first.id) == NORTH
    assert store.memory(config=REPLACE).remember("text", id=id_).outcome == "replaced"
    assert vector(store, first.id) is None


def test_a_vector_for_a_fact_that_was_told_without_one_is_another_payload(store, memory):
    memory.remember("text", id="a")
    with pytest.raises(Conflict):
        memory.remember("text", id="a", embedding=EAST)
    assert store.memory(config=REPLACE).remember("text", id="a", embedding=EAST).outcome == "replaced"


def test_what_an_embedder_made_is_no_part_of_the_payload(store, memory):
    embedded = store.memory(config=MemoryConfig(embedder=HashingEmbedder(8)))
    embedded.remember("text", id="a")
    for other in (embedded, memory, store.memory(config=MemoryConfig(embedder=HashingEmbedder(16)))):
        assert other.remember("text", id="a").outcome == "existing"
    with pytest.raises(Conflict):
        memory.remember("text", id="a", embedding=[1.0] * 8)


def test_within_a_batch_the_vector_is_a_part_of_what_is_told(memory):
    twice = [NewFact(text="text", id="a", embedding=EAST)] * 2
    assert [reply.outcome for reply in memory.remember_many(twice)] == ["created", "existing"]
    with pytest.raises(Conflict, match=r"facts\[1\]"):
        memory.remember_many([NewFact(text="t", id="b", embedding=v) for v in (EAST, NORTH)])


def test_an_idempotency_key_stands_for_the_vector_too(memory):
    told = {"text": "text", "id": "a", "idempotency_key": "key"}
    assert memory.remember(**told, embedding=EAST).outcome == "created"
    assert memory.remember(**told, embedding=np.array(EAST)).outcome == "created"
    for other in (NORTH, None, [1.0]):
        with pytest.raises(Conflict) as refused:
            memory.remember(**told, embedding=other)
        assert refused.value.kind == "idempotency"
    memory.correct("new", id="a", new_id="b", embedding=NORTH, idempotency_key="other")
    with pytest.raises(Conflict) as refused:
        memory.correct("new", id="a", new_id="b", embedding=EAST, idempotency_key="other")
    assert refused.value.kind == "idempotency"


def test_a_correction_inherits_no_vector(store, memory):
    memory.remember("text", id="a", embedding=EAST)
    memory.correct("new text", id="a", new_id="b")
    assert vector(store, "b") is None
    memory.correct("newer text", id="b", new_id="c", embedding=NORTH)
    assert vector(store, "c") == NORTH
    assert [hit.id for hit in memory.recall("", embedding=EAST)] == ["c"]
    assert [hit.id for hit in memory.recall("", embedding=EAST, history="all")] == ["a", "c"]
    with pytest.raises(NotFound):
        memory.correct("text", id="nobody", embedding=EAST)


def test_a_vector_shows_in_no_repr_of_what_is_told():
    shown = repr(NewFact(text="text", embedding=[0.123456]))
    assert "0.123456" not in shown


def test_a_memory_of_its_own_takes_vectors_as_one_of_a_store_does(tmp_path):
    with Memory.open(tmp_path / "store") as memory:
        memory.remember("text", id="a", embedding=EAST)
    with Memory.open(tmp_path / "store") as memory:
        assert memory.recall("", embedding=EAST)[0].id == "a"
