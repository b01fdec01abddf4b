"""Every limit of a fact: what just fits is stored as told, what just does not is refused by name."""

from __future__ import annotations

import enum
import math
from types import MappingProxyType

import pytest

from perdure import Memory, NewFact, Source
from unit.memory.refusals import MARKER, refused

LONE = "\ud800"


def nested(levels: int) -> dict:
    """An object of so many levels, itself the first."""
    value: dict = {}
    for _ in range(levels - 1):
        value = {"k": value}
    return value


def leafed(levels: int) -> dict:
    """As `nested`, with a number in the innermost level."""
    value: dict = {"k": 1}
    for _ in range(levels - 1):
        value = {"k": value}
    return value


def metadata_of(size: int) -> dict:
    """Metadata that takes exactly so many bytes as canonical JSON."""
    return {"k": "x" * (size - len('{"k":""}'))}


def numbered(count: int) -> list[str]:
    return [f"n{i:04}" for i in range(count)]


class Level(enum.IntEnum):
    HIGH = 3


class Wing(str, enum.Enum):  # noqa: UP042 - the older kind, whose str() is not its value
    LEFT = "left"


FITS = {
    "one word": {"text": "a"},
    "4,096 words": {"text": "ab " * 4096},
    "characters that stand for 4,096 words": {"text": "\ufdfa " * 1024},
    "65,536 bytes": {"text": "a" * 65_536},
    "65,536 bytes of longer characters": {"text": "é" * 32_768},
    "white space and controls around words": {"text": "\r\n\ta\x00b\u200b \x1f"},
    "decomposed letters": {"text": "cafe\u0301 ﬁ"},
    "an id of 1 byte": {"text": "x", "id": "i"},
    "an id of 256 bytes": {"text": "x", "id": "é" * 128},
    "an id like our prefix": {"text": "x", "id": "Perdure:a"},
    "a subject of 1 byte": {"text": "x", "subject": " "},
    "a subject of 1,024 bytes": {"text": "x", "subject": "s" * 1024},
    "256 entities": {"text": "x", "entities": tuple(numbered(256))},
    "an entity of 1,024 bytes": {"text": "x", "entities": ("é" * 512,)},
    "256 tags": {"text": "x", "tags": tuple(numbered(256))},
    "a tag of 1,024 bytes": {"text": "x", "tags": ("t" * 1024,)},
    "metadata of 65,536 bytes": {"text": "x", "metadata": metadata_of(65_536)},
    "128 levels": {"text": "x", "metadata": nested(128)},
    "128 levels with a value in the last": {"text": "x", "metadata": leafed(128)},
    "the largest integers": {"text": "x", "metadata": {"a": 2**53 - 1, "b": -(2**53) + 1}},
    "odd numbers": {"text": "x", "metadata": {"a": 1.0, "b": -0.0, "c": 1e300, "d": 5e-324, "e": True}},
    "any key but ours": {"text": "x", "metadata": {"": 1, "Perdure": 2, "perdure:": 3, "\x00": 4}},
    "our key one level down": {"text": "x", "metadata": {"a": {"perdure": 1}}},
    "importance 0": {"text": "x", "importance": 0.0},
    "importance 1": {"text": "x", "importance": 1.0},
    "each kind": {"text": "x", "kind": "procedural"},
    "an interval of a millisecond": {"text": "x", "valid_from": 5, "valid_to": 6},
    "an end alone": {"text": "x", "valid_to": -62_135_596_800_000},
    "the whole calendar": {"text": "x", "valid_from": -62_135_596_800_000, "valid_to": 253_402_300_799_999},
    "a source": {
        "text": "x",
        "source": Source(uri="u" * 65_536, quote="q", start=0, end=0, position=2**53 - 1, actor="a"),
    },
}


@pytest.mark.parametrize("told", FITS.values(), ids=FITS.keys())
def test_what_just_fits_is_stored_as_it_was_told(memory, told):
    reply = memory.remember(**told)
    assert reply.outcome == "created"
    fact = memory.get(reply.id)
    for name in told.keys() - {"valid_from", "valid_to"}:
        assert getattr(fact, name) == told[name]
        assert repr(getattr(fact, name)) == repr(told[name])  # 1.0 stays 1.0, true stays true
    assert memory.list().items == (fact,)
    assert memory.remember(**told).outcome == "existing"


