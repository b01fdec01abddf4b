"""Taking facts out of a plan: re-linking, erasing, losing receipts. Used by forget and by replace."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from perdure.model.namespace import Namespace
from perdure.planning.certificates import Removed
from perdure.planning.receipts import lose_receipts
from perdure.space.draft import Deferred, Draft
from perdure.temporal.links import relinks


def remove(draft: Draft, numbers: Iterable[int], *, replaced: bool = False) -> None:
    """Remove facts that the log holds, so that no older version comes back while a newer one stays.

    Links over the removed facts are bridged first; the records, the bytes and the links go together.
    """
    gone = set(numbers)
    # What is erased with a fact is what the log holds: records that are still to be written would stay.
    if any(number >= draft.state.next_number for number in gone) or draft.is_spoken_of(gone):
        raise Deferred
    bridges = relinks(gone, draft)
    state = draft.state
    seqs = sorted(
        {state.seqs[number] for number in gone}
        | {seq for number in gone for seq in state.owned.get(number, ())}
    )
    draft.remove(sorted(gone), seqs, replaced=replaced)
    lose_receipts(draft, gone)
    for link in bridges:
        draft.add_link(link)


def remove_certified(draft: Draft, numbers: Sequence[int]) -> Removed:
    """Remove facts as `remove` does; return what goes, for a certificate."""
    removed, before = Removed(draft.secret), len(draft.erased)
    settings = draft.state.settings
    namespace = Namespace(settings.principal, settings.scope)
    for number in numbers:
        removed.add(namespace, draft.fact(number))
    if numbers:
        remove(draft, numbers)
    removed.records = len(draft.erased) - before
    return removed
