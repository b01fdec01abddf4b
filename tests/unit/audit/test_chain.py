"""The chain: an event that is changed, dropped or put elsewhere is noticed, in the store and in an export of it."""

from __future__ import annotations

import json
from dataclasses import dataclass

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from perdure import InvalidRequest, Store
from perdure import verify as verify_store
from perdure.audit import verify
from perdure.audit.rows import Position, Row, decode, encode, make_body, rows_of
from perdure.log.memory import MemoryLog
from perdure.log.protocol import Rewritten

SECRET = bytes(range(32))
NOW = 1_800_000_000_000


@pytest.fixture
def filled(store):
    memory = store.memory("ada")
    for name in "abcdef":
        memory.remember(f"fact {name}", id=name)
        memory.forget(ids=[name] if name < "d" else [])
    return store


def test_a_chain_that_was_left_alone_verifies(filled):
    assert filled.verify_events() == ()
    assert filled.verify_events(filled.events_head()) == ()
    assert verify(filled.export_events(), filled.events_head()) == ()


def test_a_chain_goes_on_from_a_head_that_was_kept(filled):
    head = filled.events_head()
    filled.memory("ada").remember("one more")
    assert filled.verify_events(head) == ()
    assert verify(filled.export_events(), head) == ()


def test_an_export_is_written_to_a_file_and_read_from_there(filled, tmp_path):
    place = tmp_path / "events.jsonl"
    place.write_bytes(b"".join(filled.export_events()))
    assert verify(place, filled.events_head()) == ()
    with pytest.raises(InvalidRequest, match="cannot be read"):
        verify(tmp_path / "nothing")
    with pytest.raises(InvalidRequest, match="no export"):
        verify([b"{}\n"])


@settings(max_examples=examples(12), deadline=None)
@given(data=st.data())
def test_an_export_with_any_line_dropped_swapped_or_changed_does_not_verify(data):
    with Store.open(":memory:", secret=SECRET) as store:
        store.memory("ada").remember_many([f"fact {n}" for n in range(6)])
        lines, head = list(store.export_events()), store.events_head()
    place = data.draw(st.integers(1, len(lines) - 2))
    kind = data.draw(st.sampled_from(("drop", "swap", "change", "cut")))
    if kind == "drop":
        del lines[place]
    elif kind == "cut":
        del lines[place:]
    elif kind == "swap":
        other = data.draw(st.integers(1, len(lines) - 2).filter(lambda n: n != place))
        lines[place], lines[other] = lines[other], lines[place]
    else:
        told = json.loads(lines[place])
        field = data.draw(st.sampled_from(("type", "at", "space", "fact", "actor", "details")))
        told[field] = {
            "type": "ended", "at": told["at"] + 1, "space": "00" * 16, "fact": "11" * 16, "actor": "someone",
            "details": {"count": 1},
        }[field]  # fmt: skip
        lines[place] = json.dumps(told).encode()
    assert verify(lines) != ()
    assert verify(lines, head) != ()


def test_a_head_that_was_kept_tells_of_an_export_that_was_made_to_fit(filled):
    head = filled.events_head()
    with Store.open(":memory:", secret=SECRET) as other:
        other.memory("ada").remember_many([f"other {n}" for n in range(20)])
        forged = list(other.export_events())
    assert verify(forged) == ()
    assert any("not those that the head is of" in finding.message for finding in verify(forged, head))


def test_a_head_that_was_changed_or_is_of_another_store_is_told_from_its_own(filled):
    head = filled.events_head()
    for changed in (
        msgspec.structs.replace(head, sequence=head.sequence - 1),
        msgspec.structs.replace(head, chain="00" * 32),
        msgspec.structs.replace(head, seal="x"),
    ):
        assert "seal does not fit" in filled.verify_events(changed)[0].message
    with Store.open(":memory:") as other:
        other.memory().remember("one")
        assert "another store" in filled.verify_events(other.events_head())[0].message


@dataclass
class Given:
    """A store over logs of this test's own, whose audit can be written by others."""

    log: MemoryLog
    audit: MemoryLog

    def open(self) -> Store:
        return Store.open(log=self.log, audit_log=self.audit)

    def rewrite(self, change) -> None:
        """Put other records in the place of the audit's."""

        def rewritten(space, read):
            return (Rewritten(data) for data in change([entry.data for entry in read()]))

        self.audit.purge(rewritten)


@pytest.fixture
def given_logs():
    logs = Given(MemoryLog(SECRET), MemoryLog())
    store = logs.open()
    memory = store.memory("ada")
    for name in "abcdef":
        memory.remember(f"fact {name}", id=name)
        memory.events()
    return logs


def forged(data):
    """Return a record whose events are others, sealed by whoever has the secret, in the chain of the one before."""
    body = decode(SECRET, data)
    row = rows_of(body)[0]
    other = make_body(
        body.first, body.space, [Row(row.type, row.at + 1, row.fact)], b"\1" * 32, body.position
    )
    return encode(SECRET, other)


@pytest.mark.parametrize("change", [
    lambda records: [*records[:3], *records[4:]],
    lambda records: [*records[:3], records[4], records[3], *records[5:]],
    lambda records: [*records[:3], records[3][:-1] + bytes([records[3][-1] ^ 1]), *records[4:]],
    lambda records: [*records[:3], forged(records[3]), *records[4:]],
    lambda records: [*records[:3], b"", *records[4:]],
    lambda records: [*records[:3], b"\x09" + records[3][1:], *records[4:]],
], ids=["dropped", "swapped", "flipped", "forged", "emptied", "of another format"])  # fmt: skip
def test_a_record_of_the_audit_that_was_dropped_swapped_or_changed_is_found(given_logs, change):
    store = given_logs.open()
    head = store.events_head()
    given_logs.rewrite(change)
    again = given_logs.open()
    assert again.verify_events() != ()
    assert again.verify_events(head) != ()