TOO_MUCH = {
    "no word": ({"text": ""}, "text"),
    "only white space": ({"text": " \n\t\u200b"}, "text"),
    "4,097 words": ({"text": MARKER + " ab" * 4096}, "text"),
    "65,537 bytes": ({"text": MARKER + "a" * (65_537 - len(MARKER))}, "text"),
    "65,538 bytes of longer characters": ({"text": "é" * 32_769}, "text"),
    "a lone surrogate in the text": ({"text": MARKER + LONE}, "text"),
    "an empty id": ({"id": ""}, "id"),
    "an id of 257 bytes": ({"id": MARKER.ljust(257, "i")}, "id"),
    "an id of 258 bytes in 129 characters": ({"id": "é" * 129}, "id"),
    "our id prefix": ({"id": "perdure:" + MARKER}, "id"),
    "a newline in an id": ({"id": MARKER + "\n"}, "id"),
    "a NUL in an id": ({"id": MARKER + "\0"}, "id"),
    "a C1 control in an id": ({"id": MARKER + "\x85"}, "id"),
    "a delete in an id": ({"id": MARKER + "\x7f"}, "id"),
    "a lone surrogate in an id": ({"id": MARKER + LONE}, "id"),
    "an empty subject": ({"subject": ""}, "subject"),
    "a subject of 1,025 bytes": ({"subject": MARKER.ljust(1025, "s")}, "subject"),
    "a lone surrogate in a subject": ({"subject": MARKER + LONE}, "subject"),
    "an empty entity": ({"entities": [MARKER, ""]}, "entities"),
    "257 entities": ({"entities": [MARKER, *numbered(256)]}, "entities"),
    "an entity of 1,025 bytes": ({"entities": [MARKER.ljust(1025)]}, "entities"),
    "257 tags": ({"tags": [MARKER, *numbered(256)]}, "tags"),
    "an empty tag": ({"tags": [MARKER, ""]}, "tags"),
    "257 superseded ids": ({"supersedes": [MARKER, *numbered(256)]}, "supersedes"),
    "an unknown superseded id": ({"supersedes": [MARKER]}, "supersedes"),
    "itself superseded": ({"id": MARKER, "supersedes": [MARKER]}, "supersedes"),
    "metadata of 65,537 bytes": ({"metadata": {MARKER: "x" * (65_537 - len(MARKER) - 7)}}, "metadata"),
    "129 levels": ({"metadata": nested(129)}, "metadata"),
    "129 levels with a value in the last": ({"metadata": leafed(129)}, "metadata"),
    # Made when it is asked for: while so many objects live, every search for garbage goes through them.
    "a million levels": (lambda: {"metadata": nested(1_000_000)}, "metadata"),
    "our metadata key": ({"metadata": {MARKER: 1, "perdure": 1}}, "metadata"),
    "not a number": ({"metadata": {MARKER: math.nan}}, "metadata"),
    "infinity": ({"metadata": {MARKER: [math.inf]}}, "metadata"),
    "minus infinity": ({"metadata": {MARKER: {"a": -math.inf}}}, "metadata"),
    "an integer past 2**53 - 1": ({"metadata": {MARKER: 2**53}}, "metadata"),
    "an integer under -(2**53 - 1)": ({"metadata": {MARKER: -(2**53)}}, "metadata"),
    "an integer of 10,000 digits": ({"metadata": {MARKER: 10**10_000}}, "metadata"),
    "a lone surrogate in a value": ({"metadata": {"k": MARKER + LONE}}, "metadata"),
    "a lone surrogate in a key": ({"metadata": {MARKER + LONE: 1}}, "metadata"),
    "a key that is a number": ({"metadata": {1: MARKER}}, "metadata"),
    "bytes in metadata": ({"metadata": {MARKER: b"x"}}, "metadata"),
    "a set in metadata": ({"metadata": {MARKER: {1}}}, "metadata"),
    "an object in metadata": ({"metadata": {MARKER: object()}}, "metadata"),
    "an unknown kind": ({"kind": "epic"}, "kind"),
    "importance above 1": ({"importance": 1.0000001}, "importance"),
    "importance below 0": ({"importance": -0.1}, "importance"),
    "importance that is no number": ({"importance": math.nan}, "importance"),
    "infinite importance": ({"importance": math.inf}, "importance"),
    "an importance of 400 digits": ({"importance": 10**400}, "importance"),
    "an importance of 10,000 digits": ({"importance": 10**10_000}, "importance"),
    "an interval that ends where it begins": ({"valid_from": 5, "valid_to": 5}, "valid_to"),
    "an interval that ends before it begins": ({"valid_from": 5, "valid_to": 4}, "valid_to"),
    "an end of the same millisecond": (
        {"valid_from": "2024-01-01T00:00:00.0001Z", "valid_to": "2024-01-01T00:00:00.0009Z"},
        "valid_to",
    ),
    "before year 1": ({"valid_from": -62_135_596_800_001}, "valid_from"),
    "after year 9999": ({"valid_to": 253_402_300_800_000}, "valid_to"),
    "a time of 10,000 digits": ({"event_time": 10**10_000}, "event_time"),
    "an empty key": ({"idempotency_key": ""}, "idempotency_key"),
    "a key of 257 bytes": ({"idempotency_key": MARKER.ljust(257)}, "idempotency_key"),
    "a lone surrogate in a key of a request": ({"idempotency_key": MARKER + LONE}, "idempotency_key"),
    "a source with an unknown field": ({"source": {"uri": "u", "page": MARKER}}, "source"),
    "a source with a field that is no text": ({"source": {"uri": "u", 5: MARKER}}, "source"),
    "characters that stand for more than 4,096 words": ({"text": MARKER + "\ufdfa" * 1400}, "text"),
    "characters that stand for a word each, written as one": ({"text": MARKER + "\u3231" * 4097}, "text"),
    "a source of 65,537 bytes": ({"source": {"quote": MARKER.ljust(65_537)}}, "source.quote"),
    "a source that ends before it starts": ({"source": {"start": 2, "end": 1}}, "source.end"),
    "a negative position": ({"source": {"position": -1}}, "source.position"),
    "a position past 2**53 - 1": ({"source": {"position": 2**53}}, "source.position"),
    "a position of 10,000 digits": ({"source": {"position": 10**10_000}}, "source.position"),
    "a reasserted id": ({"id": "a", "reassert": True}, "reassert"),
}
WRONG_TYPE = {
    "text": [None, 1, True, b"x", ["x"], {"x": 1}],
    "id": [1, True, b"x", ["x"]],
    "subject": [1, b"x", ["x"]],
    "entities": ["one", b"x", 1, True, {"a": 1}, [1], [None], [b"x"]],
    "tags": ["one", b"x", 1, True, {"a": 1}, [1], [None]],
    "supersedes": ["one", b"x", 1, True, {"a": 1}, [1], [None]],
    "metadata": ["x", b"x", 1, True, ["x"], [("a", 1)]],
    "kind": [1, True, b"semantic", ["semantic"]],
    "importance": [True, "1", b"1", [1]],
    "pinned": [1, 0, "true", b""],
    "reassert": [1, "true"],
    "valid_from": [True, 1.0, 1.5, math.nan, b"2024-01-01", ["2024-01-01"], {"at": 1}],
    "valid_to": [False, 1.0, b"2024-01-01"],
    "event_time": [True, 1e12, b"2024-01-01"],
    "source": ["x", 1, ["x"], b"x"],
    "idempotency_key": [1, True, b"x", ["x"]],
}


