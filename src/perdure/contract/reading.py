"""From replies on the wire to the values of `perdure.model`, as a client gives them; the inverse of `wire`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypeVar, cast

import msgspec

from perdure.base.instants import to_datetime
from perdure.base.text import shown_number
from perdure.contract import replies as r
from perdure.contract.capabilities import Capabilities, Features
from perdure.contract.naming import python_names, snake_case
from perdure.contract.reading_governed import read_reference
from perdure.errors import BY_CODE, Internal, InvalidRequest, PerdureError
from perdure.model.certificate import CERTIFICATE_VERSION, Certificate, Step, StepName
from perdure.model.document import Deleted, Document, DocumentHit, Put
from perdure.model.event import EventReference
from perdure.model.fact import End, Fact, Merges, Source
from perdure.model.finding import Finding, Verified
from perdure.model.hit import ChainLink, Explanation, Hit, Marking, Neighbour, Part, Reason, Relation
from perdure.model.namespace import Namespace
from perdure.model.replies import (
    Change,
    Changes,
    Consolidated,
    Embedded,
    Erased,
    Forgotten,
    Merged,
    Outcome,
    Page,
    PurgeReceipt,
    Reindexed,
    Remembered,
)
from perdure.model.status import Status
from perdure.model.stores import Imported, Problem, StoreStats
from perdure.model.trace import Diff, Difference, Rejected, Trace
from perdure.repository_errors import BY_KIND

T = TypeVar("T")
S = TypeVar("S")


class ToldMarking(Marking, frozen=True):
    """Marks that the server found."""

    places: tuple[tuple[int, int], ...] = ()

    def find(self) -> tuple[tuple[int, int], ...]:
        return self.places


def read_fact(told: r.FactObject) -> Fact:
    return Fact(
        id=told.id,
        text=told.text,
        subject=told.subject,
        entities=told.entities,
        metadata=told.metadata,
        tags=told.tags,
        kind=told.kind,
        importance=told.importance,
        pinned=told.pinned,
        event_time=_moment(told.event_time),
        valid_from=_moment(told.valid_from),
        valid_to=_moment(told.valid_to),
        ingest_time=to_datetime(told.ingest_time),
        ends=tuple(End(_moment(one.at), to_datetime(one.recorded_at), one.reason) for one in told.ends),
        uses=told.uses,
        last_used_at=_moment(told.last_used_at),
        hidden=told.hidden,
        source=_source(told.source),
        supersedes=told.supersedes,
        superseded_by=told.superseded_by,
        status=Status(told.status),
        merged=None if told.merged is None else Merges(told.merged.count, to_datetime(told.merged.last_at)),
    )


def read_hit(told: r.HitObject) -> Hit:
    explanation = told.explanation
    return Hit(
        read_fact(told.fact),
        told.score,
        Status(told.status),
        None if isinstance(explanation, msgspec.UnsetType) else read_explanation(explanation, told.fact.text),
        None if isinstance(told.space, msgspec.UnsetType) else read_space(told.space),
    )


def read_explanation(told: r.ExplanationObject, text: str = "") -> Explanation:
    """Return an explanation; its marks are those that the server found."""
    marking = ToldMarking(text, told.matched_terms, "", told.marks) if told.marks else None
    return Explanation(
        id=told.id,
        reason=cast(Reason, told.reason),
        retrieved=told.retrieved,
        rank=told.rank,
        lexical_score=told.lexical_score,
        semantic_score=told.semantic_score,
        retrieval_score=told.retrieval_score,
        weights=told.weights,
        fusion=told.fusion,
        matched_terms=told.matched_terms,
        recency_factor=told.recency_factor,
        historical_factor=told.historical_factor,
        final_score=told.final_score,
        parts=tuple(Part(one.name, one.value) for one in told.parts),
        status=_status(told.status),
        as_of=to_datetime(told.as_of),
        known_at=_moment(told.known_at),
        valid_from=_moment(told.valid_from),
        valid_to=_moment(told.valid_to),
        within_validity=told.within_validity,
        filtered_by=told.filtered_by,
        chain=tuple(
            ChainLink(
                one.id,
                one.text,
                cast(Relation, one.relation),
                one.direct,
                _moment(one.effective_time),
                Status(one.status),
            )
            for one in told.chain
        ),
        source=_source(told.source),
        marking=marking,
        neighbours=tuple(Neighbour(one.id, one.distance, one.weight, one.terms) for one in told.neighbours),
        actor=told.actor,
        period=told.period,
        uses=told.uses,
        last_used_at=_moment(told.last_used_at),
        node=_optional(told.node, read_reference),
    )


def read_trace(told: r.TraceObject) -> Trace:
    """Return a trace; its options stand as they were sent, under their names in Python."""
    return Trace(
        told.query,
        {python_names(name): value for name, value in told.options.items()},
        told.seen,
        told.eligible,
        told.matched,
        told.scored,
        told.returned,
        tuple(read_hit(one) for one in told.results),
        tuple(
            Rejected(one.id, cast(Reason, one.reason), _status(one.status), one.filter)
            for one in told.rejected
        ),
    )


def read_remembered(told: r.Remembered) -> Remembered:
    return Remembered(
        told.id,
        cast(Outcome, told.outcome),
        told.created,
        _status(told.status),
        told.reason,
        _moment(told.ingest_time),
        told.supersedes,
        told.superseded_by,
        told.pending,
    )


def read_page(told: r.FactPage) -> Page[Fact]:
    return Page(tuple(read_fact(one) for one in told.items), told.total, told.has_more, told.cursor)


def read_changes(told: r.ChangesReply) -> Changes:
    items = tuple(Change(one.sequence, one.kind, _moment(one.at), one.ids, one.count) for one in told.items)
    return Changes(items, told.has_more, told.cursor)


def read_diff(told: r.DiffObject) -> Diff:
    def members(found: tuple[r.DifferenceObject, ...]) -> tuple[Difference, ...]:
        return tuple(
            Difference(read_fact(one.fact), _status(one.before), Status(one.after), one.by) for one in found
        )

    return Diff(
        known_from=to_datetime(told.known_from),
        known_to=to_datetime(told.known_to),
        as_of=to_datetime(told.as_of),
        learnt=members(told.learnt),
        ended=members(told.ended),
        retracted=members(told.retracted),
        superseded=members(told.superseded),
        corrected=members(told.corrected),
    )


def read_certificate(told: r.CertificateObject) -> Certificate:
    fields = {name: getattr(told, name) for name in told.__struct_fields__}
    steps = tuple(Step(cast(StepName, one.name), one.done) for one in told.steps)
    event = None if told.event is None else EventReference(told.event.sequence, told.event.chain)
    return Certificate(**{**_with_moments(fields), "steps": steps, "event": event})


def read_kept_certificate(told: Any) -> Certificate:
    """Return the certificate of a plain object, or of the receipt or the error that holds it.

    A reply may tell more than this build knows; what was kept to be checked may not.

    Raises:
        InvalidRequest: there is none in it, a field is missing, unknown or of the wrong type, or it has
            another version.
    """
    for name in ("error", "details", "certificate"):
        if isinstance(told, Mapping) and name in told:
            told = told[name]
    if not isinstance(told, Mapping):
        raise InvalidRequest(
            "a certificate is an object of JSON, and so is the receipt with it", field="certificate"
        )
    version = told.get("version")
    if type(version) is int and version != CERTIFICATE_VERSION:
        raise InvalidRequest(
            f"the certificate has version {shown_number(version)}, this build reads {CERTIFICATE_VERSION}: use "
            "the build that made it, or a newer one",
            field="certificate",
        )
    try:
        return msgspec.convert(_with_moments(told), Certificate)
    except (msgspec.ValidationError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise InvalidRequest(
            "this is no certificate: a field is missing, unknown or of the wrong type", field="certificate"
        ) from error


def _with_moments(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a certificate, whose names are one word each, with moments in place of milliseconds."""
    return {
        **told,
        "at": _exact_moment(told["at"]),
        "backups": tuple(_exact_moment(one) for one in told["backups"]),
    }


