"""Certificates: made when something was erased, and held against the store later."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hmac import compare_digest
from typing import Literal, NamedTuple

import msgspec

from perdure.audit.audited_log import audit_of
from perdure.audit.reading import Reader
from perdure.audit.rows import fact_digest
from perdure.base.ids import keyed_hash
from perdure.base.instants import to_datetime
from perdure.base.text import counted
from perdure.contract.wire import certificate_object
from perdure.errors import Busy, InvalidRequest, PerdureError, Unavailable
from perdure.log.protocol import Finding, Log, Progress, Purged
from perdure.log.records import FactRecord, NodeRecord, SpaceRecord, TurnRecord, decode
from perdure.model.certificate import CERTIFICATE_VERSION, IN_FILES, Certificate, Operation, Reach, Step
from perdure.model.namespace import Namespace
from perdure.space.purging import between_purges, purge_store

SEAL_BYTES = 32


class _Again(NamedTuple):
    """How to say that something of a certificate is in the store: what, and why it may be so."""

    found: str
    since: str  # it was recorded after the erasure, at the moment that goes in between
    before: str


ID_AGAIN = _Again(
    "an id",
    ": it was told again, at {}",
    ", recorded before the erasure: it was brought back from a copy, or never erased",
)
TEXT_AGAIN = _Again(
    "a text",
    ", under another id: it was told at {}",
    ", under another id, recorded before the erasure: something that says the same and was not to be erased, or "
    "that was brought back from a copy",
)


class Removed:
    """What an erasure takes, gathered fact by fact as keyed digests: no text is kept.

    The ids and contents of nodes are among them, in every revision, and the texts of turns.
    """

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._ids: set[str] = set()
        self._texts: set[str] = set()
        self.spaces = self.facts = self.records = 0

    def add(self, namespace: Namespace, fact: FactRecord) -> None:
        """Note a fact or document that goes."""
        self.facts += 1
        self._note(namespace, fact.id, fact.text)

    def add_revision(self, namespace: Namespace, node: NodeRecord) -> None:
        """Note a revision of a node that goes; the fact that it is seen as is noted by itself."""
        self._note(namespace, node.id, node.content)

    def add_turn(self, namespace: Namespace, turn: TurnRecord) -> None:
        """Note a turn that goes; its id is that of the facts that it is seen as, which are noted by themselves."""
        self._texts.add(_text_digest(self._secret, namespace, turn.text))

    def _note(self, namespace: Namespace, id_: str, text: str) -> None:
        self._ids.add(_id_digest(self._secret, namespace, id_))
        self._texts.add(_text_digest(self._secret, namespace, text))

    def absorb(self, other: Removed) -> None:
        """Note all that another erasure of this store took."""
        self.spaces += other.spaces
        self.facts += other.facts
        self.records += other.records
        self._ids |= other._ids
        self._texts |= other._texts

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(sorted(self._ids))

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(sorted(self._texts))


class Concluded(NamedTuple):
    """How an erasure ended: see `Forgotten`."""

    pending: bool
    purged: Purged | None
    certificate: Certificate


def conclude(
    log: Log,
    operation: Operation,
    removed: Removed,
    at: int,
    *,
    purge: bool,
    progress: Progress | None = None,
) -> Concluded:
    """Clean what an erasure left, purge if asked to, and certify it.

    Args:
        at: now, in ms.

    Raises:
        Busy, StorageFull, Unavailable, Corrupt: the purge could not be done. What was to be erased is; its
            certificate, as an object of JSON, is in the error's details.
        Busy, Unavailable: also where the log cannot be asked any more for what a certificate says; the message tells
            that what was to be erased is.
    """
    # Also when nothing was removed: an earlier erasure's last step, or its purge, may still be waiting.
    pending, reach = not log.scrub(), reach_of(log)
    steps = [Step(name, True) for name in reach.erased]
    if not purge:
        steps.append(Step(reach.scrubbed, not pending))
        return Concluded(pending, None, _certify(log, operation, removed, at, steps))
    # Made before the purge: what stops it may keep the store from being asked for anything afterwards.
    undone = [*steps, Step(reach.scrubbed, not pending), Step("rewritten", False)]
    unpurged = _certify(log, operation, removed, at, undone)
    try:
        purged = purge_store(log, progress)
    except PerdureError as error:
        error.details["certificate"] = certificate_object(unpurged)
        is_unknown = error.details.get("kind") == "unconfirmed"
        _say_erased(error, f"the purge after it {'was not confirmed' if is_unknown else 'could not be done'}")
        raise
    steps += [Step("rewritten", True), Step(reach.overwritten, not purged.pending)]
    return Concluded(purged.pending, purged, _certify(log, operation, removed, at, steps))


def reach_of(log: Log) -> Reach:
    """Return what erasures do in this log: what it says, or what is done in files."""
    reach: Reach = getattr(log, "reach", IN_FILES)
    return reach


def certify_purge(log: Log, purged: Purged, at: int) -> Certificate:
    """Return the certificate of a purge by itself; it knows of no fact in particular."""
    removed = Removed(log.secret)
    removed.records = purged.dropped
    steps = [Step("rewritten", True), Step(reach_of(log).overwritten, not purged.pending)]
    return _certify(log, "purge", removed, at, steps)


def _certify(log: Log, operation: Operation, removed: Removed, at: int, steps: Sequence[Step]) -> Certificate:
    try:
        return _certified(log, operation, removed, at, steps)
    except (Busy, Unavailable) as error:
        _say_erased(error, "it could not be certified")
        raise


def _say_erased(error: PerdureError, but: str) -> None:
    error.message = f"what was to be erased is erased, but {but}: {error.message}"
    error.args = (error.message,)


def _certified(
    log: Log, operation: Operation, removed: Removed, at: int, steps: Sequence[Step]
) -> Certificate:
    # Every copy: clocks differ, and a copy holds what was told after its moment was noted.
    backups = sorted(log.backups()) if removed.facts else ()
    audit = audit_of(log)
    certificate = Certificate(
        version=CERTIFICATE_VERSION,
        operation=operation,
        at=to_datetime(at),
        store=_store_digest(log.secret),
        epoch=log.epoch(),
        spaces=removed.spaces,
        facts=removed.facts,
        records=removed.records,
        ids=removed.ids,
        texts=removed.texts,
        steps=tuple(steps),
        pending=not all(step.done for step in steps),
        backups=tuple(map(to_datetime, backups)),
        outside=reach_of(log).outside,
        event=None if audit is None else audit.reference(),
    )
    return msgspec.structs.replace(certificate, seal=_seal(log.secret, certificate))


def contradictions(log: Log, certificate: Certificate, progress: Progress | None = None) -> Iterator[Finding]:
    """Yield what in the store, as it is now, does not agree with the certificate; nothing when all does.

    Reads every record of the store. Facts that were told again after the erasure are named as such. An
    erasure whose last step still waits is finished, if nothing is in its way any more.

    Raises:
        InvalidRequest: it is no Certificate.
        Busy: purges overtook the reading again and again.
    """
    if not isinstance(certificate, Certificate):
        raise InvalidRequest(
            f"certificate must be a Certificate, got {type(certificate).__name__}", field="certificate"
        )
    if not _same(certificate.store, _store_digest(log.secret)):
        yield Finding("the certificate is of another store")
        return
    if not _is_sealed(log.secret, certificate):
        yield Finding("the certificate was changed after it was made: its seal does not fit")
        return
    yield from _event_findings(log, certificate)
    if log.epoch() < certificate.epoch:
        yield Finding(
            f"the store has seen {counted(log.epoch(), 'purge')}, the certificate {certificate.epoch}: an older copy of the "
            "store was put in place"
        )
    if Step("rewritten", False) in certificate.steps and log.epoch() <= certificate.epoch:
        yield Finding(
            "the purge that was asked for has not been done: purge, then check this certificate again"
        )
    if log.scrub_pending() and not log.scrub():
        yield Finding(f"the erasure is not finished: {reach_of(log).waits}")
    yield from between_purges(log, lambda: list(_stored_again(log, certificate, progress)))


def _event_findings(log: Log, certificate: Certificate) -> Iterator[Finding]:
    """Yield why the chain of events is not the one that the certificate names an event of.

    Events that were let go, and a store that is opened without its audit, tell nothing.
    """
    audit, event = audit_of(log), certificate.event
    if audit is None or event is None:
        return
    try:
        chain = Reader(audit, log.secret).chain_at(event.sequence)
        is_gone = chain is None and audit.book.state().next > event.sequence
    except PerdureError as error:
        yield Finding(error.message)
        return
    if is_gone:
        return
    if chain is None:
        yield Finding(
            f"there is no event {event.sequence}, which the certificate names: an older copy of the audit was put "
            "in place, or it was begun anew"
        )
    elif chain.hex() != event.chain:
        yield Finding(
            f"event {event.sequence} is not the one that the certificate names: the events were rewritten"
        )


def _stored_again(log: Log, certificate: Certificate, progress: Progress | None) -> Iterator[Finding]:
    ids, texts = set(certificate.ids), set(certificate.texts)
    numbers = log.spaces()
    for done, number in enumerate(numbers, 1):
        namespace = Namespace()
        for seq, record in _telling(log, number):
            if isinstance(record, SpaceRecord):
                namespace = Namespace(record.principal, record.scope)
                continue
            told = _told_by(record)
            if told.id is not None and _id_digest(log.secret, namespace, told.id) in ids:
                yield _again(ID_AGAIN, number, seq, told.at, certificate)
            elif _text_digest(log.secret, namespace, told.text) in texts:
                yield _again(TEXT_AGAIN, number, seq, told.at, certificate)
        if progress is not None:
            progress(done, len(numbers))


_Telling = FactRecord | NodeRecord | TurnRecord


class _Told(NamedTuple):
    """What a record tells of, and when it was recorded, in ms."""

    id: str | None
    text: str
    at: int


def _told_by(record: _Telling) -> _Told:
    if isinstance(record, FactRecord):
        return _Told(record.id, record.text, record.ingest_time)
    if isinstance(record, NodeRecord):
        return _Told(record.id, record.content, record.recorded_at)
    return _Told(None, record.text, record.recorded_at)


def _telling(log: Log, number: int) -> Iterator[tuple[int, _Telling | SpaceRecord]]:
    for seq, data in log.read(number, 0, log.head(number).seq):
        record = None if data is None else decode(data, space=number, seq=seq)
        if isinstance(record, _Telling | SpaceRecord):
            yield seq, record


def _again(what: _Again, number: int, seq: int, at: int, certificate: Certificate) -> Finding:
    told = to_datetime(at)
    since = what.since.format(told.isoformat()) if told >= certificate.at else what.before
    return Finding(f"record {seq} of space {number} has {what.found} of the certificate{since}", number, seq)


def _id_digest(secret: bytes, namespace: Namespace, id_: str) -> str:
    return fact_digest(secret, namespace.key(), id_).hex()


def _text_digest(secret: bytes, namespace: Namespace, text: str) -> str:
    return _digest(secret, b"certified text", (namespace.key(), text.encode()))


def _same(told: str, own: str) -> bool:
    # Whoever changes a file may put any characters there, and plain comparing takes none but ASCII.
    return isinstance(told, str) and compare_digest(told.encode("utf-8", "surrogatepass"), own.encode())


def _store_digest(secret: bytes) -> str:
    return _digest(secret, b"certified store", ())


def _is_sealed(secret: bytes, certificate: Certificate) -> bool:
    try:
        return _same(certificate.seal, _seal(secret, certificate))
    except (
        UnicodeEncodeError,
        TypeError,
        AttributeError,
    ):  # half of a surrogate pair, or what is no text at all
        return False


def _seal(secret: bytes, certificate: Certificate) -> str:
    told = msgspec.to_builtins(msgspec.structs.replace(certificate, seal=""))
    if certificate.event is None:
        del told["event"]  # as it was sealed before there were events
    plain = msgspec.json.encode(told)
    return keyed_hash(secret, b"certificate", plain, SEAL_BYTES).hex()


def _digest(
    secret: bytes,
    domain: Literal[b"certified text", b"certified store"],
    parts: Iterable[bytes],
) -> str:
    return keyed_hash(secret, domain, msgspec.msgpack.encode(tuple(parts))).hex()
