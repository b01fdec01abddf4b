"""The one place where the driver's exceptions become Perdure's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors as states

from perdure.errors import Busy, Corrupt, InvalidRequest, PerdureError, StorageFull, Unavailable
from perdure.log.protocol import DATABASE_ADVICE

DriverError = psycopg.Error


class Silence(psycopg.OperationalError):
    """The server said nothing for too long: it hangs, or the network between drops what is sent."""


_BUSY = (
    states.LockNotAvailable,
    states.DeadlockDetected,
    states.SerializationFailure,
    states.QueryCanceled,
    states.TooManyConnections,
    states.OutOfMemory,
    states.ConfigurationLimitExceeded,
)
_REFUSED = (states.InvalidPassword, states.InvalidAuthorizationSpecification, states.InsufficientPrivilege)
_UNMADE = (states.UndefinedTable, states.InvalidSchemaName, states.UndefinedColumn, states.InvalidCatalogName)
_DAMAGED = (states.DataCorrupted, states.IndexCorrupted)


_READ_ONLY = (
    "it may only be read: it is a standby, or was set so. Connect to the primary (several hosts in the address, with "
    "target_session_attrs=read-write, find it by themselves)"
)
_UNUSABLE = (
    (_REFUSED, "it refused: check the role, its password (PGPASSWORD, PGPASSFILE or a service file) and what it was "
     "granted; perdure migrate --role grants what is needed"),
    (_UNMADE, "it lacks what a store needs: check its name; perdure migrate makes the tables, or says which is missing"),
    ((states.ReadOnlySqlTransaction,), _READ_ONLY),
    ((psycopg.Error,), "check that it runs and can be reached; the call may be repeated"),
)  # fmt: skip


# Why no connection came about has no state, only words; those of servers that speak another language tell less.
# The limits first: that of a role names the role, as what is refused does.
_WORDS: tuple[tuple[type[psycopg.Error], tuple[str, ...]], ...] = (
    (
        states.TooManyConnections,
        ("too many clients", "too many connections", "connection slots are reserved"),
    ),
    (
        states.InvalidPassword,
        (
            "authentication failed",
            "no password supplied",
            "no pg_hba.conf entry",
            "permission denied",
            'role "',
        ),
    ),
    (states.ReadOnlySqlTransaction, ("is read-only", "is in hot standby mode")),
    (states.InvalidCatalogName, ('" does not exist',)),
)
_RESOLVED = re.compile(r"(?:failed to resolve host '|could not translate host name \")([^'\"]*)")
_UNREACHED = (
    (
        ("failed to resolve host", "could not translate host name"),
        "no machine of that name is known; check the name",
    ),
    (("Connection refused",), "nothing listens there; check host and port, and that the database runs"),
    (
        ("No such file or directory",),
        "there is no socket there; check the folder and the port, and that it runs",
    ),
    (
        ("does not support SSL", "server does not support", "SSL is not enabled"),
        "it has no TLS, which sslmode asks for; turn it on there, or ask for less",
    ),
    (
        ("certificate verify failed", "server certificate"),
        "its certificate is not trusted; check sslrootcert and the host",
    ),
    (
        ("not currently accepting connections", "not accepting connections"),
        "it accepts no connections; allow them there",
    ),
    (
        ("invalid response to SSL negotiation", "invalid response to GSSAPI negotiation"),
        "what answers there speaks no PostgreSQL; check host, port and the network between",
    ),
    (("starting up", "shutting down"), "it is starting or stopping; try again"),
    (
        ("timeout expired", "timed out", "connection timeout"),
        "it did not answer in time; check host, port and the firewall",
    ),
    (
        ("No route to host", "Network is unreachable", "Network is down", "Host is down"),
        "there is no way to it; check the network",
    ),
    (
        ("Permission denied", "Operation not permitted"),
        "this process may not connect there; check the firewall, or the socket's rights",
    ),
    (("closed the connection unexpectedly",), "it broke the connection off; check that it runs, and its log"),
)
# What the driver finds wrong with what it was told, before it looks for a server. What is wrong is named and never its
# value, which may be of a password that was not encoded.
_UNTAKEN = tuple(
    re.compile(words)
    for words in (
        r'invalid "?(\w+)"? value: ',
        r'for connection option "(\w+)"',
        r"invalid (port) number",
        r"definition of (service) ",
        r"(service) file",
        r"could not match \d+ (\w+)",
        r"(sslmode) \".*\" may not be used with",
        r"invalid (SCRAM \w+ key|SSL protocol version range)",
    )
)
_UNPARSED = "could not parse network address"


def unmet(error: psycopg.Error) -> PerdureError:
    """Return the Perdure error for a connection that did not come about, as `translated`; it names host and port.

    InvalidRequest where the driver took no look at all, because of what the address or the environment tells it.
    """
    known = _with_state(error)
    if known.sqlstate is not None or isinstance(error, Silence):
        return translated(known)
    told = str(error)
    untaken = _untaken(told)
    if untaken is not None:
        return InvalidRequest(
            f"path has a {untaken[0]} that no connection can be made with, or the environment ({untaken[1]}) has: correct it",
            field="path",
        )
    why = next((ours for words, ours in _UNREACHED if any(word in told for word in words)), None)
    if why is None:
        why = "why is not known; check the address, that it runs, and its log"
    return Unavailable(f"the database{_place(error)} could not be reached: {why}")


def _untaken(told: str) -> tuple[str, str] | None:
    """Return what the driver does not take, and where else than in the address it may stand; None where it took all."""
    if _UNPARSED in told:
        return "hostaddr", "PGHOSTADDR"
    found = next(filter(None, (words.search(told) for words in _UNTAKEN)), None)
    if found is None:
        return None
    if found[1] == "service":
        return "service", "PGSERVICE, PGSERVICEFILE"
    return found[1], "PG…"


def _place(error: psycopg.Error) -> str:
    """Return where the connection was to go, as a part of a sentence; nothing where the driver does not say."""
    resolved = _RESOLVED.search(str(error))
    if resolved is not None:
        return f" at {resolved[1]}"
    try:
        host, port = (error.pgconn.host, error.pgconn.port) if error.pgconn is not None else (b"", b"")
    except psycopg.Error:  # of a connection that is closed already
        return ""
    return f" at {host.decode(errors='replace')}, port {port.decode(errors='replace')}," if host else ""


def lasts(error: psycopg.Error) -> bool:
    """Whether a connection will not come about before somebody changes something: a role, a password, the address."""
    return isinstance(_with_state(error), (*_REFUSED, *_UNMADE)) or _untaken(str(error)) is not None


def _with_state(error: psycopg.Error) -> psycopg.Error:
    told = str(error)
    if error.sqlstate is None:
        for kind, words in _WORDS:
            if any(word in told for word in words):
                return kind()
    return error


def translated(error: psycopg.Error) -> PerdureError:
    """Return the Perdure error for a driver's; raise it `from` that one. Shows its state, never a value."""
    state = error.sqlstate or "the driver gave no reason"
    if isinstance(error, states.DiskFull):
        return StorageFull("the database's disk is full: nothing was written; make room and try again")
    if isinstance(error, states.ProgramLimitExceeded):
        return InvalidRequest("a record is larger than PostgreSQL stores (1 GB); split it", field="records")
    if isinstance(error, _BUSY):
        return Busy(f"the database is busy ({state}): nothing was changed; try again")
    if isinstance(error, _DAMAGED):
        return Corrupt(f"the database reports damage ({state}): {DATABASE_ADVICE}")
    if isinstance(error, Silence):
        return Unavailable(
            f"{error}: it hangs, the way to it is broken, or a synchronous standby that a commit waits for is away; check all of "
            "them. The call may be repeated"
        )
    why = next(told for kinds, told in _UNUSABLE if isinstance(error, kinds))
    return Unavailable(f"the database could not be used ({state}): {why}")


def is_broken(error: psycopg.Error) -> bool:
    """Whether the connection is gone, so that another one may do better."""
    gone = (
        states.AdminShutdown,
        states.CrashShutdown,
        states.CannotConnectNow,
        states.IdleInTransactionSessionTimeout,
    )
    if isinstance(error, gone):
        return True
    return isinstance(error, psycopg.OperationalError) and error.sqlstate is None


@contextmanager
def translating() -> Iterator[None]:
    """Raise the driver's errors of the block as Perdure's."""
    try:
        yield
    except psycopg.Error as error:
        raise translated(error) from error
