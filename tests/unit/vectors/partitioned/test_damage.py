"""Whatever is changed in the files of an index past the index is found, and nothing is served of it."""

from __future__ import annotations

import json
import random
import shutil

import apsw
import pytest

from perdure.errors import PerdureError
from perdure.vectors import (
    PartitionedVectorIndex,
    StorageCorrupted,
    VectorDescriptor,
    VectorSearchRequest,
)
from perdure.vectors.partitioned import admission
from vector_records import record

DESCRIPTOR = VectorDescriptor(dimension=300)


def rows(count, *, label="x"):
    return [record(f"id{n:03}", *([1.0, n + 1.0] * 150), kind=label) for n in range(count)]


@pytest.fixture
def path(tmp_path):
    place = tmp_path / "index.vectors"
    with PartitionedVectorIndex.open(place, DESCRIPTOR) as index:
        index.replace_partition("p", rows(9))
        index.replace_partition("q", rows(2))
        index.replace_partition("removed", rows(3))
        index.remove_partition("removed")
    return place


def change(path, *statements):
    db = apsw.Connection(str(path))
    for statement, bindings in statements:
        db.execute(statement, bindings)
    db.close()


def first_used(path):
    db = apsw.Connection(str(path))
    [(number, data)] = db.execute(
        "SELECT n, data FROM block WHERE place >= x'000000000000000100000000' ORDER BY place LIMIT 1"
    )
    db.close()
    return number, bytearray(data)


META = {
    "another profile": "UPDATE meta SET profile = 'other'",
    "a short nonce": "UPDATE meta SET nonce = x'00'",
    "a nonce of text": "UPDATE meta SET nonce = '00000000000000000000000000000000'",
    "a short head digest": "UPDATE meta SET head = x'00'",
    "another head digest": "UPDATE meta SET head = zeroblob(32)",
    "a broken descriptor": "UPDATE meta SET identity = x'7b'",
    "a descriptor of nothing": "UPDATE meta SET identity = cast('{\"dimension\":0}' AS BLOB)",
    "an unknown field of the descriptor": 'UPDATE meta SET identity = cast(\'{"dimension":300,"x":1}\' AS BLOB)',
    "a revision of text": "UPDATE meta SET revision = 'four'",
    "a negative revision": "UPDATE meta SET revision = -1",
    "another revision": "UPDATE meta SET revision = revision + 1",
    "an older revision": "UPDATE meta SET revision = 1",
    "a negative count": "UPDATE meta SET records = -1",
    "another count of records": "UPDATE meta SET records = records + 1",
    "another count of bytes": "UPDATE meta SET bytes = bytes + 1",
    "another count of partitions": "UPDATE meta SET partitions = partitions + 1",
    "more records than the budget": "UPDATE meta SET max_records = 5",
    "more bytes than the budget": "UPDATE meta SET max_bytes = 2000",
    "a budget of nothing": "UPDATE meta SET max_records = 0",
    "content without metadata": "DELETE FROM meta",
    "two rows of metadata": (
        "INSERT INTO meta SELECT 2, profile, identity, max_records, max_bytes, nonce, revision, partitions, records, "
        "bytes, head FROM meta"
    ),
    "a lost directory": "DELETE FROM part",
    "a short row of the directory": "UPDATE part SET data = x'01' WHERE n = 1",
    "blocks of no partition": "UPDATE part SET data = zeroblob(88) WHERE n = 2",
    "a lost block": "DELETE FROM block WHERE n = 2",
    "a gap in positions": "UPDATE block SET place = x'000000000000000100000063' WHERE place = x'000000000000000100000001'",
    "a block that moved": "UPDATE block SET place = x'000000000000000100000003' WHERE place = x'000000000000000200000000'",
    "a free block that is used": "UPDATE block SET place = x'000000000000000900000000' WHERE place < x'0000000000000001'",
    "a short block": "UPDATE block SET data = x'00' WHERE n = 1",
    "a block of text": "UPDATE block SET data = 'x' WHERE n = 1",
    "a lost table": "DROP TABLE block",
    "a table without numbers": "PRAGMA writable_schema=1; UPDATE sqlite_schema SET sql = replace(sql, 'INTEGER P', 'INTEGER.P')",
    "a table defined otherwise": "ALTER TABLE part ADD COLUMN more",
    "a table too many": "CREATE TABLE more(n)",
    "a negative number in the directory": "UPDATE part SET n = -1 WHERE n = 1",
    "another application": "PRAGMA application_id = 1",
    "another format": "PRAGMA user_version = 9",
}


@pytest.mark.parametrize("statement", META.values(), ids=META.keys())
def test_a_change_of_the_tables_is_found_and_left_as_it_is(path, statement):
    change(path, (statement, ()))
    before = path.read_bytes()
    with pytest.raises(StorageCorrupted) as found:
        PartitionedVectorIndex.open(path, DESCRIPTOR)
    assert (found.value.code, found.value.details["kind"]) == ("corrupt", "storage_corrupted")
    assert path.read_bytes() == before


@pytest.mark.parametrize("at", [0, 9, 30, 700, 3999])
def test_a_byte_of_the_content_is_found_though_all_counts_are_right(path, at):
    number, data = first_used(path)
    data[at] ^= 1
    change(path, ("UPDATE block SET data = ? WHERE n = ?", (bytes(data), number)))
    with pytest.raises(StorageCorrupted):
        PartitionedVectorIndex.open(path, DESCRIPTOR)


