"""The command mcp: one space of a store as tools of the Model Context Protocol."""

from __future__ import annotations

import logging
import signal
import sys
from contextlib import AbstractContextManager, closing
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perdure.cli.addresses import DEFAULT_TENANT, OFF
from perdure.cli.failures import Failed, complain
from perdure.cli.options import one_of
from perdure.cli.session import EPHEMERAL, Session, command
from perdure.contract.limits import BODY_BYTES_MAX
from perdure.errors import Forbidden, InvalidRequest, NotFound

if TYPE_CHECKING:
    from perdure.dispatch import Caller
    from perdure.mcp.http import AsgiApp, AsgiScope
    from perdure.mcp.service import Settings
    from perdure.server.keyring_authentication import Authenticator
    from perdure.server.sockets import Listener
    from perdure.store import Store

MISSING = "mcp needs the package mcp: pip install 'perdure[mcp]'"
TRANSPORTS = ("stdio", "http")
LEVELS = ("debug", "info", "warning", "error")
PORT_DEFAULT = 8421  # the one beside that of perdure serve
PORT_MAX = 65_535
HOST_DEFAULT = "127.0.0.1"
PATH = "/mcp"
SIGINT_CODE = 130  # as shells have it
_LOOPBACK = ("127.0.0.1", "localhost", "::1")

ToolsOption = Annotated[
    str,
    typer.Option(
        "--tools",
        metavar="WHICH",
        help="default: eight tools for everyday use. all: also maintenance, trace, documents, governed knowledge, "
        "conversations, events, search and fetch, with all fields but those that purge or name other memories. Neither "
        "has what concerns the whole store, nor reindexing.",
    ),
]
ReadOnlyFlag = Annotated[bool, typer.Option("--read-only", help="Offer only tools that change nothing.")]
NoForgetFlag = Annotated[
    bool, typer.Option("--no-forget", help="Offer no tool that may erase something for good.")
]
TransportOption = Annotated[
    str,
    typer.Option(
        "--transport",
        metavar="HOW",
        help="stdio, for a client that starts this process; or http.",
        autocompletion=one_of(*TRANSPORTS),
    ),
]
HostOption = Annotated[
    str | None,
    typer.Option(
        "--host", metavar="HOST", help="With http: where to listen. Default: 127.0.0.1, this machine alone."
    ),
]
PortOption = Annotated[
    int | None, typer.Option("--port", metavar="N", help=f"With http: the port. Default: {PORT_DEFAULT}.")
]
LogLevelOption = Annotated[
    str,
    typer.Option(
        "--log-level",
        metavar="LEVEL",
        help="debug, info, warning or error; logs go to standard error.",
        autocompletion=one_of(*LEVELS),
    ),
]


def add_to(app: typer.Typer) -> None:
    command(app, "mcp")(mcp)


def mcp(  # noqa: PLR0913 - the options of the command
    session: Session,
    *,
    tools: ToolsOption = "default",
    read_only: ReadOnlyFlag = False,
    no_forget: NoForgetFlag = False,
    transport: TransportOption = "stdio",
    host: HostOption = None,
    port: PortOption = None,
    log_level: LogLevelOption = "warning",
) -> None:
    """Serve one memory to a client of the Model Context Protocol.

    Whose memory it is, --principal and --scope say; no tool can choose another. Any number of these processes may
    serve one store at once, one for each window of an editor, say. It ends when the client closes standard input, or
    at SIGTERM or SIGINT, what has begun having come to its end.

    With --transport http, clients post to http://HOST:PORT/mcp with the token that is in the file named at the
    start, or with a key of the store (perdure keys), as Authorization: Bearer.

    \b
    Examples:
      perdure mcp --principal alice
      perdure mcp --read-only --tools all
      perdure mcp --transport http --port 8500
    """
    if find_spec("mcp") is None:
        raise Failed(MISSING)
    settings = _settings(tools, read_only=read_only, may_forget=not no_forget)
    _check_choice(transport, "transport", TRANSPORTS)
    _check_choice(log_level, "log_level", LEVELS)
    if session.as_json:
        raise InvalidRequest(
            "--json is of no use to mcp, which writes messages of its protocol", field="json"
        )
    _check_address(transport, host, port)
    if transport == "http":
        _serve_http(session, settings, host or HOST_DEFAULT, port or PORT_DEFAULT, log_level)
    else:
        _serve_stdio(session, settings, log_level)


def _check_address(transport: str, host: str | None, port: int | None) -> None:
    for name, told in (("host", host), ("port", port)):
        if told is not None and transport != "http":
            raise InvalidRequest(f"--{name} is for --transport http: give both, or neither", field=name)
    if port is not None and not 0 < port <= PORT_MAX:
        raise InvalidRequest(f"port must be 1 to {PORT_MAX}, got {port}", field="port")


def _settings(tools: str, *, read_only: bool, may_forget: bool) -> Settings:
    from perdure.mcp.catalogue import PROFILES  # noqa: PLC0415 - help must not wait for it
    from perdure.mcp.service import Settings  # noqa: PLC0415

    profile = next((one for one in PROFILES if one == tools), None)
    if profile is None:
        raise InvalidRequest(f"tools must be {' or '.join(PROFILES)}, got {tools[:64]!r}", field="tools")
    return Settings(profile, read_only, may_forget)


