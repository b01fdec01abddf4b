"""Planning what is said of a stored fact: corrections, ends, retractions, annotations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from perdure.base.canonical import canonical_json, checked_text, decode_json
from perdure.base.ids import checked_known_id, derived_id
from perdure.base.instants import to_iso
from perdure.base.text import folded, folded_space
from perdure.contract import limits
from perdure.errors import Conflict, InvalidRequest, NotFound
from perdure.log.records import NO_FACT, AnnotationRecord, EndRecord, FactRecord, ReceiptItem
from perdure.memory.merging import noted_of
from perdure.memory.standing import status_of
from perdure.memory.telling import Telling, payload
from perdure.model.status import Status
from perdure.planning import checks
from perdure.planning.blocks import refuse_blocked
from perdure.planning.governed import refuse_governed
from perdure.planning.receipts import Keyed
from perdure.planning.vectors import add_vectors, same_embedding
from perdure.space.draft import Draft
from perdure.space.state import seen_metadata
from perdure.temporal.columns import RETRACTED
from perdure.temporal.links import LinkKind, copied_links, effective_time
from perdure.temporal.slots import neighbours

UNSET = msgspec.UNSET
SHOWN_MAX = 20  # ids that a conflict lists


def find_live(draft: Draft, id_: str) -> int:
    """Return the number of a visible fact that may be changed; raises NotFound (documents are no facts)."""
    number = draft.find_number(id_)
    if number is None or not draft.is_live(number):
        raise NotFound("no fact of this space has that id", field="id")
    if draft.fact(number).version:
        raise NotFound("that id is a document; facts alone have a history", field="id")
    refuse_governed(draft, (number,))
    return number


@dataclass(frozen=True, slots=True)
class Target:
    """The fact that a correction replaces: exactly one of id, its text, or a part of it."""

    id: str | None
    text: str | None
    containing: str | None

    def find(self, draft: Draft) -> int:
        """Return the one fact meant.

        Raises NotFound for none and Conflict(kind="several") listing the ids for several.
        """
        if self.id is not None:
            return find_live(draft, self.id)
        found = [number for number in current_numbers(draft) if self.matches(draft.fact(number).text)]
        if not found:
            raise NotFound(
                "no current fact has that text", field="containing" if self.text is None else "text"
            )
        if len(found) > 1:
            ids = sorted(draft.fact(number).id for number in found)
            raise Conflict(
                f"{len(found)} current facts match; name one by id",
                kind="several",
                ids=ids[:SHOWN_MAX],
                count=len(found),
            )
        refuse_governed(draft, found)
        return found[0]

    def is_current_anywhere(self, draft: Draft) -> bool:
        """Whether the words find a current fact."""
        return any(self.matches(draft.fact(number).text) for number in current_numbers(draft))

    def matches(self, text: str) -> bool:
        """Whether a text is the one meant, or holds the part."""
        if self.text is not None:
            return folded_space(text) == folded_space(self.text)
        assert self.containing is not None
        return folded(self.containing) in folded(text)


def checked_target(id_: str | None, text: str | None, containing: str | None) -> Target:
    """Return the target that was told.

    Raises InvalidRequest for none, several, or one that is blank and so would name nothing (or everything).
    """
    told = {
        name: value
        for name, value in (("id", id_), ("text", text), ("containing", containing))
        if value is not None
    }
    if len(told) != 1:
        given = ", ".join(told) or "none"
        raise InvalidRequest(f"correct takes exactly one of id, text, containing; given: {given}", field="id")
    if id_ is not None:
        return Target(checked_known_id(id_), None, None)
    (name, value), *_ = told.items()
    words = checked_text(value, field=name)
    if not folded(words):
        raise InvalidRequest(f"{name} is blank; name the fact by its id or by words of it", field=name)
    return Target(None, words, None) if name == "text" else Target(None, None, words)


def current_numbers(draft: Draft) -> list[int]:
    """Return the numbers of the facts that are current at the plan's now, ascending."""
    state = draft.state
    known = [n for n in state.numbers() if n not in state.plain]
    added = range(state.next_number, draft.next_number)
    return [
        n
        for n in (*known, *(n for n in added if draft.holds(n)))
        if draft.is_live(n) and status_of(draft, n) is Status.CURRENT
    ]


