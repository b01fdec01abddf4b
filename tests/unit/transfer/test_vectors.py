"""Vector lines of an export: what is wrong with one is told by its line, and a strict import stores nothing then."""

from __future__ import annotations

import base64
import json
import struct

import pytest

from backends import fresh
from perdure import ImportFailed, ManualClock, MemoryConfig, Namespace, Store
from perdure.embedders import HashingEmbedder
from perdure.transfer import importing

EAST, NORTH = [1.0, 0.0], [0.0, 1.0]


@pytest.fixture(autouse=True, params=[1_000, 1], ids=["together", "one by one"])
def records_at_once(request, monkeypatch):
    """How many records are judged and written together: what was told before must count all the same."""
    monkeypatch.setattr(importing, "CHUNK_RECORDS", request.param)


def packed(*numbers):
    return base64.b64encode(struct.pack(f"<{len(numbers)}f", *numbers)).decode()


@pytest.fixture
def lines():
    """An export as objects: facts with a vector each, and a document of two units."""
    with fresh(clock=ManualClock(1_000)) as source:
        memory = source.memory("ann")
        memory.remember("red kite", id="a", embedding=EAST)
        memory.remember("blue kite", id="b", embedding=NORTH)
        source.documents("ann").put("long", "kettle " * 5_000, embedding=[EAST, NORTH])
        memory.remember("no vector", id="c")
        return [json.loads(line) for line in b"".join(source.export_lines()).splitlines()]


@pytest.fixture
def target():
    with fresh(clock=ManualClock(2_000)) as store:
        yield store


def as_bytes(lines):
    return [b"".join(json.dumps(line, ensure_ascii=False).encode() + b"\n" for line in lines)]


def places(lines):
    return [place for place, line in enumerate(lines) if line.get("type") == "vector"]


def test_a_vector_stands_after_its_fact_as_float32_in_base64_and_names_its_model_if_it_was_made(lines):
    found = [lines[place] for place in places(lines)]
    assert [(line["fact"], line.get("unit", 0), line["data"]) for line in found] == [
        (0, 0, packed(*EAST)), (1, 0, packed(*NORTH)), (2, 0, packed(*EAST)), (2, 1, packed(*NORTH)),
    ]  # fmt: skip
    assert all("model" not in line for line in found)
    assert [lines[place - 1]["type"] for place in places(lines)] == ["fact", "fact", "document", "vector"]
    embedder = HashingEmbedder(8)
    with Store.open(":memory:") as store:
        store.memory(config=MemoryConfig(embedder=embedder)).remember("text")
        told = [json.loads(line) for line in b"".join(store.export_lines()).splitlines()]
        assert [line["model"] for line in told if line.get("type") == "vector"] == [embedder.model]


def tell_later(lines):
    """Let the facts of the file be recorded after what the target has told by itself."""
    for line in lines:
        if "ingestTime" in line:
            line["ingestTime"] = 5_000


