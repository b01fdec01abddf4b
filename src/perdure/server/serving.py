"""Running the application: in this process, or in several workers that are started anew when they die."""

from __future__ import annotations

import gc
import signal
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from perdure.errors import InvalidRequest
from perdure.server.app import create_app
from perdure.server.engine import Engine
from perdure.server.front import Front
from perdure.server.metrics import Metrics
from perdure.server.protocol import protocol_of
from perdure.server.settings import Settings
from perdure.server.sockets import BACKLOG

GARBAGE_THRESHOLDS = (20_000, 10, 20)  # of Python's three generations; the first is 700 without it
_OF_CERTIFICATE = ("EE_KEY_TOO_SMALL", "CA_KEY_TOO_SMALL", "CA_MD_TOO_WEAK")  # of OpenSSL


class Server(uvicorn.Server):
    """Uvicorn's, which ends by itself after a signal, and says when it takes requests."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and tell."""
        await super().startup(sockets)
        for one in sockets or ():  # as many may wait, however few are taken at once
            one.listen(BACKLOG)
        if self.started:
            self._on_ready()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take SIGINT and SIGTERM as the word to finish what has begun and end; a second SIGINT ends at once."""
        before = {one: signal.signal(one, self.handle_exit) for one in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)


def run(
    settings: Settings,
    listener: socket.socket,
    on_ready: Callable[[Front], None],
    *,
    metrics: Metrics | None = None,
    app: Front | None = None,
) -> None:
    """Serve on a socket until a signal comes, then finish the requests that have begun.

    Raises as `create_app`.
    """
    front = app or create_app(settings, metrics=metrics)
    limits = settings.limits
    config = uvicorn.Config(
        front,
        http=protocol_of(limits),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,  # nobody is believed to be a proxy
        server_header=False,
        # Asyncio takes as many connections at once as may wait: one worker would have them all.
        backlog=BACKLOG if settings.workers == 1 else 1,
        timeout_keep_alive=max(1, round(limits.keep_alive_s)),
        timeout_graceful_shutdown=max(1, round(limits.stop_timeout_s)),
        ssl_certfile=settings.tls_cert,
        ssl_keyfile=None if settings.tls_key is None else str(settings.tls_key),
        ssl_keyfile_password="" if settings.tls_key is not None else None,
    )
    _spare_collections()
    try:
        Server(config, lambda: on_ready(front)).run([listener])
    finally:
        front.close()


def _reason(error: Exception) -> str:
    return str(getattr(error, "reason", None) or getattr(error, "strerror", None) or type(error).__name__)


def _spare_collections() -> None:
    """Keep what is there for good out of every collection of garbage, and collect the rest less often.

    Else a fifth of a recall's time goes into looking at the modules and facts of the process again and again.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GARBAGE_THRESHOLDS)


def check_start(settings: Settings) -> Path | None:
    """Return the file of the token, if there is one; raise what keeps workers from serving the store.

    Raises:
        InvalidRequest, WrongKey, Corrupt, Busy, StorageFull, Unavailable.
    """
    engine = Engine(settings)
    try:
        engine.check()
        return engine.authenticator.token_path
    finally:
        engine.close()


def check_tls(settings: Settings) -> None:
    """Raise InvalidRequest, naming the file at fault, where the certificate and its key cannot be used."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate, key = str(settings.tls_cert), str(settings.tls_key)
    try:
        context.load_verify_locations(certificate)
    except (OSError, ValueError) as error:
        raise InvalidRequest(
            f"the TLS certificate cannot be used ({_reason(error)}): give --tls-cert a file with a certificate in PEM",
            field="tls_cert",
        ) from error
    try:
        context.load_cert_chain(certificate, key, password="")  # asks nobody
    except (OSError, ValueError) as error:
        if isinstance(error, ssl.SSLError) and error.reason in _OF_CERTIFICATE:
            raise InvalidRequest(
                f"the TLS certificate cannot be used ({error.reason}): make one that this OpenSSL takes",
                field="tls_cert",
            ) from error
        raise InvalidRequest(
            f"the TLS key cannot be used ({_reason(error)}): give --tls-key the file with the key of this "
            "certificate, in PEM and without a passphrase",
            field="tls_key",
        ) from error


def url_of(settings: Settings, listener: socket.socket) -> str:
    """Return the address of the server, as people type it."""
    host = f"[{settings.host.strip('[]')}]" if ":" in settings.host else settings.host
    scheme = "http" if settings.tls_cert is None else "https"
    return f"{scheme}://{host}:{listener.getsockname()[1]}"
