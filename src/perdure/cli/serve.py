"""The command serve: a store, or a root of tenants, over HTTP."""

from __future__ import annotations

import os
import signal
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perdure.cli import options as o
from perdure.cli.addresses import checked_place
from perdure.cli.failures import Failed
from perdure.cli.session import Session, command, named_as_in_the_file
from perdure.errors import InvalidRequest

if TYPE_CHECKING:
    from perdure.memory.config import MemoryConfig
    from perdure.server.settings import Settings

MODULES = ("litestar", "uvicorn", "httptools", "prometheus_client", "opentelemetry")
MISSING = "serve needs the server's packages: pip install 'perdure[server]'"
PORT_DEFAULT = 8420
HOST_DEFAULT = "127.0.0.1"


def add_to(app: typer.Typer) -> None:
    command(app, "serve")(serve)


def serve(  # noqa: PLR0913 - the options of the command
    session: Session,
    *,
    host: Annotated[
        str, typer.Option("--host", metavar="HOST", help="The address to listen on; this machine alone.")
    ] = HOST_DEFAULT,
    port: Annotated[
        str, typer.Option("--port", metavar="N", help="The port, 0 to 65535; 0 takes any that is free.")
    ] = str(PORT_DEFAULT),
    workers: Annotated[
        str, typer.Option("--workers", metavar="N", help="How many processes serve, 1 to 64.")
    ] = "1",
    no_auth: Annotated[
        bool,
        typer.Option("--no-auth", help="Ask for no key and no token: whoever reaches the port may do all."),
    ] = False,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host",
            metavar="NAME",
            help="A further Host that requests may name, as behind a proxy; repeatable. Without it those are 127.0.0.1, "
            "localhost and ::1 where only this machine is served, else what --host names: with 0.0.0.0 give a name "
            "here, else it does not start. /health/live and /health/ready take any.",
        ),
    ] = None,
    default_principal: Annotated[
        str | None,
        typer.Option(
            "--default-principal",
            metavar="NAME",
            help="Whose memory it is where neither key nor header says. Without it that is the one without a name as "
            "long as there are no keys; with a key such a request is refused.",
        ),
    ] = None,
    tls_cert: Annotated[
        str | None,
        typer.Option(
            "--tls-cert", metavar="FILE", help="A certificate chain in PEM; with it the server speaks TLS."
        ),
    ] = None,
    tls_key: Annotated[
        str | None, typer.Option("--tls-key", metavar="FILE", help="Its key in PEM, without a passphrase.")
    ] = None,
    rate: Annotated[
        str | None,
        typer.Option(
            "--rate",
            metavar="NUMBER",
            help="Requests a second of each key; more get 503. Default: as many as come.",
        ),
    ] = None,
    burst: Annotated[
        str | None,
        typer.Option(
            "--burst", metavar="N", help="How many at once before the rate counts; default a second's worth."
        ),
    ] = None,
    queue: Annotated[
        str,
        typer.Option(
            "--queue", metavar="N", help="How many requests of a kind may wait for a thread in a worker."
        ),
    ] = "256",
    request_timeout: Annotated[
        str,
        typer.Option(
            "--request-timeout",
            metavar="SECONDS",
            help="How long a request may take; verify, purge, export and their like have ten minutes.",
        ),
    ] = "30",
    memory_bytes: Annotated[
        str,
        typer.Option(
            "--memory-bytes",
            metavar="N",
            help="How much the spaces of all tenants together may take in a worker's memory; the idle ones of any tenant are "
            "let go of. One that alone takes more answers busy, but for a single store in files.",
        ),
    ] = str(1 << 30),
    open_tenants: Annotated[
        str,
        typer.Option(
            "--open-tenants",
            metavar="N",
            help="How many tenants' stores a worker keeps open at once, 1 to 65536; the one that nobody has used for longest "
            "makes room for another.",
        ),
    ] = "64",
    replica: Annotated[
        str | None,
        typer.Option(
            "--replica",
            metavar="ADDRESS",
            help="With a database, postgresql://… of a standby of it, from which memories are loaded as far as it has come. "
            "Default: PERDURE_REPLICA.",
        ),
    ] = None,
    embedding_dimension: Annotated[
        str | None,
        typer.Option(
            "--embedding-dimension",
            metavar="N",
            help="The length of given vectors, 1 to 4096, in place of the configuration's. Default: the first one's.",
        ),
    ] = None,
    mcp: Annotated[
        bool,
        typer.Option(
            "--mcp/--no-mcp", help="Serve /mcp too (Model Context Protocol), where its package is there."
        ),
    ] = True,
    audit: Annotated[
        str,
        typer.Option(
            "--audit",
            metavar="LEVEL",
            help="on: an event of every change; full: of every recall too, each of which writes then; off.",
        ),
    ] = "on",
    tracing: Annotated[
        bool,
        typer.Option(
            "--tracing", help="Make OpenTelemetry spans, for the provider that the environment sets up."
        ),
    ] = False,
    log_format: Annotated[
        str,
        typer.Option("--log-format", metavar="FORM", help="console, for people, or json; on standard error."),
    ] = "console",
    log_level: Annotated[
        str, typer.Option("--log-level", metavar="LEVEL", help="debug, info, warning or error.")
    ] = "info",
) -> None:
    """Serve the store over HTTP until a signal ends it.

    Without keys (perdure keys create) only this machine is served, and each request needs the token that lies in
    server.token in the store's folder, as Authorization: Bearer TOKEN. From the first key on the token is refused and
    each request needs a key, and other machines may be served: then use TLS, here or in a proxy.

    Whose memory a request means, its key says or its headers Perdure-Principal and Perdure-Scope; --principal and
    --scope are refused here.

    Operations are POST /api/v1/GROUP/OPERATION; /docs and /openapi.json describe them. /health/live and /health/ready
    are for supervisors, /metrics is for Prometheus. SIGTERM and SIGINT let what has begun come to its end; the exit code
    is 0 then.

    A store in a database (--store postgresql://…, --keystore DIR) is served by any number of servers on any number of
    machines. Its tenants are those of the keys, which lie in the keystore's folder, as the token does.

    \b
    Examples:
      perdure serve
      perdure serve --store /srv/memory --workers 2 --log-format json
      perdure serve --host 0.0.0.0 --allow-host a.org --tls-cert c --tls-key k
    """
    _check_used(session, rate, burst)
    if not all(find_spec(module) for module in MODULES):
        raise Failed(MISSING)
    from perdure.server.settings import Limits, Opening, Settings  # noqa: PLC0415 - help must not wait for it

    told: dict[str, Any] = {} if rate is None else {"rate": o.real(rate, "rate")}
    limits = Limits(
        queue=_whole(queue, "queue"),
        burst=_whole(burst or "0", "burst"),
        memory_bytes=_whole(memory_bytes, "memory_bytes"),
        open_tenants=_whole(open_tenants, "open_tenants"),
        request_timeout_s=o.real(request_timeout, "request_timeout") or 0.0,
        **told,
    )
    dimension = o.whole(embedding_dimension, "embedding_dimension")
    form: Any = log_format
    level: Any = log_level
    audited: Any = audit
    _run(
        Settings(
            store=session.place,
            host=host,
            port=_whole(port, "port"),
            config=_with_dimension(session.config, dimension),
            opening=Opening(
                session.key, session.secret, session.backend, session.keystore, _standby(session, replica)
            ),
            auth=not no_auth,
            default_principal=default_principal,
            allow_hosts=tuple(allow_host or ()),
            workers=_whole(workers, "workers"),
            tls_cert=None if tls_cert is None else Path(tls_cert),
            tls_key=None if tls_key is None else Path(tls_key),
            log_format=form,
            log_level=level,
            tracing=tracing,
            mcp=mcp,
            audit=audited,
            limits=limits,
        )
    )


