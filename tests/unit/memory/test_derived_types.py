"""Values of derived types are taken as the plain value that they stand for, or refused by name; hostile ones break
nothing."""

from __future__ import annotations

import enum
from datetime import datetime, timedelta, tzinfo

import msgspec
import pytest

from perdure import Memory, NewFact, Status, Store
from unit.memory.refusals import refused, seen

numpy = pytest.importorskip("numpy")


class Text(str):
    """A text that is not exactly a str."""

    __slots__ = ()


class Colour(enum.StrEnum):
    RED = "red"


class Number(enum.IntEnum):
    TWO = 2


TEXTS = (Text, numpy.str_)


def is_plain(value: object) -> bool:
    """Whether nothing in a value is of a derived type."""
    if isinstance(value, dict):
        return all(is_plain(part) for pair in value.items() for part in pair)
    if isinstance(value, list | tuple):
        return all(map(is_plain, value))
    if isinstance(value, msgspec.Struct):
        return is_plain(msgspec.structs.astuple(value))
    return isinstance(value, Status) or type(value) in (str, int, float, bool, type(None), datetime)


@pytest.mark.parametrize("text", TEXTS)
def test_a_fact_told_in_derived_texts_is_the_one_told_in_plain_ones(memory: Memory, text):
    def told(of):
        return {
            "text": of("some words"),
            "id": of("a"),
            "subject": of("s"),
            "entities": [of("e")],
            "tags": [of("t")],
            "kind": of("semantic"),
            "metadata": {of("k"): [of("v")]},
            "source": {of("uri"): of("u"), "quote": of("q"), "actor": of("who")},
            "valid_from": of("2024-01-01"),
            "idempotency_key": of("key"),
        }

    reply = memory.remember(**told(text))
    assert reply.outcome == "created"
    assert memory.remember(**told(str)) == reply
    fact = memory.get(text("a"))
    assert is_plain(msgspec.structs.astuple(fact))
    assert is_plain(msgspec.structs.astuple(reply))
    for other in (
        memory.recall(text("words"), subject=text("s"), entity=text("e"), tags=[text("t")])[0].fact,
        memory.recall("words", kind=text("semantic"), history=text("all"), as_of=text("2025-01-01"))[0].fact,
        memory.history(text("a"))[0],
        memory.list(filter={text("k"): [text("v")]}).items[0],
    ):
        assert msgspec.structs.astuple(other) == msgspec.structs.astuple(fact)


@pytest.mark.parametrize("text", TEXTS)
def test_a_batch_of_derived_texts_is_stored_plain(memory: Memory, text):
    facts = [
        text("one"),
        {"text": text("two"), "id": text("b")},
        NewFact(text="three", supersedes=[text("b")]),
    ]
    memory.remember_many(facts)
    assert all(is_plain(msgspec.structs.astuple(fact)) for fact in memory.list().items)
    assert [fact.text for fact in memory.list().items] == ["one", "two", "three"]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize(
    "scope",
    [
        lambda of: {"ids": [of("a")]},
        lambda of: {"ids": numpy.array(["a"])},
        lambda of: {"subject": of("s")},
        lambda of: {"entity": of("e")},
        lambda of: {"tag": of("t")},
        lambda of: {"text": of("some words")},
        lambda of: {"containing": of("some")},
        lambda of: {"kind": of("semantic")},
        lambda of: {"matching": {of("k"): of("v")}},
        lambda of: {"filter": {of("k"): of("v")}},
    ],
)
def test_each_scope_of_forget_takes_derived_texts_under_a_key_too(memory: Memory, text, scope):
    told = {"subject": "s", "entities": ["e"], "tags": ["t"], "kind": "semantic", "metadata": {"k": "v"}}
    memory.remember("some words", id="a", **told)
    gone = memory.forget(**scope(text), soft=True, idempotency_key="once")
    assert gone.forgotten == ("a",)
    assert memory.forget(**scope(str), soft=True, idempotency_key="once").forgotten == ("a",)


