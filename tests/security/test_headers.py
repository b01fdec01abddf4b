"""Headers and addresses as an attacker writes them."""

from __future__ import annotations

import json
import re

import pytest

from perdure.server.guard import SECURITY_HEADERS

from .asking import code
from .site import JSON, Site

PLAIN = [(b"host", b"localhost"), (b"content-type", b"application/json")]


@pytest.fixture
def open_site(tmp_path):
    """A server that asks for no key."""
    with Site(tmp_path / "store", auth=False) as served:
        yield served


def headers_of(key: str | None = None, **more: bytes) -> list[tuple[bytes, bytes]]:
    own = [] if key is None else [(b"authorization", b"Bearer " + key.encode())]
    return [*PLAIN, *own, *((name.replace("_", "-").encode(), value) for name, value in more.items())]


@pytest.mark.parametrize(
    "host",
    [
        b"", b"evil.example", b"localhost.", b"localhost.:8420", b"127.0.0.1.", b"127.0.0.1.nip.io",
        b"127.0.0.1.nip.io:8420",
        b"localhost.evil.example", b"evil.example:localhost", b"evil.example#localhost",
        b"localhost@evil.example",
        b"localhost/evil", b"localhost:8420@evil.example", b"localhost,evil.example",
        b"localhost evil.example",
        b"[::1].evil.example", b"[::1]evil", b"::1]", b"[::1", b"[[::1]]", b"[::1]:8420.evil.example",
        b"[127.0.0.1]",
        b"127.0.0.1]", b"[::ffff:127.0.0.1]", b"0.0.0.0", b"127.1", b"127.0.1", b"2130706433", b"0x7f000001",
        b"::1", b"localhost:8420:8420",
        b"localhost:http", b"localhost:-1", b"loc\xc3\xa5lhost", b"\xff", b"localhost\x00.evil",
        b"xn--lcalhost-xyz",
    ],
)  # fmt: skip
def test_a_host_that_is_not_exactly_this_server_s_is_refused(open_site, host):
    wrong = [(b"host", host), PLAIN[1]]
    status, _, body = open_site.raw(wrong, b'{"text":"from a page"}', path=b"/api/v1/memory/remember")
    assert status == 403
    assert json.loads(body)["error"]["field"] == "Host"
    assert open_site.raw(wrong, path=b"/docs", method="GET")[0] == 403
    assert open_site.raw(wrong, path=b"/mcp")[0] == 403
    assert open_site.raw(PLAIN)[2].count(b"from a page") == 0


@pytest.mark.parametrize("host", [b"localhost", b"LOCALHOST:8420", b"127.0.0.1:1", b"[::1]", b"[::1]:8420"])
def test_a_name_of_this_machine_is_served_with_any_port(open_site, host):
    assert open_site.raw([(b"host", host), PLAIN[1]])[0] == 200


@pytest.mark.parametrize(
    "page",
    [
        {"origin": b"null"}, {"origin": b"http://evil.example"}, {"origin": b"http://localhost.evil.example"},
        {"origin": b"http://localhost@evil.example"}, {"origin": b"http://localhost:1"},
        {"origin": b"localhost"},
        {"origin": b"http://127.0.0.1"}, {"origin": b""}, {"origin": b"http://localhost/"},
        {"origin": b"http://localhost evil"},
        {"origin": b"file://"}, {"sec_fetch_site": b"cross-site"}, {"sec_fetch_site": b"same-site"},
        {"sec_fetch_site": b"none, cross-site"}, {"sec_fetch_site": b""},
    ],
)  # fmt: skip
def test_a_web_page_of_another_place_reaches_neither_operations_nor_pages_nor_mcp(open_site, page):
    headers = headers_of(**page)
    paths = (
        b"/api/v1/memory/list",
        b"/mcp",
        b"/docs",
        b"/openapi.json",
        b"/metrics",
        b"/health/live",
        b"/nowhere",
    )
    for path in paths:
        for method in ("POST", "GET", "OPTIONS", "PUT"):
            assert open_site.raw(headers, method=method, path=path)[0] == 403, (path, method)


