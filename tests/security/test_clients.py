"""A client before a server that means harm, or is none: it fails as Perdure does, and gives nothing away."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from perdure.client import Client
from perdure.errors import PerdureError, Unavailable

KEY = "pk_0123456789abcdef_" + "5ec2e7" * 10 + "abcd"


def client_of(answer: httpx.Response | Exception, seen: list[httpx.Request] | None = None) -> Client:
    def reply(request: httpx.Request) -> httpx.Response:
        if seen is not None:
            seen.append(request)
        if isinstance(answer, Exception):
            raise answer
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.read())

    return Client("http://server.example", api_key=KEY, retries=0, transport=httpx.MockTransport(reply))


def calls(client: Client) -> list[Any]:
    memory, documents, store = client.memory("u1"), client.documents("u1"), client.store
    return [
        lambda: memory.recall("x"), lambda: memory.remember("x"), lambda: memory.get("x"), memory.list,
        lambda: memory.history("x"),
        memory.changes, lambda: memory.forget(ids=["x"]), memory.capabilities, lambda: memory.trace("x"),
        lambda: documents.get("x"), lambda: documents.search("x"), documents.list, store.spaces, store.stats,
        lambda: store.erase("u1"), lambda: memory.call("list", {}),
    ]  # fmt: skip


def error_of(call: Callable[[], Any]) -> PerdureError | None:
    """Return the error of Perdure that a call ends in; any other one is a fault."""
    try:
        call()
    except PerdureError as error:
        return error
    return None


FACT = {"id": "x", "text": "x", "ingestTime": 10**30}
BODIES = [
    b"", b"null", b"[]", b"1", b'"x"', b"{", b"\xff", b"<html>no</html>", b"[" * 100_000, b'{"a":' * 100_000,
    b'{"results":' + b"[" * 100_000, b'{"items":[{"metadata":' + b'{"a":' * 100_000, b"9" * 10_000,
    b'{"results":null}', b'{"items":{}}',
    b'{"fact":{"id":1}}',
    json.dumps({"fact": FACT, "items": [FACT], "document": FACT, "results": [FACT]}).encode(),
    b'{"fact":NaN}',
    b'{"items":[' + b"null," * 1000 + b"null]}", b'{"items":[],"total":1e400,"hasMore":1}', b'{"\\ud800":1}',
    b'{"items":"\\ud800"}',
]  # fmt: skip


@pytest.mark.parametrize("body", BODIES, ids=range(len(BODIES)))
@pytest.mark.parametrize("status", [200, 500])
def test_an_answer_that_makes_no_sense_is_an_error_of_perdure(body, status):
    with client_of(httpx.Response(status, content=body)) as client:
        told = [error for call in calls(client) if (error := error_of(call)) is not None]
        assert len(told) >= (len(calls(client)) if status == 500 else 1)
    assert not [error for error in told if KEY in f"{error!s}{error!r}"]


@pytest.mark.parametrize(
    "error",
    [
        None, [], "x", {}, {"code": 1}, {"code": ["x"]}, {"code": "x", "details": {"status": "x", "code": 1}},
        {"code": "conflict", "message": ["x"]}, {"code": "conflict", "details": []},
        {"code": "conflict", "details": "x"},
        {"code": "conflict", "details": {"field": 1, "message": 2, "self": 3, "code": 4, "status": "x", "args": 5}},
        {"code": "not_found", "message": "x", "field": {"a": 1}},
        {"code": "busy", "details": {"kind": [1], "args": 7, "__class__": "x", "": 0}},
        {"code": "__init__", "message": None}, {"code": "\ud800", "message": "\ud800", "field": "\ud800"},
        {"code": "internal", "details": {"details": {}}},
    ],
)  # fmt: skip
def test_an_error_in_a_form_that_no_server_gives_is_still_an_error_of_perdure(error):
    for status in (400, 404, 409, 422, 500, 503, 200, 299, 399):
        with client_of(httpx.Response(status, content=json.dumps({"error": error}).encode())) as client:
            with pytest.raises(PerdureError) as caught:
                client.memory("u1").recall("x")
            assert isinstance(caught.value.status, int)
            assert str(caught.value) is not None


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed_so_that_the_key_goes_nowhere_else(status):
    seen: list[httpx.Request] = []
    answer = httpx.Response(status, headers={"location": "http://evil.example/api/v1/memory/recall"})
    with client_of(answer, seen) as client, pytest.raises(Unavailable):
        client.memory("u1").recall("x")
    assert [request.url.host for request in seen] == ["server.example"]


def test_cookies_of_a_server_are_not_sent_to_another_path_with_the_key():
    seen: list[httpx.Request] = []
    answer = httpx.Response(200, headers={"set-cookie": "a=b; domain=example"}, content=b'{"results":[]}')
    with client_of(answer, seen) as client:
        client.memory("u1").recall("x")
        client.memory("u1").recall("x")
    assert all("authorization" in request.headers for request in seen)
    assert all(request.url.path == "/api/v1/memory/recall" for request in seen)


def test_an_answer_that_was_packed_although_nobody_asked_for_that_is_refused_before_it_is_unpacked():
    bomb = gzip.compress(b'{"results":[]' + b" " * (64 << 20) + b"}")
    with client_of(
        httpx.Response(200, headers={"content-encoding": "identity"}, content=b'{"results":[]}')
    ) as client:
        assert client.memory("u1").recall("x") == []

    def reply(request: httpx.Request) -> httpx.Response:
        assert request.headers["accept-encoding"] == "identity"
        return httpx.Response(200, headers={"content-encoding": "gzip"}, stream=httpx.ByteStream(bomb))

    with (
        Client("http://server.example", retries=0, transport=httpx.MockTransport(reply)) as client,
        pytest.raises(Unavailable),
    ):
        client.memory("u1").recall("x")


@pytest.mark.parametrize(
    "name", ["a\r\nX-Evil: 1", "a\nb", "\0", "é\u2028", "../..", "a b,c", "%0d%0a", "\ud800", "x" * 10_000]
)
def test_a_name_is_refused_or_goes_out_as_one_header_of_its_own(name):
    seen: list[httpx.Request] = []
    with client_of(httpx.Response(200, content=b'{"results":[]}'), seen) as client:
        try:
            client.memory(name, name).recall("x")
        except PerdureError:
            assert not seen
            return
    (request,) = seen
    assert "x-evil" not in request.headers
    assert request.headers["perdure-principal"].isascii()
    assert not set(request.headers["perdure-principal"]) & set("\r\n ,")


@pytest.mark.parametrize("id_", ["../../store/purge", "x?purge=true", "x#y", "/", "", "a\r\nb", "%2e%2e"])
def test_an_id_never_becomes_part_of_an_address(id_):
    seen: list[httpx.Request] = []
    with client_of(httpx.Response(200, content=b"{}"), seen) as client:
        for call in (client.documents("u1").get, client.documents("u1").delete, client.memory("u1").get):
            with pytest.raises(PerdureError):
                call(id_)
    assert {request.url.raw_path for request in seen} <= {
        b"/api/v1/documents/getDocument",
        b"/api/v1/documents/deleteDocument",
        b"/api/v1/memory/get",
    }


def test_an_operation_that_there_is_not_is_never_part_of_an_address():
    seen: list[httpx.Request] = []
    with client_of(httpx.Response(200, content=b"{}"), seen) as client:
        for op in ("../store/purge", "list?x=1", "purge", "", "list/", "LIST"):
            with pytest.raises(PerdureError):
                client.memory("u1").call(op, {})
    assert seen == []
