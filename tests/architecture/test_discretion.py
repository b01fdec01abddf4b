"""People's text stays out of what ends up in logs and tracebacks."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from perdure.model.document import Document, DocumentHit
from perdure.model.fact import Fact, Source
from perdure.model.hit import ChainLink, Explanation, Hit
from perdure.model.inputs import NewFact
from perdure.model.replies import Merged
from perdure.model.status import Status
from perdure.model.trace import Diff, Difference, Rejected, Trace

CANARY = "XQZ-canary-7731"
MOMENT = datetime(2025, 1, 1, tzinfo=UTC)
SOURCE = Source(uri=CANARY, quote=CANARY, actor=CANARY)
FACT = Fact(
    id=CANARY,
    text=CANARY,
    subject=CANARY,
    entities=(CANARY,),
    metadata={CANARY: CANARY},
    tags=(CANARY,),
    kind="semantic",
    importance=0.5,
    pinned=False,
    event_time=None,
    valid_from=None,
    valid_to=None,
    ingest_time=MOMENT,
    ends=(),
    uses=0,
    last_used_at=None,
    hidden=False,
    source=SOURCE,
    supersedes=(CANARY,),
    superseded_by=(CANARY,),
    status=Status.CURRENT,
)
LINK = ChainLink(CANARY, CANARY, "self", True, None, Status.CURRENT)
EXPLANATION = Explanation(
    id=CANARY,
    reason="returned",
    retrieved=True,
    rank=1,
    lexical_score=1.0,
    semantic_score=None,
    retrieval_score=1.0,
    weights={},
    fusion=None,
    matched_terms=(CANARY,),
    recency_factor=1.0,
    historical_factor=1.0,
    final_score=1.0,
    parts=(),
    status=Status.CURRENT,
    as_of=MOMENT,
    known_at=None,
    valid_from=None,
    valid_to=None,
    within_validity=True,
    filtered_by=(),
    chain=(LINK,),
)
REJECTED = Rejected(CANARY, "no-match", None)
DIFFERENCE = Difference(FACT, None, Status.CURRENT, (CANARY,))
VALUES = [
    SOURCE,
    FACT,
    Hit(FACT, 1.0, Status.CURRENT, EXPLANATION),
    LINK,
    EXPLANATION,
    Document(CANARY, CANARY, {CANARY: CANARY}, 1),
    DocumentHit(CANARY, CANARY, 0, {CANARY: CANARY}, 1.0),
    Merged(CANARY, (CANARY,), False, (CANARY,), None, None, False, {CANARY: CANARY}),
    Trace(CANARY, {"subject": CANARY}, 1, 1, 1, 1, 1, (Hit(FACT, 1.0, Status.CURRENT),), (REJECTED,)),
    REJECTED,
    DIFFERENCE,
    Diff(MOMENT, MOMENT, MOMENT, (DIFFERENCE,), (), (), (), ()),
    NewFact(text=CANARY, id=CANARY, subject=CANARY, metadata={CANARY: CANARY}),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_the_repr_of_a_value_shows_no_text(value):
    assert CANARY not in repr(value)
    assert CANARY not in f"{[value]}"
