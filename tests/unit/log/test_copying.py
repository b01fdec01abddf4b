"""One log is brought to where another stands, whenever it is stopped and whatever happens to the other meanwhile."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from perdure.errors import Conflict, Corrupt, InvalidRequest, Unavailable
from perdure.log.copying import LogCopy, are_equal
from perdure.log.memory import MemoryLog
from perdure.log.protocol import Batch, Rewritten

SECRET = b"s" * 32


def name_of(number: int, first: bytes) -> bytes:
    del number
    return first.ljust(16, b"\0")[:16]


class Stopped(Exception):
    """Stands for a process that is killed between two writes."""


class Stopping:
    """A log that stops whoever writes to it after so many writes, and does whatever is told before each reading."""

    def __init__(self, log: MemoryLog, writes: int = 1 << 30) -> None:
        self._log, self._left = log, writes
        self.before_read = lambda: None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def read(self, space: int, after: int, upto: int) -> Any:
        self.before_read()
        return self._log.read(space, after, upto)

    def _spend(self) -> None:
        if self._left == 0:
            raise Stopped
        self._left -= 1

    def append(self, *told: Any) -> Any:
        self._spend()
        return self._log.append(*told)

    def create_space(self, *told: Any) -> Any:
        self._spend()
        return self._log.create_space(*told)

    def purge(self, *told: Any) -> Any:
        self._spend()
        return self._log.purge(*told)


def _purged(number: int, read: Any) -> Any:
    del number
    entries = list(read())
    if entries[0].data is not None:  # else it has lost its name, and goes whole
        yield from (Rewritten(entry.data) for entry in entries if entry.data is not None)


class Source:
    """A log with a life of its own."""

    def __init__(self) -> None:
        self.log = MemoryLog(SECRET)
        self._made = 0

    def live(self, kind: str, choice: int) -> None:
        log, spaces = self.log, self.log.spaces()
        if kind == "create" or not spaces:
            self._made += 1
            log.create_space(name_of(0, b"space %d" % self._made), b"space %d" % self._made)
            return
        number = spaces[choice % len(spaces)]
        head = log.head(number)
        if kind == "append":
            log.append(number, head, Batch([b"record %d" % choice, b""]))
        elif kind == "erase":
            log.append(number, head, Batch([b"removal"], [1 + choice % head.seq]))
        elif kind == "end":
            name = next(iter(log.read(number, 0, 1))).data
            log.append(number, head, Batch([b"gone"], list(range(1, head.seq + 1))))
            if name:  # a name that is lost may be given out again
                log.create_space(name_of(0, name), name)
        else:
            log.purge(_purged)


KINDS = st.sampled_from(["create", "append", "append", "append", "erase", "erase", "end", "purge"])
steps = st.lists(st.tuples(KINDS, st.integers(0, 40)), max_size=14)
quiet = st.lists(st.tuples(KINDS.filter(lambda kind: kind != "purge"), st.integers(0, 40)), max_size=6)


def finish(source: Any, target: Any) -> LogCopy:
    whole = LogCopy(source, target, name_of)
    whole.check()
    for _ in range(20):
        if not whole.follow():
            return whole
    pytest.fail("it does not come to an end")


def contents(log: Any) -> list[Any]:
    return [(log.head(n), list(log.read(n, 0, 1 << 40))) for n in log.spaces()]


@settings(max_examples=examples(80), deadline=None)
@given(before=steps, meanwhile=quiet, writes=st.lists(st.integers(0, 6), max_size=4))
def test_stopped_anywhere_and_gone_on_with_it_ends_equal(before, meanwhile, writes):
    source, target = Source(), MemoryLog(SECRET)
    for step in before:
        source.live(*step)
    for left in writes:
        with suppress(Stopped):
            finish(source.log, Stopping(target, left))
        for step in meanwhile:
            source.live(*step)
    finish(source.log, target)
    assert are_equal(source.log, target)
    assert contents(target) == contents(source.log)
    assert target.epoch() == source.log.epoch()
    for number in source.log.spaces():
        first = next(iter(source.log.read(number, 0, 1))).data
        if first is not None:
            assert target.find_space(name_of(number, first)) == source.log.find_space(name_of(number, first))
    assert finish(source.log, target).written == 0


@settings(max_examples=examples(80), deadline=None)
@given(before=steps, meanwhile=steps)
def test_what_happens_between_two_readings_is_followed_purges_too(before, meanwhile):
    source, target = Source(), MemoryLog(SECRET)
    for step in before:
        source.live(*step)
    left = list(meanwhile)
    seen = Stopping(source.log)
    seen.before_read = lambda: source.live(*left.pop(0)) if left else None
    finish(seen, target)
    assert contents(target) == contents(source.log)


@settings(max_examples=examples(40), deadline=None)
@given(before=steps, more=st.sampled_from(["append", "erase", "create", "purge"]), choice=st.integers(0, 9))
def test_a_target_with_a_life_of_its_own_is_refused_and_left_as_it_is(before, more, choice):
    source, target = Source(), Source()
    for step in before:
        source.live(*step)
    finish(source.log, target.log)
    target._made = 1000
    target.live(more, choice)
    if are_equal(source.log, target.log):  # what was erased was erased before
        return
    there = contents(target.log)
    whole = LogCopy(source.log, target.log, name_of)
    with pytest.raises(InvalidRequest) as caught:
        whole.check()
    assert caught.value.field == "target"
    assert contents(target.log) == there


def test_nothing_of_an_erased_record_is_copied():
    source = Source()
    source.live("create", 0)
    source.log.append(1, source.log.head(1), Batch([b"the secret", b"kept"]))
    source.log.append(1, source.log.head(1), Batch([], [2]))
    target, told = Stopping(MemoryLog(SECRET)), []
    target.append = lambda *batch: told.append(batch) or target._log.append(*batch)
    finish(source.log, target)
    assert are_equal(source.log, target)
    assert b"the secret" not in repr(told).encode()


def test_a_target_that_somebody_else_writes_to_ends_the_copying():
    source, target = Source(), MemoryLog(SECRET)
    source.live("create", 0)
    whole = LogCopy(source.log, target, name_of)
    whole.check()
    whole.follow()
    target.append(1, target.head(1), Batch([b"mine"]))
    source.live("append", 0)
    with pytest.raises(Conflict):
        whole.follow()


def test_records_that_do_not_add_up_are_told():
    source, target = Source(), MemoryLog(SECRET)
    source.live("create", 0)
    source.live("append", 0)

    class Lying(Stopping):
        def read(self, space, after, upto):
            for entry in self._log.read(space, after, upto):
                yield entry._replace(data=b"other") if entry.seq == 2 else entry

    whole = LogCopy(Lying(source.log), target, name_of)
    whole.check()
    with pytest.raises(Corrupt, match="space 1"):
        whole.follow()


def test_what_the_target_refuses_is_passed_on():
    source = Source()
    source.live("create", 0)
    target = MemoryLog(SECRET)
    target.close()
    with pytest.raises(Unavailable):
        LogCopy(source.log, target, name_of).check()
