"""The sockets that servers listen on, bound before anything else is made."""

from __future__ import annotations

import errno
import os
import socket
from typing import Any

from perdure.errors import Unavailable

BACKLOG = 512
Listener = socket.socket
"""A socket that is bound and listens."""


def listeners(host: str, port: int, count: int) -> list[socket.socket]:
    """Return a bound socket as often as there are workers: each takes connections from it.

    One line of connections for all, so that those which wait are taken by the others when a worker dies: a
    socket of its own would keep them until another worker has taken its place.

    Args:
        host: a name or an address; of a name's addresses the first.
        port: 0 for any that is free.
        count: how many workers.

    Raises:
        Unavailable: the address cannot be had.
    """
    return [_bound(*_resolved(host, port))] * count


def _resolved(host: str, port: int) -> tuple[int, tuple[Any, ...]]:
    try:
        found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise Unavailable(
            f"host {host[:255]!r} has no address ({error.strerror}): give a name or an address of this machine",
            field="host",
        ) from error
    return found[0][0], found[0][4]


def _bound(family: int, address: tuple[Any, ...]) -> socket.socket:
    # With the protocol left open, asyncio does not switch Nagle's algorithm off, and each reply waits 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":  # elsewhere it would let others take the port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRNOTAVAIL:
            raise Unavailable(
                f"host {address[0]} is no address of this machine: give one that is, or 127.0.0.1",
                field="host",
            ) from error
        reason = error.strerror or type(error).__name__
        told = f"port {address[1]} cannot be listened on ({reason}): choose another with --port"
        if error.errno == errno.EADDRINUSE:
            told = f"port {address[1]} is taken by another program, perhaps a server of this store: end that one, or choose another port with --port"
        raise Unavailable(told, field="port") from error
    listener.set_inheritable(False)
    return listener