def test_a_browser_that_asks_whether_another_page_may_is_told_nothing_that_lets_it(open_site):
    asking = headers_of(
        access_control_request_method=b"POST",
        access_control_request_headers=b"content-type,authorization",
        access_control_request_private_network=b"true",
    )
    for path in (b"/api/v1/memory/remember", b"/mcp", b"/api/v1/documents/d", b"/"):
        for origin in (b"http://localhost", b"http://evil.example"):
            status, headers, _ = open_site.raw([*asking, (b"origin", origin)], method="OPTIONS", path=path)
            assert status >= 400
            assert not [name for name in headers if name.startswith(b"access-control-")]


def test_what_a_page_may_send_anywhere_without_asking_is_never_taken_for_json(open_site):
    body = b'{"text":"from a page"}'
    simple = [
        b"text/plain",
        b"application/x-www-form-urlencoded",
        b"multipart/form-data; boundary=x",
        b"",
        b"text/json",
    ]
    odd = [
        b"application/json, text/plain",
        b"application/json; charset=utf-16",
        b"application/json\x00",
        b"application/jsonp",
    ]
    odd += [b"application/json;charset=utf-8;x=y", b"text/plain; application/json", b" application/ json"]
    for kind in simple + odd[:-1]:
        headers = [(b"host", b"localhost"), (b"content-type", kind)]
        assert open_site.raw(headers, body, path=b"/api/v1/memory/remember")[0] == 415, kind
        assert open_site.raw(headers, body, path=b"/mcp")[0] == 415, kind
        assert open_site.raw(headers, body, path=b"/api/v1/documents/d", method="PUT")[0] == 415, kind
    assert open_site.raw([PLAIN[0]], body, path=b"/api/v1/memory/remember")[0] == 415
    assert open_site.call("list").json()["items"] == []


