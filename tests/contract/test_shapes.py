"""Long bodies are looked at before they are decoded: cheaply, and never more strictly than what decodes them."""

from __future__ import annotations

import json
import time
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.contract.decoding import check_limits, decode_request
from perdure.contract.limits import BATCHES, HTTP, METADATA_BYTES_MAX, TAGS_MAX, SurfaceLimits
from perdure.contract.operations import OPERATIONS
from perdure.contract.shapes import check_shape, parts_of
from perdure.errors import InvalidJson, InvalidRequest

MIB = 1 << 20


def many() -> bytes:
    return b",".join(b'"%d":1' % number for number in range(1_300_000))


def ids() -> bytes:
    return b",".join(b'"n%d"' % number for number in range(1_400_000))


# Each is made when its test asks for it: together they would stay in every process that collects the tests.
LONG = {
    "metadata of very many keys": ("remember", lambda: b'{"text":"x","metadata":{%b}}' % many()),
    "a filter of very many keys": ("recall", lambda: b'{"query":"x","filter":{%b}}' % many()),
    "very many conditions": (
        "recall",
        lambda: b'{"query":"x","filter":{"$or":[%b]}}' % b",".join([b'{"a":1}'] * 1_800_000),
    ),
    "very many unknown fields": ("remember", lambda: b'{"text":"x",%b}' % many()),
    "an unknown list": ("remember", lambda: b'{"text":"x","other":[%b1]}' % (b"1," * (7 * MIB))),
    "lists in lists": (
        "remember",
        lambda: b'{"text":"x","metadata":{"a":' + b"[" * 120 + b"[]," * (4 * MIB) + b"1" + b"]" * 120 + b"}}",
    ),
    "very many ids of a scope": ("forget", lambda: b'{"scope":{"kind":"ids","ids":[%b]}}' % ids()),
    "very many ids": ("recordUse", lambda: b'{"ids":[%b]}' % ids()),
    "very many texts": ("unblock", lambda: b'{"texts":[%b]}' % ids()),
    "very many facts": ("remember", lambda: b'{"facts":[%b]}' % b",".join([b'{"text":"x"}'] * MIB)),
    "very many tags": ("remember", lambda: b'{"facts":[{"text":"x","tags":[%b]}]}' % ids()),
    "a very long vector": ("recall", lambda: b'{"query":"x","embedding":[%b1]}' % (b"1," * (7 * MIB))),
    "vectors for very many units": (
        "putDocument",
        lambda: b'{"id":"x","text":"x","embedding":[%b1]}' % (b"[1]," * (3 * MIB)),
    ),
    "metadata that is lawful in each of many facts": (
        "remember",
        lambda: (
            b'{"facts":[%b]}' % b",".join([b'{"text":"x","metadata":{"a":[%b1]}}' % (b"[]," * 20_000)] * 200)
        ),
    ),
    "very many memories": (
        "recall",
        lambda: b'{"query":"x","spaces":[%b]}' % b",".join([b"{}"] * (4 * MIB)),
    ),
    "weights for what is very far off": (
        "recall",
        lambda: b'{"query":"x","context":{"neighbours":[%b1]}}' % (b"1," * (7 * MIB)),
    ),
    "no object": ("recall", lambda: b"[%b1]" % (b"1," * (7 * MIB))),
    "no JSON": ("remember", lambda: b'{"text":"x","metadata":{%b}' % many()),
}


def refused(op: str, body: bytes) -> InvalidRequest | InvalidJson:
    with pytest.raises((InvalidRequest, InvalidJson)) as found:
        check_shape(OPERATIONS[op], body, HTTP)
    return found.value


@pytest.mark.parametrize("name", LONG)
def test_a_body_that_holds_too_much_is_refused_in_little_more_room_than_it_takes_itself(name):
    op, make = LONG[name]
    body = make()
    refused(op, b'{"text":5,"ids":5,"id":5,"query":5}')  # what decodes it is made once
    tracemalloc.start()
    began = time.thread_time()
    try:
        refused(op, body)
        assert tracemalloc.get_traced_memory()[1] < 4 * len(body) + MIB
    finally:
        tracemalloc.stop()
    assert time.thread_time() - began < 5


