"""A journal can be read by people, and says the same of the same content."""

from __future__ import annotations

import json
import os
import typing

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.errors import Busy, Unavailable
from perdure.log.journal import JournalLog
from perdure.log.journal.lines import FORMAT, Writer, line_digest, read_line, read_store_line, store_line
from perdure.log.journal.lock import ExclusiveLock
from perdure.log.journal.readable import find_readable, record_bytes
from perdure.log.protocol import Batch, Rewritten
from perdure.log.records import (
    BlockRecord,
    FactRecord,
    GoneRecord,
    LinkRecord,
    ReceiptItem,
    ReceiptRecord,
    Record,
    SourceFields,
    encode,
)

SECRET = b"s" * 32
FACT = FactRecord(
    number=3,
    id="fact-3",
    text='Élodie said: "the kettle\tis blue" — 薬缶は青い',
    ingest_time=1_700_000_000_000,
    metadata=b'{"mood":"calm"}',
    tags=("tea", "kitchen"),
    importance=0.1,
    source=SourceFields(uri="chat:7", start=4),
)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
numbers = st.integers(0, 2**63 - 1)
maybe_moment = st.none() | st.integers(-(2**63), 2**63 - 1)
facts = st.builds(
    FactRecord,
    number=numbers,
    id=texts,
    text=texts,
    ingest_time=numbers,
    subject=st.none() | texts,
    valid_from=maybe_moment,
    metadata=st.none() | st.binary(max_size=20) | texts.map(str.encode),
    tags=st.lists(texts, max_size=3).map(tuple),
    importance=st.none() | st.floats(allow_nan=False, allow_infinity=False),
    pinned=st.booleans(),
    source=st.none() | st.builds(SourceFields, uri=st.none() | texts, start=maybe_moment),
    cuts=st.lists(numbers, max_size=3).map(tuple),
    made_from=st.lists(numbers, max_size=3).map(tuple),
)
items = st.builds(ReceiptItem, number=numbers, outcome=texts, status=texts)
some_records = (
    facts
    | st.builds(LinkRecord, numbers, numbers, st.booleans(), maybe_moment, numbers)
    | st.builds(
        ReceiptRecord, texts, st.binary(max_size=16), st.binary(max_size=16), st.tuples(items), numbers
    )
    | st.builds(BlockRecord, st.tuples(st.binary(max_size=16)), numbers, st.binary(max_size=16))
    | st.builds(GoneRecord, numbers)
)


@given(some_records)
def test_every_record_is_shown_by_name_and_the_same_bytes_come_back(record):
    data = encode(record)
    shown = json.loads(find_readable(data))
    assert (shown["type"], shown["format"]) == (type(record).__name__, data[0])
    assert list(shown)[2:] == list(record.__struct_fields__)
    assert record_bytes(shown) == data


@given(some_records, st.data())
def test_bytes_that_would_not_come_back_are_not_shown(record, data):
    whole = encode(record)
    start = data.draw(st.integers(0, len(whole)))
    changed = whole[:start] + data.draw(st.binary(max_size=8)) + whole[start + data.draw(st.integers(0, 8)) :]
    shown = find_readable(changed)
    assert shown is None or record_bytes(json.loads(shown)) == changed


@pytest.mark.parametrize("data", [b"", b"\0", b"\1", b"\xff" * 9, b"first", b"\1" + b"\x91" * 3000])
def test_what_is_no_record_is_not_shown(data):
    assert find_readable(data) is None


def test_a_record_that_ends_early_is_shown_with_the_fields_that_it_has():
    version, *items = bytes([1]), *msgspec.msgpack.decode(encode(FACT)[1:])
    data = version + msgspec.msgpack.encode(items[:6])
    shown = json.loads(find_readable(data))
    assert list(shown) == ["type", "format", "number", "id", "text", "ingest_time", "subject"]
    assert record_bytes(shown) == data


def test_numbers_that_json_has_not_keep_a_record_from_being_shown():
    assert find_readable(encode(msgspec.structs.replace(FACT, importance=float("nan")))) is None
    assert find_readable(encode(msgspec.structs.replace(FACT, importance=float("inf")))) is None


def test_a_record_of_a_type_of_a_newer_build_is_unavailable():
    shown = json.loads(find_readable(encode(FACT)))
    with pytest.raises(Unavailable, match="newer build"):
        record_bytes({**shown, "type": "LaterRecord"})