def _exact_moment(millis: object) -> datetime:
    if type(millis) is not int:
        raise TypeError
    return to_datetime(millis)


def read_forgotten(told: r.Forgotten) -> Forgotten:
    certificate = _optional(told.certificate, read_certificate)
    return Forgotten(told.forgotten, told.derived, told.dry_run, told.purged, told.pending, certificate)


def read_consolidated(told: r.Consolidated) -> Consolidated:
    return Consolidated(told.created, told.forgotten, told.dry_run, told.pending)


def read_merged(told: r.Merged) -> Merged:
    return Merged(
        told.kept,
        told.merged,
        told.dry_run,
        told.tags,
        told.kind,
        told.importance,
        told.pinned,
        told.metadata,
    )


def read_capabilities(told: r.CapabilitiesReply) -> Capabilities:
    features = {name: getattr(told.features, name) for name in told.features.__struct_fields__}
    return Capabilities(told.contract_version, told.profile, told.operations, Features(**features))


def read_reindexed(told: r.ReindexedReply) -> Reindexed:
    return Reindexed(told.profile, told.k1, told.b, told.changed, told.pending, told.embedded)


def read_embedded(told: r.EmbeddedReply) -> Embedded:
    return Embedded(told.embedded, told.missing, told.dry_run)


def read_document(told: r.DocumentObject) -> Document:
    return Document(told.id, told.text, told.metadata, told.version)


