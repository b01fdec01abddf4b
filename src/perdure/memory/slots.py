"""The slot of an arrival as a supersession policy sees it."""

from __future__ import annotations

from collections.abc import Sequence

from perdure.base.canonical import decode_json
from perdure.log.records import FactRecord
from perdure.policies.supersession import Arrival, ExplicitOnly, SupersessionPolicy, checked_decision
from perdure.space.draft import Draft
from perdure.temporal.links import Link, LinkKind, closes_cycle
from perdure.temporal.slots import neighbours, overtaken, overtaking


class DraftFact:
    """A stored fact of the slot, read on first use."""

    def __init__(self, draft: Draft, number: int) -> None:
        self.draft, self.number = draft, number

    @property
    def id(self) -> str:
        return self.draft.fact(self.number).id

    @property
    def effective_at(self) -> int:
        return self.draft.eff(self.number)

    @property
    def valid_from(self) -> int | None:
        return self.draft.fact(self.number).valid_from

    @property
    def valid_to(self) -> int | None:
        return self.draft.fact(self.number).valid_to

    @property
    def event_time(self) -> int | None:
        return self.draft.fact(self.number).event_time

    @property
    def ingest_time(self) -> int:
        return self.draft.ingest(self.number)


class DraftSlot:
    """The facts of the arrival's subject, the arrival left out."""

    def __init__(self, draft: Draft, arrival: FactRecord, order: Sequence[int]) -> None:
        self._draft = draft
        self._place = (draft.eff(arrival.number), arrival.number)
        self._order = order

    def _facts(self, numbers: Sequence[int]) -> tuple[DraftFact, ...]:
        return tuple(DraftFact(self._draft, number) for number in numbers)

    def predecessor(self) -> DraftFact | None:
        before, _ = neighbours(self._order, self._draft.eff, self._place)
        return None if before is None else DraftFact(self._draft, before)

    def successor(self) -> DraftFact | None:
        _, after = neighbours(self._order, self._draft.eff, self._place)
        return None if after is None else DraftFact(self._draft, after)

    def overtaken(self) -> Sequence[DraftFact]:
        return self._facts(overtaken(self._order, self._place, self._draft))

    def overtaking(self) -> Sequence[DraftFact]:
        return self._facts(overtaking(self._order, self._place, self._draft))

    def facts(self) -> Sequence[DraftFact]:
        return self._facts([number for number in self._order if number != self._place[1]])

    def holds(self, fact: object) -> bool:
        return isinstance(fact, DraftFact) and fact.draft is self._draft


def policy_links(draft: Draft, fact: FactRecord, policy: SupersessionPolicy) -> list[Link]:
    """Return the links that the policy wants for a fact with a subject that is in the draft already.

    Links that would close a cycle, and links that are there already, are left out.
    """
    assert fact.subject is not None
    if isinstance(policy, ExplicitOnly):
        return []  # it decides so whatever it is shown
    slot = DraftSlot(draft, fact, draft.slot(fact.subject))
    arrival = Arrival(
        id=fact.id,
        subject=fact.subject,
        text=fact.text,
        effective_at=draft.eff(fact.number),
        valid_from=fact.valid_from,
        valid_to=fact.valid_to,
        event_time=fact.event_time,
        ingest_time=fact.ingest_time,
        number=fact.number,
        entities=tuple(sorted({*fact.entities, *fact.extracted})),
        metadata=_metadata(fact),
    )
    decision = checked_decision(policy.decide(arrival, slot), slot)
    pairs = [(fact.number, other.number) for other in decision.supersedes]
    pairs += [(other.number, fact.number) for other in decision.superseded_by]
    links: list[Link] = []
    for newer, older in pairs:
        if any(link.newer == newer for link in draft.above(older)) or closes_cycle(newer, older, draft):
            continue
        known_from = max(draft.ingest(newer), draft.ingest(older))
        link = Link(newer, older, LinkKind.SUPERSEDES, None, known_from)
        draft.add_link(link)
        links.append(link)
    return links


def _metadata(fact: FactRecord) -> dict[str, object]:
    return {} if fact.metadata is None else dict(decode_json(fact.metadata))
