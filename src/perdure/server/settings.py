"""What a server is told when it starts: where it listens, whom it trusts, and how much it takes at once."""

from __future__ import annotations

import ipaddress
import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from perdure.base.text import shown_real
from perdure.contract.limits import BODY_BYTES_MAX
from perdure.errors import InvalidRequest
from perdure.memory.config import MemoryConfig
from perdure.opening import AUDITS, AuditLevel
from perdure.planning.checks import checked_choice, checked_count
from perdure.server.keyring_authentication import is_loopback
from perdure.space.budget import BYTES_MAX

PORT_DEFAULT = 8420
WORKERS_MAX = 64
THREADS_MAX = 256
QUEUE_MAX = 100_000
OPEN_TENANTS_DEFAULT = 64
OPEN_MAX = 65_536
RATE_MAX = 1e6
SECONDS_MAX = 86_400.0
LOG_FORMATS = ("console", "json")
LOG_LEVELS = ("debug", "info", "warning", "error")
LogFormat = Literal["console", "json"]
LogLevel = Literal["debug", "info", "warning", "error"]
_HOST = re.compile(r"[A-Za-z0-9._:\[\]%-]{1,255}", re.ASCII)
_LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class Opening:
    """How the stores are opened. Values as `Store.open` takes them."""

    key: Any = field(repr=False, default=None)
    secret: bytes | None = field(repr=False, default=None)
    backend: Any = None
    keystore: str | Path | None = None
    replica: str | None = field(repr=False, default=None)  # an address may hold a password


@dataclass(frozen=True)
class Limits:
    """How much a worker takes at once, and for how long. Seconds are floats above 0."""

    body_bytes_max: int = BODY_BYTES_MAX
    import_bytes_max: int = 1 << 30  # an import is read as it comes, and never held whole
    read_threads: int = 4  # reads, writes and long work stand in lines of their own
    write_threads: int = 4
    long_threads: int = 2
    queue: int = 256  # of each line, behind those that run
    request_timeout_s: float = 30.0
    long_timeout_s: float = 600.0  # verify, purge, erase, export, import, reindexing
    body_timeout_s: float = 30.0  # between the headers and the last byte of a body
    head_timeout_s: float = 15.0  # from the first byte of a request to the last of its headers
    keep_alive_s: float = 30.0  # how long a connection may wait for its next request
    stop_timeout_s: float = 30.0  # how long a stop waits for requests that it has begun
    rate: float | None = None  # requests a second for each key; None is as many as there are
    burst: int = 0  # how many at once before the rate counts; 0 is a second's worth
    connections: int = 1_000  # open at once, of each worker
    memory_bytes: int = 1 << 30  # that the spaces of all tenants together may take in a worker's memory
    open_tenants: int = OPEN_TENANTS_DEFAULT  # whose stores each worker keeps open at once


@dataclass(frozen=True)
class Settings:
    """One server. `create_app` takes it as it is; `checked_settings` tells what is wrong with it."""

    store: str | Path = field(repr=False)  # an address may hold a password
    host: str = "127.0.0.1"
    port: int = PORT_DEFAULT
    config: MemoryConfig | None = field(default=None, repr=False)  # None: the one that the store keeps
    opening: Opening = field(default_factory=Opening)
    auth: bool = True
    default_principal: str | None = field(default=None, repr=False)
    allow_hosts: tuple[str, ...] = ()
    workers: int = 1
    tls_cert: Path | None = None
    tls_key: Path | None = None
    log_format: LogFormat = "console"
    log_level: LogLevel = "info"
    tracing: bool = False
    mcp: bool = True
    audit: AuditLevel = "on"
    audit_queries: bool = False
    limits: Limits = field(default_factory=Limits)

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        return is_loopback(self.host)

    @property
    def hosts(self) -> frozenset[str]:
        """The names that a request's Host may have, in lower case, without a port."""
        own = _LOOPBACK_HOSTS if self.is_loopback else (self.host,)
        return frozenset(_bare(name) for name in (*own, *self.allow_hosts))

    @property
    def schemes(self) -> frozenset[str]:
        """The schemes of the server's own addresses: also of a proxy's that takes requests for an allowed host."""
        own = "http" if self.tls_cert is None else "https"
        return frozenset((own, "https") if self.allow_hosts else (own,))


