"""The standard streams, also where one of them is closed, full or no terminal."""

from __future__ import annotations

import logging
import os
import re
import sys
from contextlib import suppress
from typing import BinaryIO

import typer

from perdure.cli.failures import Failed, complain

WIDTH_UNKNOWN = 80  # the width of the terminals that all others imitate
_WIDTH = re.compile(r"[1-9]\d{0,3}", re.ASCII)


_QUIET = logging.NullHandler()


class _Complaints(logging.Handler):
    """Shows warnings as every other line about a command, where no log was set up."""

    def emit(self, record: logging.LogRecord) -> None:
        complain(record.getMessage().partition("\n")[0])


def prepare() -> None:
    """Make the standard streams fit for use; call it before any file is opened."""
    # That an embedder failed is told in the reply; where nobody set up logging, Python would print it besides.
    logging.getLogger("perdure.embedding").addHandler(_QUIET)
    logging.lastResort = _Complaints(logging.WARNING)
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # Else the next file that is opened has this number, and whatever a library writes to the
            # standard stream ends up in it.
            os.open(os.devnull, os.O_RDWR)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - open as long as the process
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal that lacks a letter gets its number instead
            stream.reconfigure(errors="backslashreplace")


def standard_input() -> BinaryIO:
    """Return standard input as bytes.

    Raises:
        Failed: it is closed.
    """
    if sys.stdin is None:
        raise Failed("standard input is closed, so there is nothing to read")
    return typer.get_binary_stream("stdin")


def discard_output() -> None:
    """Close standard output, whose unwritten rest would fail once more when the process ends."""
    with suppress(OSError, ValueError):
        sys.stdout.close()


def settle_errors() -> None:
    """Write out standard error; where that fails, drop the rest, which would fail once more when the process ends."""
    try:
        sys.stderr.flush()
    except (OSError, ValueError):
        with suppress(OSError, ValueError):
            sys.stderr.close()
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - open as long as the process


def width() -> int:
    """Return the columns of the terminal: by COLUMNS, else as the system says, else 80.

    A COLUMNS of 0, or of anything but a number, says nothing.
    """
    told = os.environ.get("COLUMNS", "")
    if _WIDTH.fullmatch(told):
        return int(told)
    for number in (1, 2, 0):
        with suppress(OSError):
            columns = os.get_terminal_size(number).columns
            if columns > 0:
                return columns
    return WIDTH_UNKNOWN
