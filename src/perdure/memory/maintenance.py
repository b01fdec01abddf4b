"""Maintenance: asks the configured policies, inside one write, what to remove and what to merge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from perdure.base.instants import find_millis
from perdure.base.text import counted
from perdure.contract import limits
from perdure.errors import InvalidRequest
from perdure.lexical.profile import Profile
from perdure.log.records import ReceiptItem
from perdure.memory.scopes import Scope
from perdure.memory.telling import Telling, identify, retelling_id, same_telling, telling_of
from perdure.model.inputs import NewFact
from perdure.model.replies import Consolidated
from perdure.planning import checks
from perdure.planning.blocks import refuse_blocked
from perdure.planning.receipts import Keyed
from perdure.planning.removing import remove
from perdure.policies.consolidation import Consolidation, ConsolidationPolicy, NoConsolidation
from perdure.policies.extraction import EntityExtractor
from perdure.policies.forgetting import (
    ExpiredFor,
    FactSummary,
    ForgettingPolicy,
    KeepAll,
    MaxFacts,
    SupersededFor,
    Superseder,
    reads_content,
)
from perdure.search.hydration import metadata_of, source_of
from perdure.search.standing import standing
from perdure.space.draft import Draft
from perdure.space.state import NO_TIME, SpaceState
from perdure.temporal.columns import BEGINNING, FOREVER
from perdure.temporal.links import Link, LinkKind, closes_cycle, effective_time

ITSELF = FOREVER  # in place of an instant: from where the superseding fact takes effect

# They hand back ids without looking at them, so a fact's number stands in and no record is read.
ID_BLIND = (KeepAll, ExpiredFor, SupersededFor, MaxFacts, NoConsolidation)


def shown_facts(draft: Draft, policy: object) -> tuple[FactSummary, ...]:
    """Return what the policy sees at the plan's now: every visible fact, by number; no documents, and none of those
    that a node or a turn is seen as.

    The draft must lie over the state itself. A fact's record is read for its id, and for its content only
    where the policy reads content; the built-in policies get the number in place of the id.
    """
    state = draft.state
    numbers = [n for n in state.numbers() if n not in state.plain and n not in state.governed]
    if type(policy) in ID_BLIND:
        return tuple(_summary(draft, number, str(number)) for number in numbers)
    with_content = reads_content(policy)
    facts = []
    for number in numbers:
        record = draft.fact(number)
        content: dict[str, Any] = {}
        if with_content:
            content = {
                "text": record.text,
                "entities": state.entities_of.get(number, ()),
                "metadata": metadata_of(state, number, record),
                "source": None if record.source is None else source_of(record.source),
            }
        facts.append(_summary(draft, number, record.id, **content))
    return tuple(facts)


def _summary(draft: Draft, number: int, id_: str, **content: Any) -> FactSummary:
    state = draft.state
    times = standing(state, number, None)
    return FactSummary(
        id=id_,
        number=number,
        status=times.status(draft.now),
        ingest_time=state.ingested[number],
        subject=state.subject_of.get(number),
        tags=state.tags_of.get(number, ()),
        kind=state.kind_of.get(number),
        importance=state.importance_of.get(number),
        pinned=number in state.pinned,
        uses=state.uses.get(number, (0, 0))[0],
        event_time=_told(state.event[number], NO_TIME),
        valid_from=_told(times.valid_from, BEGINNING),
        valid_to=_told(times.valid_to, FOREVER),
        superseded_since=_told(times.superseded_from, FOREVER),
        superseders=_superseders(state, number),
        linked=bool(state.above(number) or state.below(number)),
        **content,
    )


def _superseders(state: SpaceState, number: int) -> tuple[Superseder, ...]:
    links = state.above(number)
    if not links:
        return ()
    found = [(effective_time(link, state), link.newer) for link in links if state.is_live(link.newer)]
    return tuple(Superseder(newer, since) for since, newer in sorted(found))


def _told(time: int, absent: int) -> int | None:
    return None if time == absent else time


def policy_scope(policy: ForgettingPolicy) -> Scope:
    """Return the scope of the facts that the policy names, asked in the write that removes them.

    Unknown and repeated ids are ignored, and so are those of hidden facts and documents, which the policy
    was not shown.

    Raises:
        InvalidRequest: (field "forgetting") the policy returned no list of ids.
    """

    def find(draft: Draft) -> list[int]:
        shown = shown_facts(draft, policy)
        numbers = {fact.id: fact.number for fact in shown}
        named = _checked_list(policy.select(shown, draft.now), "ids", "forgetting")
        strangers = [id_ for id_ in named if not isinstance(id_, str)]
        if strangers:
            raise InvalidRequest(
                f"the forgetting policy must return ids, got {type(strangers[0]).__name__} among them",
                field="forgetting",
            )
        return sorted({numbers[id_] for id_ in named if id_ in numbers})

    return find


def _checked_list(value: object, what: str, setting: str) -> list[Any]:
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise InvalidRequest(
            f"the {setting} policy must return a list of {what}, got {type(value).__name__}", field=setting
        )
    return list(value)


@dataclass(frozen=True, slots=True)
class ConsolidateRules:
    """Whom to ask for a plan, and how to carry it out."""

    policy: ConsolidationPolicy
    profile: Profile
    extractor: EntityExtractor | None
    dry_run: bool
    allow_destructive: bool


@dataclass(frozen=True, slots=True)
class _Member:
    """One checked member of a plan; `sources` are the numbers of visible facts, ascending."""

    telling: Telling
    sources: tuple[int, ...]
    removes: bool
    keeps_vector: bool
    end: Superseder | None  # what supersedes the new fact, and from when on


def plan_consolidate(draft: Draft, rules: ConsolidateRules, keyed: Keyed) -> tuple[Consolidated, bool]:
    """Plan the facts that the policy wants; return the answer, and whether it is the first to its key.

    New facts, their links, re-links and removals are one transaction; a dry run plans nothing. The subject
    policy is not asked. The answer to a replayed key names no removed fact, since of those no id is kept.

    Raises:
        InvalidRequest: the plan is malformed; nothing of it is planned.
        Blocked: the content of a new fact was forgotten with block=True.
    """
    kept = keyed.find(draft)
    if kept is not None:
        created = tuple(draft.fact(item.number).id for item in kept if draft.is_live(item.number))
        return Consolidated(created, (), rules.dry_run), False
    members = _checked_plan(draft, rules)
    # A dry run plans on a draft of its own, which is dropped: so both name the same ids.
    over = Draft(draft, draft.state, draft.secret, draft.now) if rules.dry_run else draft
    numbers: list[int] = []
    leaving: set[int] = set()
    for member in members:
        number, is_new = _add(over, member)
        if is_new:
            numbers.append(number)
        # Where the merged fact was hidden since, its sources are all that is left of it.
        if rules.allow_destructive and member.removes and over.is_live(number):
            leaving.update(member.sources)
    created = tuple(over.fact(number).id for number in numbers)
    forgotten = tuple(sorted(over.fact(number).id for number in leaving))
    if leaving:
        remove(over, leaving, cause="consolidated")
    if not rules.dry_run:
        keyed.keep(draft, tuple(ReceiptItem(number, "created", "") for number in numbers))
    return Consolidated(created, forgotten, rules.dry_run), True


def _checked_plan(draft: Draft, rules: ConsolidateRules) -> list[_Member]:
    shown = shown_facts(draft, rules.policy)
    numbers = {fact.id: fact.number for fact in shown}
    plan = _checked_list(rules.policy.plan(shown, draft.now), "Consolidation values", "consolidation")
    members = []
    for index, item in enumerate(plan):
        try:
            members.append(_checked_member(item, numbers, rules))
        except InvalidRequest as error:
            error.message = f"consolidation[{index}]: {error.message}"
            error.args = (error.message,)
            error.details["index"] = index
            raise
    return members


def _checked_member(item: object, numbers: Mapping[str, int], rules: ConsolidateRules) -> _Member:
    if not isinstance(item, Consolidation):
        raise InvalidRequest(
            f"a plan is made of Consolidation values, got {type(item).__name__}", field="consolidation"
        )
    sources = _checked_sources(item.sources, numbers)
    fact = NewFact(
        text=item.text,
        subject=item.subject,
        entities=item.entities,
        metadata=item.metadata,
        event_time=item.event_time,
        valid_from=item.valid_from,
        valid_to=item.valid_to,
        supersedes=sources,
        tags=item.tags,
        kind=item.kind,
        importance=item.importance,
        pinned=item.pinned,
        source=item.source,
    )
    telling = telling_of(fact, rules.profile, rules.extractor)
    removes = checks.checked_flag(item.remove_sources, "remove_sources")
    members = tuple(sorted(numbers[id_] for id_ in sources))
    keeps = checks.checked_flag(item.keeps_vector, "keeps_vector")
    return _Member(telling, members, removes, keeps, _checked_end(item, members, numbers))


def _checked_end(
    item: Consolidation, sources: tuple[int, ...], numbers: Mapping[str, int]
) -> Superseder | None:
    told = item.superseded_by
    since = find_millis(item.superseded_from, field="superseded_from")
    if told is None:
        if since is not None:
            raise InvalidRequest(
                "superseded_from goes with superseded_by: give both", field="superseded_from"
            )
        return None
    number = numbers.get(told) if isinstance(told, str) else None
    if number is None or number in sources:
        raise InvalidRequest(
            "superseded_by must be the id of a fact that the policy was shown and that is none of the sources",
            field="superseded_by",
        )
    return Superseder(number, ITSELF if since is None else since)


def _checked_sources(value: object, numbers: Mapping[str, int]) -> list[str]:
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise InvalidRequest(f"sources must be a list of ids, got {type(value).__name__}", field="sources")
    named = list(value)
    unknown = sum(not isinstance(id_, str) or id_ not in numbers for id_ in named)
    if unknown:
        raise InvalidRequest(
            f"sources names {counted(unknown, 'id')} that are of no fact the policy was shown; name facts by their id",
            field="sources",
        )
    sources = sorted(set(named))
    if not 1 <= len(sources) <= limits.SUPERSEDES_MAX:
        raise InvalidRequest(
            f"sources has {len(sources)} ids; 1 to {limits.SUPERSEDES_MAX} are allowed", field="sources"
        )
    return sources


def _add(draft: Draft, member: _Member) -> tuple[int, bool]:
    """Return the number of the fact over the member's sources, and whether it is new."""
    telling, id_, retelling = member.telling, identify(member.telling), 0
    number = draft.find_number(id_)
    while number is not None:
        if _stands_over(draft, number, member):
            return number, False
        # A source was forgotten and told again under its id since: the stored fact never took its place.
        retelling += 1
        id_ = retelling_id(telling, retelling)
        number = draft.find_number(id_)
    refuse_blocked(draft, id_, telling.content.text)
    number = draft.next_number
    record = msgspec.structs.replace(
        telling.content,
        number=number,
        id=id_,
        ingest_time=draft.now,
        retelling=retelling,
        made_from=_ancestry(draft, member.sources),
    )
    draft.add_fact(record, telling.units)
    for source in member.sources:
        # Not told: what replaces a source under its id is another fact, which nobody has merged.
        draft.add_link(Link(number, source, LinkKind.SUPERSEDES, None, draft.now))
    if member.end is not None:
        _supersede(draft, member.end, number)
    if member.keeps_vector:
        _take_vector(draft, member.sources, number)
    return number, True


