"""The PostgreSQL server of the tests: one a test process, started when it is first asked for."""

from __future__ import annotations

import atexit
import os
import time
from collections.abc import Callable
from functools import cache
from typing import Any
from uuid import UUID

import psycopg
import pytest
from bench import postgres_server
from bench.postgres_server import ROLE, Server

from perdure.log.postgres import connections
from perdure.log.postgres.pool import Connection, Pool
from perdure.log.postgres.tenants import tenant_id

AWAY_S = 0.3

_servers: dict[int, Server] = {}
_failed: dict[int, Exception] = {}


def shared_server() -> Server:
    """Return the server of this process, started when it is first asked for; it ends with the process."""
    own = os.getpid()
    if own in _failed:  # else every test would wait for what does not come
        raise _failed[own]
    if own not in _servers:
        try:
            _servers[own] = Server()
        except Exception as error:
            _failed[own] = error
            raise
        atexit.register(_stop, own)
    return _servers[own]


def _stop(own: int) -> None:
    if os.getpid() == own:
        _servers.pop(own).stop()


def fresh_database(server: Server | None = None) -> str:
    """Return the name of a database of a server, of this process's without one; with the tables in it and no tenant."""
    return postgres_server.fresh_database(server or shared_server())


@cache
def _shared_address(own: int) -> str:
    server = _servers.get(own) or shared_server()
    name = fresh_database(server)
    server.keep(name)
    return server.address(name, ROLE)


def shared_address() -> str:
    """Return the address of one database of this process, for tests that have a tenant of their own in it."""
    return _shared_address(os.getpid())


def identity_of(address: str, tenant: str, part: str = "") -> UUID:
    """Return what stands for a tenant, or for the log of a part beside it, in the tables of a database."""
    digest = tenant_id(tenant, part)
    with psycopg.connect(address) as connection:
        connection.execute("SELECT set_config('app.tenant', %s, false)", (str(digest),))
        [(own,)] = connection.execute(
            "SELECT own FROM perdure.naming WHERE tenant = %s", (digest,)
        ).fetchall()
    assert isinstance(own, UUID)
    return own


def fresh_address() -> str:
    """Return the address of such a database, for a role that row-level security holds."""
    return shared_server().address(fresh_database(), ROLE)


def standby_of(primary: Server, settings: dict[str, str] | None = None) -> Server:
    """Return a server that follows a primary, made of a copy of it."""
    data = primary.root / "standby"
    told = ["-D", str(data), "-R", "-X", "stream", "-h", str(primary.root), "-U", "postgres", "-c", "fast"]
    primary.run("pg_basebackup", *told)
    # Else it waits for five seconds before it looks again for a primary that it did not find, or that had no more for it.
    told_server = postgres_server.NOT_SYNCED if settings is None else settings
    return Server({**told_server, "wal_retrieve_retry_interval": "100ms"}, data=data)


def await_replay(primary: Server, standby: Server, patience_s: float) -> None:
    """Wait until a standby has replayed all that its primary has written."""
    [(position,)] = primary.execute("SELECT pg_current_wal_insert_lsn()::text")
    deadline = time.monotonic() + patience_s
    asked = f"SELECT pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '{position}') >= 0"
    while not standby.execute(asked)[0][0]:
        assert time.monotonic() < deadline, "the standby does not follow"
        time.sleep(0.01)


def give_up_soon(patch: pytest.MonkeyPatch) -> None:
    """Let stores that are opened from now on wait for AWAY_S where the database is away, instead of for seconds.

    For an answer of one that is there they wait as long as ever, so this asks nothing of how fast it is.
    """

    def made(connect: Callable[[], Connection], size_max: int, wait_s: float, **how: Any) -> Pool:
        assert wait_s == connections.CONNECT_S
        return Pool(connect, size_max, AWAY_S, **how)

    patch.setattr(connections, "Pool", made)
