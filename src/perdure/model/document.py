"""A document: text of any length under a caller's id, with a version."""

from __future__ import annotations

from typing import Any

import msgspec


class Document(msgspec.Struct, frozen=True):
    """A stored document. `version` is 1 at creation and grows by 1 with each replacement.

    A fact is seen as a document of version 1.
    """

    id: str
    text: str
    metadata: dict[str, Any]
    version: int

    def __repr__(self) -> str:
        return f"<Document version {self.version}, {len(self.text)} characters>"


class DocumentHit(msgspec.Struct, frozen=True):
    """One result of document search: the text of its best unit, and that unit's index from 0."""

    id: str
    text: str
    unit: int
    metadata: dict[str, Any]
    score: float

    def __repr__(self) -> str:
        return f"<DocumentHit score {self.score}, unit {self.unit}, {len(self.text)} characters>"


class Put(msgspec.Struct, frozen=True):
    """The outcome of a put: `created` or `replaced`, with the document's version now."""

    id: str
    outcome: str
    version: int
