"""Blocks: keyed digests of forgotten ids and texts, so that the same content is not stored again."""

from __future__ import annotations

from perdure.base.ids import keyed_hash
from perdure.base.text import folded
from perdure.errors import Blocked
from perdure.space.draft import Draft
from perdure.space.state import SpaceState


def id_block(state: SpaceState, id_: str) -> bytes:
    """Return the digest under which an id is blocked. No text can be read from it."""
    return _digest(state, b"block id", id_)


def text_block(state: SpaceState, text: str) -> bytes:
    """Return the digest of a text as people would call it the same: NFKC, caseless, single spaces."""
    return _digest(state, b"block text", folded(text))


def refuse_blocked(draft: Draft, id_: str, text: str) -> None:
    """Raise Blocked when the id or the text was forgotten with block=True."""
    if not draft.state.blocked:
        return
    for digest, what in ((id_block(draft.state, id_), "id"), (text_block(draft.state, text), "text")):
        if draft.is_blocked(digest):
            raise Blocked(
                f"the {what} was forgotten with block=True and is not stored again; unblock it first",
                field=what,
                reason="tombstone",
            )


def _digest(state: SpaceState, domain: bytes, value: str) -> bytes:
    # The key is the space's own, so that equal content in two spaces leaves unequal digests.
    return keyed_hash(state.settings.block_key.ljust(16, b"\0"), domain, value.encode())
