"""What was replaced or removed is in no file of the index when the call returns, however writers end."""

from __future__ import annotations

import random
import signal
import sys
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import forked
from effort import examples
from perdure.vectors import PartitionedVectorIndex, VectorDescriptor, VectorRecord, VectorSearchRequest

DESCRIPTOR = VectorDescriptor(dimension=8, metric="dot_product", normalization="none")
KEY = bytes(range(32))


def marked(marker: str, count: int, dimension: int = 8) -> list[VectorRecord]:
    """Return records whose every text holds the marker, and whose numbers spell it."""
    numbers = np.frombuffer(f"{marker:_>8.8}".encode(), dtype=np.uint8).astype(np.float32)
    numbers = np.resize(numbers, dimension) + np.float32(0.123)
    return [
        VectorRecord(
            id=f"{marker}-{n}",
            embedding=numbers + np.float32(n),
            labels={f"{marker}key": f"{marker}value"},
            node_id=f"{marker}node",
            content_digest=f"{marker}digest",
        )
        for n in range(count)
    ]


def traces(directory, marker: str, dimension: int = 8) -> list[str]:
    """Return the files in which there is the marker, or the numbers of its first record."""
    numbers = marked(marker, 1, dimension)[0].embedding.astype("<f4").tobytes()
    return [
        path.name
        for path in sorted(directory.rglob("*"))
        if path.is_file() and any(one in path.read_bytes() for one in (marker.encode(), numbers))
    ]


def test_removed_and_replaced_records_are_gone_and_others_are_there(tmp_path):
    with PartitionedVectorIndex.open(tmp_path / "index", DESCRIPTOR) as index:
        for marker in ("first", "second", "third"):
            index.replace_partition(f"{marker}name", marked(marker, 200))
        assert [traces(tmp_path, marker) for marker in ("first", "second", "third")] == [["index"]] * 3
        index.remove_partition("firstname")
        assert traces(tmp_path, "first") == []
        index.replace_partition("secondname", marked("fourth", 3))
        index.replace_partition("thirdname", marked("third", 1))
        assert traces(tmp_path, "second-") == traces(tmp_path, "third-7") == []
        assert traces(tmp_path, "fourth") == traces(tmp_path, "third") == ["index"]
        index.clear()
        assert [traces(tmp_path, marker) for marker in ("second", "third", "fourth")] == [[]] * 3


def test_nothing_of_an_encrypted_index_is_in_any_file(tmp_path):
    with PartitionedVectorIndex.open(tmp_path / "index", DESCRIPTOR, key=KEY) as index:
        for count in (50, 300, 20):
            index.replace_partition("canaryname", marked("canary", count))
            assert traces(tmp_path, "canary") == []
            assert KEY not in b"".join(one.read_bytes() for one in tmp_path.iterdir())


def test_names_of_partitions_are_gone_with_them(tmp_path):
    with PartitionedVectorIndex.open(tmp_path / "index", DESCRIPTOR) as index:
        for n in range(60):
            index.replace_partition(f"gone-{n}", marked("x", 1))
        for n in range(60):
            index.remove_partition(f"gone-{n}")
    assert traces(tmp_path, "gone-") == []


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 60)), min_size=1, max_size=12))
@settings(max_examples=examples(8), deadline=None)
def test_after_any_changes_the_files_hold_what_the_index_holds_and_no_more(tmp_path_factory, changes):
    folder = tmp_path_factory.mktemp("changes")
    present: dict[int, str] = {}
    with PartitionedVectorIndex.open(folder / "index", DESCRIPTOR) as index:
        for number, (partition, count) in enumerate(changes):
            marker = f"m{number:03}x"
            index.replace_partition(f"p{partition}", marked(marker, count))
            present.pop(partition, None)
            if count:
                present[partition] = marker
    told = [f"m{number:03}x" for number in range(len(changes))]
    assert [marker for marker in told if traces(folder, marker)] == sorted(present.values())


