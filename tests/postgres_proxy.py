"""Stands between a store and its server, understands what the store says, and cuts the connection where it is told."""

from __future__ import annotations

import shutil
import socket
import struct
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

PORT_FILE = ".s.PGSQL.5432"
_NO_BEGINNING = [struct.pack(">I", code) for code in (80877102, 80877103, 80877104)]  # to cancel, TLS, GSSAPI
_READY = b"Z\0\0\0\5"
_FIELDS = b"SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0"
_ENDED = b"E" + struct.pack(">I", 4 + len(_FIELDS)) + _FIELDS
Message = tuple[bytes, bytes]  # its type, empty for the first one, and all of its bytes
Moment = Literal["before", "sent", "told", "late"]


class Proxy:
    """Forwards every connection to the server's socket. `root` is the host of its address.

    `cut(word, when)` cuts the connection of whoever next has a statement run that begins with the word:
    "before" it reached the server; "sent": once the server has done it, of which the client hears nothing; "told": once
    it has, of which the client hears, and then in place of what ends the reply that an administrator ended the session;
    "late": the client's end at once, while the server gets it when `let_go` is called. `meanwhile` is called before the
    client hears of the cut, but for the last. From `hush` to `speak` no client hears anything, as of a server that hangs.
    """

    def __init__(self, server: Path) -> None:
        """`server` is the directory of its socket."""
        self.root = Path(tempfile.mkdtemp(prefix="px"))
        self._server, self._word, self._when = server, "", ""
        self._let_go, self._speaks = threading.Event(), threading.Event()
        self._speaks.set()
        self.cuts = 0
        self.meanwhile: Callable[[], object] = lambda: None
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(self.root / PORT_FILE))
        self._listening.listen(64)
        self._open: list[socket.socket] = []
        self._start(self._accept)

    def cut(self, word: str, when: Moment) -> None:
        """Cut the next connection that says this."""
        self._let_go.clear()
        self._word, self._when = word, when

    def hush(self) -> None:
        """Hold back all that the server says."""
        self._speaks.clear()

    def speak(self) -> None:
        """Hand over what it said meanwhile, and says."""
        self._speaks.set()

    def let_go(self) -> None:
        """Hand over what was held back."""
        self._let_go.set()

    def cut_all(self) -> None:
        """Cut every connection there is, from both sides."""
        for one in self._open:
            _shut(one)
        self._open.clear()

    def close(self) -> None:
        """End it."""
        self.let_go()
        self.speak()
        _shut(self._listening)
        self.cut_all()
        shutil.rmtree(self.root, ignore_errors=True)

    @staticmethod
    def _start(work: Callable[..., None], *told: object) -> None:
        threading.Thread(target=work, args=told, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            try:
                server.connect(str(self._server / PORT_FILE))
            except OSError:
                _shut(client)
                continue
            self._open += [client, server]
            ends = _Ends(client, server)
            self._start(self._forward, ends)
            self._start(self._return, ends)

    def _return(self, ends: _Ends) -> None:
        kept = b""
        with suppress(OSError, ValueError):
            while data := ends.server.recv(1 << 16):
                self._speaks.wait()
                if not ends.is_mute:
                    ends.client.sendall(data)
                    continue
                kept += data
                if _READY in kept:
                    self.meanwhile()
                    if self._when == "told":
                        ends.client.sendall(kept[: kept.index(_READY)] + _ENDED)
                    break
        if not ends.is_cut:
            _shut(ends.client)
        if ends.is_mute:
            _shut(ends.server)

    def _forward(self, ends: _Ends) -> None:
        known: dict[bytes, bytes] = {}  # statements by their names
        with suppress(OSError, ValueError):
            told = _messages(ends.client)
            for kind, data in told:
                if self._is_awaited(kind, data[5:], known):
                    self._cut(ends, data, told)
                    return
                ends.server.sendall(data)
        _shut(ends.server)

    def _is_awaited(self, kind: bytes, body: bytes, known: dict[bytes, bytes]) -> bool:
        told = b""
        if kind == b"Q":
            told = body
        elif kind == b"P":
            name, text = body.split(b"\0", 2)[:2]
            known[name] = text
        elif kind == b"B":
            told = known.get(body.split(b"\0", 2)[1], b"")
        if self._word and told.startswith(self._word.encode()):
            self._word = ""
            self.cuts += 1
            return True
        return False

    def _cut(self, ends: _Ends, data: bytes, told: Iterator[Message]) -> None:
        if self._when == "before":
            ends.is_cut = True  # the client hears of it below
            _shut(ends.server)
            self.meanwhile()
            _shut(ends.client)
            return
        ends.is_mute = True
        rest = data
        if data[:1] != b"Q":
            for kind, more in told:
                rest += more
                if kind == b"S":
                    break
        if self._when == "late":
            _shut(ends.client)
            self._let_go.wait(30)
        ends.server.sendall(rest)  # the reply ends both connections


@dataclass
class _Ends:
    client: socket.socket
    server: socket.socket
    is_mute: bool = False  # what the server answers goes nowhere
    is_cut: bool = False  # before the server heard it all


def _messages(client: socket.socket) -> Iterator[Message]:
    """Yield what the client says, each message whole."""
    begun = False
    with client.makefile("rb") as told:
        while True:
            kind = told.read(1) if begun else b""
            if begun and not kind:
                return
            length = told.read(4)
            if len(length) < 4:
                return
            size = struct.unpack(">I", length)[0] - 4
            body = told.read(size)
            if not begun and body[:4] not in _NO_BEGINNING:
                begun = True
            yield kind, kind + length + body


def _shut(one: socket.socket) -> None:
    with suppress(OSError, ValueError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
