"""The requests of operations that tell and set right."""

from __future__ import annotations

from typing import Annotated

from perdure.contract.requests.fields import (
    Id,
    IdempotencyKey,
    JsonObject,
    Kind,
    Moment,
    Name,
    Request,
    Tags,
    Text,
    Vector,
    choice,
    limited,
)

Importance = Annotated[float, limited("0 to 1.", minimum=0, maximum=1)]


CorrectClear = Annotated[
    str,
    choice(
        "What the corrected fact does not inherit.",
        "subject",
        "entities",
        "metadata",
        "eventTime",
        "validFrom",
        "validTo",
        "tags",
        "kind",
        "importance",
        "source",
    ),
]


AnnotateClear = Annotated[
    str, choice("What the fact shall have no longer.", "tags", "kind", "importance", "metadata")
]


class SourceInput(Request, frozen=True, kw_only=True):
    """Where a fact comes from."""

    uri: str | None = None
    quote: str | None = None
    start: int | None = None
    end: int | None = None
    position: int | None = None
    actor: str | None = None


class FactInput(Request, frozen=True, kw_only=True):
    """A fact to remember."""

    text: Text
    id: Id | None = None
    subject: Name | None = None
    entities: list[str] | None = None
    metadata: JsonObject | None = None
    event_time: Moment | None = None
    valid_from: Moment | None = None
    valid_to: Moment | None = None
    supersedes: list[str] | None = None
    tags: Tags | None = None
    kind: Kind | None = None
    importance: Importance | None = None
    pinned: bool | None = None
    source: SourceInput | None = None
    reassert: bool | None = None
    embedding: Vector | None = None


class Remember(FactInput, frozen=True, kw_only=True):
    """Store a fact, or several in one transaction."""

    idempotency_key: IdempotencyKey | None = None


class RememberMany(Request, frozen=True, kw_only=True):
    """Facts to remember in one transaction, all or none."""

    facts: list[FactInput]
    idempotency_key: IdempotencyKey | None = None


class Correct(Request, frozen=True, kw_only=True):
    """Say that a fact was told wrong; name it by one of `id`, `text` and `containing`."""

    new_text: Text
    id: Id | None = None
    text: str | None = None
    containing: str | None = None
    new_id: Id | None = None
    subject: Name | None = None
    entities: list[str] | None = None
    metadata: JsonObject | None = None
    event_time: Moment | None = None
    valid_from: Moment | None = None
    valid_to: Moment | None = None
    tags: Tags | None = None
    kind: Kind | None = None
    importance: Importance | None = None
    pinned: bool | None = None
    source: SourceInput | None = None
    embedding: Vector | None = None
    clear: list[CorrectClear] | None = None
    idempotency_key: IdempotencyKey | None = None


class Annotate(Request, frozen=True, kw_only=True):
    """Change what is noted of a fact; `clear` names what it shall have no longer."""

    id: Id
    tags: Tags | None = None
    kind: Kind | None = None
    importance: Importance | None = None
    pinned: bool | None = None
    metadata: JsonObject | None = None
    clear: list[AnnotateClear] | None = None
    idempotency_key: IdempotencyKey | None = None


class End(Request, frozen=True, kw_only=True):
    """Close a fact's validity without a successor."""

    id: Id
    at: Moment | None = None
    reason: str | None = None
    idempotency_key: IdempotencyKey | None = None


class Retract(Request, frozen=True, kw_only=True):
    """Say that a fact was never true."""

    id: Id
    reason: str | None = None
    idempotency_key: IdempotencyKey | None = None


class Merge(Request, frozen=True, kw_only=True):
    """Say that current facts are all told by another current one."""

    keep: Id
    ids: list[str]
    dry_run: bool | None = None
    idempotency_key: IdempotencyKey | None = None


class RecordUse(Request, frozen=True, kw_only=True):
    """Count that facts were used."""

    ids: list[str]
    context_id: Id | None = None
    idempotency_key: IdempotencyKey | None = None
