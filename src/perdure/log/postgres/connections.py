"""Connections to one database, shared by all that a process has open there, and what is said over them."""

from __future__ import annotations

import logging
import math
import os
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import Any, LiteralString, NamedTuple
from uuid import UUID

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus
from psycopg.pq.abc import PGresult
from psycopg.types.numeric import Int8BinaryDumper

from perdure.errors import InvalidRequest, StorageFull, Unavailable
from perdure.log.postgres.failures import unmet
from perdure.log.postgres.pool import Link, Pool
from perdure.log.postgres.queries import query, tenant_everywhere
from perdure.log.postgres.wire import Asked, Key, Line, Params, Reply, Row, Wire

_UNKNOWN = re.compile(r'invalid URI query parameter: "([A-Za-z_]{1,64})"')
log = logging.getLogger("perdure.log")

# Connections of a process to one database; PostgreSQL takes 100 in all. Whoever has one of the first kind may wait for
# threads that are to have one of the kinds after it, and never for one of those before, so that none waits in a circle.
WRITERS_MAX = 16  # with rows locked
BESIDE_MAX = 4  # likewise, of the logs beside those of tenants
BRIEF_MAX = 6  # only to read, or to note data keys, for each of the two
SOON_MAX = 2  # only to look how the database is, likewise
SIZE_MAX = WRITERS_MAX + BESIDE_MAX + 2 * (BRIEF_MAX + SOON_MAX)
CONNECT_S = 5.0  # long enough for a fail-over that is quick, short enough to say that there is none
STATEMENT_S = 60  # no statement of the log's takes as long, but those that say so
BEYOND_WAIT_S = (
    5  # that a statement may take longer than it waits for others: so what ends its wait tells that it waited
)
IDLE_S = 60  # a process that hangs with a lock gives it back
# The same of one that keeps all writers out. In between it may rightly wait for what it writes a copy to, for as long as a
# write takes whose standby is away, and for a keystore.
WHOLE_IDLE_S = 300
# After which either side takes the other one's machine for gone, where nothing comes from it: 60 s.
KEEPALIVE = {"idle": "30", "interval": "10", "count": "3"}
UNHEARD_MS = "60000"
SILENCE_S = (
    STATEMENT_S + 5
)  # whoever says nothing for as long has ended no statement, so he hangs or is cut off
FULL_S = 30  # that a disk counts as full after a write met it so; then a write may find out whether there is room again
SERVER_VERSION_MIN = 150_000
SSL_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")


