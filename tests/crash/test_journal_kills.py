"""A process dies at each call to the system in turn: its journal is as before or as after, and goes on."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from crash import journal_steps as steps
from crash.children import Nursery, find_texts
from crash.journal_steps import text
from perdure.errors import Busy
from perdure.log.journal import JournalLog
from perdure.log.protocol import Batch

pytestmark = pytest.mark.skipif(
    not hasattr(os, "fork"), reason="children are forked, and this platform has no fork"
)

BEFORE = {1: [b"first", None, text("kettle")], 2: [b"first", text("teapot")]}
AFTER = {
    "append": {1: BEFORE[1], 2: [*BEFORE[2], text("beaker"), text("goblet")]},
    "create": {**BEFORE, 3: [text("carafe")]},
    "forget": {1: BEFORE[1], 2: [b"first", None, b"removal"]},
    "purge": {1: [b"first", text("kettle")], 2: [b"first", text("teapot")]},
    "note": BEFORE,
}
PATTERN = "the [a-z]{6} is blue"
STEPS_MAX = 200  # more than any operation takes


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery("crash.journal_steps") as nursery:
        yield nursery


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place: Path = tmp_path_factory.mktemp("filled") / "store"
    steps.fill(place)
    return place


def content(log: JournalLog) -> dict[int, list[bytes | None]]:
    """Return all records, every one verified."""
    assert list(log.verify()) == []
    return {space: [data for _, data in log.read(space, 0, log.head(space).seq)] for space in log.spaces()}


def words(place: Path) -> set[str]:
    return {found for texts in find_texts(place, PATTERN).values() for found in texts}


def check(place: Path, *allowed: dict[int, list[bytes | None]]) -> None:
    """The journal opens, holds one of the contents, no byte of anything else, and takes what comes."""
    log = JournalLog.open(place, timeout_s=0)
    found = content(log)
    assert found in allowed
    assert not log.scrub_pending()
    if found:
        head = log.append(1, log.head(1), Batch(records=[b"after"]))
        assert log.get(1, [head.seq], head) == [b"after"]
    else:
        log.create_space(steps.NAME, b"after")
    live = b" ".join(data for records in found.values() for data in records if data)
    assert words(place) == set(re.findall(PATTERN, live.decode("latin-1")))
    assert len(list(place.glob("*.jsonl"))) == 1
    now = content(log)
    log.close()
    log = JournalLog.open(place, timeout_s=0)
    assert content(log) == now
    log.close()


def die_at_each_step(
    nursery: Nursery, folder: Path, operation: str, torn: bool, start: Path | None
) -> Iterator[Path]:
    """Yield the journals that processes left which died at step 1, 2, 3 … until one lives."""
    for step in range(1, STEPS_MAX):
        place = folder / str(step) / "store"
        place.parent.mkdir(parents=True)
        if start is not None:
            shutil.copytree(start, place)
        child = nursery.start("run", str(place), operation, step, torn)
        nursery.await_(child)
        if not child.was_killed:
            assert child.said == [["done"]]
            assert step > 3
            return
        yield place
        shutil.rmtree(place.parent)
    raise AssertionError(f"{operation} takes more than {STEPS_MAX} steps")


@pytest.mark.parametrize("torn", [False, True], ids=["before", "torn"])
@pytest.mark.parametrize("operation", list(AFTER))
def test_a_death_at_any_step_leaves_the_journal_as_it_was_or_as_it_was_to_be(
    nursery, filled, tmp_path, operation, torn
):
    for place in die_at_each_step(nursery, tmp_path, operation, torn, filled):
        check(place, BEFORE, AFTER[operation])


@pytest.mark.parametrize("torn", [False, True], ids=["before", "torn"])
def test_a_death_at_any_step_of_a_creation_leaves_nothing_or_an_empty_journal(nursery, tmp_path, torn):
    for place in die_at_each_step(nursery, tmp_path, "open", torn, None):
        check(place, {})


@pytest.mark.slow
@pytest.mark.parametrize("operation", ["append", "forget", "purge"])
def test_a_death_at_any_step_of_the_opening_after_a_death_changes_nothing_more(
    nursery, filled, tmp_path, operation
):
    deaths = [
        shutil.copytree(place, tmp_path / "deaths" / place.parent.name)
        for place in die_at_each_step(nursery, tmp_path / operation, operation, True, filled)
    ]
    for number, death in enumerate(deaths):
        if number % 5 == 4:
            for place in die_at_each_step(nursery, tmp_path / f"open {number}", "open", False, death):
                check(place, BEFORE, AFTER[operation])


def test_who_died_with_the_journal_open_keeps_nobody_out(nursery, filled, tmp_path):
    place = shutil.copytree(filled, tmp_path / "store")
    child = nursery.start("run", str(place), "append", 1, False)
    nursery.await_(child)
    assert child.was_killed
    JournalLog.open(place, timeout_s=0).close()


def test_a_second_process_is_told_that_the_journal_is_open_elsewhere(nursery, filled, tmp_path):
    place = shutil.copytree(filled, tmp_path / "store")
    log = JournalLog.open(place)
    child = nursery.start("run", str(place), "append", 0, False)
    with pytest.raises(AssertionError, match="Busy: the journal is open elsewhere"):
        nursery.await_(child)
    with pytest.raises(Busy, match="one process"):
        JournalLog.open(place, timeout_s=0.05)
    log.close()
    JournalLog.open(place, timeout_s=0).close()