@dataclass(frozen=True, slots=True)
class Correction:
    """The new text and what is given anew; everything left UNSET is inherited."""

    target: Target
    telling: Telling
    given: dict[str, Any]  # fields of FactRecord, checked
    keeps_slots: bool  # a subject's facts follow one another by a policy

    @property
    def text(self) -> str:
        return self.telling.content.text

    def says_the_vectors_of(self, draft: Draft, number: int) -> bool:
        """Whether a fact has the embedding that is given with the correction, or none is given."""
        told = self.telling.vectors.told
        return not told or same_embedding(draft, number, told)

    def find_corrected(self, draft: Draft) -> int | None:
        """Return the fact that this very correction has made before, when its target is named by words.

        The mistake is no longer current then, so that its words no longer find it.
        """
        if self.target.id is not None or self.target.is_current_anywhere(draft):
            return None
        for number in current_numbers(draft):
            fact = draft.fact(number)
            if fact.text != self.text or not all(getattr(fact, name) == v for name, v in self.given.items()):
                continue
            if not self.says_the_vectors_of(draft, number):
                continue
            for link in draft.below(number):
                if link.kind is LinkKind.CORRECTS and self.target.matches(draft.fact(link.older).text):
                    return number
        return None


def plan_correct(draft: Draft, correction: Correction, keyed: Keyed) -> tuple[ReceiptItem, bool]:
    """Plan the corrected fact; return its receipt and whether it was created now."""
    kept = keyed.find(draft)
    if kept is not None:
        return kept[0], False
    old = correction.find_corrected(draft)
    if old is not None:
        return _already(draft, old, keyed), False
    old = correction.target.find(draft)
    content = _inherited(draft, old, correction)
    if _same_telling(content, draft, old) and correction.says_the_vectors_of(draft, old):
        return _already(draft, old, keyed), False
    number = draft.find_number(content.id)
    if number is not None:
        same = _corrects(draft, number, old) and _same_payload(content, draft.fact(number))
        if not same or not correction.says_the_vectors_of(draft, number):
            raise Conflict("this id is stored with other content; choose another", kind="id", field="new_id")
        item = ReceiptItem(number, "existing", status_of(draft, number).value, (old,))
        keyed.keep(draft, (item,))
        return item, False
    refuse_blocked(draft, content.id, content.text, ("new_id", "new_text"))
    if (refusal := correction.telling.refusal) is not None:
        return ReceiptItem(NO_FACT, "refused", "", reason=refusal), False
    if correction.keeps_slots:
        _refuse_move(draft, old, content)
    item = _replace_mistake(draft, old, content, correction)
    keyed.keep(draft, (item,))
    return item, True


def _replace_mistake(draft: Draft, old: int, content: FactRecord, correction: Correction) -> ReceiptItem:
    draft.add_fact(content, correction.telling.units)
    add_vectors(draft, content.number, correction.telling.vectors.units, correction.telling.vectors.model)
    if content.subject is not None:
        draft.enter_slot(content.number)
    # A fact with an event time alone holds at every instant, so the mistake must not show before it either.
    dated = draft.fact(old).valid_from is not None
    above = []
    for copied in copied_links(old, content.number, draft, dated=dated):
        link = copied
        if link.newer == content.number and link.kind is not LinkKind.CORRECTS:
            # A correction that begins earlier than the mistake takes over from where it begins itself.
            link = replace(link, effective_at=min(effective_time(link, draft), draft.eff(content.number)))
        # Not told: what replaces the mistake under its id is another fact, which nobody has corrected.
        draft.add_link(link)
        if link.older == content.number:
            above.append(link.newer)
    for end in draft.ends(old):
        draft.add(EndRecord(content.number, end.at, end.recorded_at, end.reason))
    status = status_of(draft, content.number)
    reason = correction.telling.vectors.reason
    if status is not Status.CURRENT:
        reason = f"it corrects a version that is {status.value} now: what is current stays as it is"
    return ReceiptItem(content.number, "created", status.value, (old,), tuple(sorted(above)), reason)