CREATE = {"operation": "create", "draft": {"id": "x", "kind": "semantic", "content": "x", "evidence": []}}


@pytest.mark.parametrize(
    ("op", "request_"),
    [
        ("remember", {"text": "x", "other": 1}),
        ("remember", {"text": 5}),
        ("remember", {"text": "x", "tags": 5}),
        ("remember", {"text": "x", "tags": ["a", 5]}),
        ("remember", {"text": "x", "metadata": []}),
        ("remember", {"text": "x", "source": {"start": "a"}}),
        ("remember", {"text": "x", "source": {"other": 1}}),
        ("remember", {"facts": {}}),
        ("remember", {"facts": [{"text": "x"}, 5]}),
        ("remember", {"facts": [{"text": "x"}, {"text": "x", "other": 1}]}),
        ("remember", {"facts": [{"text": "x"}, {"text": "x", "embedding": [1, "a"]}]}),
        ("remember", {"facts": [{"text": "x", "metadata": "a"}]}),
        ("recall", {"query": "x", "context": {"neighbours": ["a"]}}),
        ("recall", {"query": "x", "context": {"other": 1}}),
        ("recall", {"query": "x", "weights": {"other": 1}}),
        ("recall", {"query": "x", "spaces": [5]}),
        ("forget", {"scope": {"kind": "other"}}),
        ("forget", {"scope": {"kind": "ids", "ids": [5]}}),
        ("forget", {"scope": {"kind": "ids", "ids": [], "other": 1}}),
        ("forget", {"scope": {"kind": "filter", "filter": 5}}),
        ("forget", {"scope": 5}),
        ("putDocument", {"id": "x", "text": "x", "embedding": [[1], ["a"]]}),
        ("restore", {"ids": ["x"] * (HTTP.batch_max + 1)}),
        ("applyChanges", {"idempotencyKey": "k", "occurredAt": 0, "operations": [{"operation": "dream"}]}),
        ("applyChanges", {"idempotencyKey": "k", "occurredAt": 0, "operations": [CREATE | {"other": 1}]}),
        ("applyChanges", {"idempotencyKey": "k", "occurredAt": 0, "operations": [CREATE | {"draft": 5}]}),
        ("rememberConversation", {"sessionId": "s", "version": "1", "turns": [{"text": 5}]}),
        ("expandConversation", {"context": {"query": "x", "sources": [5]}}),
        ("remember", {"facts": [{"text": "x"}] * (HTTP.batch_max + 1)}),
        ("forget", {"scope": {"kind": "ids", "ids": ["x"] * (HTTP.batch_max + 1)}}),
    ],
)
def test_a_refusal_has_the_words_and_the_field_that_it_has_for_a_short_body(op, request_):
    with pytest.raises(InvalidRequest) as found:
        check_limits(decode_request(OPERATIONS[op], request_), HTTP)
    first = refused(op, json.dumps(request_).encode())
    assert (first.message, first.field) == (found.value.message, found.value.field)