def test_methods_that_an_operation_does_not_take_change_nothing(open_site):
    open_site.call("remember", {"id": "f", "text": "it stays"})
    for method in ("GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "QUERY", "post", ""):
        status, headers, _ = open_site.raw(
            PLAIN, b'{"scope":{"kind":"all"}}', method=method, path=b"/api/v1/memory/forget"
        )
        assert (status, headers[b"allow"]) == (405, b"POST"), method
    for name in ("x-http-method-override", "x-method-override", "x-original-url", "x-rewrite-url"):
        told = {name: "DELETE" if "method" in name else "/api/v1/memory/forget"}
        open_site.send("POST", "/api/v1/memory/list", headers={**JSON, **told}, content=b"{}")
    assert open_site.call("get", {"id": "f"}).json()["fact"]["text"] == "it stays"


@pytest.mark.parametrize(
    "name", ["perdure-tenant", "perdure-principal", "perdure-scope", "authorization", "host"]
)
def test_a_header_that_decides_may_come_once_whatever_its_two_values_and_their_order(site, name):
    key = site.key("a")
    first = {"perdure-tenant": b"a", "perdure-principal": b"u1", "perdure-scope": b"s", "host": b"localhost"}
    value = first.get(name, b"Bearer " + key.encode())
    base = [one for one in headers_of(key, perdure_principal=b"u1") if one[0] != name.encode()]
    for pair in ((value, b"x"), (b"x", value), (value, value), (value, b"")):
        status, _, body = site.raw([*base, *((name.encode(), one) for one in pair)])
        assert status == 400, pair
        assert b"items" not in body


def test_values_that_a_proxy_would_have_joined_are_no_names(site):
    key = site.key("a")
    for value in (b"u1, u2", b"u1,u2", b"u1;u2", b"u1 u2", b" u1", b"u1\t", b"u\xc3\xa9", b"\xff"):
        if value == b"u1;u2":  # visible, and no separator of HTTP: an ordinary name
            continue
        assert site.raw(headers_of(key, perdure_principal=value))[0] == 422, value
        assert site.raw(headers_of(key, perdure_principal=b"u1", perdure_scope=value))[0] == 422, value
        assert site.raw(headers_of(key, perdure_principal=b"u1", perdure_tenant=value))[0] == 400, value


@pytest.mark.parametrize(
    "value",
    [
        b"%", b"%7", b"%zz", b"%C0%AF", b"%E0%80%AF", b"%F0%80%80%AF", b"%C1%81", b"%ED%A0%80",
        b"%F4%90%80%80",
        b"%FF", b"%00", b"u1%00", b"%0D%0Ax-evil:%201", b"%0A", b"%1B[2J", b"%C2%85", b"%7F", b"%u0075",
        b"%25%", b"%EF%BF",
        b"a" * 257, b"%61" * 257, b"%41" * 10_000,
    ],
)  # fmt: skip
def test_a_name_that_is_no_strict_percent_encoded_utf_8_is_refused_and_not_repeated(site, value):
    for name in ("perdure_principal", "perdure_scope"):
        told = {"perdure_principal": b"u1", name: value}
        status, headers, body = site.raw(headers_of(site.key("a"), **told))
        assert status == 422
        assert value not in body or len(value) < 4
        assert b"x-evil" not in body
        assert all(b"\n" not in one and b"\r" not in one for pair in headers.items() for one in pair)


def test_two_encodings_of_one_name_are_one_memory_and_a_name_encoded_twice_is_another(site):
    key = site.key("a")
    site.call("remember", {"id": "f", "text": "of u/1"}, key, perdure_principal="u%2F1")
    for same in ("u/1", "u%2f1", "%75%2F%31"):
        assert site.call("get", {"id": "f"}, key, perdure_principal=same).json()["fact"]["text"] == "of u/1"
    for other in ("u%252F1", "U/1", "u//1", "u/1/", "u/./1", "u%2F1%2F"):
        assert site.call("get", {"id": "f"}, key, perdure_principal=other).json() == {"fact": None}
    composed, decomposed = "%C3%A9", "e%CC%81"
    site.call("remember", {"id": "g", "text": "of é"}, key, perdure_principal=composed)
    assert site.call("get", {"id": "g"}, key, perdure_principal=decomposed).json() == {"fact": None}


@pytest.mark.parametrize(
    "tenant",
    [b"", b"..", b"a/../b", b"a%2F..%2Fb", b"%2e%2e", b"A", b"a%00", b"a.", b"b%20", b"con", b"x" * 65],
)
def test_a_tenant_s_name_is_no_path_and_reaches_no_other_tenant(site, tenant):
    site.call("remember", {"id": "f", "text": "of b"}, site.key("b", principal="u1"))
    before = sorted(site.directory.rglob("*"))
    reply = site.raw(
        headers_of(site.key("a"), perdure_principal=b"u1", perdure_tenant=tenant),
        b'{"text":"x"}',
        path=b"/api/v1/memory/remember",
    )
    assert reply[0] in (400, 403)
    assert sorted(site.directory.rglob("*")) == before


def test_a_request_id_is_given_back_only_in_the_form_of_one(open_site):
    assert open_site.raw(headers_of(x_request_id=b"a.B-9_"))[1][b"x-request-id"] == b"a.B-9_"
    for odd in (
        b"a\r\nset-cookie: x=1",
        b"a b",
        b"a\x00",
        b"\xff",
        b"a" * 65,
        b"",
        b"<script>",
        b"a\n",
        b"{}",
    ):
        told = open_site.raw(headers_of(x_request_id=odd))[1][b"x-request-id"]
        assert re.fullmatch(rb"[0-9a-f]{16}", told), odd


def test_every_reply_tells_a_browser_to_keep_run_and_frame_nothing(open_site):
    paths = [
        "/api/v1/memory/list",
        "/api/v1/documents/none",
        "/docs",
        "/openapi.json",
        "/metrics",
        "/health/live",
        "/nowhere",
        "/mcp",
    ]
    for path in paths:
        for method in ("GET", "POST", "OPTIONS"):
            reply = open_site.send(method, path, headers=JSON)
            for name, value in SECURITY_HEADERS:
                if (path, name) != ("/docs", b"content-security-policy"):
                    assert reply.headers[name.decode()] == value.decode(), (path, method, name)
            assert "server" not in reply.headers
    assert "script-src" not in open_site.send("GET", "/docs").headers["content-security-policy"]
    assert "<script" not in open_site.send("GET", "/docs").text


@pytest.mark.parametrize(
    "path",
    [
        b"/api/v1/memory/../memory/list", b"/api/v1/memory/%2e%2e/memory/list", b"/api/v1//memory/list",
        b"//api/v1/memory/list",
        b"/api/v1/memory/list/", b"/api/v1/memory/list%00", b"/api/v1/memory/list;x=y",
        b"/api/v1/memory/LIST", b"/API/v1/memory/list",
        b"/api/v1/memory%2Flist", b"/%61pi/v1/memory/list", b"/api/v1/documents", b"/api/v1/documents/",
        b"/api/v1/store/list",
        b"/api/v1/memory/__class__", b"/..%2f..%2fetc/passwd", b"/static/../../keys.json", b"/keys.json",
        b"/server.token", b"/\xff",
        b"*", b"",
    ],
)  # fmt: skip
def test_an_address_that_is_not_spelled_as_documented_leads_nowhere(open_site, path):
    open_site.call("remember", {"id": "f", "text": "not to be had"})
    for method in ("POST", "GET"):
        status, _, body = open_site.raw(PLAIN, b"{}", path=path, method=method)
        assert status in (404, 405), body
        assert b"not to be had" not in body


IDS = [
    "../../x",
    "..",
    ".",
    "/etc/passwd",
    "a/b",
    "%2e%2e%2f",
    "a?b#c",
    "a\\b",
    "C:\\x",
    "é",
    "💾",
    "a b",
    "'; DROP TABLE x;--",
    "putDocument",
]


@pytest.mark.parametrize("id_", IDS)
def test_a_document_s_id_is_no_path_whatever_it_looks_like(open_site, id_):
    outside = sorted(open_site.directory.parent.iterdir())
    path = b"/api/v1/documents/" + "".join(f"%{one:02X}" for one in id_.encode()).encode()
    assert open_site.raw(PLAIN, b'{"text":"a page"}', method="PUT", path=path)[0] == 200
    status, _, body = open_site.raw(PLAIN, method="GET", path=path)
    assert (status, json.loads(body)["document"]["id"]) == (200, id_)
    assert open_site.call("getDocument", {"id": id_}).json()["document"]["text"] == "a page"
    assert sorted(open_site.directory.parent.iterdir()) == outside
    assert open_site.raw(PLAIN, method="DELETE", path=path)[0] == 200
    assert open_site.raw(PLAIN, method="GET", path=path)[0] == 404


@pytest.mark.parametrize(
    "part", [b"%00", b"a%00b", b"%0D%0A", b"%C0%AE%C0%AE", b"%ED%A0%80", b"%FF", b"a" * 5000, b"%1b"]
)
def test_a_document_s_id_that_is_no_id_is_refused(open_site, part):
    for method in ("GET", "PUT", "DELETE"):
        status, _, body = open_site.raw(
            PLAIN,
            b'{"text":"x"}' if method == "PUT" else b"",
            method=method,
            path=b"/api/v1/documents/" + part,
        )
        assert status == 422, (method, body)
    assert open_site.call("listDocuments").json()["items"] == []


def test_parameters_that_an_address_does_not_take_are_refused(open_site):
    for query in (
        b"purge=true",
        b"limit=1",
        b"&&",
        b"=",
        b"a",
        b"%00=1",
        b"\xff",
        b"a=1&a=2",
        b"x=" + b"y" * 60_000,
        b"&".join([b"a=1"] * 5000),
    ):
        assert open_site.raw(PLAIN, b"{}", query=query)[0] == 422, query[:20]
        assert (
            open_site.raw(PLAIN, method="DELETE", path=b"/api/v1/documents/d", query=query + b"&purge=yes")[0]
            == 422
        )


def test_a_version_that_is_none_is_refused(open_site):
    for told in (b"*", b'W/"1"', b"-1", b"1, 2", b'"', b"9" * 400, b"1e3", b"\xb2", b"0x1", b""):
        headers = headers_of(if_match=told)
        status, _, body = open_site.raw(headers, b'{"text":"x"}', method="PUT", path=b"/api/v1/documents/d")
        assert (status, json.loads(body)["error"]["field"]) == (422, "If-Match"), told


def test_refusals_name_no_file_and_no_line_of_the_program(open_site):
    for reply in (
        open_site.send("GET", "/nowhere"),
        open_site.send("POST", "/api/v1/memory/list", headers=JSON, content=b"{"),
        open_site.call("history", {"id": "\0"}),
        open_site.call("recall", {"query": "x", "mode": "semantic"}),
    ):
        assert code(reply)
        assert not re.search(r"Traceback|\.py|/tmp|/home|SELECT|sqlite|line \d+", reply.text)