def _refuse_move(draft: Draft, old: int, content: FactRecord) -> None:
    """Refuse a correction that would put the fact elsewhere among those of its subject.

    The links of the mistake stay, so a fact that leaves its place would leave a gap, or stand beside another.
    """
    known = draft.fact(old)
    remedy = "forget the mistake and remember the fact anew"
    if content.subject != known.subject:
        if draft.above(old) or draft.below(old) or (content.subject and draft.slot(content.subject)):
            raise InvalidRequest(
                f"a correction cannot move a fact into or out of a subject that has other facts: {remedy}",
                field="subject",
            )
        return
    begins = content.effective_from if content.valid_from is None else content.valid_from
    if known.subject is None or begins is None or begins == draft.eff(old):
        return
    before, after = neighbours(draft.slot(known.subject), draft.eff, (draft.eff(old), old))
    too_early = before is not None and begins <= draft.eff(before)
    too_late = after is not None and begins >= draft.eff(after)
    if too_early or too_late or (before is not None and begins > draft.eff(old)):
        raise InvalidRequest(
            "a correction of valid_from must stay after the fact before it and not begin later than the mistake, "
            f"where its subject has other facts: {remedy}",
            field="valid_from",
        )


def _already(draft: Draft, number: int, keyed: Keyed) -> ReceiptItem:
    """Answer that the fact says so already: the same correction was made before, or none is needed."""
    item = ReceiptItem(
        number,
        "existing",
        status_of(draft, number).value,
        tuple(sorted({link.older for link in draft.below(number) if link.kind is LinkKind.CORRECTS})),
    )
    keyed.keep(draft, (item,))
    return item


def _same_telling(content: FactRecord, draft: Draft, number: int) -> bool:
    """Whether the correction would change nothing of the fact as reads see it."""
    known, seen = draft.fact(number), draft.annotation(number)
    annotated = known if seen is None else seen
    metadata = _seen_metadata(known, seen)
    as_seen = msgspec.structs.replace(known, metadata=metadata)
    return payload(content, ()) == payload(as_seen, ()) and all(
        getattr(content, name) == getattr(annotated, name)
        for name in ("tags", "kind", "importance", "pinned")
    )


def _seen_metadata(told: FactRecord, seen: AnnotationRecord | None) -> bytes | None:
    """Return the metadata as reads see it; none and empty are the same."""
    metadata = seen_metadata(told, seen)
    return None if metadata == b"{}" else metadata


def _corrects(draft: Draft, newer: int, older: int) -> bool:
    return any(link.older == older and link.kind is LinkKind.CORRECTS for link in draft.below(newer))


def _same_payload(told: FactRecord, stored: FactRecord) -> bool:
    # Annotations may have been changed since, on either fact.
    return stored.version == 0 and payload(told, ()) == payload(stored, ())


def _inherited(draft: Draft, old: int, correction: Correction) -> FactRecord:
    known = draft.fact(old)
    seen = draft.annotation(old)
    content = FactRecord(
        number=draft.next_number,
        id="",
        text=correction.text,
        ingest_time=draft.now,
        subject=known.subject,
        valid_from=known.valid_from,
        valid_to=known.valid_to,
        event_time=known.event_time,
        metadata=_seen_metadata(known, seen),
        entities=known.entities,
        tags=known.tags if seen is None else seen.tags,
        kind=known.kind if seen is None else seen.kind,
        importance=known.importance if seen is None else seen.importance,
        pinned=known.pinned if seen is None else seen.pinned,
        effective_from=None if "valid_from" in correction.given else draft.eff(old),
    )
    content = msgspec.structs.replace(content, **correction.given)
    if content.valid_from is not None and content.valid_to is not None:
        checks.refuse_empty_interval(content.valid_from, content.valid_to)
    # Not the id of a remember that supersedes the same fact: that one says that the world changed.
    id_ = correction.telling.content.id or derived_id(
        payload(content, ()) + b"\0corrects " + known.id.encode()
    )
    if id_ == known.id:
        raise InvalidRequest(
            "a correction needs an id of its own, not that of the corrected fact", field="id"
        )
    return msgspec.structs.replace(content, id=id_)


