"""A process dies at each step of an operation while another has the store open: it is before or after, and goes on."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from crash import steps
from crash.children import Nursery
from crash.kills import PATTERN, marker_of
from crash.steps import BEFORE, GONE, KEPT, SIZE
from perdure.errors import PerdureError
from perdure.log.protocol import Batch
from perdure.log.sqlite import SqliteLog

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked, and this platform has no fork"),
]

SAMPLES = 10  # steps of each operation that the ordinary run tries, spread evenly
LOCKS = {"store.lock", "store.lock-journal", "writer.lock", "writer.next", "backup.lock"}


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery("crash.steps") as nursery:
        yield nursery


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place: Path = tmp_path_factory.mktemp("filled") / "store"
    steps.fill(place)
    return place


def there(log: SqliteLog) -> dict[str, int]:
    """Return how many texts of each batch are there, every record verified."""
    found: Counter[str] = Counter()
    for space in log.spaces():
        for entry in log.read(space, 0, log.head(space).seq):
            if entry.data not in (None, b"first", b"removal", b"after"):
                found[entry.data.split(b" ")[0].decode()] += 1
    return dict(found)


def all_of(*tags: str) -> dict[str, int]:
    return dict.fromkeys(tags, SIZE)


BEFOREHAND = all_of(*KEPT, GONE)
AFTERWARDS = {
    "append": all_of(*KEPT, GONE, "new"),
    "forget": all_of(*KEPT),
    "purge": BEFOREHAND,
    "backup": BEFOREHAND,
}


def check_files(nursery: Nursery, place: Path, found: dict[str, int]) -> None:
    """No file holds a text that is not there; each that is there is found; nothing is left of other generations."""
    texts = nursery.scan(place, PATTERN)
    assert texts == {marker_of(tag) for tag in found}
    numbers = {path.name.split(".")[0].split("-")[1] for path in place.iterdir() if path.name not in LOCKS}
    assert len(numbers) == 1, sorted(path.name for path in place.iterdir())


def check_survivor(nursery: Nursery, place: Path, operation: str, log: SqliteLog) -> None:
    """The handle that was open all the while finds the state before or after, and finishes what was begun."""
    found = there(log)
    assert found in (BEFOREHAND, AFTERWARDS[operation])
    assert log.scrub()
    if operation != "append" or found == AFTERWARDS[operation]:
        check_files(nursery, place, found)
    head = log.append(1, log.head(1), Batch(records=[b"after"]))
    assert log.get(1, [head.seq], head) == [b"after"]
    match operation:
        case "forget":
            if GONE in found:
                steps.forget(log)
            assert there(log) == AFTERWARDS["forget"]
        case "purge":
            steps.purge(log)
            assert there(log) == BEFOREHAND
            assert [log.head(space).erasures for space in log.spaces()] == [0, 0]
        case "backup":
            log.backup(place.parent / "another")
            with_copy = SqliteLog.open(place.parent / "another")
            assert there(with_copy) == BEFOREHAND
            with_copy.close()
    if operation != "append":
        check_files(nursery, place, there(log))
    assert BEFORE not in there(log)


def check_half_backup(place: Path) -> None:
    """A backup that was cut short is refused, or whole; an empty directory is none."""
    if not place.exists() or not any(place.iterdir()):
        return
    try:
        log = SqliteLog.open(place)
    except PerdureError:
        return
    found = there(log)
    log.close()
    assert found in ({}, BEFOREHAND)
    if not found:
        assert (place / "gen-1.db").stat().st_size > 0


def die(nursery: Nursery, filled: Path, folder: Path, operation: str, unit: str, step: int) -> int | None:
    """Let a process die at the step and check what is left; return how many steps there are once it does not die."""
    place = folder / f"{operation} {unit} {step}" / "store"
    place.parent.mkdir()
    if operation == "create":
        return die_creating(nursery, place, unit, step)
    shutil.copytree(filled, place)
    survivor = SqliteLog.open(place)
    assert there(survivor) == BEFOREHAND
    child = nursery.start("run", str(place), operation, unit, step)
    nursery.await_(child)
    try:
        check_survivor(nursery, place, operation, survivor)
        fresh = SqliteLog.open(place)
        assert there(fresh) == there(survivor)
        fresh.close()
    except Exception as error:
        raise AssertionError(f"killed at step {step} ({unit}) of {operation}: {error}") from error
    finally:
        survivor.close()
    if operation == "backup":
        check_half_backup(place.parent / "backup")
    shutil.rmtree(place.parent)
    return None if child.was_killed else int(child.said[-1][1])


def die_creating(nursery: Nursery, place: Path, unit: str, step: int) -> int | None:
    child = nursery.start("run", str(place), "create", unit, step)
    nursery.await_(child)
    log = SqliteLog.open(place)
    assert log.spaces() == []
    assert log.create_space(steps.NAME, b"first") == 1
    log.close()
    assert {path.name for path in place.iterdir()} - LOCKS == {
        "gen-1.db",
        "gen-1.db-wal",
        "gen-1.db-shm",
        "gen-1.hw",
    }
    shutil.rmtree(place.parent)
    return None if child.was_killed else int(child.said[-1][1])


OPERATIONS = ("create", *AFTERWARDS)


@pytest.mark.parametrize("unit", steps.UNITS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_death_at_some_steps_leaves_the_store_before_or_after(nursery, filled, tmp_path, operation, unit):
    total = die(nursery, filled, tmp_path, operation, unit, 0)
    assert total is not None
    tried = sorted({1 + sample * (total - 1) // (SAMPLES - 1) for sample in range(SAMPLES)})
    assert len(tried) > SAMPLES / 2
    for step in tried:
        assert die(nursery, filled, tmp_path, operation, unit, step) is None


@pytest.mark.soak
@pytest.mark.parametrize("unit", steps.UNITS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_death_at_any_step_leaves_the_store_before_or_after(nursery, filled, tmp_path, operation, unit):
    step = 1
    while die(nursery, filled, tmp_path, operation, unit, step) is None:
        step += 1
    print(f"{operation}: {step - 1} {unit}")  # noqa: T201 - shown by pytest -s
    assert step > SAMPLES / 2
