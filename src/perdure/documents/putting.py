"""Planning a put or a delete: receipt, version, identity, blocks, in that order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from perdure.base.canonical import canonical_json, decode_json
from perdure.base.ids import checked_id
from perdure.contract import limits
from perdure.documents.units import cuts_of
from perdure.errors import Conflict
from perdure.lexical.profile import Profile
from perdure.log.records import FactRecord, ReceiptItem
from perdure.model.document import Put
from perdure.model.status import Status
from perdure.planning import checks
from perdure.planning.blocks import refuse_blocked
from perdure.planning.certificates import Removed
from perdure.planning.embedding import NO_VECTORS, Embedding, Vectors
from perdure.planning.receipts import Keyed
from perdure.planning.removing import remove, remove_certified
from perdure.planning.vectors import add_vectors, same_embedding
from perdure.space.draft import Draft
from perdure.space.preparing import units_of

VERSION_MAX = 2**53 - 1
FACT_VERSION = 1  # a fact seen as a document


@dataclass(frozen=True, slots=True)
class Content:
    """A document to store, checked, cut and analysed before any lock is taken."""

    id: str
    text: str
    metadata: bytes | None
    cuts: tuple[int, ...]
    units: tuple[list[str], ...]
    vectors: Vectors = NO_VECTORS

    def record(self, number: int, version: int, now: int) -> FactRecord:
        return FactRecord(
            number, self.id, self.text, now, metadata=self.metadata, version=version, cuts=self.cuts
        )

    def is_that_of(self, draft: Draft, number: int) -> bool:
        """Whether the visible document of this number says the same (1 and 1.0 are the same)."""
        stored = draft.fact(number)
        return (
            draft.is_live(number)
            and stored.text == self.text
            and _canonical(stored.metadata) == _canonical(self.metadata)
            and same_embedding(draft, number, self.vectors.told)
        )

    def identity(self) -> bytes:
        """Return all that was told, as bytes: what tells one request from another."""
        told = (self.id.encode(), _canonical(self.metadata), self.text.encode())
        return b"\0".join((*told, *self.vectors.told))


def content_of(
    told: tuple[str, str, Mapping[str, Any] | None, Any], profile: Profile, embedding: Embedding
) -> Content:
    """Return the document (id, text, metadata, embedding) checked against every limit, with its vectors.

    Raises:
        InvalidRequest: naming the field.
    """
    id_, text = checked_id(told[0]), _checked_document_text(told[1])
    metadata = checks.json_bytes(checks.checked_metadata(told[2]))
    cuts = cuts_of(text)
    units = units_of(FactRecord(0, id_, text, 0, cuts=cuts))
    vectors = embedding.told_units(told[3], len(units))
    if not vectors.units:
        vectors = embedding.of_units(units)
    return Content(id_, text, metadata, cuts, tuple(map(profile.document_terms, units)), vectors)


def checked_version(value: int | None) -> int | None:
    """Return what `if_version` asks for: nothing, absence (0) or a version."""
    return None if value is None else checks.checked_count(value, "if_version", 0, VERSION_MAX)


def plan_put(
    draft: Draft, content: Content, keyed: Keyed, *, if_version: int | None, replace_facts: bool
) -> Put:
    """Plan a put; return its reply. Raises without leaving a trace."""
    kept = keyed.find(draft)
    if kept is not None:
        return Put(content.id, kept[0].outcome, draft.fact(kept[0].number).version)
    number = draft.find_number(content.id)
    version = version_of(draft, number)
    _check_version(draft, number, if_version)
    outcome = "created"
    if number is not None:
        is_fact = not draft.fact(number).version
        if is_fact and not replace_facts:
            raise Conflict(
                "this id is that of a fact; choose another, or set onIdConflict to replace to discard the fact",
                kind="id",
                field="id",
            )
        if not is_fact and content.is_that_of(draft, number):
            _keep(draft, keyed, number, "existing")
            return Put(content.id, "existing", version)
        outcome = "replaced"
    refuse_blocked(draft, content.id, content.text)
    if number is not None:
        remove(draft, [number], replaced=True)
    added = draft.next_number
    draft.add_fact(content.record(added, version + 1, draft.now), content.units)
    add_vectors(draft, added, content.vectors.units, content.vectors.model)
    _keep(draft, keyed, added, outcome)
    return Put(content.id, outcome, version + 1, reason=content.vectors.reason)


class PlannedDelete(NamedTuple):
    """Whether there was a document or fact, what is erased of it (None for the replay of a key), and now."""

    found: bool
    removed: Removed | None
    at: int


def plan_delete(draft: Draft, id_: str, keyed: Keyed, *, if_version: int | None) -> PlannedDelete:
    """Plan the removal of a document or fact, hidden ones included."""
    if keyed.find(draft) is not None:
        return PlannedDelete(keyed.count > 0, None, draft.now)
    number = draft.find_number(id_)
    _check_version(draft, number, if_version)
    removed = remove_certified(draft, [] if number is None else [number])
    # The answer is a number: an item would name what is gone.
    keyed.keep(draft, (), count=int(number is not None))
    return PlannedDelete(number is not None, removed, draft.now)


def version_of(draft: Draft, number: int | None) -> int:
    """Return the version held under a number; 0 where there is none."""
    return 0 if number is None else draft.fact(number).version or FACT_VERSION


def _check_version(draft: Draft, number: int | None, wanted: int | None) -> None:
    current = version_of(draft, number)
    if wanted is None or wanted == current:
        return
    held = "there is none" if number is None else f"version {current} is stored"
    if number is not None and not draft.is_live(number):
        held += " (hidden by a soft forget)"
    expected = f"version {wanted}" if wanted else "no document"
    raise Conflict(
        f"if_version expects {expected} under this id, but {held}; read it again and decide anew",
        kind="version",
        field="if_version",
        expected=wanted,
        current=current,
    )


def _keep(draft: Draft, keyed: Keyed, number: int, outcome: str) -> None:
    keyed.keep(draft, (ReceiptItem(number, outcome, Status.CURRENT.value),))


def _checked_document_text(text: str) -> str:
    return checks.checked_body(text, limits.DOCUMENT_BYTES_MAX, "documents")[0]


def _canonical(metadata: bytes | None) -> bytes:
    return b"" if metadata is None else canonical_json(decode_json(metadata))
