"""Planning a forget, soft or physical, and its undoing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from perdure.errors import InvalidRequest
from perdure.log.protocol import Log
from perdure.log.records import (
    NO_FACT,
    BlockRecord,
    HideRecord,
    NodeRecord,
    ReceiptItem,
    RestoreRecord,
    TurnRecord,
    UnblockRecord,
)
from perdure.memory.scopes import Scope, nodes_of
from perdure.memory.slots import policy_links
from perdure.model.conversation_forms import turn_uri
from perdure.model.node_forms import fact_id
from perdure.model.replies import Forgotten
from perdure.planning.blocks import id_block, id_blocks, text_block, text_blocks
from perdure.planning.certificates import Removed, conclude
from perdure.planning.checks import checked_flag
from perdure.planning.governed import refuse_governed, refuse_nodes
from perdure.planning.receipts import Keyed
from perdure.planning.removing import remove_certified
from perdure.policies.supersession import SupersessionPolicy
from perdure.space.draft import Draft
from perdure.space.governed import Whole, originals_of, whole_of
from perdure.space.nodes import NodeHead
from perdure.temporal.links import component, relinks


@dataclass(frozen=True, slots=True)
class ForgetRules:
    """How to forget what the scope finds."""

    include_chain: bool
    dry_run: bool
    soft: bool
    block: bool
    frontier_max: int
    purge: bool = False
    include_derived: bool = False
    cause: str = ""  # as the audit has it, where nobody named the facts


_FLAGS = ("include_chain", "include_derived", "dry_run", "purge", "soft", "block")


def forget_rules(flags: Sequence[bool | None], frontier_max: int) -> ForgetRules:
    """Return how to forget, from the flags of a call: include_chain, include_derived, dry_run, purge, soft, block.

    Raises InvalidRequest where one is no flag, or two exclude each other.
    """
    chain, derived, dry_run, purge, soft, block = (
        checked_flag(flag, name) for flag, name in zip(flags, _FLAGS, strict=True)
    )
    if soft and purge:
        raise InvalidRequest("soft hides and purge leaves nothing: give one of the two", field="purge")
    return ForgetRules(chain, dry_run, soft, block, frontier_max, purge, derived)


class Planned(NamedTuple):
    """What a forget would do: the ids that go and those that were made from them and stay, both sorted, what is
    erased, None where nothing is, and whether this is the first answer to its key."""

    ids: tuple[str, ...]
    derived: tuple[str, ...]
    removed: Removed | None
    is_first: bool
    at: int


def plan_forget(draft: Draft, scope: Scope, rules: ForgetRules, keyed: Keyed) -> Planned:
    """Plan the forget.

    A dry run plans nothing. Removal, re-links, lost receipts and blocks are one transaction. The answer to
    a replayed key names the facts that were hidden; of those that were erased no id is kept.

    Raises as `selected`; so does a soft forget of a scope that means a node which was never served.
    """
    kept = keyed.find(draft)
    if kept is not None:
        return _planned(draft, [item.number for item in kept], rules, is_first=False)
    found = selected(draft, scope, rules)
    nodes = nodes_of(scope, draft)
    if rules.soft:
        refuse_nodes(nodes, field="soft")
        found = [number for number in found if draft.is_live(number)]
    planned = _planned(draft, found, rules, is_first=True)
    planned = planned._replace(ids=tuple(sorted((*planned.ids, *_unseen(nodes)))))
    if rules.dry_run:
        return planned
    if rules.block:
        block_content(draft, found, [head.number for head in nodes])
    if found and rules.soft:
        bridges = relinks(set(found), draft)
        draft.add(HideRecord(tuple(found), draft.now))
        for link in bridges:
            draft.add_link(link)
    keyed.keep(draft, _items(found) if rules.soft else ())
    if rules.soft:
        return planned
    numbers = [head.number for head in nodes]
    return planned._replace(removed=remove_certified(draft, found, nodes=numbers, cause=rules.cause))


def _planned(draft: Draft, found: Sequence[int], rules: ForgetRules, *, is_first: bool) -> Planned:
    staying = draft.state.made_of(found).difference(found)
    if rules.soft:
        staying = {number for number in staying if draft.is_live(number)}
    return Planned(_ids(draft, found), _ids(draft, staying), None, is_first, draft.now)


def receipt_of(log: Log, planned: Planned, rules: ForgetRules) -> Forgotten:
    """Finish a forget whose plan is durable, as far as readers let us, and return what it did."""
    ids, derived = planned.ids, planned.derived
    if rules.dry_run or rules.soft:
        return Forgotten(ids, derived, dry_run=rules.dry_run, purged=False, pending=False)
    removed = Removed(log.secret) if planned.removed is None else planned.removed
    pending, purged, certificate = conclude(log, "forget", removed, planned.at, purge=rules.purge)
    known = None if planned.removed is None else certificate
    return Forgotten(ids, derived, False, purged is not None, pending, known)


def _ids(draft: Draft, numbers: Iterable[int]) -> tuple[str, ...]:
    return tuple(sorted(draft.fact(number).id for number in numbers))


def _unseen(nodes: Iterable[NodeHead]) -> list[str]:
    """Return the ids of facts that nodes which were never served would be seen as: an id that no fact has."""
    never = (head for head in nodes if all(fact == NO_FACT for fact in head.facts))
    return [fact_id(head.id, head.revision) for head in never]


def _items(numbers: Sequence[int]) -> tuple[ReceiptItem, ...]:
    return tuple(ReceiptItem(number, "existing", "") for number in numbers)


def selected(draft: Draft, scope: Scope, rules: ForgetRules) -> list[int]:
    """Return the numbers that the scope names, with their chains and what was made from them if asked, ascending.

    Where both are asked for, each is followed from what the other finds. Of a node or a turn all facts are named.

    Raises Conflict (kind "governed") for a soft forget of a fact that a node or a turn is seen as.
    """
    found = set(scope(draft))
    before = -1
    while before < len(found):
        before = len(found)
        if rules.include_derived:
            found |= draft.state.made_of(found)
        if rules.include_chain:
            found |= _chains(draft, found, rules.frontier_max)
        if not rules.soft:
            found |= whole_of(draft.state, found).facts
    if rules.soft:
        refuse_governed(draft, sorted(found), field="soft")
    return sorted(found)


def _chains(draft: Draft, numbers: Iterable[int], frontier_max: int) -> set[int]:
    chains: set[int] = set()
    for number in sorted(numbers):
        if number not in chains:
            chains |= component(number, draft, frontier_limit=frontier_max)
    return chains


def block_content(draft: Draft, numbers: Sequence[int], nodes: Sequence[int] = ()) -> None:
    """Block the ids and texts of facts, of all revisions of nodes and of whole turns, served or not."""
    state, whole = draft.state, whole_of(draft.state, numbers, nodes)
    facts = ((fact.id, fact.text) for fact in map(draft.fact, sorted(whole.facts)))
    told = [*facts, *_originals(draft, whole)]
    digests = {digest for id_, text in told for digest in (id_block(state, id_), text_block(state, text))}
    fresh = sorted(digest for digest in digests if not draft.is_blocked(digest))
    if fresh:
        draft.add(BlockRecord(tuple(fresh), draft.now))


def _originals(draft: Draft, whole: Whole) -> Iterator[tuple[str, str]]:
    """Yield what nodes and turns say, under the ids by which the same would be refused when it is told again."""
    heads = draft.state.conversations.heads
    for record in draft.records(originals_of(draft.state, whole)):
        if isinstance(record, NodeRecord):
            yield fact_id(record.id, record.revision), record.content
        elif isinstance(record, TurnRecord):
            version = heads[record.conversation]
            yield turn_uri(version.session, version.version, record.source_id), record.text


def plan_restore(
    draft: Draft, ids: Sequence[str], policy: SupersessionPolicy, keyed: Keyed
) -> tuple[str, ...]:
    """Plan the return of hidden facts; return the ids that came back, sorted. Others are ignored.

    The subject policy runs for each as for an arrival with its old number, in that order; links that
    were bridged while it was hidden stay.
    """
    kept = keyed.find(draft)
    if kept is not None:
        return _ids(draft, [item.number for item in kept])
    numbers = sorted(
        {n for id_ in ids if (n := draft.find_number(id_)) is not None and n in draft.state.hidden}
    )
    if numbers:
        draft.add(RestoreRecord(tuple(numbers), draft.now))
        for number in numbers:
            draft.restore(number)
            fact = draft.fact(number)
            if fact.subject is not None:
                draft.enter_slot(number)
                policy_links(draft, fact, policy)
    keyed.keep(draft, _items(numbers))
    return _ids(draft, numbers)


def plan_unblock(draft: Draft, ids: Sequence[str], texts: Sequence[str], keyed: Keyed) -> int:
    """Plan the lifting of blocks on these ids and texts; return how many digests were blocked."""
    if keyed.find(draft) is not None:
        return keyed.count
    state = draft.state
    digests = {digest for id_ in ids for digest in id_blocks(state, id_)}
    digests |= {digest for text in texts for digest in text_blocks(state, text)}
    known = sorted(digest for digest in digests if draft.is_blocked(digest))
    if known:
        draft.add(UnblockRecord(tuple(known), draft.now))
    keyed.keep(draft, (), count=len(known))
    return len(known)
