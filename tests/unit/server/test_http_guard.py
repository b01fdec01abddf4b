"""What headers a request must have before anything of it is carried out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.errors import PerdureError, TooLarge
from perdure.server.failures import Malformed, WrongMedia, WrongPlace
from perdure.server.guard import SINGLE, check_body, check_place, single_headers

HOSTS = frozenset({"127.0.0.1", "localhost", "::1", "memory.example"})
JSON = b"application/json"


@pytest.mark.parametrize(
    "host",
    [b"127.0.0.1", b"127.0.0.1:8420", b"LocalHost:1", b"[::1]", b"[::1]:8420", b"memory.example:443"],
)
def test_a_host_that_is_served_is_let_in_whatever_its_port_and_case(host):
    check_place({b"host": host}, HOSTS)


@pytest.mark.parametrize(
    "host",
    [
        b"",
        b"evil.example",
        b"127.0.0.1.evil.example",
        b"evil.example:8420",
        b"[::2]",
        b"localhost@evil",
        b"localhost.",
    ],
)
def test_any_other_host_is_refused_so_that_no_name_can_be_pointed_at_this_machine(host):
    with pytest.raises(WrongPlace):
        check_place({b"host": host}, HOSTS)


def test_a_request_without_a_host_is_refused():
    with pytest.raises(WrongPlace):
        check_place({}, HOSTS)


def test_where_any_host_will_do_a_page_of_another_origin_is_refused_all_the_same():
    for headers in ({}, {b"host": b"10.1.2.3:8420"}, {b"host": b"a b"}):
        check_place(headers, None)
        for foreign in ({b"origin": b"http://evil.example"}, {b"sec-fetch-site": b"cross-site"}):
            with pytest.raises(WrongPlace):
                check_place({**headers, **foreign}, None)


@pytest.mark.parametrize("scheme", ["http", "https", "HTTPS"])
def test_a_page_of_the_server_s_own_origin_is_let_in_and_under_another_scheme_refused(scheme):
    origin = f"{scheme}://localhost:8420".encode()
    headers = {b"host": b"localhost:8420", b"origin": origin, b"sec-fetch-site": b"same-origin"}
    check_place(headers, HOSTS, {scheme.lower()})
    check_place(headers, HOSTS, {"http", "https"})
    other = {"http", "https"} - {scheme.lower()}
    for hosts in (HOSTS, None):
        with pytest.raises(WrongPlace) as caught:
            check_place(headers, hosts, other)
        assert caught.value.place == origin.decode().lower()


def test_without_a_host_no_opaque_origin_passes_for_the_server_s_own():
    for headers in ({b"origin": b"null"}, {b"host": b"", b"origin": b"null"}, {b"origin": b""}):
        with pytest.raises(WrongPlace):
            check_place(headers, None)


@pytest.mark.parametrize(
    ("host", "told"),
    [(b"Evil.example:1", "evil.example"), (b"a\x1b[2Jb", ""), (b"<b>", ""), (b"x" * 9000, "x" * 300)],
)
def test_a_refusal_has_the_host_for_the_log_where_it_is_one(host, told):
    with pytest.raises(WrongPlace) as caught:
        check_place({b"host": host}, HOSTS)
    assert caught.value.place == told


@pytest.mark.parametrize(
    "origin", [b"null", b"http://evil.example", b"http://localhost:9999", b"localhost:8420", b""]
)
def test_a_page_of_another_origin_is_refused(origin):
    with pytest.raises(WrongPlace):
        check_place({b"host": b"localhost:8420", b"origin": origin}, HOSTS)


@pytest.mark.parametrize("site", [b"cross-site", b"same-site", b"SAME-ORIGIN", b""])
def test_a_request_that_a_browser_tells_to_be_of_another_site_is_refused(site):
    with pytest.raises(WrongPlace):
        check_place({b"host": b"localhost", b"sec-fetch-site": site}, HOSTS)


@pytest.mark.parametrize("name", sorted(SINGLE))
def test_a_header_that_counts_may_come_once(name):
    with pytest.raises(Malformed):
        single_headers([(name, b"a"), (name, b"a")])


def test_other_headers_may_come_twice():
    assert single_headers([(b"accept", b"a"), (b"accept", b"b")]) == {b"accept": b"b"}


@pytest.mark.parametrize(
    "told",
    [JSON, b"Application/JSON", b"application/json; charset=utf-8", b'application/json;charset="UTF-8"'],
)
def test_json_in_utf_8_is_taken(told):
    check_body({b"content-type": told}, 100, JSON)


@pytest.mark.parametrize(
    "told",
    [
        b"",
        b"text/plain",
        b"application/x-www-form-urlencoded",
        b"multipart/form-data",
        b"application/json;charset=latin-1",
    ],
)
def test_what_a_web_page_may_send_anywhere_without_asking_is_refused(told):
    with pytest.raises(WrongMedia):
        check_body({b"content-type": told}, 100, JSON)


@pytest.mark.parametrize("coding", [b"gzip", b"deflate", b"br", b"zstd", b"gzip, identity", b"x"])
def test_a_compressed_body_is_refused_unread(coding):
    with pytest.raises(WrongMedia):
        check_body({b"content-type": JSON, b"content-encoding": coding}, 100, JSON)


def test_a_body_that_tells_to_be_longer_than_the_limit_is_refused_unread():
    check_body({b"content-type": JSON, b"content-length": b"100"}, 100, JSON)
    for length in (b"101", b"9" * 5000):
        with pytest.raises(TooLarge):
            check_body({b"content-type": JSON, b"content-length": length}, 100, JSON)


@given(st.dictionaries(st.sampled_from(sorted(SINGLE)), st.binary(max_size=40)))
def test_no_headers_give_anything_but_a_decision(headers):
    for check in (lambda: check_place(headers, HOSTS), lambda: check_body(headers, 100, JSON)):
        try:
            check()
            status = 200
        except PerdureError as error:
            status = error.status
        assert status < 500
