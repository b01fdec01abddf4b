"""A server that answers what it is told to, and remembers what it was asked."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

RECALLED = {"results": []}
REMEMBERED = {
    "id": "kettle",
    "outcome": "created",
    "created": True,
    "status": "current",
    "reason": None,
    "ingestTime": 0,
    "supersedes": [],
    "supersededBy": [],
    "pending": False,
}
BREAK = "break"  # the connection, without an answer
SILENCE = "silence"  # until the server ends


def answer(reply, status=200, **headers):
    body = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
    return status, {name.replace("_", "-"): value for name, value in headers.items()}, body


def busy(after="0", **details):
    error = {"code": "busy", "message": "busy"}
    return answer(
        {"error": error | ({"details": details} if details else {})},
        503,
        **({} if after is None else {"Retry_After": after}),
    )


class Stub:
    """`url` of a server that gives `answers` in order, the last one again and again; `asked` are the requests."""

    def __init__(self, *answers):
        self.answers, self.asked, self.ended = list(answers), [], threading.Event()
        self._turn = threading.Lock()

    def take(self):
        with self._turn:
            return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        stub = self.server.stub
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        stub.asked.append((self.path, dict(self.headers), json.loads(body) if body else None))
        told = stub.take()
        if told == SILENCE:
            stub.ended.wait(30)
        if isinstance(told, str):
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        status, headers, content = told
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def handle(self):
        with suppress(ssl.SSLError, ConnectionError):  # of whoever speaks no TLS, or does not trust this
            super().handle()

    def log_message(self, *_):
        pass


@contextmanager
def serving(*answers, tls=None):
    """Run such a server on a free port; with the files of a certificate and its key it speaks TLS.

    `url` says http in any case.
    """
    stub = Stub(*answers)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads, server.stub = True, stub
    if tls is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*tls)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    stub.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield stub
    finally:
        stub.ended.set()
        server.shutdown()
        server.server_close()
        thread.join()
