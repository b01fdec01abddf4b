"""What an extractor reads out of turns, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from perdure.base.instants import Instant
from perdure.base.text import counted


class Quote(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Words of a turn, verbatim.

    Args:
        turn: the turn's place in the list that the extractor was given, from 0.
        text: what it says; not blank.
        start: where in the turn it begins, in code points; its first place there when None.
    """

    turn: int
    text: str
    start: int | None = None

    def __repr__(self) -> str:
        return f"<Quote of turn {self.turn}>"


class CandidateDraft(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Something that an extractor holds to be worth knowing, with the words that it rests on (at least one quote).

    Fields as of `NodeDraft`; a confidence of 0 says that it is not known.
    """

    content: str
    quotes: tuple[Quote, ...]
    kind: str = "semantic"
    subject: str | None = None
    labels: Mapping[str, str] = {}
    confidence: float = 0.0
    importance: float = 0.5
    valid_from: Instant | None = None
    valid_to: Instant | None = None

    def __repr__(self) -> str:
        return f"<CandidateDraft of {counted(len(self.quotes), 'quote')}>"


class Refusal(msgspec.Struct, frozen=True):
    """A draft of which no candidate was made: its place among the drafts, from 0, and why.

    `reason` is `no-quote`, `quote-not-found`, `echo`, `blocked`, `forgotten` or `invalid`; `message` says more, in no
    words of the draft.
    """

    draft: int
    reason: str
    message: str


class Extracted(msgspec.Struct, frozen=True):
    """What became of the drafts: ids of new nodes, ids of nodes that were made before, both in the drafts' order, and
    the drafts that were refused. A node that was made before may have been rejected since."""

    created: tuple[str, ...]
    existing: tuple[str, ...]
    refused: tuple[Refusal, ...]