ENDS_BEFORE_CLEANING = """
import os, signal, sys
from perdure.vectors import PartitionedVectorIndex, VectorDescriptor
from perdure.vectors.partitioned.sqlite import backend

index = PartitionedVectorIndex.open(
    sys.argv[1], VectorDescriptor(dimension=8, metric="dot_product", normalization="none")
)
backend.end_journal = lambda _: os.kill(os.getpid(), signal.SIGKILL)
index.remove_partition("firstname")
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no process can be killed")
def test_a_writer_that_dies_between_commit_and_cleaning_is_cleaned_after_by_the_next(tmp_path):
    with PartitionedVectorIndex.open(tmp_path / "index", DESCRIPTOR) as index:
        index.replace_partition("firstname", marked("first", 200))
        index.replace_partition("secondname", marked("second", 200))
        history = index.change_token().history_id
        with forked.start(ENDS_BEFORE_CLEANING, tmp_path / "index") as killed:
            assert killed.wait(60) == -signal.SIGKILL
        assert traces(tmp_path, "first") == ["index-journal"], "the trial needs something to clean"
        assert index.observe().status.revision == 3, "what was committed is seen"
        with PartitionedVectorIndex.open(tmp_path / "index", DESCRIPTOR) as other:
            assert traces(tmp_path, "first") == []
            assert other.change_token() == index.change_token()
            assert other.change_token().history_id == history
            assert [one.name for one in other.partitions()] == ["secondname"]


WRITES_ON = """
import sys
from perdure.vectors import PartitionedVectorIndex, VectorDescriptor, VectorRecord

index = PartitionedVectorIndex.open(sys.argv[1], VectorDescriptor(dimension=3), key=sys.argv[2] or None)
number = index.status().revision
while True:
    number += 1
    rows = [VectorRecord(id=f"generation{number:06}x-{n}", embedding=[1, n, number]) for n in range(number % 400 + 1)]
    index.replace_partition("p", rows)
    print(number, flush=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no process can be killed")
@pytest.mark.parametrize("key", ["", "a passphrase"])
def test_a_killed_writer_leaves_one_whole_generation_and_nothing_of_older_ones(tmp_path, key):
    generator, place = random.Random(11), tmp_path / "index"
    descriptor = VectorDescriptor(dimension=3)
    for _ in range(6):
        with forked.start(WRITES_ON, place, key) as writer:
            told = [int(writer.stdout.readline())]
            deadline = time.monotonic() + generator.uniform(0.0, 0.3)
            while time.monotonic() < deadline:
                told.append(int(writer.stdout.readline()))
            writer.kill()
            told += [int(line) for line in writer.stdout.read().split()]
        with PartitionedVectorIndex.open(place, descriptor, key=key or None) as index:
            revision = index.status().revision
            assert revision in (told[-1], told[-1] + 1)
            ids = {one.record.id for one in index.list(limit=1000).items}
            assert ids == {f"generation{revision:06}x-{n}" for n in range(revision % 400 + 1)}
            index.observe().verify()
        older = [f"generation{n:06}x" for n in range(1, revision)]
        data = b"".join(one.read_bytes() for one in tmp_path.iterdir())
        assert [one for one in older if one.encode() in data] == []


RACES = """
import sys
from perdure.vectors import PartitionedVectorIndex, RevisionConflict, VectorDescriptor, VectorRecord

index = PartitionedVectorIndex.open(sys.argv[1], VectorDescriptor(dimension=2), timeout_s=60)
won = 0
for number in range(40):
    try:
        index.replace_partition_if_revision(
            f"p{number % 3}", index.status().revision, [VectorRecord(id=f"{number}", embedding=[1, number])]
        )
        won += 1
    except RevisionConflict:
        pass
print(won)
"""


def test_processes_that_race_win_as_often_as_there_are_revisions(tmp_path):
    racers = [forked.start(RACES, tmp_path / "index") for _ in range(3)]
    won = [int(racer.communicate(timeout=120)[0]) for racer in racers]
    assert all(racer.returncode == 0 for racer in racers)
    with PartitionedVectorIndex.open(tmp_path / "index", VectorDescriptor(dimension=2)) as index:
        assert index.status().revision == sum(won)
        assert index.status().partition_count == 3
        assert index.search(VectorSearchRequest(embedding=[1, 0])).status == index.status()


FULL = """
import resource, signal, sys
from perdure.vectors import PartitionedVectorIndex, VectorDescriptor, VectorRecord

index = PartitionedVectorIndex.open(sys.argv[1], VectorDescriptor(dimension=300))
index.replace_partition("p", [VectorRecord(id="kept", embedding=[1.0] * 300)])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
try:
    index.replace_partition("p", [VectorRecord(id=str(n), embedding=[1.0] * 300) for n in range(500)])
except Exception as error:
    print(type(error).__name__, [one.record.id for one in index.list().items], index.observe().status.revision)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no limit can be set")
def test_a_full_disk_leaves_the_index_as_it_was(tmp_path):
    writer = forked.start(FULL, tmp_path / "index")
    assert writer.communicate(timeout=60)[0].decode().strip() == "StorageFull ['kept'] 1"
    with PartitionedVectorIndex.open(tmp_path / "index", VectorDescriptor(dimension=300)) as index:
        assert [one.record.id for one in index.list().items] == ["kept"]