WRONG = {
    "no base64": {"data": "&&&&"},
    "text that is no ASCII": {"data": "éééé"},
    "half a number": {"data": base64.b64encode(b"12345").decode()},
    "no number": {"data": ""},
    "not a number": {"data": packed(1.0, float("nan"))},
    "infinite": {"data": packed(1.0, float("inf"))},
    "zero": {"data": packed(0.0, 0.0)},
    "too many numbers": {"data": packed(*[1.0] * 4_097)},
    "another length": {"data": packed(1.0, 2.0, 3.0)},
    "a unit that there is not": {"unit": 1},
    "a unit below the first": {"unit": -1},
    "a fact that was not told": {"fact": 77},
    "a model's name that is too long": {"model": "m" * 257},
    "a moment outside of time": {"recordedAt": 10**18},
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_a_wrong_vector_is_told_by_its_line_stops_a_strict_import_and_is_left_out_of_another(
    lines, target, wrong
):
    place = places(lines)[1]
    lines[place] |= wrong
    dry = target.import_(as_bytes(lines), dry_run=True)
    assert [problem.line for problem in dry.problems] == [place + 1]
    with pytest.raises(ImportFailed) as failed:
        target.import_(as_bytes(lines))
    assert failed.value.committed == "no"
    assert target.spaces() == []
    done = target.import_(as_bytes(lines), strict=False)
    assert (done.problems, done.created, done.skipped) == (dry.problems, dry.created, dry.skipped)
    index = target.documents("ann").index
    assert (index.vectors().count, index.vector("b")) == (3, None)
    assert [hit.id for hit in target.memory("ann").recall("", embedding=EAST)] == ["a", "long"]
    lines[place] = {"type": "vector", "fact": 1, "data": packed(*NORTH), "recordedAt": 1_000}
    assert target.import_(as_bytes(lines)).created == 1  # what was left out is added
    assert index.vector("b").tolist() == NORTH


@pytest.mark.parametrize("dry_run", [True, False])
def test_vectors_of_two_models_in_one_file_are_refused_and_those_without_a_model_go_with_any(
    lines, target, dry_run
):
    first, _, third, _ = places(lines)
    lines[first]["model"] = "one"
    lines[third]["model"] = "two"
    done = target.import_(as_bytes(lines), strict=False, dry_run=dry_run)
    assert [problem.line for problem in done.problems] == [third + 1]
    assert "model" in done.problems[0].reason
    if not dry_run:
        assert target.documents("ann").index.vectors().models == {"": 2, "one": 1}


@pytest.mark.parametrize("dry_run", [True, False])
def test_what_the_target_holds_decides_which_vectors_fit(lines, target, dry_run):
    tell_later(lines)
    memory = target.memory("ann")
    memory.remember("of another length", id="first", embedding=[1.0, 2.0, 3.0])
    done = target.import_(as_bytes(lines), strict=False, dry_run=dry_run)
    assert [problem.line - 1 for problem in done.problems] == places(lines)
    assert {problem.reason for problem in done.problems} == {
        "has 2 dimensions, but the vectors of this space have 3"
    }
    assert done.facts == 4


@pytest.mark.parametrize(("told", "conflicts"), [(EAST, 0), (NORTH, 1)])
def test_a_fact_that_is_stored_with_another_vector_contradicts_the_file(lines, target, told, conflicts):
    target.memory("ann").remember("red kite", id="a", embedding=told)
    tell_later(lines)
    for dry_run in (True, False):
        done = target.import_(as_bytes(lines), strict=False, dry_run=dry_run)
        assert len(done.problems) == conflicts
    assert target.documents("ann").index.vector("a").tolist() == told


def test_a_vector_that_the_target_made_by_itself_stays(lines, target):
    embedder = HashingEmbedder(8)
    tell_later(lines)
    target.memory("ann", config=MemoryConfig(embedder=embedder)).remember("no vector", id="c")
    plain = [line for line in lines if line.get("type") != "vector"]
    plain[-2]["records"] -= 4
    plain[-1]["records"] -= 4
    kept = target.documents("ann").index.vector("c").tolist()
    assert target.import_(as_bytes(plain)).facts == 3
    assert target.documents("ann").index.vector("c").tolist() == kept
    assert target.documents("ann").index.vectors().count == 1


def test_an_import_into_another_name_brings_the_vectors_along(lines, target):
    target.import_(as_bytes(lines), spaces=[Namespace("ann")], into=Namespace("ben"))
    assert target.documents("ben").index.vectors().count == 4
    assert [hit.id for hit in target.memory("ben").recall("", embedding=EAST, k=1)] == ["a"]


def test_the_vector_of_what_was_forgotten_or_replaced_is_in_no_export():
    with Store.open(":memory:") as store:
        memory = store.memory(config=MemoryConfig(on_id_conflict="replace"))
        memory.remember("gone", id="a", embedding=[0.1, 0.2])
        memory.remember("old", id="b", embedding=[0.3, 0.4])
        memory.remember("new", id="b", embedding=[0.5, 0.6])
        memory.remember("hidden", id="c", embedding=[0.7, 0.8])
        memory.forget(ids=["c"], soft=True)
        memory.forget(ids=["a"])
        lines = b"".join(store.export_lines()).decode()
    assert [packed(*vector) in lines for vector in ((0.1, 0.2), (0.3, 0.4), (0.5, 0.6), (0.7, 0.8))] == [
        False, False, True, True,
    ]  # fmt: skip
