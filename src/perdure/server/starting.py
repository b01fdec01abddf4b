"""From settings to a server that serves: checks, sockets, the log, and one process or several."""

from __future__ import annotations

import logging
import signal
import socket
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from perdure.server.app import create_app
from perdure.server.keyring_token import forget_token
from perdure.server.logs import LogWriter, start_logging
from perdure.server.serving import check_start, check_tls, run, url_of
from perdure.server.settings import Settings, checked_settings
from perdure.server.sockets import listeners
from perdure.server.supervising import Supervisor


def start(settings: Settings) -> None:
    """Serve until SIGINT or SIGTERM, then finish what has begun. Call it on the main thread.

    A SIGTERM that comes before anything is served closes what was opened and ends the process with exit code 0.
    Once requests are taken, a line on standard error tells the address, and the file of the token where there is one;
    another one tells the end.

    Raises:
        InvalidRequest, WrongKey, Corrupt, Busy, StorageFull, Unavailable: the server did not start.
    """
    checked_settings(settings)
    if settings.tls_cert is not None:
        check_tls(settings)
    writer = start_logging(settings.log_level, as_json=settings.log_format == "json")
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    herald = _Herald(settings, writer)
    try:
        if settings.workers == 1:
            _serve_here(settings, herald)
        else:
            _serve_with_workers(settings, herald)
    finally:
        herald.stopped()
        signal.signal(signal.SIGTERM, before)
        writer.close()


class _Herald:
    """Tells that the server serves, and that it has stopped, whatever the level of the log is."""

    def __init__(self, settings: Settings, writer: LogWriter) -> None:
        self._settings, self._writer = settings, writer
        self._url: str | None = None

    def serving(self, listener: socket.socket, token: Path | None) -> None:
        self._url = url_of(self._settings, listener)
        workers = self._settings.workers
        self._tell(
            "serving", url=self._url, token_file=None if token is None else str(token), workers=workers
        )

    def stopped(self) -> None:
        """Tell, where it was told that it serves."""
        if self._url is not None:
            self._tell("stopped", url=self._url)

    def _tell(self, event: str, **fields: object) -> None:
        record = logging.LogRecord("perdure.server", logging.INFO, __file__, 0, event, None, None)
        record.fields = fields
        self._writer.emit(record)


def _serve_here(settings: Settings, herald: _Herald) -> None:
    # The port first: where it cannot be had, no store and no token are made.
    (listener,) = listeners(settings.host, settings.port, 1)
    settings = _at(listener, settings)
    with listener, closing(create_app(settings)) as app:
        token = app.engine.authenticator.token_path
        try:
            app.engine.check()
            run(settings, listener, lambda _: herald.serving(listener, token), app=app)
        finally:
            forget_token(token)


def _serve_with_workers(settings: Settings, herald: _Herald) -> None:
    sockets = listeners(settings.host, settings.port, settings.workers)
    settings = _at(sockets[0], settings)
    token = None
    try:
        token = check_start(settings)
        Supervisor(settings, sockets, lambda: herald.serving(sockets[0], token)).run()
    finally:
        forget_token(token)
        for one in set(sockets):
            one.close()


def _at(listener: socket.socket, settings: Settings) -> Settings:
    """Return the settings with the port that was had where any was asked for: a token may be named by it."""
    return replace(settings, port=listener.getsockname()[1])
