"""A local server in the place of an embedding endpoint, which answers as a test tells it to."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answer = Callable[["Handler", dict], None]


class Handler(BaseHTTPRequestHandler):
    server: Stub

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        request = json.loads(body)
        with self.server.lock:
            self.server.requests.append((self.path, dict(self.headers), request))
            self.server.lock.notify_all()
            script = self.server.script
            answer = script.pop(0) if len(script) > 1 else script[0]
        answer(self, request)

    def say(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Stub(ThreadingHTTPServer):
    daemon_threads = True

    def await_requests(self, count):
        """Wait until so many have come: one that nobody waits for any more may come late."""
        with self.lock:
            assert self.lock.wait_for(lambda: len(self.requests) >= count, 60)

    def handle_error(self, *_):
        pass  # a client that goes away early is what some tests are about


@contextmanager
def endpoint(*script):
    """Serve the answers of a script, the last of them for ever; yields the server with its `requests`."""
    server = Stub(("127.0.0.1", 0), Handler)
    server.script, server.requests, server.lock = list(script), [], threading.Condition()
    server.over = threading.Event()
    server.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.over.set()
        server.shutdown()
        thread.join()
        server.server_close()


def vector(text):
    """Return what the stub's model makes of a text: its length and two letters of it."""
    return [float(len(text)), float(ord(text[0])), float(ord(text[-1]))]


def items(request):
    return [{"index": n, "embedding": vector(text)} for n, text in enumerate(request["input"])]


def good(handler, request):
    handler.say(200, json.dumps({"data": items(request)}).encode())


def shuffled(handler, request):
    handler.say(200, json.dumps({"data": items(request)[::-1]}).encode())


def without_indices(handler, request):
    told = [{"embedding": item["embedding"]} for item in items(request)]
    handler.say(200, json.dumps({"data": told}).encode())


def status(code, **headers):
    def answer(handler, request):
        handler.say(code, b'{"error": "SECRET-BODY"}', **headers)

    return answer


def body(data):
    def answer(handler, request):
        handler.say(200, data)

    return answer


def silent(handler, request):
    handler.server.over.wait(10)


def trickling(handler, request):
    """Send one byte at a time, each well within the time-out, without an end."""
    handler.send_response(200)
    handler.end_headers()
    while not handler.server.over.wait(0.02):
        handler.wfile.write(b" ")
        handler.wfile.flush()


def cut(handler, request):
    """Announce more than is sent."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"data": [')


def reset(handler, request):
    handler.connection.shutdown(socket.SHUT_RDWR)


def endless(handler, request):
    handler.send_response(200)
    handler.end_headers()
    while not handler.server.over.is_set():
        handler.wfile.write(b" " * 65_536)