def test_content_whose_digests_were_made_to_fit_is_held_to_the_rules_of_admission(path, monkeypatch):
    # What an index would write that admits anything.
    def write(*wrong):
        place = path.with_name(f"{len(list(path.parent.iterdir()))}.vectors")
        with monkeypatch.context() as patch:
            patch.setattr(admission, "check_numbers", lambda *_: None)
            patch.setattr(
                admission, "in_order", lambda words, vectors: (words._replace(**dict(wrong)), vectors)
            )
            with PartitionedVectorIndex.open(
                place, VectorDescriptor(dimension=2, metric="dot_product")
            ) as index:
                index.replace_partition("p", [record("a", 1, 0), record("b", 0, 1)])
        return place

    PartitionedVectorIndex.open(write(), VectorDescriptor(dimension=2, metric="dot_product")).close()
    for wrong in (
        {"ids": ("b", "a")},
        {"ids": ("a", "a")},
        {"ids": ("a", " ")},
        {"name": " p"},
        {"labels": ({" ": "x"}, {})},
        {"labels": ({"l": "1", "k": "1"}, {})},
    ):
        place = write(*wrong.items())
        with pytest.raises(StorageCorrupted):
            PartitionedVectorIndex.open(place, VectorDescriptor(dimension=2, metric="dot_product"))


def test_a_damaged_mark_is_found(path):
    mark = path.with_name(path.name + ".mark")
    whole = mark.read_bytes()
    for broken in (whole[:100], whole[:40] + b"x" + whole[41:], b"\0" * len(whole), whole + b"x"):
        mark.write_bytes(broken)
        with pytest.raises(StorageCorrupted):
            PartitionedVectorIndex.open(path, DESCRIPTOR)
    mark.write_bytes(whole)
    PartitionedVectorIndex.open(path, DESCRIPTOR).close()


def test_damage_that_happens_while_an_index_is_open_is_found_when_it_is_read_again(path):
    with PartitionedVectorIndex.open(path, DESCRIPTOR) as index:
        with PartitionedVectorIndex.open(path, DESCRIPTOR) as other:
            other.replace_partition("q", rows(4))
        db = apsw.Connection(str(path))
        db.execute("UPDATE meta SET records = records + 1")
        db.close()
        for _ in range(2):
            with pytest.raises(StorageCorrupted):
                index.observe()
            with pytest.raises(StorageCorrupted):
                index.search(VectorSearchRequest(embedding=[1.0] * 300))
            with pytest.raises(StorageCorrupted):
                index.replace_partition("q", rows(1))
        assert index.status().revision == 4


def test_a_file_that_is_longer_or_shorter_than_its_pages_is_found(path):
    whole = path.read_bytes()
    for broken in (whole[:-1], whole[:-100], whole[:-4096], whole[:1], whole + b"\0", whole + bytes(4096)):
        path.write_bytes(broken)
        with pytest.raises(StorageCorrupted):
            PartitionedVectorIndex.open(path, DESCRIPTOR)
        assert path.read_bytes() == broken
    path.write_bytes(whole)
    PartitionedVectorIndex.open(path, DESCRIPTOR).close()


def test_an_entry_that_orders_rows_and_names_another_one_is_found(path):
    data = bytearray(path.read_bytes())
    places = [at for at in range(len(data)) if data.startswith(b"\0" * 7 + b"\1" + bytes(4), at)]
    assert len(places) > 1, "the place of a block is in its row and in the order"
    found = 0
    for at in places:
        broken = bytearray(data)
        broken[at + 12] ^= 2  # in the order: the number of the row
        path.write_bytes(broken)
        with pytest.raises(StorageCorrupted):
            PartitionedVectorIndex.open(path, DESCRIPTOR)
        found += 1
    assert found == len(places)


def test_a_flipped_bit_of_what_is_written_gives_the_content_or_says_that_it_is_damaged(tmp_path):
    descriptor, asked = VectorDescriptor(dimension=3), VectorSearchRequest(embedding=[1, 0, 0])
    path, mark = tmp_path / "index.vectors", tmp_path / "index.vectors.mark"
    with PartitionedVectorIndex.open(path, descriptor) as index:
        index.replace_partition("p", [record("one", 1, 0, 0)])
    whole, marked = path.read_bytes(), mark.read_bytes()
    written = [at for at in range(len(whole)) if whole[at]]
    defined = [at for at in written if whole.find(b"CREATE TABLE block") <= at < 4096]
    generator = random.Random(11)
    refused = 0
    for trial in range(300):
        data = bytearray(whole)
        data[generator.choice(defined if trial % 3 == 0 else written)] ^= 1 << generator.randrange(8)
        path.write_bytes(data)
        mark.write_bytes(marked)
        path.with_name(path.name + "-journal").unlink(missing_ok=True)
        try:
            with PartitionedVectorIndex.open(path, descriptor) as index:
                assert [(hit.id, hit.score) for hit in index.search(asked).hits] == [("one", 1.0)]
        except StorageCorrupted:
            refused += 1
    assert refused > 250


def test_a_flipped_bit_anywhere_gives_the_content_or_an_error(path, tmp_path):
    generator = random.Random(7)
    with PartitionedVectorIndex.open(path, DESCRIPTOR) as index:
        whole, revision = json.dumps([one.record.id for one in index.list().items]), index.status().revision
    size = path.stat().st_size
    refused = 0
    for trial in range(60):
        target = tmp_path / f"{trial}.vectors"
        shutil.copy(path, target)
        data = bytearray(target.read_bytes())
        data[generator.randrange(size)] ^= 1 << generator.randrange(8)
        target.write_bytes(data)
        try:
            with PartitionedVectorIndex.open(target, DESCRIPTOR) as index:
                assert json.dumps([one.record.id for one in index.list().items]) == whole
                assert index.status().revision == revision
        except PerdureError:
            refused += 1
    assert refused > 10, "most of the file is in use"
