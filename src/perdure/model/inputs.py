"""What a caller tells: a new fact, not yet checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict

import msgspec

from perdure.base.instants import Instant
from perdure.base.text import counted
from perdure.model.context import Context
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
        tags: exact names to find it by; `annotate` may change them later, and the next three too.
        kind: `episodic`, `semantic`, `procedural` or `working`.
        importance: 0 to 1, for policies.
        pinned: whether forgetting policies leave it alone.
        source: where the fact comes from.
        reassert: store the text anew although the same telling is no longer current.
        embedding: the text's vector, 1 to 4,096 finite numbers, not all 0; all of one memory have one length.
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
    embedding: Sequence[float] | None = None

    def __repr__(self) -> str:
        return f"<NewFact {counted(len(self.text) if isinstance(self.text, str) else 0, 'character')}>"


class RecallOptions(TypedDict, total=False):
    """The options of recall, explain and trace. None is the same as absence.

    Args:
        k: 1 to 1,000 results; the configuration's default_k when absent.
        as_of: the moment in the world that is asked about; the present when absent.
        known_at: ignore what was recorded later than this moment.
        history: `current` (default), `all`, or `historical` (everything that is not current).
        subject: only facts that fill this slot.
        entity: only facts that mention this name.
        tags: only facts that have all of these.
        kind: only facts of this kind.
        pinned: only facts that are pinned, or with False that are not.
        filter: only facts that match; see `docs/howto/filters.md`.
        min_score: leave out hits whose final score is less; 0 or more.
        candidate_limit: how many candidates a reordering looks at, k to 4,096; at least 100 when absent.
        mode: `lexical` (words), `semantic` (vectors) or `hybrid` (both). When absent: hybrid where there is a
            vector for the query, given or from the configuration's embedder, else lexical.
        embedding: the query's vector, of the same length as the memory's.
        fusion: how hybrid makes one score of two: `minmax` (default) or `rrf`.
        weights: of the two, such as {"lexical": 0.7, "semantic": 0.3}; finite, at least 0, not both 0. One that is
            left out is as usual.
        valid_during: (a, b): in place of history, the facts that were current at some instant from a until before b.
        spaces: further memories of the same store to ask: names of scopes of the same principal, or objects with
            principal and scope. Hits name theirs; see `docs/concepts/scoring.md` for the merged scores. `recall` only.
        max_bytes: stop before the hit with which the results, as compact JSON, would take more. `recall` only.
        context: True, or a Context: count what stands around a match in its source, and whom and when the
            query names.
    """

    k: int | None
    as_of: Instant | None
    known_at: Instant | None
    history: str | None
    subject: str | None
    entity: str | None
    tags: Iterable[str] | None
    kind: str | None
    pinned: bool | None
    filter: Mapping[str, Any] | None
    min_score: float | None
    candidate_limit: int | None
    mode: str | None
    embedding: Sequence[float] | None
    fusion: str | None
    weights: Mapping[str, float] | None
    context: Context | Mapping[str, Any] | bool | None
    valid_during: tuple[Instant, Instant] | None
    spaces: Iterable[str | Mapping[str, str]] | None
    max_bytes: int | None
