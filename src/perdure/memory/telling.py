"""A telling: a new fact, checked, analysed and identified before any lock is taken."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from perdure.base.canonical import canonical_json, decode_json
from perdure.base.ids import checked_id, checked_known_id, derived_id
from perdure.base.instants import find_millis
from perdure.contract import limits
from perdure.errors import InvalidRequest
from perdure.lexical.profile import Profile
from perdure.log.records import FactRecord, SourceFields
from perdure.model.inputs import NewFact
from perdure.planning import checks
from perdure.planning.embedding import NO_VECTORS, Embedding, Vectors
from perdure.policies.admission import AdmissionPolicy, find_refusal
from perdure.policies.extraction import EntityExtractor
from perdure.space.quotes import is_kept

SOURCE_NAMES = ("uri", "quote", "start", "end", "position", "actor")


@dataclass(frozen=True, slots=True)
class Telling:
    """`content` holds the payload and annotations as a record whose number and ingest time are 0."""

    content: FactRecord
    supersedes: tuple[str, ...]
    reassert: bool
    told_id: bool  # the caller named the id
    canonical: bytes  # the payload, for the derived id
    units: tuple[list[str], ...]
    vectors: Vectors = NO_VECTORS
    refusal: str | None = None  # why the admission policy does not take it in


def admitted(telling: Telling, policy: AdmissionPolicy) -> Telling:
    """Return the telling with the refusal of the policy, if it refuses it."""
    refusal = find_refusal(policy, telling.content.text, telling.content.tags)
    return telling if refusal is None else replace(telling, refusal=refusal)


def telling_of(fact: NewFact, profile: Profile, extractor: EntityExtractor | None) -> Telling:
    """Return the fact checked against every limit.

    Raises:
        InvalidRequest: naming the field.
    """
    text = checks.checked_fact_text(fact.text)
    start = find_millis(fact.valid_from, field="valid_from")
    end = find_millis(fact.valid_to, field="valid_to")
    if start is not None and end is not None:
        checks.refuse_empty_interval(start, end)
    supersedes = _checked_ids(fact.supersedes)
    told_id = None if fact.id is None else checked_id(fact.id)
    if told_id in supersedes:
        raise InvalidRequest("supersedes names the fact's own id", field="supersedes")
    reassert = checks.checked_flag(fact.reassert, "reassert")
    if reassert and told_id is not None:
        raise InvalidRequest("reassert goes with a derived id: leave id out", field="reassert")
    content = FactRecord(
        number=0,
        id=told_id or "",
        text=text,
        ingest_time=0,
        subject=None if fact.subject is None else checks.checked_name(fact.subject, "subject"),
        valid_from=start,
        valid_to=end,
        event_time=find_millis(fact.event_time, field="event_time"),
        metadata=checks.json_bytes(checks.checked_metadata(fact.metadata)),
        entities=checks.checked_names(fact.entities, "entities", limits.ENTITIES_MAX),
        extracted=_extracted(text, extractor),
        tags=checks.checked_names(fact.tags, "tags", limits.TAGS_MAX),
        kind=checks.checked_kind(fact.kind),
        importance=checks.checked_importance(fact.importance),
        pinned=checks.checked_flag(fact.pinned, "pinned"),
        source=checks.checked_source(fact.source),
    )
    canonical = payload(content, supersedes)
    return Telling(
        content, supersedes, reassert, told_id is not None, canonical, (profile.document_terms(text),)
    )


def with_vectors(tellings: Sequence[Telling], told: Sequence[Vectors], embedding: Embedding) -> list[Telling]:
    """Return tellings with the vectors that their callers gave, else with those of the embedder.

    What was refused is not shown to the embedder, which may be another's service.
    """
    given = list(told)
    missing = [
        index for index, vectors in enumerate(given) if not vectors.units and tellings[index].refusal is None
    ]
    made = embedding.made([tellings[index].content.text for index in missing])
    for index, vectors in zip(missing, made, strict=True):
        given[index] = vectors
    return [
        telling if vectors is NO_VECTORS else replace(telling, vectors=vectors)
        for telling, vectors in zip(tellings, given, strict=True)
    ]


def identify(telling: Telling) -> str:
    """Return the told id, or the one derived from the payload."""
    return telling.content.id if telling.told_id else derived_id(telling.canonical)


def retelling_id(telling: Telling, earlier: int) -> str:
    """Return the id of the same payload told again after `earlier` tellings."""
    return derived_id(telling.canonical + b"\0retelling %d" % earlier)


def identity_bytes(telling: Telling, given: Iterable[str] = ()) -> bytes:
    """Return everything that was told, as bytes: what tells one request from another.

    `given` names the fields that were given, where leaving one out is not the same as giving None. Nothing of a
    refused telling is in them, since the digest of a few digits tells them to whoever has the store.
    """
    if telling.refusal is not None:
        return b"refused"
    content = telling.content
    told = [
        content.id,
        list(content.tags),
        content.kind,
        content.importance,
        content.pinned,
        telling.reassert,
        sorted(given),
    ]
    return telling.canonical + canonical_json(told) + b"".join(telling.vectors.told)


def payload(content: FactRecord, supersedes: tuple[str, ...]) -> bytes:
    """Return what makes the fact the one it is, as canonical JSON. Absent, null and empty are the same."""
    return _encode_payload(
        _Payload(
            text=content.text,
            subject=content.subject,
            entities=content.entities,
            metadata=None if content.metadata is None else msgspec.Raw(_canonical(content.metadata)),
            event_time=content.event_time,
            valid_from=content.valid_from,
            valid_to=content.valid_to,
            supersedes=supersedes,
            source=_source_object(content.source),
        )
    )


class _Payload(msgspec.Struct, omit_defaults=True, rename="camel"):
    text: str
    subject: str | None = None
    entities: tuple[str, ...] = ()
    metadata: msgspec.Raw | None = None
    event_time: int | None = None
    valid_from: int | None = None
    valid_to: int | None = None
    supersedes: tuple[str, ...] = ()
    source: dict[str, Any] | None = None


_encode_payload = msgspec.json.Encoder(order="sorted").encode


def same_telling(told: FactRecord, stored: FactRecord) -> bool:
    """Whether a telling repeats the stored one: equal payload (but for links) and annotations.

    A quote that went with the turn that it was of tells no two tellings apart, and does not come back.
    """
    return (
        stored.version == 0
        and told.text == stored.text
        and told.subject == stored.subject
        and told.entities == stored.entities
        and (told.event_time, told.valid_from, told.valid_to)
        == (stored.event_time, stored.valid_from, stored.valid_to)
        and (told.tags, told.kind, told.importance, told.pinned)
        == (stored.tags, stored.kind, stored.importance, stored.pinned)
        and is_kept(told.source, stored.source)
        and _same_json(told.metadata, stored.metadata)
    )


def _same_json(a: bytes | None, b: bytes | None) -> bool:
    if a == b:
        return True
    if a is None or b is None:
        return False
    return _canonical(a) == _canonical(b)


def _canonical(metadata: bytes) -> bytes:
    return canonical_json(decode_json(metadata))


def _source_object(source: SourceFields | None) -> dict[str, Any] | None:
    if source is None:
        return None
    return {name: value for name in SOURCE_NAMES if (value := getattr(source, name)) is not None}


def _checked_ids(values: Any) -> tuple[str, ...]:
    if values is None:
        return ()
    members = checks.members_of(values, "supersedes", "ids")
    told = {checked_known_id(value, field=f"supersedes[{place}]") for place, value in enumerate(members)}
    ids = tuple(sorted(told))
    if len(ids) > limits.SUPERSEDES_MAX:
        raise InvalidRequest(
            f"supersedes has {len(ids)} ids; at most {limits.SUPERSEDES_MAX} are allowed", field="supersedes"
        )
    return ids


def _extracted(text: str, extractor: EntityExtractor | None) -> tuple[str, ...]:
    return () if extractor is None else checks.checked_names(extractor(text), "entities", limits.ENTITIES_MAX)