def plan_end(draft: Draft, id_: str, at: int | None, reason: str | None, keyed: Keyed) -> int:
    """Close the fact's validity at `at` (default now); return its number.

    Ending again at the same instant, or now what has ended already, changes nothing.
    """
    kept = keyed.find(draft)
    if kept is not None:
        return kept[0].number
    number = find_live(draft, id_)
    if at is None:
        if draft.valid_to(number) <= draft.now:
            keyed.keep(draft, (ReceiptItem(number, "existing", ""),))
            return number
        at = draft.now
    start = draft.fact(number).valid_from
    if start is not None and at <= start:
        raise InvalidRequest(
            f"at ({to_iso(at)}) must lie after valid_from ({to_iso(start)}); to say that it was never true use retract",
            field="at",
        )
    closed = draft.valid_to(number)
    if at > closed:
        shown = "retracted" if closed == RETRACTED else f"closed at {to_iso(closed)} already"
        raise InvalidRequest(f"at ({to_iso(at)}) lies after the fact's end: it was {shown}", field="at")
    if at < closed:
        draft.add(EndRecord(number, at, draft.now, reason))
    keyed.keep(draft, (ReceiptItem(number, "existing", ""),))
    return number


def plan_retract(draft: Draft, id_: str, reason: str | None, keyed: Keyed) -> int:
    """Say that the fact was never true; return its number. Repeating it changes nothing."""
    kept = keyed.find(draft)
    if kept is not None:
        return kept[0].number
    number = find_live(draft, id_)
    if draft.valid_to(number) != RETRACTED:
        draft.add(EndRecord(number, None, draft.now, reason))
    keyed.keep(draft, (ReceiptItem(number, "existing", ""),))
    return number


def plan_annotate(draft: Draft, id_: str, changes: dict[str, Any], keyed: Keyed) -> int:
    """Change annotations (`changes` holds the checked new values); return the fact's number."""
    kept = keyed.find(draft)
    if kept is not None:
        return kept[0].number
    number = find_live(draft, id_)
    told, before = draft.fact(number), noted_of(draft, number)
    after = msgspec.structs.replace(before, **changes)
    if not _equal(before, after, told):
        draft.add(after)
    keyed.keep(draft, (ReceiptItem(number, "existing", ""),))
    return number


def _equal(before: AnnotationRecord, after: AnnotationRecord, told: FactRecord) -> bool:
    def shown(record: AnnotationRecord) -> bytes:
        metadata = told.metadata if record.metadata is None else record.metadata
        return canonical_json({} if metadata is None else decode_json(metadata))

    same = msgspec.structs.replace(before, metadata=None) == msgspec.structs.replace(after, metadata=None)
    return same and shown(before) == shown(after)


CHECKED: dict[str, Callable[[Any], Any]] = {
    "tags": lambda value: checks.checked_names(value, "tags", limits.TAGS_MAX),
    "kind": checks.checked_kind,
    "importance": checks.checked_importance,
    "pinned": lambda value: checks.checked_flag(value, "pinned"),
    "metadata": lambda value: checks.json_bytes(checks.checked_metadata(value) or {}),
}


def checked_annotations(**told: Any) -> dict[str, Any]:
    """Return the given annotations checked; those left UNSET are absent. None clears kind and importance."""
    changes = {name: CHECKED[name](value) for name, value in told.items() if value is not UNSET}
    if not changes:
        raise InvalidRequest("annotate needs at least one of tags, kind, importance, pinned, metadata")
    return changes
