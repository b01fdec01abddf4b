"""Planning what counts how often a fact was used."""

from __future__ import annotations

from collections.abc import Sequence

from perdure.base.ids import keyed_hash
from perdure.log.records import UseRecord
from perdure.planning.receipts import Keyed
from perdure.space.draft import Draft
from perdure.space.idmap import use_hash


def plan_use(draft: Draft, ids: Sequence[str], context: str | None, keyed: Keyed) -> int:
    """Count a use of each visible fact once, and once only in a context; return how many were counted.

    Other ids are ignored. The plan must lie over the state itself. Of the context a keyed digest is kept.
    """
    if keyed.find(draft) is not None:
        return keyed.count
    digest = b"" if context is None else keyed_hash(draft.secret, b"context", context.encode())
    state = draft.state
    found = {draft.find_number(id_) for id_ in ids}
    live = sorted(number for number in found if number is not None and draft.is_live(number))
    numbers = [n for n in live if not digest or n not in state.used_in.find(use_hash(digest, n))]
    if numbers:
        draft.add(UseRecord(tuple(numbers), digest, draft.now))
    keyed.keep(draft, (), count=len(numbers))
    return len(numbers)
