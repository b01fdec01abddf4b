"""What may not be done to a fact that a node or a turn is seen as: its owner alone changes it."""

from __future__ import annotations

from collections.abc import Iterable

from perdure.errors import Conflict
from perdure.space.draft import Draft
from perdure.space.nodes import NodeHead


def refuse_ungoverned(governed: bool) -> None:
    """Raise Conflict (kind "governed") where the space takes in nothing but what its repository admits."""
    if governed:
        raise Conflict(
            "this memory is governed: propose a node with a change set, and have it activated",
            kind="governed",
        )


def refuse_governed(draft: Draft, numbers: Iterable[int], *, field: str = "id") -> None:
    """Raise Conflict (kind "governed") where one of these facts is a node's or a turn's, and name the owner."""
    state = draft.state
    for number in numbers:
        if number not in state.governed:
            continue
        if (node := state.nodes.fact_owner.get(number)) is not None:
            raise Conflict(
                "this fact is what a node of the repository is seen as; change the node with a change set",
                kind="governed",
                field=field,
                node=state.nodes.heads[node].id,
            )
        raise Conflict(
            "this fact is a part of a conversation, which does not change; tell another version of the session",
            kind="governed",
            field=field,
        )


def refuse_nodes(heads: Iterable[NodeHead], *, field: str) -> None:
    """Raise Conflict (kind "governed") where there is a node: what was never served cannot be hidden."""
    for head in heads:
        raise Conflict(
            "a node of the repository is meant, which is not hidden; change the node with a change set",
            kind="governed",
            field=field,
            node=head.id,
        )