@pytest.mark.parametrize(
    "request_",
    [
        {"text": "x", "metadata": {"a": "," * (METADATA_BYTES_MAX - 8)}},
        {"text": "x", "metadata": {"a": "é" * (METADATA_BYTES_MAX // 2 - 4)}},
        {"text": "x", "tags": [str(number) for number in range(TAGS_MAX)], "embedding": [0.5] * 4_096},
        {"facts": [{"text": "x, y", "metadata": {"a": [1] * 100}}] * HTTP.batch_max},
    ],
)
def test_what_is_as_large_as_it_may_be_passes(request_):
    check_shape(OPERATIONS["remember"], json.dumps(request_).encode(), HTTP)
    check_shape(OPERATIONS["remember"], json.dumps(request_, indent=1).encode(), HTTP)


def test_a_change_set_and_a_conversation_as_large_as_they_may_be_pass():
    evidence = {"uri": "u" * 2_048, "digest": "d", "kind": "manual", "occurredAt": 0, "quote": "q" * 65_536}
    draft = {**CREATE["draft"], "content": "c" * 65_536, "evidence": [evidence] * 64}
    change_set = {"idempotencyKey": "k", "occurredAt": 0, "operations": [CREATE | {"draft": draft}] * 3}
    check_shape(OPERATIONS["applyChanges"], json.dumps(change_set).encode(), HTTP)
    turn = {"sourceId": "t", "role": "user", "text": "x" * 50_000, "observationTime": 0}
    told = {"sessionId": "s", "version": "1", "turns": [turn] * 40}
    check_shape(OPERATIONS["rememberConversation"], json.dumps(told).encode(), HTTP)


SHORT = SurfaceLimits(k_max=100, query_bytes_max=1_024, batch_max=3)
MEMBER = {
    "facts": {"text": "x"},
    "embedding": 0.5,
    "operations": {"operation": "resolve"},
    "turns": {"text": "x"},
}
BOUNDED = sorted(
    (operation.name, name)
    for operation in OPERATIONS.values()
    for kind in (operation.request, *([operation.many[1]] if operation.many else []))
    for name in kind.__struct_encode_fields__
    if SHORT.members_max(name) is not None
)


@pytest.mark.parametrize(("op", "name"), BOUNDED)
def test_every_list_may_have_as_many_members_as_its_one_bound_says_and_not_one_more(op, name):
    most = SHORT.members_max(name)
    operation = OPERATIONS[op]
    known = set(operation.request.__struct_encode_fields__) if name != "facts" else set()
    told = dict.fromkeys(known & {"id", "text", "query", "keep"}, "x")

    def body(count):
        return {**told, name: [MEMBER.get(name, "x")] * count}

    check_shape(operation, json.dumps(body(most)).encode(), SHORT)
    with pytest.raises(InvalidRequest, match=f"(more than the|at most) {most} ") as looked:
        check_shape(operation, json.dumps(body(most + 1)).encode(), SHORT)
    assert looked.value.field == name
    if name in BATCHES:
        check_limits(decode_request(operation, body(most)), SHORT)
        with pytest.raises(InvalidRequest) as decoded:
            check_limits(decode_request(operation, body(most + 1)), SHORT)
        assert (decoded.value.message, decoded.value.field) == (looked.value.message, looked.value.field)


def test_white_space_and_escapes_around_what_may_be_stored_are_taken():
    spelled = "".join(f"\\u{ord('a'):04x}" for _ in range(METADATA_BYTES_MAX - 8))
    check_shape(
        OPERATIONS["remember"], b'{"text":"x","metadata":{"a": "%b"}}' % spelled.encode() + b" " * MIB, HTTP
    )


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
fields = st.sampled_from(
    sorted({
        name
        for operation in OPERATIONS.values()
        for kind in (operation.request, *([operation.many[1]] if operation.many else []))
        for name in kind.__struct_encode_fields__
    })
)  # fmt: skip
lawful = st.sampled_from(
    [
        {"text": "x"}, "x", 5, True, 0.5, ["x"], [0.5], [[0.5], 1], {"kind": "ids", "ids": ["x"]},
        {"kind": "matching", "metadata": {"a": 1}}, [{"text": "x", "tags": ["a"]}], {"a": {"b": [1]}},
        {"principal": "x"}, [1, "2024-01-01"],
    ]
)  # fmt: skip


@given(
    st.sampled_from(sorted(OPERATIONS)),
    st.dictionaries(fields | st.just("other"), lawful | json_values, max_size=3),
)
def test_what_the_look_refuses_is_refused_when_it_is_decoded_too(op, request_):
    try:
        check_shape(OPERATIONS[op], json.dumps(request_).encode(), HTTP)
    except (InvalidRequest, InvalidJson):
        with pytest.raises(InvalidRequest):
            check_limits(decode_request(OPERATIONS[op], request_), HTTP)


@given(json_values)
def test_the_parts_of_a_text_are_no_more_than_its_bytes_and_no_fewer_than_what_it_holds(value):
    def held(one):
        if isinstance(one, dict):
            return 1 + sum(1 + held(inner) for inner in one.values())
        return 1 + sum(1 + held(inner) for inner in one) if isinstance(one, list) else 0

    text = json.dumps(value).encode()
    assert held(value) <= 2 * parts_of(text) + 1
    assert parts_of(text) <= len(text)
