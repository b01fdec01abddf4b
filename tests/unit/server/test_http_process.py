"""Servers in processes of their own: bounds on connections, stopping, workers that die, TLS."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import ssl
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

import forked
from certificates import self_made
from perdure import Store, Unavailable
from perdure.client import Client

from .running_server import received, running

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at processes in /proc"),
]
HOST = b"Host: localhost\r\n"
BOUNDS = {"head_timeout_s": 0.5, "body_timeout_s": 0.5, "keep_alive_s": 1, "connections": 40}


@pytest.fixture(scope="module")
def bounded(tmp_path_factory):
    with running(tmp_path_factory.mktemp("bounded") / "store", limits=BOUNDS) as server:
        yield server


def status(reply: bytes) -> int:
    return int(reply.split(b" ", 2)[1]) if reply.startswith(b"HTTP/1.1 ") else 0


def error_of(reply: bytes) -> dict[str, object]:
    return json.loads(reply.partition(b"\r\n\r\n")[2])["error"]


def test_headers_that_do_not_come_to_their_end_are_given_up(bounded):
    began = time.monotonic()
    assert bounded.send(b"GET /health/live HTTP/1.1\r\nHost: local") == b""
    assert time.monotonic() - began < 20


def test_a_connection_that_says_nothing_is_closed(bounded):
    assert bounded.send(b"") == b""


def test_a_body_that_stops_coming_is_given_up_with_408(bounded):
    head = b"POST /api/v1/memory/list HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\n"
    reply = bounded.send(head + b"Content-Length: 100\r\n\r\n{")
    assert status(reply) == 408
    assert b"connection: close" in reply.lower()


@pytest.mark.parametrize(
    "header", [b"X-Long: " + b"a" * 70_000, b"\r\n".join(b"X-%d: a" % n for n in range(9_000))]
)
def test_headers_beyond_the_limit_are_refused(bounded, header):
    reply = bounded.send(b"GET /health/live HTTP/1.1\r\n" + HOST + header + b"\r\n\r\n")
    assert status(reply) == 431
    assert error_of(reply)["code"] == "invalid_request"


def test_a_header_without_an_end_is_not_held_for_ever(bounded):
    with bounded.connected() as link:
        link.sendall(b"GET / HTTP/1.1\r\nX-Endless: ")
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            link.sendall(b"a" * (256 << 20))


@pytest.mark.parametrize(
    "data",
    [
        b"nonsense\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /health/live HTTP/1.1\r\n" + HOST + b"X: a\0b\r\n\r\n",
        b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: -5\r\n\r\nhello",
    ],
)
def test_what_is_no_clear_request_is_refused_in_the_one_shape_and_the_connection_closed(bounded, data):
    reply = bounded.send(data)
    assert status(reply) == 400
    assert error_of(reply)["code"] == "invalid_request"


def test_a_body_that_is_told_to_be_too_long_is_refused_before_it_is_sent(bounded):
    head = b"POST /api/v1/memory/list HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\n"
    assert status(bounded.send(head + b"Content-Length: 999999999999\r\n\r\n")) == 413


def test_a_chunked_body_is_refused_where_it_goes_over_the_limit(bounded):
    head = b"POST /api/v1/memory/list HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\n"
    chunk = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
    with bounded.connected() as link:
        link.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n")
        try:
            for _ in range(20):
                link.sendall(chunk)
        except (BrokenPipeError, ConnectionResetError):
            pass
        assert status(received(link)) in (0, 413)  # 0 where the reset overtook the reply
    assert bounded.post("memory/list", {})[0] == 200


def test_an_export_that_nobody_reads_is_given_up_so_that_the_next_has_its_turn(tmp_path):
    with Store.open(tmp_path / "store") as store:
        store.memory().remember_many([f"fact {number} " + "x" * 30_000 for number in range(1_000)])
    limits = {"body_timeout_s": 0.5, "long_threads": 1}
    with running(tmp_path / "store", limits=limits) as server, server.connected() as link:
        head = b"POST /api/v1/store/export HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\n"
        link.sendall(head + b"Content-Length: 2\r\n\r\n{}")
        assert link.recv(16).startswith(b"HTTP/1.1 200")
        assert server.post("store/stats", {})[1]["facts"] == 1_000
        assert not received(link).endswith(b"0\r\n\r\n")


HALF = (
    b"POST /api/v1/memory/list HTTP/1.1\r\n"
    + HOST
    + b"Content-Type: application/json\r\nContent-Length: 2\r\n"
)


@pytest.fixture
def crowded(tmp_path):
    with running(tmp_path / "store", limits={"connections": 20}) as server:
        yield server


@pytest.fixture
def connect(crowded):
    with ExitStack() as links:
        yield lambda: links.enter_context(crowded.connected())


def begin(link: socket.socket) -> None:
    """Begin a request, and wait until the server asks for its body."""
    link.sendall(HALF + b"Expect: 100-continue\r\n\r\n")
    assert status(link.recv(1 << 16)) == 100


def test_connections_that_say_nothing_keep_nobody_out_and_end_no_request_that_has_begun(crowded, connect):
    begun = connect()
    begin(begun)
    silent = [connect() for _ in range(70)]
    for _ in range(3):
        assert crowded.post("memory/list", {})[0] == 200
        assert status(crowded.send(b"GET /health/live HTTP/1.0\r\n" + HOST + b"\r\n")) == 200
    assert received(silent[0]) == b""
    begun.sendall(b"{}")
    assert status(begun.recv(1 << 16)) == 200


def test_a_connection_that_waits_for_its_next_request_gives_way_to_a_new_one(crowded, connect):
    links = [connect() for _ in range(20)]
    for link in links:
        link.sendall(b"GET /health/live HTTP/1.1\r\n" + HOST + b"\r\n")
        assert status(link.recv(1 << 16)) == 200
    assert crowded.post("memory/list", {})[0] == 200
    assert received(links[0]) in (b"", b'{"status":"ok"}')  # the end of the reply, at most


def test_where_a_request_is_under_way_on_every_connection_a_further_one_is_told_so(crowded, connect):
    links = [connect() for _ in range(20)]
    for link in links:
        begin(link)
    reply = crowded.send(b"")
    assert (status(reply), error_of(reply)["code"]) == (503, "busy")
    for link in links:
        link.sendall(b"{}")
        assert status(link.recv(1 << 16)) == 200


def test_while_a_killed_worker_is_away_the_other_takes_all_connections(tmp_path):
    with running(tmp_path / "store", workers=2) as server:
        worker = server.workers()[0]
        server.process.send_signal(signal.SIGSTOP)  # who would start another
        try:
            os.kill(worker, signal.SIGKILL)
            while is_alive(worker):
                time.sleep(0.001)
            for _ in range(20):
                assert server.post("memory/list", {})[0] == 200
        finally:
            server.process.send_signal(signal.SIGCONT)


def test_a_second_server_on_the_same_port_does_not_start(bounded, tmp_path):
    for workers in (1, 2):
        with (
            pytest.raises(AssertionError, match="did not start"),
            running(tmp_path / "s", port=bounded.port, workers=workers),
        ):
            pass


@pytest.mark.parametrize("workers", [1, 2])
def test_a_stop_finishes_what_has_begun_and_ends_with_0(tmp_path, workers):
    with running(tmp_path / "store", workers=workers) as server:
        acknowledged: list[str] = []
        refused = threading.Event()

        def write(thread: int) -> None:
            for number in range(10_000):
                id_ = f"{thread}-{number}"
                try:
                    found, _ = server.post("memory/remember", {"id": id_, "text": f"fact {id_}"})
                except OSError:
                    break
                if found == 200:
                    acknowledged.append(id_)
            refused.set()

        threads = [threading.Thread(target=write, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        while len(acknowledged) < 40:
            time.sleep(0.01)
        assert server.stop() == 0
        for thread in threads:
            thread.join(60)
        assert refused.is_set()
    with Store.open(tmp_path / "store") as store:
        memory = store.memory()
        assert all(memory.get(id_) is not None for id_ in acknowledged)
        assert memory.list(limit=1).total <= len(acknowledged) + 4


def test_a_worker_that_is_killed_loses_no_write_that_was_acknowledged_and_another_takes_its_place(tmp_path):
    with running(tmp_path / "store", workers=2) as server:
        acknowledged: list[str] = []
        stop = threading.Event()

        def write(thread: int) -> None:
            number = 0
            while not stop.is_set():
                number += 1
                id_ = f"{thread}-{number}"
                try:
                    if server.post("memory/remember", {"id": id_, "text": f"fact {id_}"})[0] == 200:
                        acknowledged.append(id_)
                except (
                    OSError,
                    http.client.HTTPException,
                ):  # of a worker that is killed in the midst of its reply
                    continue

        threads = [threading.Thread(target=write, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(2):
            before, count = server.workers(), len(acknowledged)
            assert len(before) == 2
            os.kill(before[0], signal.SIGKILL)
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline and (
                before[0] in server.workers() or len(server.workers()) < 2 or len(acknowledged) < count + 20
            ):
                time.sleep(0.05)
            assert len(server.workers()) == 2
            assert before[0] not in server.workers()
        stop.set()
        for thread in threads:
            thread.join(60)
        assert server.stop() == 0
    with Store.open(tmp_path / "store") as store:
        memory = store.memory()
        assert [id_ for id_ in acknowledged if memory.get(id_) is None] == []


def test_a_write_that_one_worker_acknowledged_is_read_by_every_other(tmp_path):
    with running(tmp_path / "store", workers=2) as server:
        for number in range(60):  # each on a connection of its own, so that both workers take some
            server.post("memory/remember", {"id": str(number), "text": f"fact number {number}"})
            assert server.post("memory/get", {"id": str(number)})[1]["fact"]["id"] == str(number)
            assert server.post("memory/list", {"limit": 1})[1]["total"] == number + 1
        _, told = server.post("memory/recall", {"query": "fact", "k": 100})
        assert len(told["results"]) == 60


def test_workers_end_with_their_supervisor_however_it_ends(tmp_path):
    with running(tmp_path / "store", workers=2) as server:
        workers = server.workers()
        server.process.kill()
        server.process.wait(60)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and any(map(is_alive, workers)):
            time.sleep(0.05)
        assert not any(map(is_alive, workers))


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_all_workers_count_into_the_same_metrics(tmp_path):
    with running(tmp_path / "store", workers=2) as server:
        for _ in range(30):
            server.post("memory/list", {})
        reply = server.send(b"GET /metrics HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n")
        assert b'perdure_requests_total{code="ok",op="list"} 30.0' in reply


def test_several_workers_on_a_store_for_one_process_do_not_start(tmp_path):
    Store.open(tmp_path / "store", backend="journal").close()
    with pytest.raises(AssertionError, match="did not start"), running(tmp_path / "store", workers=2):
        pass


@pytest.mark.parametrize("workers", [1, 2])
def test_every_line_on_standard_error_is_json_where_that_is_asked_for(tmp_path, workers):
    with running(tmp_path / "store", workers=workers, log_level="debug") as server:
        server.post("memory/list", {})
        server.send(b"nonsense\r\n\r\n")
        assert server.stop() == 0
        assert server.process.stderr is not None
        lines = [*server.log, *server.process.stderr.read().splitlines()]
    told = [json.loads(line) for line in lines if line.strip()]
    assert {line["event"] for line in told} >= {"serving", "request"}


def test_tls_is_spoken_with_the_files_that_are_given(tmp_path):
    certificate, key = self_made(tmp_path)
    told = {"tls_cert": str(certificate), "tls_key": str(key)}
    with running(tmp_path / "store", **told) as server:
        assert server.scheme == "https"
        context = ssl.create_default_context(cafile=str(certificate))
        with server.connected() as plain, context.wrap_socket(plain, server_hostname="localhost") as link:
            assert link.version() in ("TLSv1.2", "TLSv1.3")
            link.sendall(b"GET /health/live HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n")
            assert status(received(link)) == 200
        assert server.send(b"GET /health/live HTTP/1.1\r\n" + HOST + b"\r\n") == b""
        assert server.stop() == 0


def test_a_client_that_asks_a_server_of_tls_by_http_is_told_to_use_https(tmp_path):
    certificate, key = self_made(tmp_path)
    with running(tmp_path / "store", tls_cert=str(certificate), tls_key=str(key)) as server:
        with (
            Client(f"http://127.0.0.1:{server.port}", retries=0) as client,
            pytest.raises(Unavailable) as told,
        ):
            client.memory("alice").recall("kettle")
        assert "if it speaks TLS, url must begin with https://" in told.value.message
        assert server.stop() == 0


def test_tls_files_that_cannot_be_used_are_told_at_the_start_and_nobody_is_asked_for_a_passphrase(tmp_path):
    certificate, key = self_made(tmp_path, passphrase=b"x")
    told = {"tls_cert": str(certificate), "tls_key": str(key)}
    with pytest.raises(AssertionError, match="InvalidRequest"), running(tmp_path / "store", **told):
        pass


def test_the_command_serves_and_ends_with_the_exit_codes_of_every_command(tmp_path):
    command = (forked.COMMAND, "serve", "--store", tmp_path / "s")
    wrong = forked.run(*command, "--workers", "0", text=True, timeout=90)
    assert wrong.returncode == 2
    assert "workers" in wrong.stderr
    config = tmp_path / "config.json"
    config.write_text('{"noSuchField": 1}')
    wrong = forked.run(*command, "--config", config, text=True, timeout=90)
    assert wrong.returncode == 2
    assert "noSuchField" in wrong.stderr


@pytest.mark.parametrize("workers", [1, 2])
def test_a_server_says_that_it_has_stopped_after_all_else(tmp_path, workers):
    with running(tmp_path / "store", workers=workers) as server:
        assert server.stop() == 0
        lines = server.process.stderr.read().splitlines()
    assert json.loads(lines[-1])["event"] == "stopped"


def test_the_token_of_a_server_without_a_directory_for_keys_goes_with_it_and_others_keep_theirs(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))

    def names():
        return {path.name for path in (tmp_path / "perdure").iterdir()}

    def names_of(server):
        return {f"server-{server.port}.lock", f"server-{server.port}.token"}

    with running(":memory:", auth=True) as server, running(":memory:", auth=True) as other:  # any port
        assert names() == names_of(server) | names_of(other)
        assert server.stop() == 0
        assert names() == names_of(other)
        token = (tmp_path / "perdure" / f"server-{other.port}.token").read_text().strip()
        assert other.post("memory/remember", {"text": "tea"}, authorization=f"Bearer {token}")[0] == 200
        assert other.stop() == 0
    assert names() == set()