class Session:
    """A connection for as long as one thread has it, about one tenant's rows. Raises the driver's errors."""

    def __init__(self, wire: Wire, tenant: UUID, silence_s: float, *, is_local: bool) -> None:
        """`silence_s`: after which who says nothing is held to be away, where nothing else is said."""
        self.connection, self._wire, self._silence_s = wire.connection, wire, silence_s
        self._tenant, self._is_local = tenant, is_local
        self._asked: list[Asked] | None = None  # what is to go together

    def rows(self, name: str, params: Params = ()) -> list[Row]:
        """Return what a statement yields."""
        if self._is_local and not self.in_transaction:
            with self.transaction():
                return self.rows(name, params)
        return self.send(name, params).fetchall()

    def row(self, name: str, params: Params = ()) -> Row | None:
        """Return the first row that a statement yields, None where there is none."""
        rows = self.rows(name, params)
        return rows[0] if rows else None

    def send(self, name: str, params: Params = ()) -> Reply:
        """Have a statement run: at once, or with all that is said `together`."""
        return self.run(query(name), params)

    def run(self, sql: LiteralString, params: Params | None = ()) -> Reply:
        """Have any statement run, as `send`; one without parameters, None, is not kept prepared."""
        reply = Reply()
        if self._asked is None:
            self._wire.ask([(sql, params, reply)])
        else:
            self._asked.append((sql, params, reply))
        return reply

    @contextmanager
    def together(self) -> Iterator[None]:
        """Have what the block says go in one round trip at its end, and the replies come then; nothing if it raises.

        Within another such block it goes with that one.
        """
        if self._asked is not None:
            yield
            return
        self._asked = []
        try:
            yield
            asked = self._asked
        finally:
            self._asked = None
        if asked:
            self._wire.ask(asked)

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction was begun."""
        return self.connection.pgconn.transaction_status != TransactionStatus.IDLE

    def begin(self, *, snapshot: bool = False) -> None:
        """Begin a transaction; with `snapshot` one that reads all of it as of one moment. Together with what follows, in such a block."""
        with self.together():
            self.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY" if snapshot else "BEGIN")
            if self._is_local:
                self.turn_to(self._tenant)

    def lift_limits(self) -> None:
        """Let each statement take as long as it does up to the commit, which has a limit again; together with what follows, as `begin`."""
        self._wire.silence_s = None
        self.send("set_statement_wait", ("0",))

    def wait_at_most(self, wait_s: float) -> None:
        """Expect an answer though it waits for others for as long."""
        self._wire.silence_s = self._silence_s + wait_s

    def turn_to(self, tenant: UUID) -> None:
        """Be about this tenant's rows until the transaction ends."""
        self.run(tenant_everywhere(tenant), None)

    def commit(self) -> None:
        """Commit; durable when it returns. It is never without limit, however long what it commits took.

        Together with that it gives all of it the limit, so what is to last is said before.
        """
        self.wait_at_most(0)  # a standby that it waits for may be away for good
        self.run("COMMIT")

    def rollback(self) -> None:
        """Undo a transaction, if there is one; in a child of its process leave it. A connection that is broken stays so."""
        if self._wire.process.is_parent:
            return
        try:
            if self.in_transaction:
                self.wait_at_most(0)
                self.run("ROLLBACK")
        except psycopg.Error:
            self.close()

    def close(self) -> None:
        """End the connection, as `Wire.close`."""
        self._wire.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit what the block does, or undo it."""
        try:
            self.begin()
            yield
            self.commit()
        except BaseException:  # raised again: whatever it was, nothing of the transaction stays
            self.rollback()
            raise


class Database:
    """The pool of a process for one database. `release` it as often as it was `acquire`d."""

    def __init__(
        self, address: str, *, timeout_s: float, beside: bool = False, distributed: bool | None = None
    ) -> None:
        """Connect when that is needed.

        Args:
            beside: whether it is for logs beside those of tenants, which are written to by who may have one of theirs.
            distributed: whether sessions speak so that a distributed database understands; None looks for it.
        """
        self.address, self.timeout_s = address, timeout_s
        writers = BESIDE_MAX if beside else WRITERS_MAX
        self.size_max = writers + BRIEF_MAX
        self._distributed = distributed
        self._is_local = self._is_unfenced = False
        self._full_from: float | None = None  # since the last write, where that met a full disk
        self._conninfo = _conninfo(address)
        self._pool = Pool(
            self._connect,
            writers,
            CONNECT_S,
            brief_max=BRIEF_MAX,
            soon_max=SOON_MAX,
            place_s=max(CONNECT_S, timeout_s),
        )

    def open(self) -> None:
        """Connect once, so that what is wrong is told now."""
        try:
            with self._reach() as line:
                self._look(line.wire)
        except psycopg.Error as error:
            raise unmet(error) from error

    def _reach(self) -> Line:
        """Return a new connection, on which an answer is to come within CONNECT_S until it is told otherwise."""
        # The wire prepares statements itself; the driver would let go of all of them after an ALTER of its own.
        line = Line.connect(
            self._conninfo, autocommit=True, prepare_threshold=None, connect_timeout=math.ceil(CONNECT_S)
        )
        line.adapters.register_dumper(int, Int8BinaryDumper)
        line.wire.silence_s = CONNECT_S
        return line

    def _look(self, wire: Wire) -> None:
        asked = [(query(name), (), Reply()) for name in ("server_version", "has_citus", "present_role")]
        wire.ask(asked)
        version, has_citus, is_unfenced = (reply.fetchall()[0][0] for _, _, reply in asked)
        if version < SERVER_VERSION_MIN:
            raise Unavailable(
                f"the server is PostgreSQL {version // 10_000}; a store needs {SERVER_VERSION_MIN // 10_000} or later"
            )
        told = self._distributed
        self._is_local = bool(has_citus) if told is None else told
        self._is_unfenced = bool(is_unfenced)

    def note_write(self, *, is_full: bool) -> None:
        """Take note of a write: that it was committed, or met a full disk."""
        self._full_from = monotonic() if is_full else None

    def check_room(self) -> None:
        """Raise StorageFull where the last write of this process met a full disk, and not long ago. Asks nothing."""
        full_from = self._full_from
        if full_from is not None and monotonic() - full_from < FULL_S:
            raise StorageFull("the database's disk was full at the last write; make room")

    def warn_of_role(self) -> None:
        """Tell the log where the database itself keeps no tenants apart from this role; once a process and address."""
        if not self._is_unfenced:
            return
        with _sharing:
            is_told = self.address in _warned
            _warned.add(self.address)
        if not is_told:
            log.warning(
                "the role is a superuser or bypasses row-level security: the second fence between tenants is off. "
                "Connect as a role of its own; perdure migrate --role makes it what it needs"
            )

    def _connect(self) -> Line:
        line = self._reach()
        try:
            self._configure(line.wire)
        except BaseException:  # raised again: nobody else has it
            line.close()
            raise
        return line

    def _configure(self, wire: Wire) -> None:
        lock_ms = max(1, int(self.timeout_s * 1000))
        told = (int(self.statement_s * 1000), lock_ms, IDLE_S * 1000, *KEEPALIVE.values(), UNHEARD_MS)
        asked: list[Asked] = [(query("set_session"), tuple(map(str, told)), Reply())]
        if self._is_local:
            asked.append(("SET citus.propagate_set_commands = 'local'", None, Reply()))
        wire.ask(asked)

    @contextmanager
    def session(
        self, tenant: UUID, *, brief: bool = False, soon: bool = False, tried: bool = False
    ) -> Iterator[Session]:
        """Lend a connection that is about this tenant's rows; undo what was not committed when it comes back.

        Args:
            brief: it locks nothing that others wait for, and the thread waits for nothing but its answers while it has it.
            soon: what is asked takes no time, and whoever asks has little: an answer comes within CONNECT_S, or Silence. It
                waits for no thread but those that ask so.
            tried: it has answered something that takes no time, within CONNECT_S, or Silence is raised.

        Raises:
            Busy: all connections were in use past the time-out.
            Unavailable: the database cannot be reached; `soon`: or it answers nobody who asks so.
            psycopg.Error: of the block, and of a connection that is broken.
        """
        link = self._pool.take(brief=brief, soon=soon)
        silence_s = SILENCE_S + self.statement_s - STATEMENT_S
        link.wire.silence_s = CONNECT_S if soon or tried else silence_s
        session = Session(link.wire, tenant, silence_s, is_local=self._is_local)
        try:
            if not self._is_local and link.tenant != tenant:
                link.tenant = None
                session.send("set_tenant", (str(tenant),))
                link.tenant = tenant
            elif tried:
                session.run("SELECT", None)
            if tried:
                session.wait_at_most(0)
            yield session
        finally:
            session.rollback()
            self._pool.give(link)

    def glance(self, tenant: UUID, key: Key, values: Sequence[bytes]) -> PGresult | None:
        """Return what one statement about this tenant's rows yields, by the shortest way, as `Wire.glance`.

        None where there is none such: nothing was asked then, and a `session` asks it.

        Raises as `session`.
        """
        if self._is_local:
            return None
        link = self._pool.take(brief=True)
        link.wire.silence_s = max(CONNECT_S, self.timeout_s)
        try:
            return link.wire.glance(key, values) if link.tenant == tenant else None
        finally:
            self._pool.give(link)

    def connect_apart(self) -> Link:
        """Return a connection that is none of the pool's; whoever asked closes it. Raises Busy, Unavailable."""
        try:
            return Link(self._connect())
        except psycopg.Error as error:
            raise unmet(error) from error

    @property
    def statement_s(self) -> float:
        """How long a statement may take."""
        return max(STATEMENT_S, self.timeout_s + BEYOND_WAIT_S)

    @property
    def is_distributed(self) -> bool:
        """Whether a tenant is told anew in each transaction."""
        return self._is_local

    @contextmanager
    def plain(self, *, soon: bool = False) -> Iterator[psycopg.Connection[Row]]:
        """Lend a connection that is about nobody's rows, for the tables themselves; raises as `session`."""
        link = self._pool.take(soon=soon)
        link.wire.silence_s = CONNECT_S if soon else SILENCE_S
        try:
            yield link.connection
        finally:
            self._pool.give(link)

    def close(self) -> None:
        """Close every connection."""
        self._pool.close()