def test_the_names_of_types_are_those_of_the_format():
    assert [kind.__name__ for kind in typing.get_args(Record)] == [
        "SpaceRecord",
        "FactRecord",
        "LinkRecord",
        "EndRecord",
        "AnnotationRecord",
        "HideRecord",
        "RestoreRecord",
        "RemovalRecord",
        "ReceiptRecord",
        "UseRecord",
        "BlockRecord",
        "UnblockRecord",
        "GoneRecord",
        "VectorRecord",
        "ConfigRecord",
        "NodeRecord",
        "ChangeSetRecord",
        "AccessRecord",
        "ConversationRecord",
        "TurnRecord",
        "ByRecord",
        "MarkRecord",
        "QuoteRecord",
    ]


def test_the_text_of_a_fact_is_found_in_the_file_by_a_plain_search(tmp_path):
    log = JournalLog.open(tmp_path / "store")
    space = log.create_space(b"n" * 16, b"first")
    log.append(space, log.head(space), Batch(records=[encode(FACT)]))
    log.close()
    found = (tmp_path / "store" / "journal-1.jsonl").read_text(encoding="utf-8")
    for words in ("薬缶は青い", "Élodie said", "fact-3", "chat:7", "mood", "kitchen"):
        assert words in found
    lines = [json.loads(line) for line in found.splitlines()]
    assert [next(reversed(line)) for line in lines] == ["store", "data", "head", "record", "head"]
    assert lines[3]["record"]["text"] == FACT.text
    assert lines[3]["record"]["metadata"] == {"utf8": '{"mood":"calm"}'}


def sealed(digest, number, line):
    """Return a line with the digest that it should have."""
    before, after = line[: line.index(b'"sha":"') + 7], line[line.index(b'"sha":"') + 39 : -1]
    return before + digest(number, before, after) + after + b"\n"


def test_a_line_of_a_newer_format_is_unavailable_and_not_damaged():
    line = Writer(SECRET, 6).record(1, 2, encode(FACT)).replace(b'"v":1', b'"v":2', 1)
    with pytest.raises(Unavailable, match="upgrade"):
        read_line(7, sealed(line_digest(SECRET), 7, line), line_digest(SECRET), "journal-1.jsonl")
    first = store_line(SECRET, kept=True).replace(b'"v":1', b'"v":30', 1)
    with pytest.raises(Unavailable, match="format 30"):
        read_store_line(sealed(line_digest(b""), 1, first), "journal-1.jsonl")
    assert read_store_line(store_line(SECRET, kept=True), "journal-1.jsonl").format == FORMAT


# Equal content, equal bytes


def live(space, read):
    for entry in read():
        if entry.data is not None:
            yield Rewritten(entry.data, [entry.data[:1] * 16] if entry.seq > 1 else ())


def told(place, history, *, detours):
    """Tell a journal a history of (space, record); with `detours`, also what is erased and purged again."""
    log = JournalLog.open(place, secret=SECRET, durability="normal")
    for number in (1, 2):
        log.create_space(bytes([number]) * 16, b"first")
    for position, (space, record) in enumerate(history):
        if detours and position % 2:
            head = log.append(space, log.head(space), Batch([b"gone"], keys=[(b"g" * 16, 0)]))
            log.append(space, head, Batch([], erase=[head.seq]))
        if detours and position % 5 == 4:
            log.purge(live)
        log.append(space, log.head(space), Batch([record]))
    log.purge(live)
    for record in (b"after", b"wards"):
        log.append(1, log.head(1), Batch([record], keys=[(b"a" * 16, 0)]))
    assert log.scrub()
    log.close()
    (path,) = place.glob("*.jsonl")
    return path.read_bytes()


@given(st.lists(st.tuples(st.integers(1, 2), st.binary(min_size=1, max_size=9)), max_size=10))
@settings(max_examples=15, deadline=None)
def test_equal_content_gives_equal_bytes_after_a_purge_whatever_was_there_before(tmp_path_factory, history):
    folder = tmp_path_factory.mktemp("journals")
    plain = told(folder / "plain", history, detours=False)
    assert told(folder / "detours", history, detours=True) == plain


# One process


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:This process.*:DeprecationWarning")
def test_a_forked_process_is_refused_and_leaves_the_lock_with_its_parent(tmp_path):
    log = JournalLog.open(tmp_path / "store")
    child = os.fork()
    if child == 0:
        status = 1
        try:
            log.head(1)
        except Unavailable as error:
            status = 0 if "fork" in error.message else 2
        log.close()
        os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert log.create_space(b"n" * 16, b"first") == 1
    with pytest.raises(Busy, match="one process"):
        JournalLog.open(tmp_path / "store", timeout_s=0)
    log.close()


def test_where_there_is_no_flock_another_lock_keeps_the_second_out(tmp_path):
    first, second = ExclusiveLock(tmp_path / "journal.lock"), ExclusiveLock(tmp_path / "journal.lock")
    assert first.acquire()
    assert not second.acquire()
    first.close()
    assert second.acquire()
    second.close()
