"""Structured lines on standard error: what happened, in JSON or for people; never text, a query or a key.

A thread writes the lines, so that a reader of standard error who is slow, or gone, holds up no request. Lines that do not
fit are counted, and the count is told with the next line that does.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections import deque
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TextIO

import msgspec

from perdure.server.failures import cause_of

LINES_MAX = 10_000
_encode = msgspec.json.Encoder().encode


class LogWriter(logging.Handler):
    """Writes records as lines; `extra={"fields": …}` of a record become fields of its line."""

    def __init__(self, *, as_json: bool, stream: TextIO | None = None) -> None:
        """Write to the stream, standard error when absent."""
        super().__init__()
        self._as_json, self._stream = as_json, stream or sys.stderr
        self._lines: deque[str] = deque()
        self._waiting = threading.Event()
        self._dropped = 0
        self._ending = False
        self._thread = threading.Thread(target=self._write, name="perdure-log", daemon=True)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        """Put the record's line behind those that wait; drop it where there are too many."""
        if len(self._lines) >= LINES_MAX:
            self._dropped += 1
            return
        self._lines.append(self._line(record))
        self._waiting.set()

    def close(self) -> None:
        """Write what waits, for a second at most, and end. Idempotent."""
        self._ending = True
        self._waiting.set()
        if threading.current_thread() is not self._thread:
            self._thread.join(1.0)
        super().close()

    def _line(self, record: logging.LogRecord) -> str:
        told: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": _event(record),
            **getattr(record, "fields", {}),
        }
        if record.exc_info and record.exc_info[1] is not None:
            told["cause"] = cause_of(record.exc_info[1])
        if self._dropped:
            told["dropped"], self._dropped = self._dropped, 0
        return (_encode(told).decode() if self._as_json else _for_people(told)) + "\n"

    def _write(self) -> None:
        while True:
            self._waiting.wait()
            self._waiting.clear()
            lines = "".join(self._lines.popleft() for _ in range(len(self._lines)))
            try:
                self._stream.write(lines)
                self._stream.flush()
            except (OSError, ValueError):  # nobody reads it, or it was closed
                pass
            if self._ending and not self._lines:
                return


def start_logging(level: str, *, as_json: bool) -> LogWriter:
    """Send the log of Perdure, and warnings of the libraries below it, to standard error; return who writes it."""
    writer = LogWriter(as_json=as_json)
    root = logging.getLogger()
    root.handlers[:] = [writer]
    root.setLevel(logging.WARNING)
    logging.getLogger("perdure").setLevel(level.upper())
    logging.captureWarnings(True)
    return writer


def _event(record: logging.LogRecord) -> str:
    """Return what happened, without the values that libraries show."""
    # Its messages show exceptions, and arguments of callbacks.
    if record.name == "asyncio" and record.exc_info:
        return "a task or a callback failed"
    return record.getMessage().partition("\n")[0]


def _for_people(told: Mapping[str, Any]) -> str:
    head = f"{told['at']} {told['level']:7} {_one_line(str(told['event']))}"
    rest = [f"{name}={_one_line(str(value))}" for name, value in list(told.items())[3:] if value is not None]
    return " ".join([head, *rest])


def _one_line(text: str) -> str:
    return "".join(one if one.isprintable() else f"\\x{ord(one):02x}" for one in text)
