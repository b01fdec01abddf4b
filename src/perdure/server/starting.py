"""From settings to a server that serves: checks, sockets, the log, and one process or several."""

from __future__ import annotations

import logging
import signal
import socket
import sys
from contextlib import closing
from pathlib import Path

from perdure.server.app import create_app
from perdure.server.logs import LogWriter, start_logging
from perdure.server.serving import check_start, check_tls, run, url_of
from perdure.server.settings import Settings, checked_settings
from perdure.server.sockets import listeners
from perdure.server.supervising import Supervisor


def start(settings: Settings) -> None:
    """Serve until SIGINT or SIGTERM, then finish what has begun. Call it on the main thread.

    A SIGTERM that comes before anything is served closes what was opened and ends the process with exit code 0.
    Once requests are taken, a line on standard error tells the address, and the file of the token where there is one.

    Raises:
        InvalidRequest, WrongKey, Corrupt, Busy, StorageFull, Unavailable: the server did not start.
    """
    checked_settings(settings)
    if settings.tls_cert is not None:
        check_tls(settings)
    writer = start_logging(settings.log_level, as_json=settings.log_format == "json")
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        if settings.workers == 1:
            _serve_here(settings, writer)
        else:
            _serve_with_workers(settings, writer)
    finally:
        signal.signal(signal.SIGTERM, before)
        writer.close()


def _serve_here(settings: Settings, writer: LogWriter) -> None:
    # The port first: where it cannot be had, no store and no token are made.
    (listener,) = listeners(settings.host, settings.port, 1)
    with listener, closing(create_app(settings)) as app:
        app.engine.check()
        token = app.engine.authenticator.token_path
        run(settings, listener, lambda _: _announce(writer, settings, listener, token), app=app)


def _serve_with_workers(settings: Settings, writer: LogWriter) -> None:
    sockets = listeners(settings.host, settings.port, settings.workers)
    try:
        token = check_start(settings)
        Supervisor(settings, sockets, lambda: _announce(writer, settings, sockets[0], token)).run()
    finally:
        for one in set(sockets):
            one.close()


def _announce(writer: LogWriter, settings: Settings, listener: socket.socket, token: Path | None) -> None:
    """Tell the address whatever the level of the log is."""
    record = logging.LogRecord("perdure.server", logging.INFO, __file__, 0, "serving", None, None)
    record.fields = {
        "url": url_of(settings, listener),
        "token_file": None if token is None else str(token),
        "workers": settings.workers,
    }
    writer.emit(record)
