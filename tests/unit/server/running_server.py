"""Servers in processes of their own, for tests of what only a process shows."""

from __future__ import annotations

import http.client
import json
import os
import re
import select
import signal
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import forked

START_S = 90.0
STOP_S = 60.0
SCRIPT = """
import json, sys
from perdure.server.settings import Limits, Opening, Settings
from perdure.server.starting import start
if __name__ == "__main__":
    told = json.loads(sys.argv[1])
    parts = {"limits": Limits(**told.get("limits", {})), "opening": Opening(**told.get("opening", {}))}
    start(Settings(**{**told, **parts}))
"""


class Running:
    """A server, by its address, and its process."""

    def __init__(self, process: forked.Process, url: str, log: list[str]) -> None:
        self.process, self.log = process, log
        scheme, _, place = url.partition("://")
        self.host, _, port = place.rpartition(":")
        self.port, self.scheme = int(port), scheme

    def post(self, path: str, body: Any, **headers: str) -> tuple[int, Any]:
        """Return the status and the object that comes back."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=60)
        try:
            told = {"content-type": "application/json", **headers}
            connection.request("POST", f"/api/v1/{path}", json.dumps(body), told)
            reply = connection.getresponse()
            return reply.status, json.loads(reply.read())
        finally:
            connection.close()

    def send(self, data: bytes) -> bytes:
        """Send bytes on a new connection and return all that comes back until it is closed."""
        with self.connected() as link:
            link.sendall(data)
            return received(link)

    def connected(self) -> socket.socket:
        return socket.create_connection((self.host, self.port), timeout=60)

    def workers(self) -> list[int]:
        """Return the process ids of the workers."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return [int(one) for one in children if "spawn_main" in _command_of(one)]

    def stop(self) -> int:
        """End the server as a supervisor of services would, and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(STOP_S)


def received(link: socket.socket) -> bytes:
    parts = []
    while True:
        try:
            part = link.recv(1 << 16)
        except ConnectionResetError:
            part = b""
        if not part:
            return b"".join(parts)
        parts.append(part)


def _command_of(pid: str) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:  # it has ended since it was listed
        return ""


@contextmanager
def running(store: Path | str, **told: Any) -> Iterator[Running]:
    """Start a server on a free port and end it at the end."""
    settings = {"store": str(store), "port": 0, "auth": False, "log_format": "json", **told}
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
    }  # workers are interpreters of their own
    process = forked.start(SCRIPT, json.dumps(settings), text=True, env=environment)
    try:
        yield _awaited(process)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(STOP_S)
        process.close()


def _awaited(process: forked.Process) -> Running:
    log: list[str] = []
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        ready, _, _ = select.select([process.stderr], [], [], 1.0)
        line = process.stderr.readline() if ready else ""
        if ready and not line:
            break
        log.append(line)
        if found := re.search(r'"url":"([^"]+)"', line):
            return Running(process, found[1], log)
    raise AssertionError(f"the server did not start: {''.join(log)[-2000:]}")