def read_document_hit(told: r.DocumentHitObject) -> DocumentHit:
    return DocumentHit(told.id, told.text, told.unit, told.metadata, told.score)


def read_document_page(told: r.DocumentPage) -> Page[Document]:
    return Page(tuple(read_document(one) for one in told.items), told.total, told.has_more, told.cursor)


def read_put(told: r.PutReply) -> Put:
    return Put(told.id, told.outcome, told.version, told.pending, told.reason)


def read_deleted(told: r.DeletedReply) -> Deleted:
    return Deleted(told.deleted, told.purged, told.pending, _optional(told.certificate, read_certificate))


def read_space(told: r.SpaceObject) -> Namespace:
    return Namespace(told.principal, told.scope)


def read_stats(told: r.StatsReply) -> StoreStats:
    return StoreStats(*(getattr(told, name) for name in told.__struct_fields__))


def read_verified(told: r.VerifiedReply) -> Verified:
    found = tuple(Finding(one.message, one.space, one.seq) for one in told.findings)
    return Verified(told.ok, found, told.spaces, told.records)


def read_purged(told: r.PurgedReply) -> PurgeReceipt:
    return PurgeReceipt(told.records, told.dropped, told.pending, read_certificate(told.certificate))


def read_erased(told: r.ErasedReply) -> Erased:
    return Erased(
        tuple(read_space(one) for one in told.spaces),
        told.facts,
        told.dry_run,
        told.purged,
        told.pending,
        _optional(told.certificate, read_certificate),
    )


def read_imported(told: r.ImportedReply) -> Imported:
    return Imported(
        told.created,
        told.existing,
        told.skipped,
        told.facts,
        tuple(read_space(one) for one in told.spaces),
        tuple(Problem(one.line, one.reason) for one in told.problems),
        told.foreign_receipts,
        told.dry_run,
    )


def read_error(told: Mapping[str, Any], status: int | None = None) -> PerdureError:
    """Return the error of an error reply, with the names of fields as they are in Python.

    A code that this build does not know is an error of the base class; an unknown one under status 422 is an
    InvalidRequest. What is no error reply at all is Internal.
    """
    body = told.get("error")
    if not isinstance(body, Mapping) or not isinstance(body.get("code"), str):
        return Internal("the server gave an error in a form of its own; is it a Perdure server?")
    code = body["code"]
    field = body.get("field")
    told_details = body.get("details")
    details = {}
    if isinstance(told_details, Mapping):
        details = {snake_case(name): value for name, value in told_details.items()}
    place = details.get("place")
    message = python_names(str(body.get("message", "")), place if isinstance(place, str) else "")
    kind = BY_CODE.get(code) or (InvalidRequest if status == 422 else PerdureError)
    finer = BY_KIND.get(str(details.get("kind")))
    if finer is not None and finer.code == code:
        kind = finer
    error = kind.__new__(kind)
    PerdureError.__init__(error, message, field=python_names(field) if isinstance(field, str) else None)
    error.details = details  # not by name: they are somebody else's, and may be called as an argument is
    for name, value in details.items():
        if (
            name in _ATTRIBUTES
            or (name in getattr(kind, "__annotations__", {}) and name not in _OF_KINDS)
            or (kind is finer and not hasattr(error, name))
        ):
            setattr(error, name, tuple(value) if isinstance(value, list) else value)
    return error


_OF_KINDS = ("code", "status")
_ATTRIBUTES = ("kind", "resource", "limit", "generation", "space", "seq", "committed")


def _moment(millis: int | None) -> datetime | None:
    return None if millis is None else to_datetime(millis)


def _status(told: str | None) -> Status | None:
    return None if told is None else Status(told)


def _source(told: r.SourceObject | None) -> Source | None:
    if told is None:
        return None
    fields = {name: getattr(told, name) for name in told.__struct_fields__}
    return Source(**{n: v for n, v in fields.items() if not isinstance(v, msgspec.UnsetType)})


def _optional(told: S | None, read: Callable[[S], T]) -> T | None:
    return None if told is None else read(told)
