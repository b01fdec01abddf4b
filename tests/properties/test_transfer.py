"""Export and import lose nothing, whatever a store has been through."""

from __future__ import annotations

from contextlib import suppress
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from perdure import Blocked, Conflict, ManualClock, MemoryConfig, Store
from perdure.transfer import importing
from properties.memory_run import CONFIGS, SECRET, Space, everything, random_script
from properties.strategies import NOW, Call, a_call, scripts

UNDOING = ("forget", "restore")  # what a later import does not undo in its turn
LONG = "filler " * 5_000  # two units of a document
ODD = (
    '"2024-01-01"',
    '{"a":1}',
    "null",
    "007",
    "1e5",
    "true",
    "\x00a\x00",
    "a\u2028b\r\nc",
    "é e\u0301 \U0001f600",
)
configs = st.sampled_from(CONFIGS)


class Source(Space):
    """Two memories and their documents in one store; every call goes to one of them."""

    def __init__(self, config: MemoryConfig, random: Random) -> None:
        super().__init__(config)
        self.config, self.random = config, random
        self.other = self.store.memory("bob", "two", config=config)
        self.keys = 0

    def live(self, script: list[Call]) -> None:
        for name, told in script:
            self.memory, self.other = self.random.choice(
                ((self.memory, self.other), (self.memory, self.other), (self.other, self.memory))
            )
            if self.random.random() < 0.3 and name not in ("advance", "restore"):
                self.keys += 1
                self.run((name, {**told, "idempotency_key": f"key {self.keys}"}))
            else:
                self.run((name, told))
            if self.random.random() < 0.1:
                self._put()

    def _put(self) -> None:
        documents = self.store.documents("bob", "two", config=self.config)
        text = self.random.choice((LONG + "alpha", "alpha beta", *ODD))
        with suppress(Blocked, Conflict):
            documents.put(self.random.choice("abxyz"), text, metadata=self.random.choice((None, {"n": 1.0})))


def body(lines: bytes) -> bytes:
    """What an export holds, without its header."""
    return lines.split(b"\n", 1)[1]


def exported(store: Store, **options: Any) -> bytes:
    return b"".join(store.export_lines(**options))


def moved(source: Store, config: MemoryConfig, *, secret: bytes = SECRET, **options: Any) -> Store:
    """A store that was empty and holds what the other one exports. Its clock stands still at another time."""
    target = Store.open(":memory:", clock=ManualClock(source.clock.now()), secret=secret)
    report = target.import_([exported(source, **options)])
    assert (report.skipped, report.problems, report.existing) == (0, (), 0)
    return target


def answers(store: Store, config: MemoryConfig) -> Any:
    """All that both memories and their documents show, but for the feed, which is numbered by records."""
    found: list[Any] = []
    for name in ((None, None), ("bob", "two")):
        memory = store.memory(*name, config=config)
        times = {"as_ofs": (None, 3, 101, 106), "known_ats": (None, 100, 102, 104)}
        found.append(everything(memory, **times)[1:])
        documents = store.documents(*name, config=config)
        found += [documents.list(limit=1_000).items, documents.search("alpha filler", k=1_000)]
    return found


@given(configs, scripts(), st.randoms(use_true_random=False), st.booleans())
@settings(max_examples=examples(24), deadline=None)
def test_an_import_into_an_empty_store_gives_the_same_answers_and_the_same_export(
    config, script, random, blocks
):
    source = Source(config, random)
    source.live(script)
    target = moved(source.store, config, blocks=blocks)
    assert body(exported(target, blocks=blocks)) == body(exported(source.store, blocks=blocks))
    assert answers(target, config) == answers(source.store, config)


@pytest.mark.parametrize("seed", range(6))
def test_a_long_history_is_moved_whole(seed):
    compare_moved(seed, 150)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(200))
def test_a_very_long_history_is_moved_whole(seed):
    compare_moved(seed, 1_000)


def compare_moved(seed: int, size: int) -> None:
    random = Random(seed)
    config = random.choice(CONFIGS)
    source = Source(config, random)
    source.live(random_script(seed, size, a_call))
    target = moved(source.store, config, blocks=True)
    assert body(exported(target, blocks=True)) == body(exported(source.store, blocks=True))
    assert answers(target, config) == answers(source.store, config)


@given(configs, scripts(), st.randoms(use_true_random=False))
@settings(max_examples=examples(12), deadline=None)
def test_importing_again_writes_nothing(config, script, random):
    source = Source(config, random)
    source.live(script)
    lines = exported(source.store, blocks=True)
    target = moved(source.store, config, blocks=True)
    heads = [target.log.head(space) for space in target.log.spaces()]
    again = target.import_([lines])
    assert (again.created, again.problems) == (0, ())
    assert [target.log.head(space) for space in target.log.spaces()] == heads


