"""An index in a file: reopened, shared, copied, put back, encrypted."""

from __future__ import annotations

import os
import shutil

import apsw
import pytest

from perdure.errors import Busy, InvalidRequest, Unavailable, WrongKey
from perdure.vectors import (
    BudgetExceeded,
    DescriptorMismatch,
    PartitionedVectorIndex,
    RevisionConflict,
    RevisionExhausted,
    StorageCorrupted,
    StorageFailed,
    VectorDescriptor,
    VectorSearchRequest,
)
from perdure.vectors.coding import new_coding
from perdure.vectors.partitioned.admission import admit
from perdure.vectors.partitioned.snapshot import head_of
from vector_records import PLANE, found, record

KEY = bytes(range(32))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "deep" / "index.vectors"


def opened(path, descriptor=PLANE, **options):
    return PartitionedVectorIndex.open(path, descriptor, **options)


def mark_of(path):
    return path.with_name(path.name + ".mark")


def copied(path, target, *, mark):
    target.parent.mkdir(exist_ok=True)
    shutil.copy(path, target)
    if mark:
        shutil.copy(mark_of(path), mark_of(target))


@pytest.mark.parametrize("key", [None, KEY, "a passphrase"])
def test_what_was_told_is_there_after_reopening(path, key):
    with opened(path, key=key) as index:
        index.replace_partition("p", [record("a", 1, 0, lang="en"), record("b", 1, 1, lang="de")])
        index.replace_partition("q", [record("c", 0, 1, lang="en")])
        index.remove_partition("not there")
        before = index.observe(), index.list(), index.partitions()
    with opened(path, key=key) as again:
        assert (again.observe(), again.list(), again.partitions()) == before
        assert found(again, 1, 0, labels={"lang": "en"}) == ["a", "c"]
        assert again.clear().revision == 3
    with opened(path, key=key) as last:
        assert (last.status().revision, last.status().byte_count) == (3, 0)


def test_it_counts_bytes_as_an_index_in_memory_does(path):
    records = [record(f"é{n}", 1, n, lang="en") for n in range(5)]
    with opened(path) as index, PartitionedVectorIndex.in_memory(PLANE) as other:
        assert index.replace_partition("p", records) == other.replace_partition("p", records)
        assert index.change_token().head_digest == other.change_token().head_digest


def test_only_its_owner_may_read_the_files(path):
    with opened(path) as index:
        index.replace_partition("p", [record("a", 1, 0)])
        index.remove_partition("p")
        modes = {one.name: one.stat().st_mode & 0o777 for one in path.parent.iterdir()}
    if os.name == "posix":
        assert set(modes.values()) == {0o600}
        assert {"index.vectors", "index.vectors.mark"} <= set(modes)


def test_partitions_that_shrink_and_grow_keep_their_bytes_apart(path):
    wide = VectorDescriptor(dimension=700)
    with opened(path, wide) as index:
        for size in (1, 7, 3, 0, 9, 2):
            for name in "pqr":
                rows = [record(f"{name}{n}", *([n + 1.0] * 700)) for n in range(size)]
                index.replace_partition(name, rows)
                with opened(path, wide) as other:
                    assert other.observe() == index.observe()
                    assert other.list() == index.list()


def test_the_room_of_what_was_removed_is_used_again(path):
    wide = VectorDescriptor(dimension=500)
    rows = [record(str(n), *([1.0] * 500)) for n in range(20)]
    with opened(path, wide) as index:
        index.replace_partition("p", rows)
        size = path.stat().st_size
        for number in range(5):
            index.remove_partition("p")
            index.replace_partition(f"p{number}", rows)
            index.remove_partition(f"p{number}")
            index.replace_partition("p", rows)
        assert path.stat().st_size == size


def test_two_handles_see_each_other_and_one_of_two_writers_wins(path):
    with opened(path) as one, opened(path) as other:
        one.replace_partition_if_revision("p", 0, [record("one", 1, 0)])
        with pytest.raises(RevisionConflict) as conflict:
            other.replace_partition_if_revision("p", 0, [record("other", 1, 0)])
        assert conflict.value.actual == 1
        assert other.status().revision == 1, "who was told of a newer revision knows it"
        assert found(other, 1, 0) == ["one"]
        other.replace_partition("q", [record("other", 0, 1)])
        assert found(one, 0, 1) == ["other", "one"]
        assert one.observe() == other.observe()


