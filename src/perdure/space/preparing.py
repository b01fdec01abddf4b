"""What can be worked out of a record without the state, and so before any lock."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

from perdure.base.canonical import canonical_json, decode_json
from perdure.base.ids import keyed_hash
from perdure.base.text import retold_form
from perdure.lexical.profile import Profile
from perdure.log.records import FactRecord, LinkRecord, Record
from perdure.space.idmap import id_digest, id_hash
from perdure.space.state import NOWHERE
from perdure.temporal.links import Link, LinkKind


class Prepared(NamedTuple):
    """A record with what can be computed without the state: a fact's terms (one list a unit) and hash."""

    seq: int
    record: Record
    units: tuple[list[str], ...] = ()
    hash: int = 0
    pairs: tuple[bytes, ...] = ()
    place: int = NOWHERE
    retold: int = NOWHERE


def prepare(seq: int, record: Record, profile: Profile, secret: bytes) -> Prepared:
    """Return the record ready to apply. Needs no lock."""
    if not isinstance(record, FactRecord):
        return Prepared(seq, record)
    units = tuple(profile.document_terms(unit) for unit in units_of(record))
    return prepare_fact(seq, record, units, id_digest(secret, record.id), secret)


def prepare_fact(
    seq: int, record: FactRecord, units: tuple[list[str], ...], digest: bytes, secret: bytes
) -> Prepared:
    """Return a fact ready to apply whose terms and id's digest are known."""
    return Prepared(
        seq,
        record,
        units,
        id_hash(digest),
        metadata_pairs(record.metadata, secret),
        place_of(record, secret),
        NOWHERE if record.version else retold_hash(record.text, secret),
    )


def retold_hash(text: str, secret: bytes) -> int:
    """Return a keyed hash of the form in which the text is told again; NOWHERE where it never is."""
    form = retold_form(text)
    if form is None:
        return NOWHERE
    return int.from_bytes(keyed_hash(secret, b"told again", form.encode(), 8), "little") or 1


def place_of(record: FactRecord, secret: bytes) -> int:
    """Return where the fact stands in its source: neighbours' places differ as their positions do.

    The sum of a keyed hash of the uri and the position, modulo 2**64; NOWHERE where either was not told.
    """
    source = record.source
    if source is None or source.uri is None or source.position is None:
        return NOWHERE
    start = int.from_bytes(keyed_hash(secret, b"source", source.uri.encode(), 8), "little")
    return (start + source.position) % 2**64 or 1


def units_of(record: FactRecord) -> list[str]:
    """Return the searchable units of a fact (one) or a document (one or more), in order."""
    if not record.cuts:
        return [record.text]
    bounds = (0, *record.cuts, len(record.text))
    return [record.text[a:b] for a, b in pairwise(bounds)]


def metadata_pairs(metadata: bytes | None, secret: bytes) -> tuple[bytes, ...]:
    """Return a keyed digest per top-level (key, value) pair; equal canonical values give equal digests."""
    if metadata is None:
        return ()
    return tuple(pair_digest(key, value, secret) for key, value in decode_json(metadata).items())


def pair_digest(key: str, value: Any, secret: bytes) -> bytes:
    """Return the digest under which facts with this metadata pair are posted."""
    return keyed_hash(secret, b"metadata", canonical_json([key, value]))


def link_of(record: LinkRecord) -> Link:
    """Return the record's link."""
    kind = LinkKind.CORRECTS if record.corrects else LinkKind.SUPERSEDES
    return Link(record.newer, record.older, kind, record.effective_at, record.known_from)
