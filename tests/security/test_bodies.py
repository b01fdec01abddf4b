"""Bodies as an attacker writes them: none is carried out in part, and none is a fault of the server."""

from __future__ import annotations

import gc
import gzip
import json
import tracemalloc
import zlib

import pytest

from perdure.contract.limits import BODY_BYTES_MAX
from perdure.contract.operations import OPERATIONS

from .asking import code
from .site import JSON, Site, path_of

PLAIN = [(b"host", b"localhost"), (b"content-type", b"application/json")]
REMEMBER = path_of("remember").encode()
SURROGATE = "\\ud800"


@pytest.fixture
def open_site(tmp_path):
    with Site(tmp_path / "store", auth=False) as served:
        yield served


def nothing_is_there(site: Site) -> bool:
    return bool(site.call("list").json()["items"] == [] and site.call("listDocuments").json()["items"] == [])


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 422), (b"{", 400), (b"nul", 400), (b"null", 422), (b"[]", 422), (b'"x"', 422), (b"1", 422),
        (b"true", 422),
        (b"{}{}", 400), (b'{"text":"x"}x', 400), (b'{"text":"x"}\x00', 400), (b"\x00", 400),
        (b'{"text":"\x00"}', 400),
        (b'\xef\xbb\xbf{"text":"x"}', 400), ('{"text":"x"}'.encode("utf-16"), 400),
        ('{"text":"x"}'.encode("utf-32-le"), 400),
        (b'{"text":"\xff"}', 400), (b'{"text":"\xc0\xaf"}', 400), (b'{"text":"\xed\xa0\x80"}', 400),
        (b"{'text':'x'}", 400), (b'{"text":"x",}', 400), (b'{"text":"x"/**/}', 400), (b'{text:"x"}', 400),
        (b'{"text":"x","importance":NaN}', 400), (b'{"text":"x","importance":-Infinity}', 400),
        (b'{"text":"x","importance":1e400}', 422), (b'{"text":"x","importance":0x1}', 400),
        (b'{"text":"x","importance":01}', 400),
        (b'{"text":"x","importance":' + b"9" * 5_000 + b"}", 422),
        (b'{"text":"x","importance":1e99999999999}', 422),
        (b'{"text":"x","source":{"position":9223372036854775808}}', 422),
        (b'{"text":"x","metadata":{"a":9007199254740993}}', 422),
        (b'{"text":"x","text":"y"}', 422), (b'{"text":"x","metadata":{"a":1,"a":2}}', 422),
        (b'{"te\\u0078t":"x","text":"y"}', 422),
        (b'{"text":"x","metadata":' + b'{"a":' * 128 + b"1" + b"}" * 129, 422),
        (b'{"text":' + b"[" * 100_000, 422),
        (b'{"a":' * 50_000, 422), (b'{"text":"' + SURROGATE.encode() + b'"}', 422),
        (b'{"' + SURROGATE.encode() + b'":1}', 422),
        (b'{"text":"x","source":{"' + SURROGATE.encode() + b'":1}}', 422),
        (b'{"text":"x","metadata":{"' + SURROGATE.encode() + b'":1}}', 422),
        (b'{"text":{"$gt":""}}', 422), (b'{"text":"x","__proto__":{}}', 422),
        (b'{"text":"x","id":"\\u0000"}', 422),
    ],
)  # fmt: skip
def test_a_body_that_is_not_exactly_a_request_is_refused_whole(open_site, body, status):
    told = open_site.raw(PLAIN, body, path=REMEMBER)
    assert told[0] == status, told[2]
    assert json.loads(told[2])["error"]["code"] == {400: "invalid_json", 422: "invalid_request"}[status]
    assert nothing_is_there(open_site)


def test_no_operation_takes_a_lone_surrogate_for_a_fault_wherever_it_stands(open_site):
    bodies = [f'{{"{SURROGATE}":1}}', f'{{"scope":{{"kind":"{SURROGATE}"}}}}']
    fields = (
        "id",
        "query",
        "text",
        "subject",
        "cursor",
        "since",
        "principal",
        "keep",
        "order",
        "mode",
        "asOf",
        "profile",
        "at",
    )
    bodies += [f'{{"{field}":"{SURROGATE}"}}' for field in fields]
    bodies += [
        f'{{"ids":["{SURROGATE}"]}}',
        f'{{"filter":{{"{SURROGATE}":1}}}}',
        f'{{"query":"x","spaces":["{SURROGATE}"]}}',
    ]
    for op in OPERATIONS:
        kind = b"application/x-ndjson" if op == "import" else b"application/json"
        for body in bodies:
            status = open_site.raw(
                [PLAIN[0], (b"content-type", kind)], body.encode(), path=path_of(op).encode()
            )[0]
            assert 400 <= status < 500, (op, body)


@pytest.mark.parametrize("told", ["gzip", "x-gzip", "deflate", "br", "zstd", "identity, gzip", "GZIP", ""])
def test_a_compressed_body_is_refused_before_it_is_unpacked(open_site, told):
    bomb = gzip.compress(b'{"text":"' + b"x" * (32 << 20) + b'"}')
    for content in (bomb, zlib.compress(b"x" * (1 << 20))):
        headers = {**JSON, "content-encoding": told}
        reply = open_site.send("POST", path_of("remember"), headers=headers, content=content)
        assert reply.status_code in (415, 400)
        assert nothing_is_there(open_site)