def test_who_has_the_secret_and_rewrites_the_whole_chain_is_told_by_a_head_that_was_kept(given_logs):
    head = given_logs.open().events_head()

    def rewritten(records):
        bodies = [decode(SECRET, data) for data in records]
        chain, first = bodies[0].chain, 1
        for body in bodies[1:]:
            rows = [Row(row.type, row.at + 1, row.fact) for row in rows_of(body)]
            made = make_body(first, body.space, rows, chain, body.position)
            chain, first = made.chain, made.first + made.count
            yield encode(SECRET, made)

    given_logs.rewrite(lambda records: [records[0], *rewritten(records)])
    store = given_logs.open()
    assert store.verify_events() == ()
    assert "they were rewritten" in store.verify_events(head)[0].message


def test_an_audit_that_is_damaged_keeps_an_erasure_from_happening_and_nothing_else(given_logs):
    given_logs.rewrite(lambda records: [*records[:-1], records[-1][:-1]])
    memory = given_logs.open().memory("ada")
    with pytest.raises(Exception, match="the audit is damaged"):
        memory.forget(ids=["a"])
    assert memory.get("a") is not None
    memory.remember("as ever", id="new")
    assert memory.recall("ever")[0].id == "new"


def test_trimming_lets_go_of_what_is_older_and_the_rest_still_verifies(store, clock):
    memory = store.memory("ada")
    memory.remember_many(["one", "two", "three"])
    clock.advance(1_000)
    memory.remember_many(["four", "five"])
    head = store.events_head()
    assert store.trim_events(NOW + 1_000) == 3
    assert [event.sequence for event in store.events().items] == [4, 5, 6]
    assert store.events(type="trimmed").items[0].details == {"count": 3}
    assert store.verify_events() == ()
    assert store.verify_events(head) == ()
    assert verify(store.export_events(), head) == ()
    assert store.trim_events(NOW) == 0


def test_a_trimmed_chain_cannot_be_held_against_a_head_before_its_start(store, clock):
    memory = store.memory("ada")
    memory.remember("one")
    head = store.events_head()
    clock.advance(1_000)
    memory.remember_many(["two", "three"])
    store.trim_events(NOW + 1_000)
    assert store.verify_events(head) == ()  # the end of what was let go is kept
    memory.remember("four")
    clock.advance(1_000)
    store.trim_events(NOW + 2_000)
    assert "no event 1 any more" in store.verify_events(head)[0].message
    assert "begins after" in verify(store.export_events(), head)[0].message


@settings(max_examples=examples(10), deadline=None)
@given(
    steps=st.lists(st.tuples(st.sampled_from("wfpt"), st.integers(0, 4)), max_size=12),
)
def test_whatever_happens_sequences_have_no_gap_and_the_chain_verifies(steps):
    with Store.open(":memory:", secret=SECRET) as store:
        memory, count = store.memory("ada"), 0
        heads = [store.events_head()]
        for kind, number in steps:
            if kind == "w":
                memory.remember_many([f"text {count + n}" for n in range(number + 1)])
                count += number + 1
            elif kind == "f":
                memory.forget(ids=[fact.id for fact in memory.list(limit=number + 1).items])
            elif kind == "p":
                store.purge()
            else:
                store.trim_events(NOW if number else 0)
            heads.append(store.events_head())
        sequences = [event.sequence for event in store.events(limit=1_000).items]
        assert sequences == list(range(sequences[0], sequences[0] + len(sequences))) if sequences else True
        assert store.verify_events(heads[-1]) == ()
        assert store.verify_events() == ()
        created = store.events(type="created", limit=1_000).total
        assert created <= count


@given(
    rows=st.lists(
        st.builds(
            Row,
            st.integers(0, 5),
            st.integers(-(2**60), 2**60),
            st.binary(max_size=16),
            st.binary(max_size=16),
            st.none() | st.text(max_size=5),
            st.lists(st.tuples(st.text(max_size=3), st.integers(-9, 9) | st.booleans()), max_size=3).map(
                tuple
            ),
        ),
        max_size=20,
    )
)
def test_a_record_reads_back_as_it_was_written(rows):
    body = make_body(7, b"s" * 16, rows, bytes(32), Position(1, (), True, None))
    assert decode(SECRET, encode(SECRET, body)) == body
    assert rows_of(body) == tuple(rows)


@pytest.mark.parametrize("backend", ["sqlite", "journal"])
def test_a_verification_of_a_closed_store_looks_at_its_events_too(tmp_path, backend):
    with Store.open(tmp_path / "s", backend=backend, secret=SECRET) as store:
        for name in "abcdef":
            store.memory().remember(f"fact {name}", id=name)
            store.memory().events()
    assert verify_store(tmp_path / "s", secret=SECRET).ok

    def dropped(space, read):
        return (Rewritten(entry.data) for entry in read() if entry.seq != 4)

    with Store.open(tmp_path / "s", secret=SECRET) as store:
        store.log.audit.book.log.purge(dropped)
    found = verify_store(tmp_path / "s", secret=SECRET)
    assert not found.ok
    assert {one.message.partition(":")[0] for one in found.findings} == {"the audit"}
