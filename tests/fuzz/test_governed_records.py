"""Records of nodes, conversations and what is erased of them: bytes give a record, or are refused as damage or as newer."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from fuzz.strategies import structs
from perdure.errors import Corrupt, Unavailable
from perdure.log.records import (
    AccessRecord,
    ByRecord,
    ChangeSetRecord,
    ConversationRecord,
    MarkRecord,
    NodeRecord,
    QuoteRecord,
    RemovalRecord,
    TurnRecord,
    decode,
    encode,
)

GOVERNED = (
    NodeRecord,
    ChangeSetRecord,
    AccessRecord,
    ConversationRecord,
    TurnRecord,
    ByRecord,
    MarkRecord,
    QuoteRecord,
    RemovalRecord,
)
FORMATS = tuple(bytes([version]) for version in range(8))
law = settings(deadline=None, max_examples=examples(60))
fields = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**64 - 1),
        st.floats(),
        st.text(max_size=8),
        st.binary(max_size=8),
    ),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=12,
)


def decoded(data):
    """Return the record, or None where the bytes are refused; whatever else is raised fails the test."""
    try:
        return decode(data, space=1, seq=2)
    except (Corrupt, Unavailable):
        return None


@pytest.mark.parametrize("kind", GOVERNED)
@given(data=st.data())
@law
def test_a_record_that_is_cut_or_has_some_bytes_changed_is_a_record_or_refused(kind, data):
    whole = bytearray(encode(data.draw(structs(kind))))
    for place, byte in data.draw(
        st.lists(st.tuples(st.integers(0, len(whole) - 1), st.integers(0, 255)), max_size=3)
    ):
        whole[place] = byte
    record = decoded(bytes(whole[: data.draw(st.integers(0, len(whole)))]))
    if record is not None:
        assert decoded(encode(record)) == record or record != record  # NaN


@pytest.mark.parametrize("kind", GOVERNED)
@given(told=st.lists(fields, max_size=20), version=st.sampled_from(FORMATS))
@law
def test_fields_of_any_types_under_the_number_of_a_record_are_one_or_refused(kind, told, version):
    tag = kind.__struct_config__.tag
    record = decoded(version + msgspec.msgpack.encode([tag, *told]))
    assert record is None or isinstance(record, kind)


@pytest.mark.parametrize("kind", GOVERNED)
@given(data=st.data(), more=st.lists(fields, max_size=3))
@law
def test_fields_that_a_later_build_adds_are_passed_over(kind, data, more):
    record = data.draw(structs(kind))
    whole = encode(record)
    told = [*msgspec.msgpack.decode(whole[1:]), *more]
    assert decode(whole[:1] + msgspec.msgpack.encode(told)) == record
