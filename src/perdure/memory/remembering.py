"""Planning a remember: receipt, identity, blocks, admission, merging, links, policy, in that order.

All members of a batch share one ingest time and one transaction. Members are stored first, then told
links are drawn (a member may name a later one), then the policy runs in list order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from perdure.base.instants import to_datetime
from perdure.base.members import place_in
from perdure.errors import Blocked, Conflict, InvalidRequest
from perdure.log.records import NO_FACT, ReceiptItem
from perdure.memory.merging import find_twin, merge_telling
from perdure.memory.slots import policy_links
from perdure.memory.standing import status_of
from perdure.memory.telling import Telling, identify, retelling_id, same_telling
from perdure.model.replies import Outcome, Remembered
from perdure.model.status import Status
from perdure.planning.blocks import refuse_blocked
from perdure.planning.governed import refuse_governed
from perdure.planning.receipts import Keyed
from perdure.planning.removing import remove
from perdure.planning.vectors import add_vectors, same_embedding
from perdure.policies.supersession import SupersessionPolicy
from perdure.space.draft import Draft
from perdure.temporal.links import Link, LinkKind, closes_cycle


@dataclass(frozen=True, slots=True)
class RememberRules:
    """What the configuration says about remembering."""

    policy: SupersessionPolicy
    replace: bool  # an id held by another payload: replace it (else refuse)
    merge: bool = False  # a text that a current fact says already: merge it into that


@dataclass(slots=True)
class _Member:
    """One telling of the batch on its way to a reply."""

    index: int
    telling: Telling
    number: int = NO_FACT
    outcome: Outcome = "created"
    supersedes: set[int] = field(default_factory=set)
    superseded_by: set[int] = field(default_factory=set)
    reason: str | None = None
    followers: list[int] = field(default_factory=list)  # told superseders of a replaced fact

    @property
    def is_new(self) -> bool:
        return self.outcome in ("created", "replaced")


def plan_remember(
    draft: Draft, tellings: Sequence[Telling], rules: RememberRules, keyed: Keyed
) -> list[Remembered]:
    """Plan a batch; return one reply a telling, in order. Raises without leaving a trace."""
    kept = keyed.find(draft)
    if kept is not None:
        return [reply_of(draft, item) for item in kept]
    members = [_Member(index, telling) for index, telling in enumerate(tellings)]
    batch: dict[str, _Member] = {}
    with _AtIndex(keyed.operation == "remember_many") as at:
        for at.index, member in enumerate(members):
            _store(draft, member, batch, rules)
        refused = {identify(member.telling) for member in members if member.outcome == "refused"}
        for at.index, member in enumerate(members):
            if member.telling.supersedes or member.followers:
                _draw_told_links(draft, member, refused)
    for member in members:
        if member.is_new and (fact := draft.fact(member.number)).subject is not None:
            draft.enter_slot(member.number)
            _note(member, policy_links(draft, fact, rules.policy))
    items = tuple(_item(draft, member) for member in members)
    if any(item.number != NO_FACT for item in items):
        keyed.keep(draft, items)  # of what was refused as a whole nothing is kept, a receipt neither
    return [reply_of(draft, item) for item in items]


class _AtIndex:
    """Adds the index of the offending member to an error of a batch. The loop inside keeps `index`."""

    def __init__(self, is_batch: bool) -> None:
        self.index, self._is_batch = 0, is_batch

    def __enter__(self) -> _AtIndex:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._is_batch and isinstance(error, InvalidRequest | Conflict | Blocked):
            place_in(error, f"facts[{self.index}]", index=self.index)


def _store(draft: Draft, member: _Member, batch: dict[str, _Member], rules: RememberRules) -> None:
    telling = member.telling
    id_ = identify(telling)
    number = draft.find_number(id_)
    retelling = 0
    if telling.reassert and number is not None:
        retelling = _free_retelling(draft, telling)
        id_, number = retelling_id(telling, retelling), None
    twin = find_twin(draft, telling) if rules.merge else None
    if number is not None:
        if _is_retold(draft, telling, number, twin):
            _recognise(draft, member, number)
            batch[id_] = member
            return
        if twin is None and (id_ in batch or not rules.replace):
            raise Conflict(
                "this id is stored with other content"
                + (
                    " (in this batch)"
                    if id_ in batch
                    else "; correct keeps both versions, onIdConflict replace discards the old one"
                ),
                kind="id",
                field="id",
            )
    refuse_blocked(draft, id_, telling.content.text)
    if telling.refusal is not None:
        member.outcome, member.reason = "refused", telling.refusal
        return
    if twin is not None:
        member.number, member.outcome = twin, "merged"
        merge_telling(draft, twin, telling)
        return
    if number is not None:
        _replace(draft, member, number)
    member.number = draft.next_number
    draft.add_fact(
        msgspec.structs.replace(
            telling.content, number=member.number, id=id_, ingest_time=draft.now, retelling=retelling
        ),
        telling.units,
    )
    add_vectors(draft, member.number, telling.vectors.units, telling.vectors.model)
    member.reason = telling.vectors.reason
    batch[id_] = member


def _is_retold(draft: Draft, telling: Telling, number: int, twin: int | None) -> bool:
    """Whether the telling is that of the stored fact; one that holds no more gives way to one that says the same."""
    if twin not in (None, number) and status_of(draft, number) is not Status.CURRENT:
        return False
    same = same_telling(telling.content, draft.fact(number))
    return same and same_embedding(draft, number, telling.vectors.told)


def _free_retelling(draft: Draft, telling: Telling) -> int:
    """Return a retelling that no fact has: one more than another that has one, found by doubling and halving."""

    def is_told(retelling: int) -> bool:
        return draft.find_number(retelling_id(telling, retelling)) is not None

    told, free = 0, 1
    while is_told(free):
        told, free = free, free * 2
    while free - told > 1:
        middle = (told + free) // 2
        told, free = (middle, free) if is_told(middle) else (told, middle)
    return free


def _recognise(draft: Draft, member: _Member, number: int) -> None:
    member.number, member.outcome = number, "existing"
    linked = {link.older for link in draft.below(number)}
    for told in member.telling.supersedes:
        other = draft.find_number(told)
        if other is not None and other not in linked:
            raise Conflict(
                "this fact is stored without superseding one of the ids told now; tell the change as a new fact",
                kind="id",
                field="supersedes",
            )
    status = status_of(draft, number)
    if status is Status.HIDDEN:
        member.reason = "the fact was hidden by a soft forget; restore brings it back"
    elif status is not Status.CURRENT:
        member.reason = (
            f"this was told before and is {status.value} now; to say it anew give valid_from, or reassert it"
        )


def _replace(draft: Draft, member: _Member, number: int) -> None:
    told = draft.state.links.told
    followers = [link.newer for link in draft.above(number) if (link.newer, number) in told]
    remove(draft, [number], replaced=True)
    member.followers = followers
    member.outcome = "replaced"


def _draw_told_links(draft: Draft, member: _Member, refused: set[str]) -> None:
    if not member.is_new:
        return
    for told in member.telling.supersedes:
        older = draft.find_number(told)
        if older is None and told in refused:
            member.reason = (
                "supersedes names a fact of this batch that was refused, so there is nothing to supersede"
            )
            continue
        if older is None or not draft.is_live(older) or draft.fact(older).version:
            raise InvalidRequest(
                "supersedes names an id that is no fact of this space (or was hidden or forgotten); remember "
                "it first, or leave it out",
                field="supersedes",
            )
        refuse_governed(draft, (older,), field="supersedes")
        _draw(draft, member.number, older)
        member.supersedes.add(older)
    for newer in member.followers:
        if draft.exists(newer):
            _draw(draft, newer, member.number)
            member.superseded_by.add(newer)


def _draw(draft: Draft, newer: int, older: int) -> None:
    if closes_cycle(newer, older, draft):
        raise InvalidRequest(
            "supersedes would make a fact supersede itself through others", field="supersedes"
        )
    known_from = max(draft.ingest(newer), draft.ingest(older))
    draft.add_link(Link(newer, older, LinkKind.SUPERSEDES, None, known_from), told=True)


def _note(member: _Member, links: Sequence[Link]) -> None:
    for link in links:
        if link.newer == member.number:
            member.supersedes.add(link.older)
        else:
            member.superseded_by.add(link.newer)


def _item(draft: Draft, member: _Member) -> ReceiptItem:
    if member.number == NO_FACT:
        return ReceiptItem(NO_FACT, member.outcome, "", reason=member.reason)
    return ReceiptItem(
        member.number,
        member.outcome,
        status_of(draft, member.number).value,
        tuple(sorted(member.supersedes)) if member.supersedes else (),
        tuple(sorted(member.superseded_by)) if member.superseded_by else (),
        member.reason,
    )


def reply_of(draft: Draft, item: ReceiptItem) -> Remembered:
    """Return the reply that a receipt item stands for."""
    if item.number == NO_FACT:
        return Remembered(None, "refused", False, None, item.reason, None, (), ())
    fact = draft.fact(item.number)
    return Remembered(
        fact.id,
        item.outcome,  # type: ignore[arg-type]  # what _item wrote
        item.outcome in ("created", "replaced"),
        Status(item.status),
        item.reason,
        None if fact.version else to_datetime(fact.ingest_time),
        _ids(draft, item.supersedes),
        _ids(draft, item.superseded_by),
    )


def _ids(draft: Draft, numbers: Sequence[int]) -> tuple[str, ...]:
    if not numbers:
        return ()
    # A kept answer may name facts that were forgotten since, and hidden ones show in no answer.
    return tuple(sorted(draft.fact(number).id for number in numbers if draft.is_live(number)))
