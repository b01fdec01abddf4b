"""What a verification and a salvage answer."""

from __future__ import annotations

from typing import NamedTuple

import msgspec


class Finding(NamedTuple):
    """Something that a verification found wrong, where, and what to do. No text of anybody's."""

    message: str
    space: int | None = None
    seq: int | None = None


class Verified(msgspec.Struct, frozen=True):
    """What a verification found. `spaces` and `records` count what was looked at, erased records included."""

    ok: bool  # nothing was found
    findings: tuple[Finding, ...]
    spaces: int
    records: int


class Salvaged(msgspec.Struct, frozen=True):
    """What a salvage saved, in a new store, and what it could not.

    `records` counts the records that were found whole, `facts` the facts and documents in the new store.
    `lost` names every place that could not be read or proven, in order; `notes` says what else is different
    there: a new secret, a name that was lost.
    """

    generation: int
    spaces: int
    records: int
    facts: int
    lost: tuple[Finding, ...]
    notes: tuple[str, ...]
