"""Errors of HTTP itself, in the one shape; and what is told of a fault that nobody expected."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import ClassVar

from perdure.errors import Forbidden, Internal, InvalidRequest, NotFound, PerdureError, Unavailable

FRAMES_MAX = 12
PLACE_CHARACTERS_MAX = 300  # a host's name has 253 at most


class NoRoute(NotFound):
    """There is nothing at this path."""

    def __init__(self) -> None:
        super().__init__("there is nothing at this path; /openapi.json tells what there is")


class WrongMethod(InvalidRequest):
    """The path is there, for other methods."""

    status: ClassVar[int] = 405

    def __init__(self, *allowed: str) -> None:
        super().__init__(f"this path takes {' or '.join(allowed)}", allowed=list(allowed))
        self.allowed = allowed


class WrongMedia(InvalidRequest):
    """The body is told to be something else than plain JSON."""

    status: ClassVar[int] = 415


class Malformed(InvalidRequest):
    """What came is not HTTP as it is served here."""

    status: ClassVar[int] = 400


class Slow(Unavailable):
    """The body did not come in time; nothing was done."""

    status: ClassVar[int] = 408


class HeadTooLarge(InvalidRequest):
    """The line or the headers of a request are longer than is taken."""

    status: ClassVar[int] = 431


class WrongPlace(Forbidden):
    """The request names a host that is not served, or comes from a web page of another place.

    `place` is that host or origin, for the log of whoever runs the server; "" where it is none.
    """

    def __init__(self, message: str, *, field: str, place: str = "") -> None:
        super().__init__(message, field=field)
        self.place = place[:PLACE_CHARACTERS_MAX]


def internal(request_id: str) -> Internal:
    """Return what is told of a fault: nothing but where to look."""
    return Internal(
        f"the server failed; its log has the cause under the request id {request_id}", request_id=request_id
    )


def cause_of(error: BaseException) -> str:
    """Return an error's type and the places it passed, without its message, which may hold people's text."""
    if isinstance(error, PerdureError):
        return f"{type(error).__name__}: {error.message}"
    frames = traceback.extract_tb(error.__traceback__)[-FRAMES_MAX:]
    places = " < ".join(f"{Path(f.filename).stem}:{f.lineno} {f.name}" for f in reversed(frames))
    return f"{type(error).__name__} at {places}" if places else type(error).__name__