def test_another_descriptor_is_refused_and_the_index_is_unharmed(path):
    with opened(path, VectorDescriptor(dimension=2, model="m1")) as index:
        index.replace_partition("p", [record("a", 1, 0)])
        token = index.change_token()
    for other, fields in (
        (VectorDescriptor(dimension=3, model="m1"), ("dimension",)),
        (VectorDescriptor(dimension=2, model="m2"), ("model",)),
        (VectorDescriptor(dimension=2), ("model",)),
        (
            VectorDescriptor(dimension=2, metric="dot_product", normalization="none", model="m1"),
            ("metric", "normalization"),
        ),
    ):
        with pytest.raises(DescriptorMismatch) as refused:
            opened(path, other)
        assert refused.value.fields == fields
    with opened(path, VectorDescriptor(dimension=2, model="m1")) as index:
        assert index.change_token() == token


def test_budgets_are_raised_by_opening_and_lowered_as_long_as_the_content_fits(path):
    with opened(path, VectorDescriptor(dimension=2, max_records=2)) as index:
        index.replace_partition("p", [record("a", 1, 0), record("b", 1, 0)])
        token = index.change_token()
        with opened(path, VectorDescriptor(dimension=2, max_records=3)) as raised:
            raised.replace_partition("q", [record("c", 1, 0)])
            raised.remove_partition("q")
        index.observe()
        assert index.descriptor.max_records == 3, "all handles have the budgets of the last opening"
    for told in ({"max_records": 1}, {"max_bytes": 10}):
        with pytest.raises(BudgetExceeded):
            opened(path, VectorDescriptor(dimension=2, **told))
    with opened(path, VectorDescriptor(dimension=2, max_records=2)) as index:
        assert index.change_token().history_id == token.history_id
        with pytest.raises(BudgetExceeded):
            index.replace_partition("q", [record("c", 1, 0)])


def test_a_copy_of_the_file_alone_has_another_token_and_the_original_keeps_its_own(path, tmp_path):
    target = tmp_path / "copy" / "index.vectors"
    with opened(path) as index:
        index.replace_partition("p", [record("a", 1, 0)])
        token = index.change_token()
    copied(path, target, mark=False)
    with opened(target) as copy:
        assert copy.status().revision == 1
        assert found(copy, 1, 0) == ["a"]
        forked = copy.change_token()
        assert forked.history_id != token.history_id
        assert forked.head_digest == token.head_digest
    with opened(target) as copy:
        assert copy.change_token() == forked
    with opened(path) as index:
        assert index.change_token() == token


def test_a_copy_of_both_files_has_the_token_until_either_changes(path, tmp_path):
    target = tmp_path / "copy" / "index.vectors"
    with opened(path) as index:
        index.replace_partition("p", [record("a", 1, 0)])
    copied(path, target, mark=True)
    with opened(path) as index, opened(target) as copy:
        assert index.observe() == copy.observe()
        index.replace_partition("p", [record("b", 1, 0)])
        copy.replace_partition("p", [record("c", 1, 0)])
        assert index.status() == copy.status()
        assert index.change_token() != copy.change_token(), "equal tokens mean equal content"


def test_an_older_file_that_is_put_back_has_another_token(path, tmp_path):
    older = tmp_path / "older"
    with opened(path) as index:
        index.replace_partition("p", [record("a", 1, 0)])
    shutil.copy(path, older)
    with opened(path) as index:
        index.replace_partition("p", [record("b", 1, 0)])
        token = index.change_token()
    shutil.copy(older, path)
    with opened(path) as restored:
        assert restored.change_token().history_id != token.history_id
        assert found(restored, 1, 0) == ["a"]


def test_a_file_that_went_on_elsewhere_has_another_token_at_the_same_revision(path, tmp_path):
    target = tmp_path / "copy" / "index.vectors"
    opened(path).close()
    copied(path, target, mark=True)
    for place, id_ in ((path, "a"), (target, "b")):
        with opened(place) as index:
            index.replace_partition("p", [record(id_, 1, 0)])
            history = index.change_token().history_id
    shutil.copy(target, path)
    with opened(path) as replaced:
        assert replaced.change_token().history_id != history


def test_a_database_or_a_mark_that_is_gone_is_not_made_anew(path):
    with opened(path) as index:
        index.replace_partition("p", [record("a", 1, 0)])
    path.unlink()
    with pytest.raises(StorageCorrupted):
        opened(path)
    assert not path.exists()