def _check_used(session: Session, rate: str | None, burst: str | None) -> None:
    """Refuse what every other command takes and a server cannot mean."""
    if session.as_json:
        raise InvalidRequest("serve prints no reply: for a log in JSON give --log-format json", field="json")
    for name in ("principal", "scope"):
        if getattr(session, name) is not None:
            raise InvalidRequest(
                f"--{name} chooses nothing for a server: its keys and each request say whose memory they mean; give "
                f"perdure keys create --{name}, or --default-principal",
                field=name,
            )
    if session.tenant is not None:
        raise InvalidRequest(
            "--tenant, or PERDURE_TENANT, chooses nothing for a server: its keys say which tenant they are for, and requests "
            "without a key name one in the header Perdure-Tenant. Leave it out",
            field="tenant",
        )
    if session.keystore is not None and not session.is_database:
        from perdure.opening import refuse_tenant  # noqa: PLC0415 - only where something is wrong

        refuse_tenant(keystore=session.keystore)
    if burst is not None and rate is None:
        raise InvalidRequest("--burst counts only with --rate: give both, or neither", field="burst")


def _standby(session: Session, told: str | None) -> str | None:
    """Return the address of the standby that was told; what the environment tells is for a database alone."""
    if told is not None:
        return checked_place(told, "replica")
    return (os.environ.get("PERDURE_REPLICA") or None) if session.is_database else None


def _run(settings: Settings) -> None:
    # Before the server's packages are loaded, which takes most of the time of a start.
    for one in (signal.SIGTERM, signal.SIGINT):
        signal.signal(one, lambda *_: sys.exit(0))
    from perdure.server.starting import start  # noqa: PLC0415 - help must not wait for it

    with named_as_in_the_file():
        start(settings)


def _whole(told: str, field: str) -> int:
    found = o.whole(told, field)
    assert found is not None
    return found


def _with_dimension(config: MemoryConfig | None, dimension: int | None) -> MemoryConfig | None:
    if dimension is None:
        return config
    from dataclasses import replace  # noqa: PLC0415

    from perdure.memory.config import MemoryConfig  # noqa: PLC0415 - help must not wait for it

    return replace(config or MemoryConfig(), embedding_dimension=dimension)
