"""What every Log must do: inherit LogSpec, give it the fixture `reopen`, and run pytest.

```python
class TestMyLog(LogSpec):
    @pytest.fixture
    def reopen(self, tmp_path):
        return lambda: MyLog(tmp_path / "store")
```

`reopen` returns a function that opens the same store anew (the earlier handle may still be open). A log that
keeps nothing sets `durable = False` and opens empty; one that drops caches sets `keeps_caches = False`. One that makes
backups gives the method `open_copy(directory, log)`, which opens the copy that `log` made. Needs pytest.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from perdure.errors import Busy, Conflict, InvalidRequest, Moved, NotFound, Unavailable
from perdure.log.digests import advance, checksums
from perdure.log.protocol import (
    EMPTY,
    KEY_BYTES,
    SECRET_BYTES,
    Batch,
    Cached,
    Entry,
    Head,
    Log,
    Purged,
    Read,
    Rewritten,
)

Open = Callable[[], Log]
WAITED_S_MAX = 5.0  # far more than any wait that a test asks for, far less than a log's own time-out


def key(number: int) -> bytes:
    """Return a hash as callers make them: KEY_BYTES bytes."""
    return number.to_bytes(KEY_BYTES, "big")


def entries(log: Log, space: int) -> list[Entry]:
    """Return all of a space's entries."""
    return list(log.read(space, 0, log.head(space).seq))


def add(log: Log, space: int, *records: bytes, erase: Sequence[int] = ()) -> Head:
    """Append at the present head."""
    return log.append(space, log.head(space), Batch(records=records, erase=erase))


def keep_live(space: int, read: Read) -> Iterator[Rewritten]:
    """Keep every record that was not erased, without its keys."""
    for entry in read():
        if entry.data is not None:
            yield Rewritten(entry.data)


class Interrupted(Exception):
    """Raised by a batch while it is being read."""


class BreakingRecords(Sequence[bytes]):
    """Records that fail after some of them were handed out."""

    def __init__(self, whole: int) -> None:
        self._whole = whole

    def __len__(self) -> int:
        return self._whole + 1

    def __getitem__(self, position: int) -> bytes:  # type: ignore[override]
        if position >= self._whole:
            raise Interrupted
        return b"record"


