"""The status of a fact at one instant."""

from __future__ import annotations

from enum import StrEnum


class Status(StrEnum):
    """How a fact stands at an instant. `perdure.temporal.status` decides it.

    HIDDEN is no temporal status: it is shown in place of one for a fact that was softly forgotten.
    """

    CURRENT = "current"
    SUPERSEDED = "superseded"
    EXPIRED = "expired"
    NOT_YET_VALID = "not-yet-valid"
    HIDDEN = "hidden"
