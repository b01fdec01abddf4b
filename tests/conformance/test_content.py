"""A content is what its changes add up to, and a log over it tells when it is not what its head says."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.errors import Corrupt, StorageFull, Unavailable
from perdure.log.content import ERASED, Change, Content, Row
from perdure.log.content_log import ContentLog
from perdure.log.protocol import Batch, Finding, Rewritten

SECRET = b"s" * 32
encode, decode = msgspec.msgpack.encode, msgspec.msgpack.decode


class Kept:
    """A medium that keeps the content and, encoded, every change that was made to it."""

    name = "kept"

    def __init__(self):
        self.content = Content(SECRET)
        self.changes = []
        self.full = False
        self.closed = 0
        self.found = []
        self.noted = []

    def load(self):
        return self.content

    def commit(self, change):
        if self.full:
            raise StorageFull("no room; make some")
        self.changes.append(encode(change))
        self.content.apply(change)

    def replace(self, content):
        if self.full:
            raise StorageFull("no room; make some")
        self.content = content
        self.changes = [encode(content)]

    def scrub(self):
        return True

    def findings(self):
        return iter(self.found)

    def backup(self, directory):
        raise Unavailable("no files; export it")

    def note_backup(self, at):
        self.noted.append(at)

    def backups(self):
        return self.noted[:]

    def scrub_pending(self):
        return False

    def size_bytes(self):
        return len(encode(self.content))

    def close(self):
        self.closed += 1


@pytest.fixture
def medium():
    return Kept()


@pytest.fixture
def log(medium):
    log = ContentLog(medium)
    log.create_space(b"n" * 16, b"first")
    log.append(1, log.head(1), Batch([b"second", b"third", b"fourth"], keys=[(b"k" * 16, 1)]))
    return log


steps = st.tuples(
    st.integers(1, 3), st.lists(st.binary(max_size=9), max_size=3), st.lists(st.integers(1, 9), max_size=2)
)


@given(st.lists(steps, max_size=12))
def test_the_changes_of_a_content_applied_again_in_order_give_the_same_content(history):
    medium = Kept()
    log = ContentLog(medium)
    for number in (1, 2, 3):
        log.create_space(bytes([number]) * 16, b"first")
    for space, records, erase in history:
        head = log.head(space)
        keys = [(bytes([len(records)]) * 16, 0)] if records else []
        log.append(space, head, Batch(records, [seq for seq in erase if seq <= head.seq], keys))
    again = Content(SECRET)
    for change in medium.changes:
        again.apply(decode(change, type=Change))
    assert again == medium.content == decode(encode(medium.content), type=Content)


def test_a_change_that_the_medium_refuses_is_not_made(log, medium):
    before, head = encode(medium.content), log.head(1)
    medium.full = True
    with pytest.raises(StorageFull):
        log.append(1, head, Batch([b"late"], erase=[2]))
    with pytest.raises(StorageFull):
        log.create_space(b"m" * 16, b"first")
    assert encode(medium.content) == before
    medium.full = False
    assert log.append(1, head, Batch([b"late"])).seq == 5


def keep_all(space, read):
    return (Rewritten(entry.data) for entry in read() if entry.data is not None)


def test_a_purge_that_the_medium_refuses_is_not_made(log, medium):
    before = encode(medium.content)
    medium.full = True
    with pytest.raises(StorageFull):
        log.purge(keep_all)
    assert encode(medium.content) == before
    medium.full = False
    assert log.purge(keep_all).records == 4


def test_a_purge_of_a_damaged_content_is_refused(log, medium):
    before = encode(medium.content)
    damaged = Row(b"Second", medium.content.spaces[0].rows[1].check)
    whole, medium.content.spaces[0].rows[1] = medium.content.spaces[0].rows[1], damaged
    with pytest.raises(Corrupt, match="record 2 of space 1"):
        log.purge(keep_all)
    medium.content.spaces[0].rows[1] = whole
    assert encode(medium.content) == before


def test_a_verification_yields_what_the_medium_found_and_every_damaged_row(log, medium):
    rows = medium.content.spaces[0].rows
    for seq in (2, 4):
        rows[seq - 1] = Row(b"damaged", rows[seq - 1].check)
    medium.found = [Finding("a file is damaged")]
    found = list(log.verify())
    assert [(finding.space, finding.seq) for finding in found] == [(None, None), (1, 2), (1, 4)]
    assert "restore a backup" in found[1].message
    rows.pop()
    assert [(finding.space, finding.seq) for finding in log.verify(quick=True)] == [(None, None), (1, None)]


def test_a_damaged_row_is_named(log, medium):
    medium.content.spaces[0].rows[1] = Row(b"Second", medium.content.spaces[0].rows[1].check)
    with pytest.raises(Corrupt, match="record 2 of space 1"):
        log.get(1, [1, 2], log.head(1))
    with pytest.raises(Corrupt) as caught:
        list(log.read(1, 1, 3))
    assert (caught.value.space, caught.value.seq) == (1, 2)
    assert [entry.data for entry in log.read(1, 2, 4)] == [b"third", b"fourth"]


@pytest.mark.parametrize(
    "damage",
    [
        lambda rows: rows.pop(),
        lambda rows: rows.append(rows[0]),
        lambda rows: rows.__setitem__(1, rows[2]),
        lambda rows: rows.__setitem__(1, ERASED),
    ],
    ids=["lost", "added", "repeated", "erased"],
)
def test_rows_that_do_not_add_up_to_the_head_are_noticed_when_the_space_is_read_whole(log, medium, damage):
    head = log.head(1)
    damage(medium.content.spaces[0].rows)
    with pytest.raises(Corrupt, match="add up"):
        log.read(1, 0, head.seq)


def test_the_medium_is_closed_once(log, medium):
    log.close()
    log.close()
    assert medium.closed == 1
