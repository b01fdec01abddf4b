"""Semantic candidates: the facts whose vectors point most in the query's direction."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from perdure.base.text import counted
from perdure.errors import InvalidRequest, QueryLimit
from perdure.search.eligibility import EVERYTHING, Eligibility
from perdure.search.flags import flags_of
from perdure.search.query import Question
from perdure.search.units import Unit, best_by_unit
from perdure.space.facts import FactReader
from perdure.space.state import TOLD, SpaceState
from perdure.space.vectors import loaded_vectors


def check_vector(state: SpaceState, question: Question) -> None:
    """Raise InvalidRequest when the question's vector does not compare with those of the space."""
    if question.vector is None or not state.dimension:
        return
    if len(question.vector) != state.dimension:
        given = question.model == TOLD
        told = "embedding has" if given else f"embedder is {question.model}, which gives"
        remedy = "give one of that length" if given else "configure one of that length"
        raise InvalidRequest(
            f"{told} {counted(len(question.vector), 'dimension')}, but the vectors of this memory have {state.dimension}: "
            f"{remedy}, or ask with mode lexical",
            field="embedding" if given else "embedder",
        )
    others = sorted(set(state.vector_models) - {TOLD, question.model})
    if question.model != TOLD and others:
        raise InvalidRequest(
            f"embedder is {question.model}, but the vectors of this memory were made by {others[0]}; their scores "
            "do not compare: use that model, ask with mode lexical, or reindex with embeddings=True (perdure reindex "
            "--embeddings)",
            field="embedder",
        )


def most_similar(
    state: SpaceState, reader: FactReader, question: Question, eligible: Eligibility, k: int
) -> list[Unit]:
    """Return the k eligible facts and documents with the most similar vectors, each by its best unit, best first.

    Ties in order of arrival. QueryLimit when the budget's work does not cover every vector.
    """
    vectors = loaded_vectors(state, reader)
    if vectors is None or question.vector is None:
        return []
    if vectors.count > question.budget.work:
        raise QueryLimit("work", question.budget.work)
    options: dict[str, Any] = {}
    if eligible.rows is not None and eligible.times is None and eligible.mask is None:
        options["rows"] = np.frombuffer(eligible.rows, dtype=np.int32)
    elif eligible is not EVERYTHING:
        options["mask"] = flags_of(state, eligible, question.as_of)
    vector = question.vector
    return best_by_unit(state, k, lambda wanted: vectors.search(vector, wanted, **options))


def cosines_of(
    state: SpaceState, reader: FactReader, question: Question, numbers: Iterable[int]
) -> dict[int, Unit]:
    """Return the best unit and its cosine of those of the facts and documents that have a vector."""
    vectors = loaded_vectors(state, reader)
    if vectors is None or question.vector is None:
        return {}
    rows = [
        row
        for number in numbers
        for row in range(number, number + state.unit_counts.get(number, 1))
        if state.vector_seqs[row] and row in vectors  # not there: erased since the state was brought up
    ]
    best: dict[int, Unit] = {}
    for row, cosine in zip(rows, vectors.scores(question.vector, rows), strict=True):
        number = state.unit_owner.get(row, row)
        known = best.get(number)
        if known is None or cosine > known[2]:
            best[number] = (number, row, cosine)
    return best