class LogSpec:
    """The contract, one sentence per test."""

    durable = True
    keeps_caches = True  # False for a log that may drop any cache at once
    cleans = True  # False for a log that cannot say that nothing is left of what was erased

    def check_scrubbed(self, log: Log) -> None:
        assert log.scrub() == self.cleans
        assert log.scrub_pending() != self.cleans

    def check_cached(self, log: Log, space: int, expected: Cached) -> None:
        found = log.get_cache(space, "state")
        assert found == expected or (found is None and not self.keeps_caches)

    def open_copy(self, directory: Path, log: Log) -> Log:
        raise NotImplementedError("give a method `open_copy` that opens the backup in a directory")

    @pytest.fixture
    def reopen(self) -> Open:
        raise NotImplementedError(
            "give a fixture `reopen` that returns a function opening the log under test"
        )

    @pytest.fixture
    def log(self, reopen: Open) -> Iterator[Log]:
        log = reopen()
        yield log
        log.close()

    @pytest.fixture
    def space(self, log: Log) -> int:
        return log.create_space(key(1), b"first")

    # Order and numbering

    def test_a_new_log_has_no_spaces(self, log: Log) -> None:
        assert log.spaces() == []

    def test_a_space_begins_with_its_first_record_as_number_one(self, log: Log, space: int) -> None:
        assert log.head(space).seq == 1
        assert entries(log, space) == [Entry(1, b"first")]

    def test_records_are_numbered_from_one_without_gaps_in_the_order_they_were_given(
        self, log: Log, space: int
    ) -> None:
        add(log, space, b"second", b"third")
        add(log, space, b"fourth")
        assert entries(log, space) == [
            Entry(1, b"first"),
            Entry(2, b"second"),
            Entry(3, b"third"),
            Entry(4, b"fourth"),
        ]

    def test_a_read_yields_what_lies_after_one_number_and_up_to_another(self, log: Log, space: int) -> None:
        add(log, space, *(b"%d" % number for number in range(2, 11)))
        assert [entry.seq for entry in log.read(space, 3, 7)] == [4, 5, 6, 7]
        assert [entry.seq for entry in log.read(space, 8, 99)] == [9, 10]
        assert list(log.read(space, 10, 10)) == []
        assert list(log.read(space, 7, 3)) == []

    def test_a_long_space_is_read_whole(self, log: Log, space: int) -> None:
        records = [b"record %d" % number for number in range(5000)]
        add(log, space, *records)
        assert [entry.data for entry in entries(log, space)] == [b"first", *records]

    @pytest.mark.parametrize("size", [0, 1, 100, 5000, 1_000_000])
    def test_a_record_of_any_size_comes_back_as_it_was(self, log: Log, space: int, size: int) -> None:
        data = bytes(position % 251 for position in range(size))
        head = add(log, space, data)
        assert log.get(space, [2], head) == [data]

    def test_records_of_zeros_are_not_taken_for_erased_ones(self, log: Log, space: int) -> None:
        head = add(log, space, bytes(40))
        assert log.get(space, [2], head) == [bytes(40)]
        assert head.erasures == 0

    def test_a_batch_of_nothing_leaves_the_head_where_it_was(self, log: Log, space: int) -> None:
        head = log.head(space)
        assert log.append(space, head, Batch(records=[])) == head == log.head(space)

    # Heads

    def test_append_returns_the_head_that_is_then_read(self, log: Log, space: int) -> None:
        head = add(log, space, b"second", b"third")
        assert head == log.head(space)
        assert (head.epoch, head.seq, head.erasures) == (log.head(space).epoch, 3, 0)

    def test_the_digest_is_the_sum_of_keyed_hashes_of_live_records(self, log: Log, space: int) -> None:
        add(log, space, b"second", b"third")
        head = add(log, space, b"fourth", erase=[2])
        first, _, third, fourth = checksums(space, 0, [b"first", b"second", b"third", b"fourth"])
        begun = Head(head.epoch, 0, 0, bytes(32))
        whole = advance(begun, log.secret, [first, bytes(16), third, fourth])
        assert head.digest == advance(whole, log.secret, [], [(2, bytes(16))]).digest

    def test_the_secret_is_the_same_at_every_asking(self, log: Log) -> None:
        assert len(log.secret) == SECRET_BYTES
        assert log.secret == log.secret

    # Compare and set

    def test_an_append_at_a_head_that_moved_conflicts_and_writes_nothing(self, log: Log, space: int) -> None:
        stale = log.head(space)
        now = add(log, space, b"second")
        with pytest.raises(Conflict) as caught:
            log.append(space, stale, Batch(records=[b"late"], keys=[(key(5), 0)]))
        assert caught.value.kind == "head"
        assert log.head(space) == now
        assert log.find(space, [key(5)]) == {}
        assert len(entries(log, space)) == 2

    def test_an_append_at_a_head_from_before_an_erasure_conflicts(self, log: Log, space: int) -> None:
        stale = add(log, space, b"second")
        log.append(space, stale, Batch(records=[], erase=[2]))
        with pytest.raises(Conflict):
            log.append(space, stale, Batch(records=[b"late"]))

    def test_an_append_that_rests_on_another_space_conflicts_once_something_was_erased_of_that(
        self, log: Log, space: int
    ) -> None:
        other = log.create_space(b"o" * KEY_BYTES, b"what the others rest on")
        known = add(log, other, b"second")
        add(log, other, b"third")
        now = log.append(space, log.head(space), Batch(records=[b"one"], unerased=[(other, known)]))
        add(log, other, erase=[3])
        for rests in ([(other, known)], [(other, log.head(other)), (other, known)], [(99, known)]):
            with pytest.raises(Conflict) as caught:
                log.append(space, now, Batch(records=[b"late"], unerased=rests))
            assert caught.value.kind == "head"
        assert log.head(space) == now
        log.append(space, now, Batch(records=[b"two"], unerased=[(other, log.head(other))]))
        assert len(entries(log, space)) == 3

    def test_an_append_that_rests_on_another_space_as_it_is_conflicts_once_anything_was_written_to_that(
        self, log: Log, space: int
    ) -> None:
        name, nobody = b"o" * KEY_BYTES, (b"p" * KEY_BYTES, EMPTY)
        known = log.head(other := log.create_space(name, b"what the others rest on"))
        now = log.append(space, log.head(space), Batch([b"one"], unchanged=[(name, known), nobody]))
        add(log, other, b"second")
        for rests in ([(name, known)], [nobody, (name, EMPTY)], [(nobody[0], known)]):
            with pytest.raises(Conflict) as caught:
                log.append(space, now, Batch([b"late"], unchanged=rests))
            assert caught.value.kind == "head"
        assert log.head(space) == now
        now = log.append(space, now, Batch([b"two"], [2], unchanged=[(name, log.head(other))]))
        add(log, other, erase=[1])  # and it has lost its name
        with pytest.raises(Conflict):
            log.append(space, now, Batch([b"late"], unchanged=[(name, log.head(other))]))
        log.append(space, now, Batch([b"three"], unchanged=[(name, EMPTY)]))
        assert len(entries(log, space)) == 4

    def test_threads_that_retry_on_conflict_lose_and_repeat_nothing(self, log: Log, space: int) -> None:
        def write(writer: int) -> None:
            for number in range(10):
                while True:
                    try:
                        add(log, space, b"%d/%d" % (writer, number))
                        break
                    except Conflict:
                        continue

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(write, range(8)))
        found = entries(log, space)
        assert [entry.seq for entry in found] == list(range(1, 82))
        told = [entry.data or b"" for entry in found[1:]]
        assert sorted(told) == sorted(b"%d/%d" % place for place in itertools.product(range(8), range(10)))
        for writer in range(8):
            own = [data for data in told if data.startswith(b"%d/" % writer)]
            assert own == [b"%d/%d" % (writer, number) for number in range(10)]

    def test_readers_see_each_batch_whole_or_not_at_all(self, log: Log, space: int) -> None:
        done = threading.Event()
        seen = []

        def read() -> None:
            while not done.is_set():
                seen.append(log.head(space).seq)
                seen.append(1 + len(list(log.read(space, 1, 10_000))))

        reader = threading.Thread(target=read)
        reader.start()
        try:
            for _ in range(20):
                add(log, space, b"a", b"b", b"c")
        finally:
            done.set()
            reader.join()
        assert {seq % 3 for seq in seen} <= {1}

    # All or nothing

    @pytest.mark.parametrize("whole", [0, 1, 3])
    def test_a_batch_that_fails_while_it_is_read_leaves_nothing(
        self, log: Log, space: int, whole: int
    ) -> None:
        head = log.head(space)
        with pytest.raises(Interrupted):
            log.append(space, head, Batch(records=BreakingRecords(whole), erase=[1]))
        assert log.head(space) == head
        assert entries(log, space) == [Entry(1, b"first")]
        assert add(log, space, b"second").seq == 2

    @pytest.mark.parametrize("wrong", ["text", None, bytearray(b"mutable"), 7])
    def test_a_record_that_is_not_bytes_is_refused_with_its_whole_batch(
        self, log: Log, space: int, wrong: object
    ) -> None:
        with pytest.raises(InvalidRequest, match=r"records\[1\]"):
            add(log, space, b"good", wrong)  # type: ignore[arg-type]
        assert log.head(space).seq == 1

    @pytest.mark.parametrize("seq", [-1, 0, 2, 3])
    def test_erasing_a_number_that_the_space_does_not_hold_is_refused(
        self, log: Log, space: int, seq: int
    ) -> None:
        with pytest.raises(InvalidRequest, match=str(seq)):
            add(log, space, b"second", erase=[1, seq])
        assert entries(log, space) == [Entry(1, b"first")]

    @pytest.mark.parametrize("pointer", [(b"short", 0), (key(2), 1), (key(2), -1)])
    def test_a_key_of_another_length_or_beside_the_records_is_refused(
        self, log: Log, space: int, pointer: tuple[bytes, int]
    ) -> None:
        with pytest.raises(InvalidRequest, match="keys"):
            log.append(space, log.head(space), Batch(records=[b"second"], keys=[pointer]))
        assert log.head(space).seq == 1

    # Erasure

    def test_an_erased_record_reads_none_and_keeps_its_number(self, log: Log, space: int) -> None:
        add(log, space, b"second", b"third")
        head = add(log, space, b"removal", erase=[2])
        assert entries(log, space) == [
            Entry(1, b"first"),
            Entry(2, None),
            Entry(3, b"third"),
            Entry(4, b"removal"),
        ]
        assert log.get(space, [2, 3], head) == [None, b"third"]

    def test_an_erasure_is_counted_and_leaves_the_digest_of_what_remains(self, log: Log, space: int) -> None:
        before = log.head(space)
        add(log, space, b"second")
        head = log.append(space, log.head(space), Batch(records=[], erase=[2]))
        assert head == Head(before.epoch, 2, 1, before.digest)

    def test_erasing_again_counts_once(self, log: Log, space: int) -> None:
        add(log, space, b"second", b"third")
        once = add(log, space, erase=[2, 2])
        assert once.erasures == 1
        assert add(log, space, erase=[2]) == once
        assert add(log, space, erase=[2, 3]).erasures == 2

    def test_an_empty_record_can_be_erased(self, log: Log, space: int) -> None:
        add(log, space, b"")
        head = add(log, space, erase=[2])
        assert log.get(space, [2], head) == [None]
        assert head.erasures == 1

    def test_every_record_of_a_space_can_be_erased(self, log: Log, space: int) -> None:
        add(log, space, b"second")
        head = add(log, space, erase=[1, 2])
        assert head == Head(head.epoch, 2, 2, bytes(32))
        assert entries(log, space) == [Entry(1, None), Entry(2, None)]

    def test_scrub_says_that_nothing_is_left_when_nobody_reads(self, log: Log, space: int) -> None:
        assert log.scrub()
        add(log, space, b"second")
        add(log, space, erase=[2])
        self.check_scrubbed(log)
        self.check_scrubbed(log)
        assert entries(log, space) == [Entry(1, b"first"), Entry(2, None)]

    def test_a_read_that_began_before_an_erasure_ends_in_order(self, log: Log, space: int) -> None:
        add(log, space, *[b"x"] * 5000)
        reading = log.read(space, 0, 5001)
        begun = [next(reading)]
        add(log, space, erase=[5000])
        self.check_scrubbed(log)
        begun.extend(reading)
        assert [entry.seq for entry in begun] == list(range(1, 5002))

    # Point reads

    def test_point_reads_come_in_the_order_asked_repeats_included(self, log: Log, space: int) -> None:
        head = add(log, space, b"second", b"third")
        assert log.get(space, [3, 1, 3, 2], head) == [b"third", b"first", b"third", b"second"]
        assert log.get(space, [], head) == []

    def test_point_reads_of_many_records_come_whole(self, log: Log, space: int) -> None:
        head = add(log, space, *(b"%d" % number for number in range(2, 1001)))
        wanted = list(range(1000, 1, -1))
        assert log.get(space, wanted, head) == [b"%d" % number for number in wanted]

    def test_point_reads_at_an_older_head_still_answer_after_an_append(self, log: Log, space: int) -> None:
        head = log.head(space)
        add(log, space, b"second")
        assert log.get(space, [1], head) == [b"first"]

    def test_point_reads_at_a_head_from_before_an_erasure_say_that_it_moved(
        self, log: Log, space: int
    ) -> None:
        head = add(log, space, b"second")
        add(log, space, erase=[2])
        for seqs in ([1], []):
            with pytest.raises(Moved):
                log.get(space, seqs, head)

    @pytest.mark.parametrize("seq", [-1, 0, 2])
    def test_a_point_read_of_a_number_that_the_space_does_not_hold_is_refused(
        self, log: Log, space: int, seq: int
    ) -> None:
        with pytest.raises(InvalidRequest, match="seqs"):
            log.get(space, [1, seq], log.head(space))

    # Keys

    def test_a_key_finds_its_record_and_unknown_keys_are_left_out(self, log: Log, space: int) -> None:
        log.append(space, log.head(space), Batch(records=[b"a", b"b", b"c"], keys=[(key(7), 2), (key(8), 0)]))
        assert log.find(space, [key(8), key(9), key(7)]) == {key(8): 2, key(7): 4}
        assert log.find(space, []) == {}

    def test_a_key_told_again_points_to_the_newer_record(self, log: Log, space: int) -> None:
        for record in (b"old", b"new"):
            log.append(space, log.head(space), Batch(records=[record], keys=[(key(7), 0)]))
        assert log.find(space, [key(7)]) == {key(7): 3}

    def test_a_key_of_an_erased_record_leads_to_nothing_or_to_none(self, log: Log, space: int) -> None:
        log.append(space, log.head(space), Batch(records=[b"a"], keys=[(key(7), 0)]))
        head = add(log, space, erase=[2])
        found = log.find(space, [key(7)])
        assert found in ({}, {key(7): 2})
        assert log.get(space, list(found.values()), head) in ([], [None])

    # Spaces

    def test_a_space_is_found_by_the_hash_of_its_name(self, log: Log, space: int) -> None:
        assert log.find_space(key(1)) == space
        assert log.find_space(key(2)) is None

    def test_a_space_of_a_name_is_created_once(self, log: Log, space: int) -> None:
        with pytest.raises(Conflict) as caught:
            log.create_space(key(1), b"again")
        assert caught.value.kind == "head"
        assert log.spaces() == [space]
        assert entries(log, space) == [Entry(1, b"first")]

    def test_spaces_are_numbered_from_one_without_gaps_as_they_come(self, log: Log) -> None:
        numbers = [log.create_space(key(10 - number), b"first") for number in range(1, 4)]
        assert numbers == log.spaces() == [1, 2, 3]
        assert log.head(4) == EMPTY

    def test_threads_that_create_one_space_get_one(self, log: Log) -> None:
        def create(_: int) -> int | None:
            try:
                return log.create_space(key(1), b"first")
            except Conflict:
                return None

        with ThreadPoolExecutor(8) as pool:
            made = [number for number in pool.map(create, range(8)) if number is not None]
        assert made == log.spaces()

    def test_spaces_share_neither_records_nor_heads_nor_keys(self, log: Log, space: int) -> None:
        other = log.create_space(key(2), b"other")
        log.append(space, log.head(space), Batch(records=[b"mine"], keys=[(key(7), 0)]))
        assert log.spaces() == sorted([space, other])
        assert entries(log, other) == [Entry(1, b"other")]
        assert log.find(other, [key(7)]) == {}
        log.append(other, log.head(other), Batch(records=[b"a", b"b"], keys=[(key(7), 1)], erase=[1]))
        assert log.find(space, [key(7)]) == {key(7): 2}
        assert log.find(other, [key(7)]) == {key(7): 3}
        assert entries(log, space) == [Entry(1, b"first"), Entry(2, b"mine")]

    def test_the_same_records_in_two_spaces_have_different_digests(self, log: Log, space: int) -> None:
        other = log.create_space(key(2), b"first")
        assert log.head(space).digest != log.head(other).digest

    def test_names_and_keys_do_not_meet(self, log: Log, space: int) -> None:
        assert log.find(space, [key(1)]) == {}
        log.append(space, log.head(space), Batch(records=[b"a"], keys=[(key(1), 0), (key(2), 0)]))
        assert log.find_space(key(1)) == space
        assert log.find_space(key(2)) is None

    def test_reads_of_an_unknown_space_are_empty_and_create_nothing(self, log: Log) -> None:
        assert log.head(5) == EMPTY
        assert list(log.read(5, 0, 10)) == []
        assert log.get(5, [], EMPTY) == []
        assert log.find(5, [key(7)]) == {}
        assert log.find_space(key(7)) is None
        assert log.get_cache(5, "state") is None
        log.put_cache(5, "state", Cached(EMPTY, b"blob"))
        assert log.get_cache(5, "state") is None
        assert log.spaces() == []

    def test_an_append_creates_no_space(self, log: Log) -> None:
        with pytest.raises(NotFound):
            log.append(5, EMPTY, Batch(records=[b"first"]))
        assert log.spaces() == []

    def test_a_name_of_another_length_is_refused(self, log: Log) -> None:
        with pytest.raises(InvalidRequest, match="name"):
            log.create_space(b"short", b"first")
        assert log.spaces() == []

    # The writer's turn

    def test_a_writer_appends_and_creates_within_its_turn(self, log: Log, space: int) -> None:
        with log.writer():
            other = log.create_space(key(2), b"other")
            assert add(log, space, b"second").seq == 2
            assert add(log, other, b"second", erase=[1]).seq == 2
            assert log.scrub() == self.cleans

    def test_one_thread_at_a_time_has_the_turn(self, log: Log) -> None:
        inside = []
        most = []

        def write(writer: int) -> None:
            for _ in range(20):
                with log.writer():
                    inside.append(writer)
                    most.append(len(inside))
                    inside.remove(writer)

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(write, range(8)))
        assert most == [1] * 160

    @pytest.mark.parametrize("timeout_s", [-1.0, 0, 0.01])
    def test_who_waits_for_the_turn_as_long_as_told_is_then_told_that_the_store_is_busy(
        self, log: Log, space: int, timeout_s: float
    ) -> None:
        def wait() -> float:
            began = time.monotonic()
            with pytest.raises(Busy), log.writer(timeout_s):
                pass
            return time.monotonic() - began

        with ThreadPoolExecutor(1) as pool:
            with log.writer():
                assert pool.submit(wait).result() < WAITED_S_MAX
                assert add(log, space, b"second").seq == 2
            with log.writer(timeout_s):
                assert add(log, space, b"third").seq == 3

    def test_the_turn_is_free_again_after_a_failure_inside_it(self, log: Log, space: int) -> None:
        with pytest.raises(Interrupted), log.writer():
            raise Interrupted
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(add, log, space, b"second").result().seq == 2

    # Caches

    def test_a_cache_comes_back_with_its_head(self, log: Log, space: int) -> None:
        cached = Cached(add(log, space, b"second"), b"blob" * 10)
        log.put_cache(space, "state", cached)
        self.check_cached(log, space, cached)
        assert log.get_cache(space, "other") is None

    @pytest.mark.parametrize("size", [0, 1, 9_000_000])
    def test_a_cache_of_any_size_comes_back_whole(self, log: Log, space: int, size: int) -> None:
        cached = Cached(log.head(space), bytes(position % 251 for position in range(1000)) * (size // 1000))
        log.put_cache(space, "state", cached)
        self.check_cached(log, space, cached)

    def test_the_newer_cache_takes_the_place_of_the_older(self, log: Log, space: int) -> None:
        log.put_cache(space, "state", Cached(log.head(space), b"older"))
        newer = Cached(add(log, space, b"second"), b"newer")
        log.put_cache(space, "state", newer)
        self.check_cached(log, space, newer)

    def test_a_cache_outlives_appends(self, log: Log, space: int) -> None:
        cached = Cached(log.head(space), b"blob")
        log.put_cache(space, "state", cached)
        add(log, space, b"second")
        self.check_cached(log, space, cached)

    def test_no_cache_from_before_an_erasure_is_returned_or_taken(self, log: Log, space: int) -> None:
        before = Cached(add(log, space, b"second"), b"blob")
        log.put_cache(space, "state", before)
        add(log, space, erase=[2])
        assert log.get_cache(space, "state") is None
        log.put_cache(space, "state", before)
        assert log.get_cache(space, "state") is None

    # Names

    def test_a_space_whose_first_record_is_erased_loses_its_name_and_the_name_can_be_given_again(
        self, log: Log, space: int
    ) -> None:
        add(log, space, b"last", erase=[1])
        assert log.find_space(key(1)) is None
        assert log.spaces() == [space]
        assert entries(log, space) == [Entry(1, None), Entry(2, b"last")]
        again = log.create_space(key(1), b"again")
        assert again == space + 1
        assert log.find_space(key(1)) == again
        add(log, space, b"more")
        assert entries(log, again) == [Entry(1, b"again")]

    def test_a_space_keeps_its_name_when_any_other_record_is_erased(self, log: Log, space: int) -> None:
        add(log, space, b"second")
        add(log, space, erase=[2])
        assert log.find_space(key(1)) == space

    # Purging

    def test_the_epoch_of_the_log_is_that_of_every_head(self, log: Log, space: int) -> None:
        other = log.create_space(key(2), b"other")
        assert log.epoch() == log.head(space).epoch == log.head(other).epoch

    def test_a_purge_leaves_what_it_is_told_to_keep_numbered_without_gaps(self, log: Log, space: int) -> None:
        add(log, space, b"second", b"third", b"fourth")
        add(log, space, erase=[2])
        before = log.epoch()
        purged = log.purge(keep_live)
        assert purged == Purged(before + 1, records=3, dropped=1, pending=not self.cleans)
        assert log.epoch() == log.head(space).epoch == before + 1
        assert entries(log, space) == [Entry(1, b"first"), Entry(2, b"third"), Entry(3, b"fourth")]
        self.check_scrubbed(log)

    def test_the_head_of_a_purged_space_is_that_of_one_that_never_held_more(
        self, log: Log, space: int
    ) -> None:
        add(log, space, b"second", b"third")
        add(log, space, b"fourth", erase=[2])
        log.purge(keep_live)
        begun = Head(log.epoch(), 0, 0, bytes(32))
        records = [b"first", b"third", b"fourth"]
        assert log.head(space) == advance(begun, log.secret, checksums(space, 0, records))

    def test_a_purge_may_write_records_that_differ_from_those_it_read(self, log: Log, space: int) -> None:
        add(log, space, b"second")
        sizes = [0, 1, 5000, 1_000_000]
        new = [bytes(position % 251 for position in range(size)) for size in sizes]
        log.purge(lambda number, read: iter([Rewritten(data) for data in new]))
        assert log.get(space, [1, 2, 3, 4], log.head(space)) == new

    def test_a_purge_of_many_records_keeps_each_in_its_place(self, log: Log, space: int) -> None:
        records = [b"record %d" % number for number in range(2500)]
        add(log, space, *records)
        add(log, space, erase=[1000, 2000])
        purged = log.purge(keep_live)
        assert (purged.records, purged.dropped) == (2499, 2)
        kept = [b"first", *records]
        del kept[1999], kept[999]
        assert [entry.data for entry in entries(log, space)] == kept

    def test_a_purge_reads_each_space_in_order_and_as_often_as_it_needs(self, log: Log, space: int) -> None:
        other = log.create_space(key(2), b"other")
        add(log, space, b"second")
        add(log, space, b"third", erase=[2])
        seen: list[tuple[int, list[Entry]]] = []

        def rewrite(number: int, read: Read) -> Iterator[Rewritten]:
            first, second = list(read()), list(read())
            assert first == second
            seen.append((number, first))
            return keep_live(number, read)

        log.purge(rewrite)
        whole = [Entry(1, b"first"), Entry(2, None), Entry(3, b"third")]
        assert sorted(seen) == [(space, whole), (other, [Entry(1, b"other")])]

    def test_a_space_left_with_no_record_is_gone_and_the_others_are_numbered_without_gaps(
        self, log: Log, space: int
    ) -> None:
        log.create_space(key(2), b"gone")
        log.create_space(key(3), b"kept")
        purged = log.purge(lambda number, read: iter(()) if number == 2 else keep_live(number, read))
        assert (purged.records, purged.dropped) == (2, 1)
        assert log.spaces() == [1, 2]
        first, gone, kept = (log.find_space(key(number)) for number in (1, 2, 3))
        assert first is not None and kept is not None  # noqa: PT018 - for the type checker
        assert (sorted([first, kept]), gone) == ([1, 2], None)
        assert entries(log, kept) == [Entry(1, b"kept")]
        assert log.head(3) == EMPTY
        assert list(log.read(3, 0, 9)) == []
        again = log.create_space(key(2), b"anew")
        assert (again, log.head(again).epoch) == (3, log.epoch())

    def test_a_purge_leaves_nothing_that_tells_which_space_came_first(self, log: Log) -> None:
        names = [key(number) for number in range(1, 7)]
        for name in names:
            log.create_space(name, b"first")
        log.purge(keep_live)
        once = [log.find_space(name) for name in names]
        assert sorted(number or 0 for number in once) == [1, 2, 3, 4, 5, 6]
        log.purge(lambda number, read: iter(()))
        for name in reversed(names):
            log.create_space(name, b"first")
        log.purge(keep_live)
        assert [log.find_space(name) for name in names] == once

    def test_a_space_that_lost_its_name_is_gone_after_a_purge_that_keeps_nothing_of_it(
        self, log: Log, space: int
    ) -> None:
        add(log, space, b"last", erase=[1])
        log.create_space(key(1), b"again")
        log.purge(lambda number, read: iter(()) if number == space else keep_live(number, read))
        assert log.spaces() == [1]
        assert log.find_space(key(1)) == 1
        assert entries(log, 1) == [Entry(1, b"again")]

    def test_a_purge_may_leave_no_space_at_all(self, log: Log, space: int) -> None:
        assert log.purge(lambda number, read: iter(())).records == 0
        assert log.spaces() == []
        assert log.find_space(key(1)) is None
        assert log.create_space(key(1), b"first") == 1

    def test_a_purge_runs_also_where_there_is_nothing_to_purge(self, log: Log) -> None:
        first = log.purge(keep_live)
        assert (first.records, first.dropped, first.pending) == (0, 0, False)
        assert log.purge(keep_live).epoch == first.epoch + 1 == log.epoch()
        space = log.create_space(key(1), b"first")
        assert log.purge(keep_live)[:3] == (first.epoch + 2, 1, 0)
        assert entries(log, space) == [Entry(1, b"first")]

    def test_only_the_keys_that_a_purge_gives_lead_anywhere_after_it(self, log: Log, space: int) -> None:
        batch = Batch(records=[b"a", b"b"], keys=[(key(7), 0), (key(8), 1)])
        log.append(space, log.head(space), batch)

        def rewrite(number: int, read: Read) -> Iterator[Rewritten]:
            yield Rewritten(b"first")
            yield Rewritten(b"b", keys=[key(8), key(10)])
            yield Rewritten(b"c", keys=[key(9)])

        log.purge(rewrite)
        wanted = [key(number) for number in (7, 8, 9, 10)]
        assert log.find(space, wanted) == {key(8): 2, key(9): 3, key(10): 2}
        assert log.find_space(key(1)) == space

    def test_a_purge_that_gives_a_key_to_the_first_record_of_a_space_is_refused(
        self, log: Log, space: int
    ) -> None:
        before = (log.epoch(), log.head(space), entries(log, space))
        with pytest.raises(InvalidRequest, match="record 1"):
            log.purge(lambda number, read: iter([Rewritten(b"first", keys=[key(9)])]))
        assert (log.epoch(), log.head(space), entries(log, space)) == before

    def test_no_cache_from_before_a_purge_is_returned_or_taken(self, log: Log, space: int) -> None:
        before = Cached(log.head(space), b"blob")
        log.put_cache(space, "state", before)
        log.purge(keep_live)
        assert log.get_cache(space, "state") is None
        log.put_cache(space, "state", before)
        assert log.get_cache(space, "state") is None
        after = Cached(log.head(space), b"after")
        log.put_cache(space, "state", after)
        self.check_cached(log, space, after)

    def test_a_head_from_before_a_purge_is_of_no_use_after_it(self, log: Log, space: int) -> None:
        head = add(log, space, b"second")
        log.purge(keep_live)
        for seqs in ([1], []):
            with pytest.raises(Moved):
                log.get(space, seqs, head)
        with pytest.raises(Conflict):
            log.append(space, head, Batch(records=[b"late"]))
        assert entries(log, space) == [Entry(1, b"first"), Entry(2, b"second")]

    def test_a_read_that_began_before_a_purge_ends_as_it_began_or_says_that_it_moved(
        self, log: Log, space: int
    ) -> None:
        records = [b"%d" % number for number in range(5000)]
        add(log, space, *records)
        reading = log.read(space, 0, 5001)
        seen = [next(reading).data]
        log.purge(lambda number, read: iter([Rewritten(b"new")] * 5001))
        with contextlib.suppress(Moved):
            seen.extend(entry.data for entry in reading)
        assert seen == [b"first", *records][: len(seen)]
        assert log.get(space, [1], log.head(space)) == [b"new"]

    @pytest.mark.parametrize("kept", [0, 1, 3])
    def test_a_purge_that_fails_while_it_is_told_what_to_keep_changes_nothing(
        self, log: Log, space: int, kept: int
    ) -> None:
        other = log.create_space(key(2), b"other")
        log.append(space, log.head(space), Batch(records=[b"second"], keys=[(key(7), 0)]))
        add(log, space, b"third", erase=[2])

        def rewrite(number: int, read: Read) -> Iterator[Rewritten]:
            yield from [Rewritten(b"new", keys=[key(8)] if later else ()) for later in range(kept)]
            if number == other:
                raise Interrupted

        def state() -> list[object]:
            found: list[object] = [log.epoch(), log.spaces(), log.find_space(key(1)), log.find_space(key(2))]
            for number in log.spaces():
                found += [log.head(number), entries(log, number), log.find(number, [key(7), key(8)])]
            return found

        before = state()
        with pytest.raises(Interrupted):
            log.purge(rewrite)
        assert state() == before
        assert log.scrub() or not self.cleans
        assert add(log, space, b"fourth").seq == 4
        assert log.purge(keep_live).records == 4

    def test_a_purge_tells_how_far_it_is(self, log: Log, space: int) -> None:
        add(log, space, *[b"record"] * 2500)
        told: list[tuple[int, int]] = []
        log.purge(keep_live, progress=lambda done, total: told.append((done, total)))
        assert told == sorted(told)
        assert told[-1][0] == told[-1][1] > 0
        assert len({total for _, total in told}) == 1

    def test_a_purge_runs_within_the_callers_turn_and_gives_a_turn_of_its_own_back(
        self, log: Log, space: int
    ) -> None:
        with log.writer():
            log.purge(keep_live)
            add(log, space, b"second")
        log.purge(keep_live)
        with log.writer(0):
            assert add(log, space, b"third").seq == 3

    def test_a_purged_log_goes_on_as_any_other(self, log: Log, space: int) -> None:
        add(log, space, b"second", b"gone")
        add(log, space, erase=[3])
        log.purge(lambda number, read: iter([Rewritten(b"anew"), Rewritten(b"second")]))
        log.append(space, log.head(space), Batch(records=[b"third"], keys=[(key(7), 0)]))
        head = add(log, space, erase=[2])
        assert head[:3] == (log.epoch(), 3, 1)
        assert entries(log, space) == [Entry(1, b"anew"), Entry(2, None), Entry(3, b"third")]
        assert log.find(space, [key(7)]) == {key(7): 3}
        log.purge(keep_live)
        assert entries(log, space) == [Entry(1, b"anew"), Entry(2, b"third")]

    def test_what_a_purge_left_is_there_when_the_log_is_opened_again(self, reopen: Open) -> None:
        if not self.durable:
            pytest.skip("this log keeps nothing")
        log = reopen()
        space = log.create_space(key(1), b"first")
        log.create_space(key(2), b"gone")
        add(log, space, b"second")
        add(log, space, erase=[2])

        def rewrite(number: int, read: Read) -> Iterator[Rewritten]:
            kept = [Rewritten(b"kept"), Rewritten(b"more", keys=[key(7)])]
            return iter(kept if number == space else ())

        epoch = log.purge(rewrite).epoch
        head = log.head(space)
        log.close()
        log = reopen()
        assert (log.epoch(), log.spaces(), log.head(space)) == (epoch, [space], head)
        assert entries(log, space) == [Entry(1, b"kept"), Entry(2, b"more")]
        assert log.find(space, [key(7)]) == {key(7): 2}
        assert [log.find_space(key(1)), log.find_space(key(2))] == [space, None]
        assert add(log, space, b"second").seq == 3
        log.close()

    # Verifying

    @pytest.mark.parametrize("quick", [False, True])
    def test_a_verification_of_a_whole_log_finds_nothing(self, log: Log, space: int, quick: bool) -> None:
        assert list(log.verify(quick=quick)) == []
        log.create_space(key(2), b"other")
        log.append(space, log.head(space), Batch(records=[b"a", b"", bytes(9000)], keys=[(key(7), 0)]))
        assert list(log.verify(quick=quick)) == []
        add(log, space, b"b", erase=[1, 2])
        assert list(log.verify(quick=quick)) == []
        log.purge(lambda number, read: keep_live(number, read) if number == 2 else iter(()))
        assert list(log.verify(quick=quick)) == []

    def test_a_verification_changes_nothing_and_tells_how_far_it_is(self, log: Log, space: int) -> None:
        add(log, space, *[b"record"] * 100)
        head = log.head(space)
        told: list[tuple[int, int]] = []
        assert list(log.verify(progress=lambda done, total: told.append((done, total)))) == []
        assert told == sorted(told)
        assert told[-1][0] == told[-1][1] > 0
        assert log.head(space) == head

    # Backups

    def test_a_backup_is_a_store_of_its_own_with_the_same_content(
        self, log: Log, space: int, tmp_path: Path
    ) -> None:
        log.append(space, log.head(space), Batch(records=[b"second", b"third"], keys=[(key(7), 1)]))
        add(log, space, erase=[2])
        log.purge(keep_live)
        log.append(space, log.head(space), Batch(records=[b"fourth"], keys=[(key(8), 0)]))
        add(log, space, erase=[1])
        target = tmp_path / "a backup"
        try:
            log.backup(target)
        except Unavailable:
            assert not target.exists()
            return
        before, found = log.head(space), entries(log, space)
        add(log, space, b"later")
        copy = self.open_copy(target, log)
        assert (copy.secret, copy.epoch(), copy.spaces()) == (log.secret, log.epoch(), [space])
        assert (copy.head(space), entries(copy, space)) == (before, found)
        assert copy.find(space, [key(7), key(8)]) == log.find(space, [key(7), key(8)])
        assert copy.find_space(key(1)) is None
        assert list(copy.verify()) == []
        assert add(copy, space, b"of the copy").seq == before.seq + 1
        copy.close()
        assert entries(log, space) == [*found, Entry(before.seq + 1, b"later")]

    def test_a_backup_goes_into_no_directory_that_is_in_use(
        self, log: Log, space: int, tmp_path: Path
    ) -> None:
        target = tmp_path / "in use"
        target.mkdir()
        (target / "of somebody").write_bytes(b"kept")
        with pytest.raises((InvalidRequest, Unavailable)):
            log.backup(target)
        assert [path.name for path in target.iterdir()] == ["of somebody"]
        assert (target / "of somebody").read_bytes() == b"kept"

    def test_a_backup_goes_into_an_empty_directory_and_tells_how_far_it_is(
        self, log: Log, space: int, tmp_path: Path
    ) -> None:
        target = tmp_path / "empty"
        target.mkdir()
        told: list[tuple[int, int]] = []
        try:
            log.backup(target, lambda done, total: told.append((done, total)))
        except Unavailable:
            return
        assert told == sorted(told)
        assert told[-1][0] == told[-1][1] > 0
        assert any(target.iterdir())

    def test_the_moments_of_backups_come_back_in_the_order_they_were_noted(
        self, log: Log, reopen: Open
    ) -> None:
        assert log.backups() == []
        try:
            log.note_backup(1_700_000_000_000)
        except Unavailable:
            return
        log.note_backup(-5)
        log.note_backup(-5)
        space = log.create_space(key(1), b"first")
        add(log, space, b"second")
        add(log, space, erase=[2])
        log.purge(keep_live)
        assert log.backups() == [1_700_000_000_000, -5, -5]
        log.close()
        log = reopen()
        assert log.backups() == [1_700_000_000_000, -5, -5]
        log.close()

    # Values

    def test_changing_what_was_given_or_returned_changes_nothing_stored(self, log: Log, space: int) -> None:
        records = [b"second", b"third"]
        keys = [(key(7), 0)]
        log.append(space, log.head(space), Batch(records=records, keys=keys))
        records.clear()
        keys.clear()
        found = log.get(space, [2, 3], log.head(space))
        assert {type(data) for data in found} == {bytes}
        found.clear()
        log.find(space, [key(7)]).clear()
        log.spaces().clear()
        assert log.get(space, [2, 3], log.head(space)) == [b"second", b"third"]
        assert log.find(space, [key(7)]) == {key(7): 2}
        assert log.spaces() == [space]

    # Closing and opening

    def test_every_call_on_a_closed_log_says_that_it_is_unavailable(
        self, reopen: Open, tmp_path: Path
    ) -> None:
        log = reopen()
        space = log.create_space(key(1), b"first")
        head = log.head(space)
        cached = Cached(head, b"blob")
        log.close()
        log.close()
        calls: list[Callable[[], object]] = [
            log.spaces,
            lambda: log.find_space(key(1)),
            lambda: log.create_space(key(2), b"first"),
            lambda: log.head(space),
            lambda: log.writer().__enter__(),
            lambda: log.writer(0).__enter__(),
            lambda: log.append(space, head, Batch(records=[b"second"])),
            lambda: list(log.read(space, 0, 1)),
            lambda: log.get(space, [1], head),
            lambda: log.find(space, [key(1)]),
            log.scrub,
            log.scrub_pending,
            lambda: log.put_cache(space, "state", cached),
            lambda: log.get_cache(space, "state"),
            log.size_bytes,
            log.reclaimable_bytes,
            log.epoch,
            lambda: log.purge(keep_live),
            lambda: list(log.verify()),
            lambda: log.backup(tmp_path / "a backup"),
            log.backups,
            lambda: log.note_backup(0),
        ]
        for call in calls:
            with pytest.raises(Unavailable):
                call()

    def test_what_was_acknowledged_is_there_when_the_log_is_opened_again(self, reopen: Open) -> None:
        if not self.durable:
            pytest.skip("this log keeps nothing")
        log = reopen()
        space = log.create_space(key(1), b"first")
        log.append(space, log.head(space), Batch(records=[b"second", b"third"], keys=[(key(7), 1)]))
        head = add(log, space, erase=[2])
        found, secret = entries(log, space), log.secret
        log.close()
        log = reopen()
        assert log.secret == secret
        assert log.spaces() == [space]
        assert log.find_space(key(1)) == space
        assert log.head(space) == head
        assert entries(log, space) == found
        assert log.find(space, [key(7)]) == {key(7): 3}
        assert add(log, space, b"fourth").seq == 4
        log.close()

    def test_the_log_tells_its_name_and_its_size(self, log: Log, space: int) -> None:
        assert log.name
        assert log.size_bytes() >= 0
        assert log.reclaimable_bytes() >= 0