def test_a_text_enum_comes_back_as_its_text(memory: Memory):
    memory.remember(Colour.RED, id=Colour.RED, subject=Colour.RED, tags=[Colour.RED])
    assert is_plain(msgspec.structs.astuple(memory.get("red")))
    assert memory.list(status=Status.CURRENT).total == 1


@pytest.mark.parametrize("text", TEXTS)
def test_a_space_may_be_named_in_derived_texts(text):
    with Store.open(":memory:") as store:
        store.memory(text("me"), text("home")).remember("x", id="a")
        assert store.memory("me", "home").get("a") is not None
        assert is_plain(msgspec.structs.astuple(store.spaces()[0]))


def test_numbers_of_derived_types_are_taken_plain_or_refused_by_name(memory: Memory):
    memory.remember_many(["a fact", "two facts", "more facts"])
    assert len(memory.recall("fact", k=Number.TWO)) == 2
    assert (
        len(memory.recall("fact", k=Number.TWO, candidate_limit=Number.TWO, min_score=numpy.float64(0))) == 2
    )
    assert len(memory.list(limit=Number.TWO).items) == 2
    memory.remember("x", id="n", importance=numpy.float64(1), source={"start": Number.TWO, "end": Number.TWO})
    assert is_plain(msgspec.structs.astuple(memory.get("n")))
    for call, field in (
        (lambda: memory.recall("fact", k=numpy.int64(2)), "k"),
        (lambda: memory.recall("fact", min_score=numpy.float32(0)), "min_score"),
        (lambda: memory.list(limit=numpy.int64(2)), "limit"),
        (lambda: memory.remember("x", importance=numpy.float32(1)), "importance"),
        (lambda: memory.remember("x", valid_from=Number.TWO), "valid_from"),
        (lambda: memory.remember("x", valid_from=numpy.int64(2)), "valid_from"),
        (lambda: memory.remember("x", pinned=numpy.bool_(True)), "pinned"),
        (lambda: memory.remember("x", source={"start": numpy.int64(2)}), "source.start"),
        (lambda: memory.remember("x", metadata={"n": numpy.int64(2)}), "metadata"),
    ):
        refused(memory, call, field)


ARRAYS = (numpy.array(["current", "all"]), numpy.array([1, 2]), numpy.array("current"), numpy.array([]))


@pytest.mark.parametrize("array", ARRAYS, ids=repr)
def test_an_array_in_the_place_of_one_value_is_refused_by_name(memory: Memory, array):
    for call, field in (
        (lambda: memory.remember(array), "text"),
        (lambda: memory.remember("x", id=array), "id"),
        (lambda: memory.remember("x", subject=array), "subject"),
        (lambda: memory.remember("x", kind=array), "kind"),
        (lambda: memory.remember("x", importance=array), "importance"),
        (lambda: memory.remember("x", pinned=array), "pinned"),
        (lambda: memory.remember("x", source=array), "source"),
        (lambda: memory.remember("x", source={"uri": array}), "source.uri"),
        (lambda: memory.remember("x", metadata=array), "metadata"),
        (lambda: memory.remember("x", metadata={"k": array}), "metadata"),
        (lambda: memory.remember("x", valid_from=array), "valid_from"),
        (lambda: memory.recall(array), "query"),
        (lambda: memory.recall("x", k=array), "k"),
        (lambda: memory.recall("x", history=array), "history"),
        (lambda: memory.recall("x", kind=array), "kind"),
        (lambda: memory.recall("x", min_score=array), "min_score"),
        (lambda: memory.recall("x", filter=array), "filter"),
        (lambda: memory.list(status=array), "status"),
        (lambda: memory.list(order=array), "order"),
        (lambda: memory.forget(kind=array), "kind"),
        (lambda: memory.forget(subject=array), "subject"),
        (lambda: memory.forget(all=array), "all"),
    ):
        refused(memory, call, field)