@given(configs, scripts(), st.randoms(use_true_random=False))
@settings(max_examples=examples(12), deadline=None)
def test_an_import_goes_on_where_an_earlier_one_was_cut_off(config, script, random):
    source = Source(config, random)
    source.live(script)
    lines = exported(source.store, blocks=True).splitlines(keepends=True)
    target = Store.open(":memory:", clock=ManualClock(NOW), secret=SECRET)
    for _ in range(3):
        target.import_([b"".join(lines[: random.randint(1, len(lines))])], strict=False)
    target.import_([b"".join(lines)])
    assert body(exported(target, blocks=True)) == body(b"".join(lines))


@given(configs, scripts(), st.randoms(use_true_random=False))
@settings(max_examples=examples(12), deadline=None)
def test_imports_of_one_file_at_once_store_it_once_however_they_overtake_each_other(config, script, random):
    source = Source(config, random)
    source.live(script)
    data = exported(source.store, blocks=True)
    lines = data.splitlines(keepends=True)
    target = Store.open(":memory:", clock=ManualClock(NOW), secret=SECRET)

    def overtake(*_: int) -> None:
        if random.random() < 0.2:
            target.import_([b"".join(lines[: random.randint(1, len(lines))])], strict=False)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(importing, "CHUNK_RECORDS", random.randint(1, 5))
        target.import_([data], strict=random.random() < 0.5, progress=overtake)
    assert body(exported(target, blocks=True)) == body(data)


@given(configs, scripts(), scripts(max_size=8), st.randoms(use_true_random=False))
@settings(max_examples=examples(12), deadline=None)
def test_a_later_export_brings_what_was_told_since(config, script, more, random):
    source = Source(config, random)
    for memory in (source.memory, source.other):  # so that both are there, in this order
        memory.remember("omega", id="first")
    source.live([call for call in script if call[0] not in UNDOING])
    target = moved(source.store, config)
    source.live([("remember", {"text": f"later {n}", "id": f"later {n}"}) for n in range(3)])
    source.live([call for call in more if call[0] in ("advance", "end", "annotate", "retract")])
    report = target.import_([exported(source.store)], strict=False)
    if report.problems:
        # What was replaced under its id is there as it was: the file contradicts it.
        assert all(problem.reason.startswith(("conflict: ", "names ")) for problem in report.problems)
        assert config.on_id_conflict == "replace" or all(
            "version" in problem.reason or problem.reason.startswith("names ") for problem in report.problems
        )
    else:
        assert body(exported(target)) == body(exported(source.store))


@given(configs, scripts(), st.randoms(use_true_random=False))
@settings(max_examples=examples(8), deadline=None)
def test_a_dry_run_says_what_an_import_does_and_writes_nothing(config, script, random):
    source = Source(config, random)
    source.live(script)
    lines = exported(source.store, blocks=True)
    target = Store.open(":memory:", clock=ManualClock(NOW), secret=SECRET)
    part = lines.splitlines(keepends=True)
    target.import_([b"".join(part[: len(part) // 2])], strict=False)
    heads = [target.log.head(space) for space in target.log.spaces()]
    dry = target.import_([lines], dry_run=True)
    assert [target.log.head(space) for space in target.log.spaces()] == heads
    wet = target.import_([lines])
    assert (dry.created, dry.existing, dry.facts, dry.spaces) == (
        wet.created, wet.existing, wet.facts, wet.spaces,
    )  # fmt: skip


PARTS: list[dict[str, Any]] = [
    {"team": 1},
    {"team": {"$exists": False}},
    {"$not": {"deep.b[0]": {"$gte": 1}}},
    {"@subject": {"$in": ["s", "t"]}},
    {"$not": {"@tags": {"$contains": "red"}}},
    {"@eventTime": {"$exists": False}},
    {"@ingestTime": {"$gt": NOW + 3}},
    {"$or": [{"@kind": "semantic"}, {"@importance": {"$lt": 1}}, {"n": 1}]},
    {"@entities": {"$contains": "Ann"}},
    {"@entities": {"$contains": "no such name"}},
]


@given(configs, scripts(), st.randoms(use_true_random=False), st.sampled_from(PARTS))
@settings(max_examples=examples(24), deadline=None)
def test_a_filtered_export_is_that_of_a_store_in_which_all_else_was_forgotten(config, script, random, part):
    source = Source(config, random)
    source.live(script)
    compare_part(source, part)


@pytest.mark.parametrize("part", range(len(PARTS)))
def test_a_part_of_a_long_history_is_exported_as_if_it_were_all(part):
    random = Random(part)
    source = Source(random.choice(CONFIGS), random)
    source.live(random_script(part, 150, a_call))
    compare_part(source, PARTS[part])


def compare_part(source: Source, part: dict[str, Any]) -> None:
    lines = exported(source.store, filter=part, blocks=True)
    for memory in (source.memory, source.other):
        memory.forget(filter={"$not": part})
    assert body(lines) == body(exported(source.store, blocks=True))
    target = Store.open(":memory:", clock=ManualClock(source.clock.now()), secret=SECRET)
    assert target.import_([lines]).problems == ()