def test_a_body_is_read_no_further_than_its_limit_whatever_it_told_of_its_length(open_site):
    part = b" " * (1 << 20)
    for headers in (PLAIN, [*PLAIN, (b"content-length", b"2")], [*PLAIN, (b"transfer-encoding", b"chunked")]):
        status, told, _ = open_site.raw(headers, *[part] * 17, path=REMEMBER)
        assert (status, told[b"connection"]) == (413, b"close")
    for length in (BODY_BYTES_MAX + 1, 10**18, 10**400):
        assert open_site.raw([*PLAIN, (b"content-length", b"%d" % length)], b"{}", path=REMEMBER)[0] == 413
    for length in (b"-1", b"+1", b"1e3", b"1,1", b"0x10", b"\xb2", b"1 1", b""):
        assert open_site.raw([*PLAIN, (b"content-length", length)], b"{}", path=REMEMBER)[0] == 400, length
    padded = b'{"text":"' + b"x" * 100 + b'"' + b" " * (BODY_BYTES_MAX - 111) + b"}"
    assert len(padded) == BODY_BYTES_MAX
    assert open_site.raw(PLAIN, padded, path=REMEMBER)[0] == 200
    assert open_site.raw(PLAIN, padded, b" ", path=REMEMBER)[0] == 413


def test_nothing_of_a_refused_body_is_kept(open_site):
    def refuse():
        told = open_site.raw(PLAIN, b'{"text":"x","metadata":[%b1]}' % (b" " * (4 << 20)), path=REMEMBER)
        assert told[0] == 422

    refuse()
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        for _ in range(5):
            refuse()
        assert tracemalloc.get_traced_memory()[0] < 8 << 20
    finally:
        tracemalloc.stop()
        gc.enable()


def test_a_body_that_ends_before_its_end_is_not_carried_out(open_site):
    assert open_site.raw(PLAIN, b'{"text":"half', leaves=True, path=REMEMBER)[0] == 0
    assert open_site.raw(PLAIN, b'{"text":"whole"}', leaves=True, path=REMEMBER)[0] == 0
    assert nothing_is_there(open_site)


def test_a_thousand_facts_are_a_batch_and_one_more_is_none(open_site):
    facts = [{"text": "x", "id": f"f{number}"} for number in range(1_001)]
    reply = open_site.call("remember", {"facts": facts})
    assert (reply.status_code, reply.json()["error"]["field"]) == (422, "facts")
    assert nothing_is_there(open_site)


def test_limits_of_a_query_hold_at_their_edge(open_site):
    for k, status in (
        (0, 422),
        (-1, 422),
        (1, 200),
        (100, 200),
        (101, 422),
        (10**30, 422),
        (1.0, 200),
        (1.5, 422),
        (True, 422),
        ("1", 422),
    ):
        for op in ("recall", "searchDocuments"):
            assert open_site.call(op, {"query": "x", "k": k}).status_code == status, (op, k)
    for size, status in ((16_384, 200), (16_385, 422)):
        assert open_site.call("recall", {"query": "x" * size}).status_code == status
        assert open_site.call("recall", {"query": "é" * (size // 2) + "x" * (size % 2)}).status_code == status


def test_lists_as_long_as_a_body_can_hold_are_answered_with_an_error_or_not_but_never_with_a_fault(open_site):
    many = 40_000
    asked = [
        ("remember", {"text": "x", "supersedes": [str(number) for number in range(many)]}),
        ("remember", {"text": "x", "embedding": [1] * many}),
        ("remember", {"text": "x", "metadata": {"a": [1] * many}}),
        ("remember", {"facts": [{}] * many}),
        ("recall", {"query": "x", "spaces": [str(number) for number in range(many)]}),
        ("recall", {"query": "x", "context": {"neighbours": [1.0] * many}}),
        ("list", {"filter": {"and": [{"a": 1}] * many}}),
        ("list", {"cursor": "a" * many}),
        ("merge", {"keep": "x", "ids": ["y"] * many}),
        ("putDocument", {"id": "d", "text": "x", "embedding": [[1] * 8] * many}),
    ]
    for op, request in asked:
        assert 400 <= open_site.call(op, request).status_code < 500, op
    assert nothing_is_there(open_site)


def test_the_body_and_the_address_may_not_tell_one_field_twice(open_site):
    headers = {**JSON, "if-match": '"1"'}
    for body in ({"id": "other"}, {"ifVersion": 7}):
        reply = open_site.send("PUT", "/api/v1/documents/d", headers=headers, json={"text": "x", **body})
        assert (reply.status_code, code(reply)) == (422, "invalid_request")
    assert nothing_is_there(open_site)


def test_lines_that_are_no_export_are_refused_and_leave_nothing(open_site):
    kind = (b"content-type", b"application/x-ndjson")
    for body in (
        b"",
        b"\n",
        b"{}",
        b"null\n",
        b"\xff\n",
        b"[" * 100_000,
        b'{"format":"perdure-export","version":99}\n',
        b"x" * (1 << 20),
    ):
        status, _, told = open_site.raw([PLAIN[0], kind], body, path=path_of("import").encode())
        assert 400 <= status < 500, (body[:20], told)
    assert open_site.raw(PLAIN, b"{}", path=path_of("import").encode())[0] == 415
    assert open_site.raw([PLAIN[0], kind], b'{"format":', leaves=True, path=path_of("import").encode())[
        0
    ] in (0, 422)
    assert nothing_is_there(open_site)
