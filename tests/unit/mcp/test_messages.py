"""Lines of JSON-RPC: which are taken, and how each other one is answered."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.mcp import messages
from perdure.mcp.messages import Refused, encoded, is_request, judged

CALL = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"remember","arguments":%s}}'
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


def answer_to(line: bytes) -> Any:
    found = judged(line)
    assert isinstance(found, Refused)
    answer = json.loads(encoded(found.reply))
    assert answer["jsonrpc"] == "2.0"
    return answer


@given(st.integers() | st.text(), st.text(), st.dictionaries(st.text(), VALUES))
def test_a_request_is_taken_as_it_is(id_, method, params):
    message = {"jsonrpc": "2.0", "id": id_, "method": method, "params": params}
    if "Infinity" not in json.dumps(message):
        assert judged(json.dumps(message, ensure_ascii=False).encode()) == message


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_every_line_is_taken_or_answered(line):
    found = judged(line)
    if isinstance(found, Refused):
        assert answer_to(line)["error"]["code"] in (-32700, -32600)
    else:
        assert is_request(found) or "method" not in found


@given(VALUES.map(json.dumps), st.data())
def test_a_message_that_is_cut_anywhere_is_answered(arguments, data):
    whole = CALL % arguments.encode()
    cut = data.draw(st.integers(1, len(whole) - 1))
    assert answer_to(whole[:cut])["error"]["code"] == -32700


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (b'{"metadata":' + b'{"a":' * 300 + b"1" + b"}" * 301, "nested deeper"),
        (b'{"metadata":' + b"[" * 90_000 + b"]" * 90_000 + b"}", "nested deeper"),
        (b'{"k":' + b"9" * 6_000 + b"}", "4300 digits"),
        (b'{"text":"a","text":"b"}', "duplicate key"),
        (b'{"metadata":{"}\\"{":1,"x":{"a":1,"a":2}}}', "duplicate key"),
    ],
    ids=["objects", "lists", "digits", "keys", "keys inside"],
)
def test_what_is_wrong_in_arguments_alone_is_a_result_of_the_tool(arguments, words):
    answer = answer_to(CALL % arguments)
    assert answer["id"] == 7
    result = answer["result"]
    assert result["isError"] is True
    error = result["structuredContent"]["error"]
    assert (error["code"], error["field"]) == ("invalid_request", "arguments")
    assert words in error["message"]
    assert words in result["content"][0]["text"]


@pytest.mark.parametrize(
    ("line", "id_", "code"),
    [
        (b"{", None, -32700),
        (b"\xff\xfe\x00", None, -32700),
        (b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"ping"}', None, -32700),
        (b'{"jsonrpc":"2.0","id":1,', None, -32700),
        (CALL % b'{"k":NaN}', 7, -32700),
        (CALL % b'{"text":"caf\xe9"}', 7, -32700),
        (CALL % b'{"text":}', 7, -32700),
        (b"[" * 100_000, None, -32600),
        (b'[{"jsonrpc":"2.0","id":9,"method":"ping"}]', None, -32600),
        (b"null", None, -32600),
        (b"{}", None, -32600),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', 1, -32600),
        (b'{"jsonrpc":"2.0","id":"a"}', "a", -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":5}', 1, -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"\\ud800"}', 1, -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', None, -32600),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', None, -32600),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', None, -32600),
        (b'{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}', None, -32600),
        (b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}', None, -32600),
        (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', None, -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', 1, -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":1,"a":2}}', 1, -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name":"b","arguments":{}}}', 1, -32602),
    ],
)  # fmt: skip
def test_what_is_no_message_has_an_error_of_the_protocol(line, id_, code):
    answer = answer_to(line)
    assert (answer["id"], answer["error"]["code"]) == (id_, code)


def test_a_line_above_the_limit_is_answered_under_its_id_where_that_was_sent_first(monkeypatch):
    monkeypatch.setattr(messages, "LINE_BYTES_MAX", 200)
    line = CALL % (b'{"text":"' + b"x" * 200 + b'"}')
    answer = answer_to(line[:201])
    assert (answer["id"], answer["error"]["code"]) == (7, -32600)
    assert "200 bytes" in answer["error"]["message"]
    assert answer_to(b'{"params":{"a":"' + b"x" * 200)["id"] is None
    assert judged((CALL % b"{}").ljust(200)) == json.loads(CALL % b"{}")


def test_replies_are_taken_for_whoever_asked():
    for reply in (
        b'{"jsonrpc":"2.0","id":1,"result":{}}',
        b'{"jsonrpc":"2.0","id":"a","error":{"code":1,"message":""}}',
    ):
        assert judged(reply) == json.loads(reply)


def test_no_answer_repeats_what_was_sent():
    for line in (
        b'{"planted',
        b'{"planted":1}',
        CALL % b'{"planted":1,"planted":"planted"}',
        b'"planted\xff"',
        b'{"jsonrpc":"2.0","id":1,"method":"planted","params":["planted"]}',
    ):
        assert "planted" not in str(answer_to(line))


@pytest.mark.parametrize("arguments", [[1], "x", 7, True])
def test_arguments_that_are_no_object_are_told_as_a_result_of_the_tool(arguments):
    told = {"jsonrpc": "2.0", "id": 3, "method": "tools/call"}
    answer = judged(json.dumps({**told, "params": {"name": "recall", "arguments": arguments}}).encode())
    assert isinstance(answer, Refused)
    assert answer.reply["id"] == 3
    error = answer.reply["result"]["structuredContent"]["error"]
    assert error["field"] == "arguments"
    assert error["message"].startswith("arguments must be an object, got ")
    for params in ({"name": "recall"}, {"name": "recall", "arguments": None}, None):
        assert not isinstance(judged(json.dumps({**told, "params": params}).encode()), Refused)