def _take_vector(draft: Draft, sources: Sequence[int], number: int) -> None:
    for source in sources:
        vector = draft.vector(source, 0)
        if vector is not None:
            draft.add(msgspec.structs.replace(vector, number=number, recorded_at=draft.now))
            return


def _supersede(draft: Draft, end: Superseder, number: int) -> None:
    if closes_cycle(end.number, number, draft):
        raise InvalidRequest(
            "superseded_by would make a fact supersede itself through others", field="superseded_by"
        )
    since = None if end.since in (ITSELF, draft.eff(end.number)) else end.since
    draft.add_link(Link(end.number, number, LinkKind.SUPERSEDES, since, draft.now))


def _ancestry(draft: Draft, sources: Iterable[int]) -> tuple[int, ...]:
    """Return the sources and what they were made from, as far as it is stored, ascending.

    What lies behind a source is named too: the source may be forgotten before it, and its record says no more then.
    """
    behind = {number for source in sources for number in draft.fact(source).made_from if draft.exists(number)}
    return tuple(sorted(behind.union(sources)))


def _stands_over(draft: Draft, number: int, member: _Member) -> bool:
    if not same_telling(member.telling.content, draft.fact(number)):
        return False
    return {link.older for link in draft.below(number)}.issuperset(member.sources)
