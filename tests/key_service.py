"""A key service as an operator may run one: a process of its own behind a socket, whose holders confirm when they are told to.

`Service` holds the keys and answers a line of JSON with a line of JSON; `ServiceKeystore` is what a store is given.
"""

from __future__ import annotations

import json
import os
import socket
import socketserver
import threading
from typing import Any
from uuid import UUID

from perdure.base.ids import random_secret
from perdure.errors import Unavailable, WrongKey
from perdure.keystore import KEY_SIZE_BYTES


class _Server(socketserver.ThreadingUnixStreamServer):
    request_queue_size = 64
    daemon_threads = True


class Tenant:
    def __init__(self, secret: str) -> None:
        self.secret = secret
        self.keys: dict[int, str] = {}
        self.last = 0


class Service:
    """Keys of many tenants, each at several holders. While it is `slow` the others have not yet destroyed theirs."""

    def __init__(self, place: str, *, slow: bool = False) -> None:
        self.place, self.slow, self.calls = place, slow, 0
        self._tenants: dict[str, Tenant] = {}
        self._dropped: set[str] = set()
        self._elsewhere: dict[
            tuple[str, int], str
        ] = {}  # what another holder still has of what is destroyed here
        self._lock = threading.Lock()
        self._server: socketserver.ThreadingUnixStreamServer | None = None
        self.start()

    def start(self) -> None:
        service = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                told = json.loads(self.rfile.readline())
                self.wfile.write(json.dumps(service.answer(told)).encode() + b"\n")

        self._server = _Server(self.place, Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            os.unlink(self.place)
            self._server = None

    def confirm(self) -> None:
        """Let every other holder destroy what it still has."""
        self._elsewhere.clear()

    def holds(self) -> int:
        """How many keys any holder has."""
        return len(self._elsewhere) + sum(len(tenant.keys) for tenant in self._tenants.values())

    def answer(self, told: dict[str, Any]) -> Any:
        with self._lock:
            self.calls += 1
            return getattr(self, f"do_{told.pop('do')}")(**told)

    def do_secret(self, tenant: str) -> str | None:
        found = self._tenants.get(tenant)
        return None if found is None else found.secret

    def do_put(self, tenant: str, secret: str) -> str:
        return self._tenants.setdefault(tenant, Tenant(secret)).secret

    def do_new(self, tenant: str, keys: list[str]) -> list[int] | None:
        found = self._tenants.get(tenant)
        if found is None:
            return None
        numbers = list(range(found.last + 1, found.last + 1 + len(keys)))
        found.keys.update(zip(numbers, keys, strict=True))
        found.last += len(keys)
        return numbers

    def do_newest(self, tenant: str) -> int:
        found = self._tenants.get(tenant)
        return 0 if found is None else found.last

    def do_find(self, tenant: str, numbers: list[int]) -> dict[int, str] | None:
        found = self._tenants.get(tenant)
        if found is None:
            return None
        return {number: found.keys[number] for number in numbers if number in found.keys}

    def do_lowest(self, tenant: str) -> int | None:
        found = self._tenants.get(tenant)
        return None if found is None else min(found.keys, default=None)

    def do_destroy(self, tenant: str, numbers: list[int]) -> bool:
        found = self._tenants.get(tenant)
        if found is not None:
            self._destroy(tenant, found, [number for number in numbers if number in found.keys])
        return self._confirmed(tenant)

    def do_destroy_below(self, tenant: str, number: int) -> bool:
        found = self._tenants.get(tenant)
        if found is not None:
            self._destroy(tenant, found, [one for one in found.keys if one < number])
        return self._confirmed(tenant)

    def do_drop(self, tenant: str) -> bool | None:
        found = self._tenants.pop(tenant, None)
        if found is not None:
            self._dropped.add(tenant)
            self._destroy(tenant, found, list(found.keys))
        return self._confirmed(tenant) if tenant in self._dropped else None

    def _destroy(self, name: str, tenant: Tenant, numbers: list[int]) -> None:
        for number in numbers:
            key = tenant.keys.pop(number)
            if self.slow:
                self._elsewhere[name, number] = key

    def _confirmed(self, tenant: str) -> bool:
        return not any(name == tenant for name, _ in self._elsewhere)


class ServiceKeystore:
    """The keystore of a service; a connection a call."""

    def __init__(self, place: str) -> None:
        self._place = place

    def find_secret(self, tenant: UUID) -> bytes | None:
        found = self._ask("secret", tenant)
        return None if found is None else bytes.fromhex(found)

    def put_secret(self, tenant: UUID, secret: bytes) -> bytes:
        return bytes.fromhex(self._ask("put", tenant, secret=secret.hex()))

    def new_keys(self, tenant: UUID, count: int) -> list[tuple[int, bytes]]:
        keys = [random_secret(KEY_SIZE_BYTES) for _ in range(count)]
        numbers = self._known(self._ask("new", tenant, keys=[key.hex() for key in keys]))
        return list(zip(numbers, keys, strict=True))

    def newest(self, tenant: UUID) -> int:
        return int(self._ask("newest", tenant))

    def find_keys(self, tenant: UUID, numbers: Any) -> dict[int, bytes]:
        found = self._known(self._ask("find", tenant, numbers=list(numbers)))
        return {int(number): bytes.fromhex(key) for number, key in found.items()}

    def keeps_below(self, tenant: UUID, number: int) -> bool:
        lowest = self._ask("lowest", tenant)
        return lowest is not None and lowest < number

    def destroy(self, tenant: UUID, numbers: Any) -> bool:
        return bool(self._ask("destroy", tenant, numbers=list(numbers)))

    def destroy_below(self, tenant: UUID, number: int) -> bool:
        return bool(self._ask("destroy_below", tenant, number=number))

    def drop_tenant(self, tenant: UUID) -> bool:
        return bool(self._known(self._ask("drop", tenant)))

    def close(self) -> None:
        pass

    def _ask(self, do: str, tenant: UUID, **told: Any) -> Any:
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(5)
                connection.connect(self._place)
                connection.sendall(json.dumps({"do": do, "tenant": str(tenant), **told}).encode() + b"\n")
                with connection.makefile() as lines:
                    return json.loads(lines.readline())
        except OSError as error:
            raise Unavailable("the key service cannot be reached: check that it runs") from error

    @staticmethod
    def _known(found: Any) -> Any:
        if found is None:
            raise WrongKey("the key service holds nothing of this tenant: give the one it was made with")
        return found
