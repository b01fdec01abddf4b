"""What reads bytes from outside answers or refuses; it never fails otherwise, and never hangs."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from fuzz.strategies import KINDS, stored_records, texts
from perdure import InvalidRequest, MemoryConfig, PerdureError, Store
from perdure.errors import Corrupt, Unavailable
from perdure.importers.jsonlines import fact_of
from perdure.lexical.index import load_index, new_index
from perdure.log.protocol import EMPTY, Cached
from perdure.log.records import decode, encode
from perdure.space.snapshot import find_state

law = settings(deadline=None, max_examples=examples(100))
json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(stored_records)
@law
def test_every_record_is_read_back_as_it_was_written(record):
    assert decode(encode(record)) == record


@given(st.sampled_from(KINDS), st.data())
@law
def test_a_record_of_each_kind_is_read_back(kind, data):
    from fuzz.strategies import structs  # noqa: PLC0415

    record = data.draw(structs(kind))
    assert type(decode(encode(record))) is kind


@given(st.one_of(st.binary(max_size=64), st.binary(max_size=64).map(lambda data: b"\1" + data)))
@law
def test_bytes_that_are_no_record_are_refused_as_damage_or_as_newer(data):
    try:
        decode(data)
    except (Corrupt, Unavailable):
        return


@given(stored_records, st.integers(0, 10_000), st.integers(0, 255))
@law
def test_a_record_with_one_byte_changed_is_another_record_or_refused(record, place, byte):
    data = bytearray(encode(record))
    data[place % len(data)] = byte
    try:
        decode(bytes(data))
    except (Corrupt, Unavailable):
        return


@given(st.recursive(st.integers(0, 5), lambda inner: st.lists(inner, max_size=4), max_leaves=30))
@law
def test_an_array_of_the_wrong_shape_is_refused(value):
    try:
        decode(b"\1" + msgspec.msgpack.encode(value))
    except (Corrupt, Unavailable):
        return


def test_a_record_nested_ten_thousand_deep_is_refused():
    for bomb in (b"\x91" * 10_000, b"\x81\x01" * 10_000, b"\xdd\xff\xff\xff\xff", b"\xc6\xff\xff\xff\xff"):
        with pytest.raises((Corrupt, Unavailable)):
            decode(b"\1" + bomb)


@given(st.binary(max_size=200))
@law
def test_a_snapshot_that_is_none_is_passed_over(blob):
    assert find_state(Cached(EMPTY, blob)) is None


@given(st.binary(max_size=200))
@law
def test_an_index_that_is_none_is_refused(blob):
    with pytest.raises(ValueError):  # noqa: PT011 - the kernel's and its twin's messages differ
        load_index(blob)


@given(st.integers(0, 10_000), st.integers(0, 255))
@law
def test_an_index_with_one_byte_changed_loads_or_is_refused(place, byte):
    index = new_index(0.9, 0.4)
    for row in range(20):
        index.add([f"w{row % 7}", "same", f"x{row}"])
    blob = bytearray(index.dump())
    blob[place % len(blob)] = byte
    try:
        loaded = load_index(bytes(blob))
    except ValueError:
        return
    loaded.search(["same", "w1"], 5)


@given(
    st.one_of(
        json_values,
        st.dictionaries(st.sampled_from(["text", "id", "tags", "metadata", "validFrom"]), json_values),
    )
)
@law
def test_a_line_of_any_json_is_a_fact_or_refused(value):
    try:
        fact_of(value)
    except InvalidRequest:
        return


@given(st.one_of(st.binary(max_size=60), json_values.map(lambda value: json.dumps(value).encode()), texts))
@law
def test_any_configuration_is_taken_or_refused(data):
    try:
        MemoryConfig.from_json(data)
    except InvalidRequest:
        return


@given(
    st.lists(
        st.one_of(st.binary(max_size=60), json_values.map(lambda value: json.dumps(value).encode())),
        max_size=4,
    )
)
@settings(deadline=None, max_examples=examples(30))
def test_any_lines_are_an_export_or_refused(lines):
    with Store.open(":memory:") as store:
        try:
            store.import_([line + b"\n" for line in lines])
        except PerdureError:
            assert store.spaces() == []
