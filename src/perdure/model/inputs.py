"""What a caller tells: a new fact, not yet checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from perdure.base.instants import Instant
from perdure.model.fact import Source


class NewFact(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A fact to remember; every field but the text may be left out.

    Args:
        text: 1 to 4,096 words, at most 65,536 bytes; stored byte for byte.
        id: 1 to 256 bytes; derived from the content when absent, so that a retry stores one fact.
        subject: names the slot that the fact fills, for policies and scopes (compared exactly).
        entities: exact names that the fact mentions.
        metadata: a JSON object of the caller's.
        event_time: the moment that the text describes; orders supersession, opens no interval.
        valid_from: from when the fact holds, inclusive.
        valid_to: until when it holds, exclusive.
        supersedes: ids that this fact replaces.
        tags, kind, importance, pinned: annotations; `annotate` may change them later.
        source: where the fact comes from.
        reassert: store the text anew although the same telling is no longer current.
    """

    text: str
    id: str | None = None
    subject: str | None = None
    entities: Iterable[str] | None = None
    metadata: Mapping[str, Any] | None = None
    event_time: Instant | None = None
    valid_from: Instant | None = None
    valid_to: Instant | None = None
    supersedes: Iterable[str] | None = None
    tags: Iterable[str] | None = None
    kind: str | None = None
    importance: float | None = None
    pinned: bool | None = False
    source: Source | Mapping[str, Any] | None = None
    reassert: bool | None = False

    def __repr__(self) -> str:
        return f"<NewFact {len(self.text) if isinstance(self.text, str) else 0} characters>"
