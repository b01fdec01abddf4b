"""One history, told to every backend at once: they answer alike, before and after being opened again."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from perdure.errors import Conflict, Moved, PerdureError
from perdure.log.digests import advance, checksum, digest_bytes, digest_sum, entry_digest
from perdure.log.memory import MemoryLog
from perdure.log.protocol import EMPTY, Batch, Cached
from perdure.log.sqlite import SqliteLog

SECRET = b"s" * 32
records = st.lists(st.binary(max_size=60) | st.builds(bytes, st.integers(0, 9000)), max_size=5)
keys = st.binary(min_size=16, max_size=16) | st.integers(0, 3).map(lambda number: bytes([number]) * 16)


def outcome(call):
    """Return the value, or the kind of the error."""
    try:
        return call()
    except PerdureError as error:
        return type(error)


class SideBySide(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.directory = Path(tempfile.mkdtemp())
        self.memory = MemoryLog(SECRET)
        self.sqlite = self.open()
        self.heads = [(1, EMPTY)]

    def open(self):
        return SqliteLog.open(self.directory / "store", secret=SECRET, durability="normal")

    def teardown(self):
        self.sqlite.close()
        shutil.rmtree(self.directory)

    def both(self, call):
        ours, theirs = outcome(lambda: call(self.memory)), outcome(lambda: call(self.sqlite))
        assert ours == theirs
        return ours

    @rule(name=keys, first=st.binary(max_size=20))
    def create(self, name, first):
        self.both(lambda log: log.create_space(name, first))

    @precondition(lambda self: self.memory.spaces())
    @rule(data=st.data())
    def append(self, data):
        space = data.draw(st.sampled_from(self.memory.spaces()))
        head = self.memory.head(space)
        new = data.draw(records)
        erase = data.draw(st.lists(st.integers(1, head.seq), max_size=3))
        pointed = (
            data.draw(st.lists(st.tuples(keys, st.integers(0, len(new) - 1)), max_size=2)) if new else []
        )
        moved = self.both(lambda log: log.append(space, head, Batch(new, erase, pointed)))
        self.heads.append((space, moved))

    @rule(data=st.data())
    def append_at_an_older_head(self, data):
        space, head = data.draw(st.sampled_from(self.heads))
        answer = self.both(lambda log: log.append(space, head, Batch([b"late"])))
        assert answer is not Conflict or head != self.memory.head(space)
        if not isinstance(answer, type):
            self.heads.append((space, answer))

    @rule(data=st.data())
    def read_points(self, data):
        space, head = data.draw(st.sampled_from(self.heads))
        seqs = data.draw(st.lists(st.integers(0, head.seq + 1), max_size=4))
        answer = self.both(lambda log: log.get(space, seqs, head))
        assert (answer is Moved) == (self.memory.head(space).erasures != head.erasures)

    @rule(data=st.data(), after=st.integers(-1, 20), upto=st.integers(-1, 30))
    def read_a_part(self, data, after, upto):
        space, _ = data.draw(st.sampled_from(self.heads))
        self.both(lambda log: list(log.read(space, after, upto)))

    @rule(data=st.data(), wanted=st.lists(keys, max_size=4))
    def find(self, data, wanted):
        space, _ = data.draw(st.sampled_from(self.heads))
        self.both(lambda log: (log.find(space, wanted), [log.find_space(key) for key in wanted]))

    @rule(data=st.data(), blob=st.binary(max_size=30))
    def put_a_cache(self, data, blob):
        space, head = data.draw(st.sampled_from(self.heads))
        for log in (self.memory, self.sqlite):
            log.put_cache(space, "state", Cached(head, blob))

    @rule(data=st.data())
    def get_a_cache(self, data):
        space, _ = data.draw(st.sampled_from(self.heads))
        cached = self.sqlite.get_cache(space, "state")
        assert cached in (None, self.memory.get_cache(space, "state"))

    @rule()
    def scrub(self):
        assert self.both(lambda log: log.scrub())

    @rule()
    def reopen(self):
        self.sqlite.close()
        self.sqlite = self.open()

    @invariant()
    def spaces_heads_and_records_are_equal(self):
        for space in self.both(lambda log: log.spaces()):
            head = self.both(lambda log, space=space: log.head(space))
            self.both(lambda log, space=space, head=head: list(log.read(space, 0, head.seq)))


TestSideBySide = SideBySide.TestCase
TestSideBySide.settings = settings(max_examples=15, stateful_step_count=25, deadline=None)


@given(st.lists(st.binary(max_size=20), max_size=50), st.data())
@settings(deadline=None)
def test_a_digest_depends_on_what_is_live_and_not_on_the_way_there(data, draw):
    checks = [checksum(1, seq, one) for seq, one in enumerate(data, 1)]
    live = list(enumerate(checks, 1))
    cut = draw.draw(st.integers(0, len(data)))
    gone = [pair for pair in live if draw.draw(st.booleans())]
    stepwise = advance(advance(EMPTY, SECRET, checks[:cut]), SECRET, checks[cut:])
    stepwise = advance(stepwise, SECRET, [], gone)
    kept = [pair for pair in live if pair not in gone]
    assert stepwise.digest == digest_bytes(digest_sum(SECRET, kept))
    assert stepwise.digest == digest_bytes(sum(entry_digest(SECRET, seq, check) for seq, check in kept))
    assert (stepwise.seq, stepwise.erasures) == (len(data), len(gone))
