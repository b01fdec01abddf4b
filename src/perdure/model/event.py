"""An event of the audit: that something happened, when, by whom; never what anything says."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType

import msgspec

EVENT_TYPES: Mapping[str, str] = MappingProxyType(
    {
        "created": "a fact or a version of a document was stored; `document` is the version of one.",
        "superseded": "another fact took the place of this one; `by` is the digest of its id.",
        "corrected": "likewise, because this one was told wrong.",
        "annotated": "what is noted of a fact was changed; `merged` counts the tellings that were merged into it so far.",
        "ended": "the validity of a fact was closed.",
        "retracted": "a fact was said never to have been true.",
        "used": "a fact, or a revision of a node, was counted as used.",
        "admitted": "a revision of a node was counted as admitted to a context.",
        "hidden": "a fact was forgotten softly.",
        "restored": "a fact that was forgotten softly was brought back.",
        "forgotten": "a fact, document, node or turn was erased; `cause` is why, where it was not asked for by name.",
        "expired": "likewise, because the forgetting policy said so.",
        "blocked": "ids and texts were blocked; `count` says how many.",
        "unblocked": "blocks were lifted; `count` says how many.",
        "revised": "a node changed; `change` is how, `status` what it is then, `revision` which of its states that is.",
        "conversed": "a version of a session was remembered; `turns` says how many turns it was told with.",
        "erased": "a whole space was erased, its name too.",
        "configured": "the configuration that the store keeps was replaced.",
        "purged": "the store was rewritten without what was forgotten; `operation`, `records` kept, `dropped`.",
        "refused": "something was not taken in, or not allowed; `count` says how many tellings.",
        "recalled": "facts were asked for; `query` is a keyed digest, `hits` counts them, `trace` where it was a trace.",
        "exported": "spaces were written into a file, or to whoever read the lines.",
        "imported": "an export was read into the store; `created`, `existing` and `skipped` count its lines.",
        "key_created": "a key to the store was made; `key` is its keyed digest.",
        "key_revoked": "a key was revoked.",
        "key_denied": "a key was refused what it asked for.",
        "trimmed": "the events before this moment were let go; `count` says how many.",
        "gap": "the log moved on without this audit; `records` counts what cannot be told of, or `purges` how often.",
    }
)
"""Every type, and what it says; `details` have the fields that are named. Ids stand in them as keyed digests."""


class AuditEvent(msgspec.Struct, frozen=True):
    """One event. Sequences are 1, 2, 3 … without gaps, in the order in which the log has what happened.

    `fact_id` is the id of the fact concerned, while that fact exists; its keyed digest, hex, is `details["fact"]`,
    then and later. Likewise `node_id` and `details["node"]` of a node, candidates too. Details hold counts, digests and names out of this library, never text and never an id.
    """

    sequence: int
    type: str
    fact_id: str | None
    details: dict[str, int | str | bool]
    at: datetime
    actor: str | None
    space: str | None  # the keyed digest of the space's name, hex; None for the store as a whole
    node_id: str | None = None


class EventsHead(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the chain of events stands. Kept elsewhere, it tells later whether the chain was rewritten.

    `chain` is the digest, hex, of all events up to `sequence`; `seal` is a keyed digest of the rest, which only who
    has the store's secret can make.
    """

    store: str
    sequence: int
    chain: str
    seal: str


class EventReference(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An event that an erasure left, and the digest of the chain up to it, hex."""

    sequence: int
    chain: str