def _check_choice(value: str, name: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise InvalidRequest(f"{name} must be one of {', '.join(choices)}, got {value[:64]!r}", field=name)


def _caller(session: Session, store: Any, settings: Settings) -> Caller:
    """Return the one who asks: in the space that was told, and in no other one."""
    from perdure.contract.limits import HTTP  # noqa: PLC0415 - help must not wait for it
    from perdure.dispatch import Bounds, Caller  # noqa: PLC0415
    from perdure.model.namespace import checked_namespace  # noqa: PLC0415

    space = checked_namespace(session.principal, session.scope)
    bounds = Bounds(space.principal, space.scope)
    role: Any = "read" if settings.read_only else "write"
    caller = Caller(store, space, session.config, HTTP, role, bounds)
    caller.call(
        "capabilities", {}
    )  # a configuration that does not fit the store is told now, not to the model
    return caller


class _Discreet(logging.Formatter):
    """Of other packages' messages tell only where they come from: the SDK repeats in some what it was sent."""

    def format(self, record: logging.LogRecord) -> str:
        if record.name.partition(".")[0] == "perdure":
            return super().format(record)
        return f"{record.levelname}:{record.name}:{record.module}:{record.lineno}"


def _log_to_stderr(level: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Discreet(logging.BASIC_FORMAT))
    logging.basicConfig(handlers=[handler], level=_number(level))


def _number(level: str) -> int:
    return logging.getLevelNamesMapping()[level.upper()]


def _opened(session: Session, settings: Settings) -> AbstractContextManager[Store]:
    # A server that only reads makes no store, and one that is not there yet would be empty for good.
    return session.store(writes=not settings.read_only, changes=settings.read_only)


def _serve_stdio(session: Session, settings: Settings, level: str) -> None:
    from perdure.mcp.stdio import claimed  # noqa: PLC0415 - help must not wait for it

    with claimed() as wire:
        from perdure.mcp.serving import serve_stdio  # noqa: PLC0415 - what it loads may print

        _log_to_stderr(level)
        # Until it serves there is nothing to finish; the store is closed even so.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        signal.signal(signal.SIGINT, lambda *_: sys.exit(SIGINT_CODE))
        with _opened(session, settings) as store:
            ended = serve_stdio(_caller(session, store, settings), settings, wire)
    if ended == signal.SIGINT:
        raise typer.Exit(SIGINT_CODE)


def _serve_http(session: Session, settings: Settings, host: str, port: int, level: str) -> None:
    from perdure.mcp.http import asgi_app  # noqa: PLC0415 - help must not wait for it
    from perdure.server.keyring_authentication import Binding, open_authenticator  # noqa: PLC0415
    from perdure.server.settings import is_everywhere  # noqa: PLC0415
    from perdure.server.sockets import listeners  # noqa: PLC0415

    if is_everywhere(host):
        raise InvalidRequest(
            f"with --host {host} every request would be refused, since that is no name of any server: give the one "
            "address or name by which it is reached, or use perdure serve --allow-host",
            field="host",
        )
    directory = _keys_directory(session)
    _log_to_stderr(level)
    (listener,) = listeners(host, port, 1)  # first, so that nothing is made where it cannot be had
    with (
        listener,
        closing(open_authenticator(directory, Binding(host, port))) as authenticator,
        _opened(session, settings) as store,
    ):
        caller = _caller(session, store, settings)
        tenant = session.tenant or DEFAULT_TENANT
        app = asgi_app(lambda scope: _admitted(scope, authenticator, (caller, tenant), host), settings)
        complain(_whereabouts(host, port, authenticator))
        _listen(app, listener)


def _listen(app: AsgiApp, listener: Listener) -> None:
    import uvicorn  # noqa: PLC0415 - the SDK brings it along

    # Its requests finished, uvicorn sends itself the signal that stopped it; the store is to be closed even so.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    config = uvicorn.Config(app, lifespan="off", log_config=None, access_log=False)
    uvicorn.Server(config).run([listener])


def _keys_directory(session: Session) -> Path | None:
    """Return where keys and token are: in the store's folder, or in that of a database's keystore."""
    if session.is_database:
        return None if session.keystore in (None, OFF) else Path(str(session.keystore))
    return None if session.place == EPHEMERAL else Path(session.place)


def _admitted(
    scope: AsgiScope, authenticator: Authenticator, served: tuple[Caller, str], host: str
) -> Caller:
    """Return who asks, once the request comes from where it may and its key reaches this space of this tenant."""
    from perdure.contract.operations import ROLES  # noqa: PLC0415 - loaded by now
    from perdure.dispatch import BEYOND  # noqa: PLC0415
    from perdure.server.guard import check_body, check_place, single_headers  # noqa: PLC0415
    from perdure.server.keyring_authentication import is_loopback  # noqa: PLC0415

    caller, tenant = served
    headers = single_headers(scope["headers"])
    check_place(headers, _LOOPBACK if is_loopback(host) else (host.lower(),))
    access = authenticator.access([value for name, value in scope["headers"] if name == b"authorization"])
    if access.tenant not in (None, tenant) or not access.sees(caller.namespace):
        raise Forbidden(BEYOND)
    if scope["path"] != PATH:
        raise NotFound(f"there is nothing at this path; post to {PATH}")
    if scope["method"] == "POST":
        check_body(headers, BODY_BYTES_MAX, b"application/json")
    return replace(caller, role=min(access.role, caller.role, key=ROLES.index))


def _whereabouts(host: str, port: int, authenticator: Authenticator) -> str:
    shown = f"[{host}]" if ":" in host else host
    path = authenticator.token_path
    needed = "a key (perdure keys)" if path is None else f"the token in {path}"
    return f"listening on http://{shown}:{port}{PATH}; requests need {needed} as Authorization: Bearer"
