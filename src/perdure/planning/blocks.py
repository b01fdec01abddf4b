"""Blocks: keyed digests of forgotten ids and texts, so that the same content is not stored again."""

from __future__ import annotations

from perdure.base.ids import keyed_hash
from perdure.base.text import folded
from perdure.errors import Blocked
from perdure.space.draft import Draft
from perdure.space.state import SpaceState


def id_block(state: SpaceState, id_: str) -> bytes:
    """Return the digest under which an id is blocked. No text can be read from it."""
    return _digests(state, b"block id", id_)[0]


def text_block(state: SpaceState, text: str) -> bytes:
    """Return the digest of a text as people would call it the same: NFKC, caseless, single spaces."""
    return _digests(state, b"block text", folded(text))[0]


def id_blocks(state: SpaceState, id_: str) -> list[bytes]:
    """Return every digest under which an id may be blocked: also with the keys of blocks from elsewhere."""
    return _digests(state, b"block id", id_)


def text_blocks(state: SpaceState, text: str) -> list[bytes]:
    """As `id_blocks`, of a text."""
    return _digests(state, b"block text", folded(text))


def refuse_blocked(draft: Draft, id_: str, text: str) -> None:
    """Raise Blocked when the id or the text was forgotten with block=True."""
    if not draft.state.blocked:
        return
    for digests, what in ((id_blocks(draft.state, id_), "id"), (text_blocks(draft.state, text), "text")):
        if any(map(draft.is_blocked, digests)):
            raise Blocked(
                f"the {what} was forgotten with block=True and is not stored again; unblock it first",
                field=what,
                reason="tombstone",
            )


def _digests(state: SpaceState, domain: bytes, value: str) -> list[bytes]:
    # The first key is the space's own, so that equal content in two spaces leaves unequal digests.
    keys = (state.settings.block_key.ljust(16, b"\0"), *sorted(state.block_keys))
    return [keyed_hash(key, domain, value.encode()) for key in keys]
