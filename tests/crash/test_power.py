"""Power fails at any moment: what was acknowledged is there, nothing is half there, what was cleaned stays so."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from crash.children import Nursery
from crash.kills import marker_of
from crash.power import (
    MODES,
    NAME,
    Create,
    Recording,
    Said,
    Sync,
    SyncDirectory,
    Truncate,
    Write,
    disk_at,
    expected_at,
    held,
    moments,
)
from perdure.log.protocol import Batch
from perdure.log.sqlite import SqliteLog

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked, and this platform has no fork"),
]

SOAK = int(os.environ.get("PERDURE_POWER_LOSSES", "200"))


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery("crash.power") as nursery:
        yield nursery


def recorded(
    nursery: Nursery, directory: Path, durability: str, seed: int, *, again: bool = False
) -> Recording:
    directory.mkdir(exist_ok=True)
    out = directory.parent / f"{directory.name}.recording"
    nursery.await_(nursery.start("record", str(directory), str(out), durability, seed, again))
    recording = pickle.loads(out.read_bytes())
    assert isinstance(recording, Recording)
    return recording


def put(directory: Path, files: dict[str, bytes]) -> Path:
    directory.mkdir(mode=0o700)
    for name, data in files.items():
        (directory / name).write_bytes(data)
        (directory / name).chmod(0o600)
    return directory


def holding(files: dict[str, bytes], tags: set[str]) -> list[tuple[str, str]]:
    return [(name, tag) for name, data in files.items() for tag in tags if marker_of(tag).encode() in data]


def lose(recording: Recording, moment: int, mode: str, directory: Path, *, durability: str) -> int:
    """Let power fail at the moment, open what is left and check it; return how many acknowledged changes are lost."""
    files = disk_at(recording, moment, mode, Random(moment))
    states, sure, cleaned = expected_at(recording, moment)
    assert holding(files, cleaned) == []
    put(directory, files)
    log = SqliteLog.open(directory, durability=durability)
    found = held(log)
    assert found in states, "what is there is no state that there ever was"
    changes = len(states) - 1 - states[::-1].index(found)
    assert log.scrub()
    if not log.spaces():
        log.create_space(NAME, b"first")
    head = log.append(1, log.head(1), Batch(records=[b"after"]))
    assert log.get(1, [head.seq], head) == [b"after"]
    log.close()
    after = {path.name: path.read_bytes() for path in directory.iterdir()}
    # An append that power cut short may leave its text in the write-ahead log; what was erased may not.
    erased = {tag for state in states[:changes] for tag in state} - set(found)
    assert holding(after, erased) == []
    return max(0, sure - changes)


def lose_many(recording: Recording, count: int, folder: Path, seed: int, durability: str) -> list[int]:
    random = Random(seed)
    lost = []
    for number, moment in zip(range(count), moments(recording, random), strict=False):
        directory = folder / f"loss {number}"
        mode = MODES[number % len(MODES)]
        try:
            lost.append(lose(recording, moment, mode, directory, durability=durability))
        except Exception as error:
            words = [event for event in recording.events[:moment] if isinstance(event, Said)][-2:]
            raise AssertionError(f"power lost at {moment} ({mode}, after {words}): {error}") from error
    return lost


def check_full(nursery: Nursery, folder: Path, count: int, seed: int) -> None:
    recording = recorded(nursery, folder / "store", "full", seed)
    assert lose_many(recording, count, folder, seed, "full") == [0] * count


def check_again(nursery: Nursery, folder: Path, count: int, seed: int) -> None:
    """Power fails, and again while the store recovers from it."""
    random = Random(seed)
    recording = recorded(nursery, folder / "store", "full", seed)
    for number, moment in zip(range(count), moments(recording, random), strict=False):
        files = disk_at(recording, moment, random.choice(MODES), random)
        second = recorded(nursery, put(folder / f"again {number}", files), "full", number, again=True)
        within = folder / f"losses {number}"
        within.mkdir()
        assert lose_many(second, 5, within, number, "full") == [0] * 5


def check_normal(nursery: Nursery, folder: Path, count: int, seed: int) -> None:
    recording = recorded(nursery, folder / "store", "normal", seed)
    lost = lose_many(recording, count, folder, seed, "normal")
    losing = sum(map(bool, lost))
    line = f"{count} losses of power, durability normal: {losing} lost the last commits, {max(lost)} at most"
    print(line)  # noqa: T201 - shown by pytest -s
    # The simulation would be worthless if it lost nothing where nothing is promised.
    assert any(lost)


def test_a_loss_of_power_loses_nothing_that_was_acknowledged(nursery, tmp_path):
    check_full(nursery, tmp_path, 40, seed=1)


def test_a_loss_of_power_while_the_store_recovers_from_one_loses_nothing(nursery, tmp_path):
    check_again(nursery, tmp_path, 2, seed=2)


def test_without_a_sync_at_each_commit_only_the_last_ones_may_be_lost(nursery, tmp_path):
    check_normal(nursery, tmp_path, 20, seed=3)


def check_creation(nursery: Nursery, folder: Path, modes: int) -> None:
    """Power fails before each event of the creation; `modes` of what may become of the disk are tried at each."""
    recording = recorded(nursery, folder / "store", "full", seed=4, again=True)
    created = recording.events.index(Said("done", "open"))
    assert created > 50
    for moment in range(created + 1):
        for number in range(modes):
            mode = MODES[(moment + number) % len(MODES)]
            assert lose(recording, moment, mode, folder / f"loss {moment} {mode}", durability="full") == 0


def test_a_loss_of_power_at_any_moment_of_the_creation_leaves_a_store_or_nothing(nursery, tmp_path):
    check_creation(nursery, tmp_path, modes=1)


@pytest.mark.soak
def test_a_loss_of_power_in_the_creation_leaves_a_store_or_nothing_whatever_the_disk_kept(nursery, tmp_path):
    check_creation(nursery, tmp_path, modes=len(MODES))


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 104))
def test_hundreds_of_losses_of_power_lose_nothing_that_was_acknowledged(nursery, tmp_path, seed):
    check_full(nursery, tmp_path, SOAK // 4, seed)
    (tmp_path / "more").mkdir()
    check_again(nursery, tmp_path / "more", SOAK // 20, seed)
    (tmp_path / "normal").mkdir()
    check_normal(nursery, tmp_path / "normal", SOAK // 4, seed)


def test_what_was_synced_is_on_the_disk_and_what_was_not_may_be():
    events = [Create("a", 0), Write(0, 0, b"x" * 1024), Sync(0), SyncDirectory(), Write(0, 512, b"y" * 1024)]
    recording = Recording({}, events=events)
    sure = b"x" * 1024
    assert disk_at(recording, 4, "dropped", Random()) == {"a": sure}
    assert disk_at(recording, 5, "dropped", Random()) == {"a": sure}
    assert disk_at(recording, 5, "kept", Random()) == {"a": b"x" * 512 + b"y" * 1024}
    torn = {disk_at(recording, 5, "torn", Random(seed))["a"] for seed in range(40)}
    tails = {b"", bytes(512) + b"y" * 512}
    assert torn == {sure, b"x" * 512 + b"y" * 512, sure + b"y" * 512, b"x" * 512 + b"y" * 1024} | (
        torn & tails
    )


def test_a_name_is_sure_once_its_directory_was_synced():
    recording = Recording(
        {}, events=[Create("a", 0), Write(0, 0, b"x"), Sync(0), SyncDirectory(), Truncate(0, 0)]
    )
    assert disk_at(recording, 3, "dropped", Random()) == {}
    assert disk_at(recording, 3, "kept", Random()) == {"a": b"x"}
    assert disk_at(recording, 4, "dropped", Random()) == {"a": b"x"}
    assert disk_at(recording, 5, "kept", Random()) == {"a": b""}