@pytest.mark.parametrize("text", TEXTS)
def test_what_is_said_of_a_fact_may_be_said_in_derived_texts(memory: Memory, text):
    memory.remember_many([NewFact(text=f"{name} fact", id=name) for name in "abcdef"])

    def calls(of):
        yield memory.end(of("a"), at=of("2026-01-02"), reason=of("r"), idempotency_key=of("1"))
        yield memory.retract(of("b"), reason=of("r"), idempotency_key=of("2"))
        changes = {"tags": [of("x")], "kind": of("semantic"), "metadata": {of("k"): of("v")}}
        yield memory.annotate(of("c"), **changes, idempotency_key=of("3"))
        yield memory.correct(of("new d"), id=of("d"), new_id=of("n"), idempotency_key=of("4"))
        yield memory.correct(of("new e"), text=of("e fact"), idempotency_key=of("5"))
        yield memory.correct(of("new f"), containing=of("f fact"), idempotency_key=of("6"))

    told = list(calls(text))
    assert [again.id for again in calls(str)] == [first.id for first in told]
    assert all(is_plain(msgspec.structs.astuple(fact)) for fact in memory.list().items)
    page = memory.list(order=text("id"), status=text("current"), limit=1)
    rest = memory.list(order="id", status="current", limit=1, cursor=text(page.cursor))
    assert rest.items[0].id > page.items[0].id
    assert memory.changes(text(memory.changes(limit=1).cursor)).items
    assert memory.unblock(ids=[text("a")], texts=[text("x")], idempotency_key=text("7")) == 0


def test_lists_may_be_arrays(memory: Memory):
    memory.remember_many(numpy.array(["one", "two"]))
    memory.remember_many([NewFact(text="x", id="a"), NewFact(text="y", id="b")])
    assert memory.forget(ids=numpy.array(["a", "b"]), soft=True).forgotten == ("a", "b")
    assert memory.restore(numpy.array(["a", "b"])) == ("a", "b")
    assert memory.unblock(ids=numpy.array(["a", "b"]), texts=numpy.array(["x", "y"])) == 0
    for call, field in (
        (memory.remember_many, "facts"),
        (lambda one: memory.forget(ids=one), "ids"),
        (memory.restore, "ids"),
        (lambda one: memory.unblock(ids=one), "ids"),
        (lambda one: memory.unblock(texts=one), "texts"),
    ):
        refused(memory, lambda call=call: call(numpy.array("a")), field)


def test_an_array_of_no_dimension_is_no_list(memory: Memory):
    array = numpy.array("a")
    for name in ("tags", "entities", "supersedes"):
        refused(memory, lambda name=name: memory.remember("x", **{name: array}), name)
    refused(memory, lambda: memory.recall("x", tags=array), "tags")


class OwnError(Exception):
    """What only the caller's code raises."""


def broken():
    yield "one"
    raise OwnError


@pytest.mark.parametrize("field", ["tags", "entities", "supersedes"])
def test_what_a_callers_list_raises_passes_through_and_nothing_is_stored(memory: Memory, field):
    before = seen(memory)
    with pytest.raises(OwnError):
        memory.remember("x", **{field: broken()})
    with pytest.raises(OwnError):
        memory.remember_many(["fine", NewFact(text="x", **{field: broken()})])
    with pytest.raises(OwnError):
        memory.remember_many(broken())
    with pytest.raises(OwnError):
        memory.forget(ids=broken())
    assert seen(memory) == before


class Zone(tzinfo):
    """A time zone that does as told."""

    def __init__(self, answer):
        self._answer = answer

    def utcoffset(self, when):
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


@pytest.mark.parametrize(
    "answer", [ValueError("?"), ZeroDivisionError(), KeyError("?"), timedelta(days=2), "x", 5]
)
def test_a_time_whose_zone_fails_is_refused_by_name(memory: Memory, answer):
    when = datetime(2024, 1, 1, tzinfo=Zone(answer))
    for name in ("event_time", "valid_from", "valid_to"):
        refused(memory, lambda name=name: memory.remember("x", **{name: when}), name)
    for name in ("as_of", "known_at"):
        refused(memory, lambda name=name: memory.recall("x", **{name: when}), name)
    refused(memory, lambda: memory.forget(event_before=when), "event_before")
