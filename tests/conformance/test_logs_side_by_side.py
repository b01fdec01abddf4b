"""One history, told to every backend at once: they answer alike, before and after being opened again."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from effort import examples
from perdure.errors import Conflict, Moved, PerdureError
from perdure.log.digests import advance, checksum, digest_bytes, digest_sum, entry_digest
from perdure.log.journal import JournalLog
from perdure.log.memory import MemoryLog
from perdure.log.postgres import FileKeystore, PostgresLog
from perdure.log.protocol import EMPTY, Batch, Cached, Rewritten
from perdure.log.sqlite import SqliteLog
from postgres_server import shared_address

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
        self.open()
        self.heads = [(1, EMPTY)]

    def open(self):
        self.sqlite = SqliteLog.open(self.directory / "sqlite", secret=SECRET, durability="normal")
        self.journal = JournalLog.open(self.directory / "journal", secret=SECRET, durability="normal")
        self.postgres = PostgresLog.open(
            shared_address(),
            tenant=self.directory.name,
            keystore=FileKeystore(self.directory / "keys"),
            secret=SECRET,
        )

    def logs(self):
        return (self.memory, self.sqlite, self.journal, self.postgres)

    def close(self):
        self.sqlite.close()
        self.journal.close()
        self.postgres.close()

    def teardown(self):
        self.close()
        shutil.rmtree(self.directory)

    def all(self, call):
        """Return the outcome that every log agrees on."""
        outcomes = [outcome(lambda log=log: call(log)) for log in self.logs()]
        assert all(one == outcomes[0] for one in outcomes)
        return outcomes[0]

    @rule(name=keys, first=st.binary(max_size=20))
    def create(self, name, first):
        self.all(lambda log: log.create_space(name, first))

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
        moved = self.all(lambda log: log.append(space, head, Batch(new, erase, pointed)))
        self.heads.append((space, moved))

    @rule(data=st.data())
    def append_at_an_older_head(self, data):
        space, head = data.draw(st.sampled_from(self.heads))
        answer = self.all(lambda log: log.append(space, head, Batch([b"late"])))
        assert answer is not Conflict or head != self.memory.head(space)
        if not isinstance(answer, type):
            self.heads.append((space, answer))

    @rule(data=st.data())
    def read_points(self, data):
        space, head = data.draw(st.sampled_from(self.heads))
        seqs = data.draw(st.lists(st.integers(0, head.seq + 1), max_size=4))
        answer = self.all(lambda log: log.get(space, seqs, head))
        now = self.memory.head(space)
        differs = (now.epoch, now.erasures) != (head.epoch, head.erasures)
        assert (answer is Moved) == (differs or now.seq < head.seq)

    @rule(data=st.data(), after=st.integers(-1, 20), upto=st.integers(-1, 30))
    def read_a_part(self, data, after, upto):
        space, _ = data.draw(st.sampled_from(self.heads))
        self.all(lambda log: list(log.read(space, after, upto)))

    @rule(data=st.data(), wanted=st.lists(keys, max_size=4))
    def find(self, data, wanted):
        space, _ = data.draw(st.sampled_from(self.heads))
        self.all(lambda log: (log.find(space, wanted), [log.find_space(key) for key in wanted]))

    @rule(data=st.data(), blob=st.binary(max_size=30))
    def put_a_cache(self, data, blob):
        space, head = data.draw(st.sampled_from(self.heads))
        for log in self.logs():
            log.put_cache(space, "state", Cached(head, blob))

    @rule(data=st.data())
    def get_a_cache(self, data):
        space, _ = data.draw(st.sampled_from(self.heads))
        for log in self.logs():
            cached = log.get_cache(space, "state")
            assert cached in (None, self.memory.get_cache(space, "state"))

    @rule()
    def scrub(self):
        assert self.all(lambda log: log.scrub())

    @rule(every=st.integers(1, 3), keyed=st.booleans())
    def purge(self, every, keyed):
        def rewrite(number, read):
            # Of a space that has lost its name nothing is kept, as memories do it.
            nameless, first = next(read()).data is None, True
            for seq, data in read():
                if data is not None and not nameless and (number + seq) % every == 0:
                    yield Rewritten(data, [bytes([seq % 4]) * 16] if keyed and not first else ())
                    first = False

        self.all(lambda log: log.purge(rewrite))

    @rule(quick=st.booleans())
    def verify(self, quick):
        assert self.all(lambda log: list(log.verify(quick=quick))) == []

    @rule()
    def reopen(self):
        self.close()
        self.open()

    @invariant()
    def spaces_heads_and_records_are_equal(self):
        self.all(lambda log: log.epoch())
        for space in self.all(lambda log: log.spaces()):
            head = self.all(lambda log, space=space: log.head(space))
            self.all(lambda log, space=space, head=head: list(log.read(space, 0, head.seq)))


TestSideBySide = SideBySide.TestCase
TestSideBySide.settings = settings(max_examples=examples(8), stateful_step_count=25, deadline=None)


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
