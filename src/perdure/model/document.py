"""A document: text of any length under a caller's id, with a version."""

from __future__ import annotations

from typing import Any

import msgspec

from perdure.base.text import counted
from perdure.model.certificate import Certificate


class Document(msgspec.Struct, frozen=True):
    """A stored document. `version` is 1 at creation and grows by 1 with each replacement.

    A fact is seen as a document of version 1.
    """

    id: str
    text: str
    metadata: dict[str, Any]
    version: int

    def __repr__(self) -> str:
        return f"<Document version {self.version}, {counted(len(self.text), 'character')}>"


class DocumentHit(msgspec.Struct, frozen=True):
    """One result of document search: the text of its best unit, and that unit's index from 0."""

    id: str
    text: str
    unit: int
    metadata: dict[str, Any]
    score: float

    def __repr__(self) -> str:
        return f"<DocumentHit score {self.score}, unit {self.unit}, {counted(len(self.text), 'character')}>"


class Put(msgspec.Struct, frozen=True):
    """The outcome of a put: `created`, `existing` or `replaced`, with the document's version now.

    `pending` is True while something keeps what was replaced from leaving the last file; the next operation on
    the store finishes it. `reason` says what else there is to know, such as that no embedding could be made.
    """

    id: str
    outcome: str
    version: int
    pending: bool = False
    reason: str | None = None


class Deleted(msgspec.Struct, frozen=True):
    """The receipt of a delete, true in a condition where there was something to delete.

    `pending` and `purged` as in `Forgotten`. `certificate` is None for the replay of an idempotency key.
    """

    deleted: bool
    purged: bool = False
    pending: bool = False
    certificate: Certificate | None = None

    def __bool__(self) -> bool:
        return self.deleted


class VectorIndex(msgspec.Struct, frozen=True):
    """Which vectors a space has. Like the index of words it counts units that are live; hidden ones are left out.

    `count` units have a vector, `missing` have none. `dimension` is that of all vectors, of hidden units too; None
    while there is none. `models` says how many were made by each model, sorted by its name; "" stands for those that
    callers gave.
    """

    count: int
    missing: int
    dimension: int | None
    models: dict[str, int]
