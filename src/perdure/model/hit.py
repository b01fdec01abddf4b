"""A result of recall and the explanation of it (or of its absence)."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from perdure.base.text import counted
from perdure.model.fact import Fact, Source
from perdure.model.namespace import Namespace
from perdure.model.node import NodeReference
from perdure.model.status import Status

Reason = Literal[
    "returned",
    "below-k",
    "below-min-score",
    "below-candidates",
    "no-match",
    "no-vector",
    "not-current",
    "not-known",
    "filtered",
]


Relation = Literal["self", "supersedes", "superseded-by", "related"]


class Part(msgspec.Struct, frozen=True):
    """One named part of a score; docs/concepts/scoring.md gives the formula that combines them."""

    name: str
    value: float


class ChainLink(msgspec.Struct, frozen=True):
    """A fact of the same supersession component. `direct` when one link joins it to the explained fact."""

    id: str
    text: str
    relation: Relation
    direct: bool
    effective_time: datetime | None
    status: Status

    def __repr__(self) -> str:
        return f"<ChainLink {self.relation} {self.status.value}>"


class Neighbour(msgspec.Struct, frozen=True):
    """A fact of the same source whose words counted for the explained one. `distance` in positions, negative before
    it; `terms` are the query's words that the neighbour holds."""

    id: str
    distance: int
    weight: float
    terms: tuple[str, ...]


class Marking(msgspec.Struct, frozen=True):
    """The text that a hit shows, the query's terms and the name of the analysis: what marks are looked for with."""

    text: str
    terms: tuple[str, ...]
    profile: str

    def find(self) -> tuple[tuple[int, int], ...]:
        """Return the places of the matched words. Whoever analyses texts says how; without, there are none."""
        return ()

    def __repr__(self) -> str:
        return f"<Marking of {counted(len(self.text), 'character')}>"


class Explanation(msgspec.Struct, frozen=True):
    """Why a fact came back from a recall, or why it did not.

    `reason` is `no-vector` where a query with a vector was asked and the fact has none to compare it with (and, by
    words and meaning, none of the words either): `embed_missing` embeds such facts.

    `rank` is 1-based among the ranked candidates and may exceed k. Scores are None where the fact
    was not ranked; `lexical_score` (and `semantic_score`, the cosine, where the query and the fact have a vector)
    are computed for the fact alone in every case. `marks` are the places of the matched words in the text that
    the hit shows: (start, end) in code points, ascending. `neighbours`, `actor` and `period` are what a recall
    with `context` went by; `period` is in ISO 8601, `--05` being every May. `node` is what a governed fact stands
    for: the node, its revision, and the evidence with its quotes; None for every other fact.
    """

    id: str
    reason: Reason
    retrieved: bool
    rank: int | None
    lexical_score: float
    semantic_score: float | None
    retrieval_score: float | None
    weights: dict[str, float]
    fusion: str | None
    matched_terms: tuple[str, ...]
    recency_factor: float
    historical_factor: float
    final_score: float | None
    parts: tuple[Part, ...]
    status: Status | None
    as_of: datetime
    known_at: datetime | None
    valid_from: datetime | None
    valid_to: datetime | None
    within_validity: bool
    filtered_by: tuple[str, ...]
    chain: tuple[ChainLink, ...]
    source: Source | None = None
    marking: Marking | None = None
    neighbours: tuple[Neighbour, ...] = ()
    actor: str | None = None
    period: str | None = None
    uses: int = 0
    last_used_at: datetime | None = None
    node: NodeReference | None = None

    @property
    def marks(self) -> tuple[tuple[int, int], ...]:
        """The places of the matched words: (start, end) in code points, ascending, apart."""
        return () if self.marking is None else self.marking.find()

    def __repr__(self) -> str:
        return f"<Explanation {self.reason}, rank {self.rank}, score {self.final_score}>"


class Hit(msgspec.Struct, frozen=True):
    """One result of recall: the fact, its score (at least 0, higher is better, comparable within
    one call only) and its status at the read's `as_of`. `space` names its memory where several were asked."""

    fact: Fact
    score: float
    status: Status
    explanation: Explanation | None = None
    space: Namespace | None = None

    @property
    def id(self) -> str:
        return self.fact.id

    @property
    def text(self) -> str:
        return self.fact.text

    def __repr__(self) -> str:
        return f"<Hit score {self.score}, {self.status.value}, {counted(len(self.fact.text), 'character')}>"