@pytest.mark.parametrize(("told", "field"), TOO_MUCH.values(), ids=TOO_MUCH.keys())
def test_what_just_does_not_fit_is_refused_by_name_and_leaves_no_trace(memory, told, field):
    memory.remember("a fact that stays", subject="s")
    told = {"text": f"{MARKER} text", **(told() if callable(told) else told)}
    refused(memory, lambda: memory.remember(**told), field)
    key = told.pop("idempotency_key", None)
    if key is None:
        batched = refused(memory, lambda: memory.remember_many(["fine", NewFact(**told)]), field)
        assert batched.details["index"] == 1
        assert str(batched).startswith("facts[1]")


@pytest.mark.parametrize(
    ("field", "value"), [(name, value) for name, values in WRONG_TYPE.items() for value in values]
)
def test_a_value_of_another_type_is_refused_and_never_converted(memory, field, value):
    found = refused(memory, lambda: memory.remember(**{"text": MARKER, field: value}), field)
    if not isinstance(value, list | dict | str):
        assert type(value).__name__ in str(found) or str(value) in str(found)


def test_an_unknown_field_of_a_source_is_named_with_those_that_there_are(memory):
    for told in ({"page": 7}, {"uri": "u", "quoet": MARKER}, {"x" * 64: 1}):
        found = refused(memory, lambda told=told: memory.remember("x", source=told), "source")
        assert repr(sorted(told)[0]) in str(found)
        assert "uri, quote, actor, start, end, position" in str(found)
    long = refused(memory, lambda: memory.remember("x", source={"y" * 65: 1}), "source")
    assert repr("y" * 64) in str(long)


