"""Connections as an attacker makes them, to a server in a process of its own; afterwards it serves as before."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from unit.server.running_server import Running, received, running

HEAD = b"POST /api/v1/memory/%s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
LIST = HEAD % b"list" + b"Content-Length: 2\r\n\r\n{}"
SECONDS = 1.5


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server with little patience, that asks for no key."""
    limits = {"head_timeout_s": SECONDS, "body_timeout_s": SECONDS, "keep_alive_s": 5.0, "connections": 300}
    with running(tmp_path_factory.mktemp("sockets") / "store", limits=limits) as served:
        yield served


@pytest.fixture(autouse=True)
def still_serving(server: Running) -> Iterator[None]:
    """Whatever was sent, the next request is answered by the same process, and nothing was stored."""
    yield
    assert server.process.poll() is None
    status, told = server.post("memory/list", {})
    assert (status, told["total"]) == (200, 0)


def write_of(length: bytes) -> bytes:
    return HEAD % b"remember" + length + b'\r\n\r\n{"text":"smuggled"}'


def statuses(data: bytes) -> list[int]:
    """Return the statuses of all replies on a connection."""
    found = []
    while data:
        head, _, data = data.partition(b"\r\n\r\n")
        found.append(int(head.split(b" ", 2)[1]))
        length = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        size = int(length[0].partition(b":")[2]) if length else 0
        data = data[size:]
    return found


@pytest.mark.parametrize(
    "framing",
    [
        b"Content-Length: 19\r\nContent-Length: 2", b"Content-Length: 2\r\nTransfer-Encoding: chunked",
        b"Transfer-Encoding: chunked\r\nContent-Length: 19", b"Content-Length: +19",
        b"Content-Length: 19, 19", b"Content-Length: 0x13",
        b"Content-Length: -1", b"Content-Length : 19", b"Content-Length: 19\r\n folded",
        b"Transfer-Encoding: identity, chunked, identity",
        b"Transfer-Encoding : chunked", b"Transfer-Encoding: xchunked",
        b"Content-Length: 99999999999999999999999",
        b"Content-Length: 19\r\nX: a\x00b", b"Content-Length: 19\r\nX: a\rb",
        b"Content-Length: 19\r\nX\x01: a", b"Content-Length: 19\r\n: a",
        b"Content-Length: 19\r\nno colon", b"Content-Length:",
    ],
)  # fmt: skip
def test_a_request_whose_end_two_readers_could_see_differently_is_carried_out_by_none(server, framing):
    back = statuses(server.send(write_of(framing) + b"\r\n\r\n" + LIST + LIST))
    assert back == [] or (len(back) == 1 and 400 <= back[0] < 500), back