class _Shared(NamedTuple):
    database: Database
    users: int


_shared: dict[tuple[str, float, bool], _Shared] = {}
_warned: set[str] = set()  # addresses whose role was told of
_sharing = threading.Lock()


def _begin_anew() -> None:
    """Share nothing with the process that this one was forked from, one of whose threads may have the lock."""
    global _sharing  # noqa: PLW0603 - a lock that nobody will ever give back
    _shared.clear()
    _sharing = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


def acquire(
    address: str, timeout_s: float, *, beside: bool = False, distributed: bool | None = None
) -> Database:
    """Return the pool of an address, one for all stores of this process, and one for the logs beside them.

    Connects where it is the first, which says how. The arguments are those of `Database`.
    """
    place = (address, timeout_s, beside)
    with _sharing:
        known = _shared.get(place)
        if known is not None:
            return _used(place, known)
    # Whoever shares another pool does not wait until this address answers.
    database = Database(address, timeout_s=timeout_s, beside=beside, distributed=distributed)
    database.open()
    with _sharing:
        return _used(place, _shared.get(place) or _Shared(database, 0))


def _used(place: tuple[str, float, bool], known: _Shared) -> Database:
    """Return what is shared, by one more. One of two that were opened at once is used by nobody: it has no connection."""
    _shared[place] = known._replace(users=known.users + 1)
    return known.database