def test_two_hundred_and_fifty_six_facts_may_be_superseded_at_once(memory):
    told = numbered(256)
    memory.remember_many([NewFact(text="old", id=id_) for id_ in told])
    assert memory.remember("new", supersedes=reversed(told)).supersedes == tuple(told)


def test_a_cycle_of_superseded_facts_is_refused(memory):
    facts = [
        NewFact(text="a", id="a", supersedes=["c"]),
        NewFact(text="b", id="b", supersedes=["a"]),
        NewFact(text="c", id="c", supersedes=["b"]),
    ]
    refused(memory, lambda: memory.remember_many(facts), "supersedes")
    assert len(memory.remember_many([*facts[:2], NewFact(text="c", id="c")])) == 3


def test_a_batch_is_a_non_empty_list_of_facts(memory):
    for facts in (None, 1, "text", b"text", {"text": "x"}, [], iter(())):
        refused(memory, lambda facts=facts: memory.remember_many(facts), "facts")
    for fact in (None, 1, b"x", ["x"]):
        refused(memory, lambda fact=fact: memory.remember_many(["fine", fact]), None)
    refused(memory, lambda: memory.remember_many([{"id": "x"}]), "text")
    refused(memory, lambda: memory.remember_many([{"text": "x", "txet": MARKER}]), "txet")
    refused(memory, lambda: memory.remember_many([{"text": "x", "ingest_time": 1}]), "ingest_time")
    assert len(memory.remember_many(iter(["a", {"text": "b"}, NewFact(text="c")]))) == 3


@pytest.mark.parametrize(
    ("told", "stored"),
    [
        ({"a": Level.HIGH}, {"a": 3}),
        ({"a": Wing.LEFT}, {"a": "left"}),
        ({Wing.LEFT: 1}, {"left": 1}),
        (MappingProxyType({"a": MappingProxyType({"b": (1, 2)})}), {"a": {"b": [1, 2]}}),
    ],
    ids=["an integer enum", "a text enum", "a text enum as key", "a read-only mapping"],
)
def test_values_of_derived_types_are_stored_as_the_json_they_stand_for(memory, told, stored):
    reply = memory.remember("x", metadata=told)
    assert memory.get(reply.id).metadata == stored
    assert memory.remember("x", metadata=stored).outcome == "existing"
    assert len(memory.recall("x", filter=told)) == 1
    gone = memory.forget(matching=told, idempotency_key="once")
    assert gone.forgotten == (reply.id,)


def test_numbers_of_numpy_are_stored_as_plain_numbers(memory):
    numpy = pytest.importorskip("numpy")
    reply = memory.remember("x", metadata={"a": numpy.float64(1.0)}, importance=numpy.float64(0.5))
    assert memory.get(reply.id).metadata == {"a": 1.0}
    assert memory.remember("x", metadata={"a": 1}, importance=0.5).outcome == "existing"


def test_what_was_told_is_copied_so_later_changes_of_it_change_nothing(memory):
    told = {"list": [1], "object": {"a": 1}}
    reply = memory.remember("x", metadata=told)
    told["list"].append(2)
    told["object"]["b"] = 2
    assert memory.get(reply.id).metadata == {"list": [1], "object": {"a": 1}}


def test_changing_what_a_read_returned_changes_no_other_read(memory: Memory):
    reply = memory.remember("x", metadata={"list": [1], "object": {"a": 1}})
    for read in (
        lambda: memory.get(reply.id),
        lambda: memory.recall("x")[0].fact,
        lambda: memory.list().items[0],
        lambda: memory.history(reply.id)[0],
    ):
        fact = read()
        fact.metadata["list"].append(2)
        fact.metadata["object"]["b"] = 2
        fact.metadata["c"] = 3
        assert read().metadata == {"list": [1], "object": {"a": 1}}
