"""Merging: tellings of the same text into the fact that says it, and facts into one by hand.

What is noted of both is united in the annotations of the fact that stays; its text and its id stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from perdure.base.canonical import canonical_json, decode_json
from perdure.base.ids import keyed_hash
from perdure.base.text import retold_form
from perdure.contract import limits
from perdure.errors import InvalidRequest, NotFound
from perdure.log.records import AnnotationRecord, FactRecord, Merges, ReceiptItem
from perdure.memory.standing import status_of
from perdure.memory.telling import Telling, payload
from perdure.model.replies import Merged
from perdure.model.status import Status
from perdure.planning import checks
from perdure.planning.governed import refuse_governed
from perdure.planning.receipts import Keyed
from perdure.planning.vectors import same_embedding
from perdure.policies.uniting import united_importance, united_kind, united_metadata, united_tags
from perdure.space.draft import Draft
from perdure.space.preparing import retold_hash
from perdure.space.state import NOWHERE, seen_metadata
from perdure.temporal.columns import FOREVER
from perdure.temporal.links import Link, LinkKind, closes_cycle


class Noted(NamedTuple):
    """What is noted of a fact or telling, and the digests by which it is known as merged."""

    tags: tuple[str, ...]
    kind: str | None
    importance: float | None
    pinned: bool
    metadata: dict[str, Any]
    tellings: int
    digests: tuple[bytes, ...]


def noted_of(draft: Draft, number: int) -> AnnotationRecord:
    """Return the annotations of a fact as they are now, as the record that would say so."""
    told, seen = draft.fact(number), draft.annotation(number)
    if seen is not None:
        return msgspec.structs.replace(seen, recorded_at=draft.now)
    return AnnotationRecord(number, told.tags, told.kind, told.importance, told.pinned, None, draft.now)


def find_twin(draft: Draft, telling: Telling) -> int | None:
    """Return the first current fact into which the telling can be merged, or None.

    The telling names no id, subject, validity or fact that it supersedes, and is not told as new. Its text is the
    fact's, but for case and white space. The fact is not to end or to be superseded later, has all the entities
    that are told, and the event time if one is told: nothing of the telling but its source goes lost.
    """
    content = telling.content
    if telling.told_id or telling.reassert or telling.supersedes or content.subject is not None:
        return None
    if content.valid_from is not None or content.valid_to is not None:
        return None
    text = retold_hash(content.text, draft.secret)
    if text == NOWHERE:
        return None
    form = retold_form(content.text)
    for number in draft.retold(text):
        if not _takes(draft, number, content) or retold_form(draft.fact(number).text) != form:
            continue
        # A vector that was given is not to go lost: the fact has the same one, or stays apart.
        if not telling.vectors.told or same_embedding(draft, number, telling.vectors.told):
            return number
    return None


def _takes(draft: Draft, number: int, content: FactRecord) -> bool:
    fact = draft.fact(number)
    if status_of(draft, number) is not Status.CURRENT or draft.valid_to(number) != FOREVER:
        return False
    if any(draft.is_live(link.newer) for link in draft.above(number)):
        return False
    return content.event_time in (None, fact.event_time) and set(content.entities) <= set(fact.entities)


def merge_telling(draft: Draft, number: int, telling: Telling) -> None:
    """Unite the telling with the fact; one that was merged before changes nothing."""
    content = telling.content
    digest = _digest(draft, content)
    before = noted_of(draft, number)
    if before.merged is not None and digest in before.merged.ids:
        return
    metadata = {} if content.metadata is None else decode_json(content.metadata)
    other = Noted(content.tags, content.kind, content.importance, content.pinned, metadata, 1, (digest,))
    draft.add(_united(draft, before, [other]))


def _digest(draft: Draft, content: FactRecord) -> bytes:
    """Return a keyed digest of everything that was told. No text can be read from it."""
    noted = canonical_json([list(content.tags), content.kind, content.importance, content.pinned])
    return keyed_hash(draft.secret, b"merged", payload(content, ()) + noted)


def _united(draft: Draft, kept: AnnotationRecord, others: Sequence[Noted]) -> AnnotationRecord:
    raw = seen_metadata(draft.fact(kept.number), kept)
    metadata = seen = {} if raw is None else decode_json(raw)
    for other in others:
        metadata = united_metadata(metadata, other.metadata)
    tags = united_tags([kept.tags, *(other.tags for other in others)])
    if len(tags) > limits.TAGS_MAX:
        raise InvalidRequest(
            f"tags would have {len(tags)} members with those of what is merged; at most {limits.TAGS_MAX} are "
            "allowed: take some away by annotate",
            field="tags",
        )
    known = kept.merged or Merges(0, draft.now, ())
    fresh = [digest for other in others for digest in other.digests]
    return msgspec.structs.replace(
        kept,
        tags=tags,
        kind=united_kind([kept.kind, *(other.kind for other in others)]),
        importance=united_importance([kept.importance, *(other.importance for other in others)]),
        pinned=kept.pinned or any(other.pinned for other in others),
        metadata=kept.metadata
        if metadata == seen
        else checks.json_bytes(checks.checked_metadata(metadata) or {}),
        merged=Merges(
            known.count + sum(other.tellings for other in others),
            draft.now,
            tuple(dict.fromkeys((*known.ids, *fresh)))[-limits.MERGED_IDS_MAX :],
        ),
    )


def plan_merge(draft: Draft, keep: str, ids: Sequence[str], *, dry_run: bool, keyed: Keyed) -> Merged:
    """Plan the merge of current facts into another; those that were merged into it already are passed over.

    `ids` are in the order told, so that an error can say which one it is about. A dry run plans nothing.
    """
    kept = keyed.find(draft)
    if kept is not None:
        first, *rest = [item.number for item in kept]
        return _reply(draft, noted_of(draft, first), [n for n in rest if draft.is_live(n)], dry_run=dry_run)
    number = _find_current(draft, keep, "keep")
    others = _find_others(draft, number, ids)
    after = noted_of(draft, number)
    if others:
        after = _united(draft, after, [_noted(draft, other) for other in others])
    if not dry_run:
        if others:
            draft.add(after)
        # Where the fact that stays takes effect later, the others must not say the same beside it until then.
        since = draft.now if draft.eff(number) > draft.now else None
        for other in others:
            draft.add_link(Link(number, other, LinkKind.SUPERSEDES, since, draft.now))
        keyed.keep(draft, tuple(ReceiptItem(n, "existing", "") for n in (number, *others)))
    return _reply(draft, after, others, dry_run=dry_run)


def _find(draft: Draft, id_: str, place: str) -> int:
    """Return the number of a visible fact; `place` is the argument, or the member of one, that names it."""
    number = draft.find_number(id_)
    if number is None or not draft.is_live(number) or draft.fact(number).version:
        raise NotFound(
            f"{place} names no fact of this space (or one that was hidden)", field=_field(place), place=place
        )
    refuse_governed(draft, (number,), field=_field(place))
    return number


def _field(place: str) -> str:
    return place.partition("[")[0]


def _find_current(draft: Draft, id_: str, place: str) -> int:
    number = _find(draft, id_, place)
    status = status_of(draft, number)
    if status is not Status.CURRENT:
        raise InvalidRequest(
            f"{place} names a fact that is {status.value} now; only current facts are merged: name the one that "
            "holds (history shows it)",
            field=_field(place),
            place=place,
            status=status.value,
        )
    return number


def _find_others(draft: Draft, kept: int, ids: Iterable[str]) -> list[int]:
    below = {link.older for link in draft.below(kept)}
    found = []
    for index, id_ in enumerate(ids):
        place = f"ids[{index}]"
        number = _find(draft, id_, place)
        if number in below and status_of(draft, number) is Status.SUPERSEDED:
            continue
        number = _find_current(draft, id_, place)
        if closes_cycle(kept, number, draft):
            raise InvalidRequest(
                f"{place} names keep itself, or a fact that is to supersede it: keep that one instead",
                field="ids",
                place=place,
            )
        found.append(number)
    return sorted(set(found))


def _noted(draft: Draft, number: int) -> Noted:
    told, record = draft.fact(number), noted_of(draft, number)
    raw = seen_metadata(told, record)
    merges = record.merged or Merges(0, 0, ())
    return Noted(
        record.tags,
        record.kind,
        record.importance,
        record.pinned,
        {} if raw is None else decode_json(raw),
        1 + merges.count,
        (_digest(draft, told), *merges.ids),
    )


def _reply(draft: Draft, record: AnnotationRecord, others: Sequence[int], *, dry_run: bool) -> Merged:
    fact = draft.fact(record.number)
    raw = seen_metadata(fact, record)
    return Merged(
        kept=fact.id,
        merged=tuple(sorted(draft.fact(number).id for number in others)),
        dry_run=dry_run,
        tags=record.tags,
        kind=record.kind,
        importance=record.importance,
        pinned=record.pinned,
        metadata={} if raw is None else decode_json(raw),
    )
