"""Blocks: keyed digests of forgotten ids and texts, so that the same content is not stored again."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from perdure.base.ids import keyed_hash
from perdure.base.text import folded
from perdure.errors import Blocked
from perdure.space.draft import Draft
from perdure.space.state import SpaceState

ID = b"block id"  # domains of the digests
TEXT = b"block text"
FIELDS = ("id", "text")


def id_block(state: SpaceState, id_: str) -> bytes:
    """Return the digest under which an id is blocked. No text can be read from it."""
    return _digests(state, ID, id_)[0]


def text_block(state: SpaceState, text: str) -> bytes:
    """Return the digest of a text as people would call it the same: NFKC, caseless, single spaces."""
    return _digests(state, TEXT, folded(text))[0]


def id_blocks(state: SpaceState, id_: str) -> list[bytes]:
    """Return every digest under which an id may be blocked: also with the keys of blocks from elsewhere."""
    return _digests(state, ID, id_)


def text_blocks(state: SpaceState, text: str) -> list[bytes]:
    """As `id_blocks`, of a text."""
    return _digests(state, TEXT, folded(text))


def refuse_blocked(draft: Draft, id_: str, text: str, fields: tuple[str, str] = FIELDS) -> None:
    """Raise Blocked when the id or the text was forgotten with block=True; `fields` are what they are called."""
    if draft.state.blocked:
        refuse_among(_keys(draft.state), draft.is_blocked, id_, text, fields)


def refuse_among(
    keys: Iterable[bytes],
    is_blocked: Callable[[bytes], bool],
    id_: str,
    text: str,
    fields: tuple[str, str] = FIELDS,
) -> None:
    """Raise Blocked when the id or the text, keyed with one of the keys, is among the blocked."""
    told = list(keys)
    for domain, value, what in ((ID, id_, fields[0]), (TEXT, folded(text), fields[1])):
        if any(map(is_blocked, _keyed(told, domain, value))):
            raise Blocked(
                f"the {what} was forgotten with block=True and is not stored again; unblock it first",
                field=what,
                reason="tombstone",
            )


def _digests(state: SpaceState, domain: bytes, value: str) -> list[bytes]:
    return _keyed(_keys(state), domain, value)


def _keyed(keys: Iterable[bytes], domain: bytes, value: str) -> list[bytes]:
    return [keyed_hash(key, domain, value.encode()) for key in keys]


def _keys(state: SpaceState) -> list[bytes]:
    # The first key is the space's own, so that equal content in two spaces leaves unequal digests.
    return [state.settings.block_key.ljust(16, b"\0"), *sorted(state.block_keys)]