@pytest.mark.parametrize(
    "line",
    [
        b"POST /api/v1/memory/list", b"POST  /api/v1/memory/list HTTP/1.1",
        b"POST /api/v1/memory/list HTTP/2.0",
        b"POST /api/v1/memory/list HTTP/1.1 x", b"P\x00ST /api/v1/memory/list HTTP/1.1",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0", b"CONNECT evil.example:80 HTTP/1.1", b"GET http://evil.example/ HTTP/1.1",
        b"GET /\x80\xff HTTP/1.1",
        b"GET /\x00 HTTP/1.1", b"GET //evil.example/%2e%2e HTTP/1.1", b"GET * HTTP/1.1", b"", b"\x00" * 100,
    ],
)  # fmt: skip
def test_a_line_that_is_no_request_for_this_server_ends_in_a_refusal(server, line):
    back = server.send(line + b"\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert not [one for one in statuses(back) if not 400 <= one < 500]
    assert b"evil" not in back


def test_a_switch_of_protocols_is_not_made(server):
    for wanted in (b"websocket", b"h2c", b"TLS/1.0"):
        head = LIST.partition(b"Content-Length")[0]
        back = server.send(
            head + b"Connection: Upgrade, close\r\nUpgrade: " + wanted + b"\r\nSec-WebSocket-Version: 13\r\n"
            b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nContent-Length: 2\r\n\r\n{}"
        )
        assert 101 not in statuses(back)


def test_headers_that_drip_are_given_up_though_each_byte_comes_in_time(server):
    with server.connected() as link:
        link.settimeout(0.1)
        began = time.monotonic()
        try:
            link.sendall(b"POST /api/v1/memory/list HTTP/1.1\r\nHost: localhost\r\nX: ")
            while time.monotonic() - began < 10 * SECONDS:
                link.sendall(b"a")
                try:
                    if link.recv(1 << 16) == b"":
                        break
                except TimeoutError:
                    continue
        except (BrokenPipeError, ConnectionResetError):
            pass
        assert time.monotonic() - began < 8 * SECONDS


def test_a_body_that_drips_is_given_up_though_each_byte_comes_in_time(server):
    with server.connected() as link:
        link.settimeout(0.1)
        began, back = time.monotonic(), b""
        link.sendall(HEAD % b"remember" + b'Content-Length: 1000\r\n\r\n{"text":"')
        try:
            while time.monotonic() - began < 10 * SECONDS and not back:
                link.sendall(b"a")
                try:
                    back = link.recv(1 << 16)
                except TimeoutError:
                    continue
        except (BrokenPipeError, ConnectionResetError):
            pass
        assert back.startswith(b"HTTP/1.1 408")
        assert time.monotonic() - began < 8 * SECONDS


def test_many_slow_connections_at_once_keep_nobody_else_waiting(server):
    links = [server.connected() for _ in range(100)]
    try:
        for number, link in enumerate(links):
            link.sendall(HEAD % b"remember" + (b"" if number % 2 else b'Content-Length: 100\r\n\r\n{"text"'))
        for _ in range(5):
            assert server.post("memory/list", {})[0] == 200
    finally:
        for link in links:
            link.close()


@pytest.mark.parametrize("count", [10_000, 100_000])
def test_very_many_headers_are_refused_or_passed_over(server, count):
    head = LIST.partition(b"Content-Length")[0]
    back = server.send(head + b"a: b\r\n" * count + b"Connection: close\r\nContent-Length: 2\r\n\r\n{}")
    assert not [one for one in statuses(back) if one not in (200, 431)]


def test_a_giant_address_and_a_giant_method_are_refused(server):
    for line in (
        b"GET /" + b"a" * 200_000 + b" HTTP/1.1",
        b"GET /docs?" + b"a" * (5 << 20) + b" HTTP/1.1",
        b"G" * 100_000 + b" / HTTP/1.1",
    ):
        with server.connected() as link:
            try:
                link.sendall(line + b"\r\nHost: localhost\r\n\r\n")
                back = received(link)
            except (BrokenPipeError, ConnectionResetError):
                back = b""
        assert not [one for one in statuses(back) if one not in (400, 414, 431)]


@pytest.mark.parametrize(
    "chunks",
    [
        b"zz\r\n{}\r\n0\r\n\r\n", b"-2\r\n{}\r\n0\r\n\r\n", b"2;ext=1\r\n{}\r\nX\r\n\r\n",
        b"FFFFFFFFFFFFFFFFF\r\n{}\r\n0\r\n\r\n", b"2\n{}\n0\n\n",
        b"2 \r\n{}\r\n0\r\n\r\n", b"0x2\r\n{}\r\n0\r\n\r\n", b"2\r\n{}XX0\r\n\r\n",
    ],
)  # fmt: skip
def test_chunks_that_are_none_are_refused(server, chunks):
    back = server.send(HEAD % b"list" + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks)
    assert not [one for one in statuses(back) if not 400 <= one < 500], back


def test_one_byte_chunks_without_an_end_are_cut_at_the_limit_of_bytes_or_time(server):
    with server.connected() as link:
        link.sendall(HEAD % b"remember" + b"Transfer-Encoding: chunked\r\n\r\n")
        part, back = b"10000\r\n" + b" " * 65_536 + b"\r\n", b""
        try:
            for _ in range(17 * 16):
                link.sendall(part)
            back = received(link)
        except (BrokenPipeError, ConnectionResetError):
            link.settimeout(1)
            try:
                back = received(link)
            except OSError:
                back = b""
        assert back[:12] in (b"HTTP/1.1 413", b"HTTP/1.1 408", b"")


def test_what_follows_a_refused_body_on_its_connection_is_not_a_request(server):
    for headers in (b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n", b"Content-Length: %d\r\n\r\n"):
        inner = write_of(b"Content-Length: 19")
        head = (
            HEAD.replace(b"application/json", b"text/plain") % b"list"
            if b"gzip" not in headers
            else HEAD % b"list"
        )
        with server.connected() as link:
            link.sendall(
                head + headers % len(inner) + inner + LIST.replace(b"Host:", b"Connection: close\r\nHost:")
            )
            back = statuses(received(link))
        assert back in ([415], [415, 200])


def test_requests_in_a_row_on_one_connection_are_answered_in_their_order(server):
    other = LIST.replace(b"Host:", b"X-Request-Id: %d\r\nHost:")
    last = LIST.replace(b"Host:", b"X-Request-Id: 49\r\nConnection: close\r\nHost:")
    back = server.send(b"".join(other % number for number in range(49)) + last)
    ids = [
        int(line.partition(b":")[2])
        for line in back.lower().split(b"\r\n")
        if line.startswith(b"x-request-id:")
    ]
    assert ids == list(range(50))


def test_a_reply_that_nobody_reads_keeps_nobody_else_waiting(server):
    with server.connected() as link:
        for _ in range(50):
            link.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n")
        for _ in range(3):
            assert server.post("memory/list", {})[0] == 200


def test_an_import_whose_lines_stop_coming_keeps_no_writer_waiting(tmp_path):
    with running(tmp_path / "store") as served:
        served.post("memory/remember", {"text": "one", "id": "f"})
        head = (
            HEAD.replace(b"application/json", b"application/x-ndjson").replace(b"memory", b"store")
            % b"import"
        )
        exported = served.send(
            HEAD.replace(b"memory", b"store") % b"export"
            + b"Connection: close\r\nContent-Length: 2\r\n\r\n{}"
        )
        lines = [line for line in exported.split(b"\n") if line.startswith(b"{")]
        with served.connected() as link:
            link.sendall(head + b"Content-Length: 100000\r\n\r\n" + b"\n".join(lines[:3]) + b"\n")
            began = time.monotonic()
            for number in range(3):
                assert (
                    served.post("memory/remember", {"text": f"more {number}", "id": f"m{number}"})[0] == 200
                )
            assert time.monotonic() - began < 10
        assert served.post("memory/list", {})[1]["total"] == 4
        assert json.loads(lines[0])["format"]