def release(database: Database) -> None:
    """Give a pool back; whoever is the last closes it."""
    with _sharing:
        for place, known in _shared.items():
            if known.database is database:
                if known.users > 1:
                    _shared[place] = known._replace(users=known.users - 1)
                    return
                del _shared[place]
                break
    database.close()


def read_address(address: str, field: str = "path") -> tuple[str, dict[str, Any]]:
    """Return an address as the driver takes it, which knows its beginning in small letters only, and what it says.

    Raises InvalidRequest, of this field, where it is none.
    """
    scheme, sign, rest = address.partition("://")
    small = f"{scheme.lower()}{sign}{rest}"
    try:
        read = conninfo_to_dict(small)
    except psycopg.Error as error:
        # Not told as its cause: the driver repeats what it could not read, and that may be a password.
        unknown = _UNKNOWN.search(str(error))
        what = f"{field} is no address of a PostgreSQL database"
        if unknown is not None and "@" not in address.partition("?")[2]:  # else it may be of a password
            what = f"{field} has the parameter {unknown[1]}, which the address of a database has not"
        raise InvalidRequest(f"{what}: give postgresql://USER@HOST:PORT/DATABASE", field=field) from None
    _check_read(read, field)
    place, _, name = rest.partition("?")[0].partition("/")
    if (
        "@" in name and ":" in place and "@" not in place
    ):  # a password with a / is taken for a port and a database
        raise InvalidRequest(
            f"{field} has an @ only behind its first /: a /, : or @ of a user, a password or a name is written %2F, %3A or %40",
            field=field,
        )
    return small, read


def _check_read(read: dict[str, Any], field: str) -> None:
    """Raise InvalidRequest for what the driver takes, and no server is reached by; shows nothing that may be of a password."""
    if any(
        "@" in host[1:] for host in str(read.get("host", "")).split(",")
    ):  # one that begins so is an abstract socket
        raise InvalidRequest(
            f"{field} has an @ in what stands for the host: an @ of a user or of a password is written %40",
            field=field,
        )
    for port in str(read.get("port", "")).split(","):
        if port and not (port.isascii() and port.isdigit() and 0 < int(port) < 1 << 16):
            raise InvalidRequest(
                f"{field} has a port that is none: it must be a number of 1 to 65535. A :, / or @ of a password is written "
                "%3A, %2F or %40",
                field=field,
            )
    if read.get("sslmode", SSL_MODES[0]) not in SSL_MODES:
        raise InvalidRequest(
            f"{field} has an sslmode that is none: it may be {', '.join(SSL_MODES)}", field=field
        )


def _conninfo(address: str) -> str:
    address, told = read_address(address)
    usual = {
        "application_name": "perdure",
        **{f"keepalives_{name}": value for name, value in KEEPALIVE.items()},
        "tcp_user_timeout": UNHEARD_MS,
    }
    missing = {name: value for name, value in usual.items() if name not in told}
    return make_conninfo(address, **missing)