def is_everywhere(host: str) -> bool:
    """Whether a host to listen on is every address of this machine, so that no request can name it."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_unspecified
    except ValueError:
        return False


def checked_settings(settings: Settings) -> Settings:
    """Return the settings if a server can be started with them.

    Raises:
        InvalidRequest: a number is out of range, a host is none, one TLS file lacks the other, or several
            workers are asked for where one process must have the store to itself.
    """
    checked_count(settings.port, "port", 0, 65_535)
    checked_count(settings.workers, "workers", 1, WORKERS_MAX)
    checked_choice(settings.log_format, "log_format", LOG_FORMATS)
    checked_choice(settings.audit, "audit", AUDITS)
    checked_choice(settings.log_level, "log_level", LOG_LEVELS)
    _check_host(settings)
    if (settings.tls_cert is None) != (settings.tls_key is None):
        missing = "tls_key" if settings.tls_key is None else "tls_cert"
        raise InvalidRequest("TLS takes a certificate and its key: give both, or neither", field=missing)
    if settings.workers > 1 and (
        str(settings.store) == ":memory:" or settings.opening.backend in ("journal", "memory")
    ):
        raise InvalidRequest(
            "several workers need a store that processes share: use one worker, or a store of the sqlite backend",
            field="workers",
        )
    _check_limits(settings.limits)
    return settings


def check_reachable(settings: Settings) -> None:
    """Raise InvalidRequest where a server would refuse every request, since none can name the host that it has."""
    if is_everywhere(settings.host) and not settings.allow_hosts:
        raise InvalidRequest(
            f"with host {settings.host} the server would refuse every request, since that is no name of any server: "
            "give allow_host the names and addresses by which it is reached",
            field="allow_host",
        )


def _check_limits(limits: Limits) -> None:
    checked_count(limits.body_bytes_max, "body_bytes_max", 1_024, 1 << 30)
    checked_count(limits.import_bytes_max, "import_bytes_max", 1_024, 1 << 50)
    for name in ("read_threads", "write_threads", "long_threads"):
        checked_count(getattr(limits, name), name, 1, THREADS_MAX)
    checked_count(limits.queue, "queue", 0, QUEUE_MAX)
    checked_count(limits.burst, "burst", 0, QUEUE_MAX)
    checked_count(limits.connections, "connections", 1, QUEUE_MAX)
    checked_count(limits.memory_bytes, "memory_bytes", 0, BYTES_MAX)
    checked_count(limits.open_tenants, "open_tenants", 1, OPEN_MAX)
    for name in (
        "request_timeout_s",
        "long_timeout_s",
        "body_timeout_s",
        "head_timeout_s",
        "keep_alive_s",
        "stop_timeout_s",
    ):
        _check_number(getattr(limits, name), name, SECONDS_MAX)
    if limits.rate is not None:
        _check_number(limits.rate, "rate", RATE_MAX)


def _check_number(value: object, name: str, highest: float) -> None:
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not (math.isfinite(value) and 0 < value <= highest)
    ):
        shown = shown_real(value) if isinstance(value, int | float) else type(value).__name__
        raise InvalidRequest(f"{name} must be above 0 and at most {highest:g}, got {shown}", field=name)


def _check_host(settings: Settings) -> None:
    for name, hosts in (("host", (settings.host,)), ("allow_host", settings.allow_hosts)):
        for host in hosts:
            if not _HOST.fullmatch(host):
                raise InvalidRequest(f"{name} must be a host's name or address, without a port", field=name)


def _bare(host: str) -> str:
    return host.strip("[]").lower()