def test_the_wrong_key_is_told_from_a_missing_one_and_from_damage(path, tmp_path):
    plain = tmp_path / "plain.vectors"
    opened(plain).close()
    with opened(path, key=KEY) as index:
        index.replace_partition("p", [record("a", 1, 0)])
    for place, key in ((path, None), (path, bytes(32)), (path, "words"), (plain, KEY), (plain, "words")):
        with pytest.raises(WrongKey):
            opened(place, key=key)
    with pytest.raises(InvalidRequest):
        opened(path, key=b"short")
    with opened(path, key=lambda: KEY) as index:
        assert found(index, 1, 0) == ["a"]


def test_an_encrypted_copy_without_its_mark_opens_with_bytes_and_not_with_a_passphrase(tmp_path):
    for name, key in (("bytes", KEY), ("words", "a passphrase")):
        with opened(tmp_path / name, key=key) as index:
            index.replace_partition("p", [record("a", 1, 0)])
            token = index.change_token()
        mark_of(tmp_path / name).unlink()
        if name == "bytes":
            for wrong in (bytes(32), None):
                with pytest.raises(WrongKey):
                    opened(tmp_path / name, key=wrong)
            with opened(tmp_path / name, key=key) as index:
                assert found(index, 1, 0) == ["a"]
                assert index.change_token().history_id != token.history_id
        else:
            with pytest.raises(StorageCorrupted):
                opened(tmp_path / name, key=key)


def test_a_file_that_is_no_index_is_left_as_it_is(path):
    path.parent.mkdir()
    path.write_bytes(b"notes, and no index" * 400)
    with pytest.raises(WrongKey, match="is no vector index, or it is an encrypted one"):
        opened(path)
    with pytest.raises(WrongKey, match="is no vector index, or it is one that is encrypted with another key"):
        opened(path, key=KEY)
    assert path.read_bytes() == b"notes, and no index" * 400


def test_a_directory_in_the_files_place_is_told(path):
    path.mkdir(parents=True)
    with pytest.raises(StorageFailed, match="path is a directory"):
        opened(path)
    assert list(path.parent.iterdir()) == [path]


def test_an_empty_file_is_what_a_crash_leaves_and_becomes_an_index(path):
    path.parent.mkdir()
    path.touch()
    with opened(path) as index:
        assert index.status().revision == 0


def test_files_that_were_replaced_take_no_more_writes(path):
    with opened(path) as index:
        index.replace_partition("p", [record("a", 1, 0)])
        path.rename(path.with_name("moved"))
        with pytest.raises(StorageFailed):
            index.replace_partition("p", [record("b", 1, 0)])
        shutil.copy(path.with_name("moved"), path)
        with pytest.raises(StorageFailed):
            index.replace_partition("p", [record("b", 1, 0)])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_must_open_the_index_for_itself(path):
    with opened(path) as index:
        index.replace_partition("p", [record("a", 1, 0)])
        child = os.fork()
        if child == 0:
            try:
                index.search(VectorSearchRequest(embedding=[1, 0]))
            except Unavailable:
                os._exit(7)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert found(index, 1, 0) == ["a"]


def test_who_waits_longer_than_told_is_busy(path):
    with opened(path, timeout_s=0.05) as index:
        other = apsw.Connection(str(path))
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(Busy):
            index.replace_partition("p", [record("a", 1, 0)])
        other.execute("ROLLBACK")
        other.close()
        assert index.replace_partition("p", [record("a", 1, 0)]).revision == 1


@pytest.mark.parametrize("wrong", ["", "a\0b", None, 3])
def test_what_is_no_path_is_refused(wrong):
    with pytest.raises(InvalidRequest) as refused:
        opened(wrong)
    assert refused.value.field == "path"


@pytest.mark.parametrize("timeout_s", [-1, float("nan"), 1e9, True, "5"])
def test_what_is_no_time_out_is_refused(path, timeout_s):
    with pytest.raises(InvalidRequest) as refused:
        opened(path, timeout_s=timeout_s)
    assert refused.value.field == "timeout_s"


def test_an_index_that_counted_to_its_last_revision_changes_no_more(path):
    with opened(path) as index:
        index.replace_partition("p", [record("a", 1, 0)])
    last = (1 << 53) - 1
    digest = admit("p", [record("a", 1, 0)], PLANE, new_coding(2)).digest
    db = apsw.Connection(str(path))
    db.execute("UPDATE meta SET revision = ?, head = ?", (last, head_of(PLANE, last, [digest])))
    db.close()
    mark_of(path).unlink()
    with opened(path) as index:
        assert index.status().revision == last
        with pytest.raises(RevisionExhausted):
            index.replace_partition("p", [record("b", 1, 0)])
        assert index.remove_partition("not there").revision == last
        assert found(index, 1, 0) == ["a"]
