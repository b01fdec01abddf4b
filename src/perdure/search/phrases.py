"""What ranking by relevance searches beyond the words of the text: labels and the whole query.

Labels are the words of a fact's tags and kind. The whole query counts as one more match where its
terms follow one another in the text.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from perdure.errors import QueryLimit
from perdure.lexical.bm25 import WorkExceeded, contribution, idf, norm
from perdure.model.status import Status
from perdure.search.eligibility import Eligibility
from perdure.search.query import Question
from perdure.space.facts import FactReader
from perdure.space.state import SpaceState
from perdure.temporal.status import status_at


def matched_label_rows(
    state: SpaceState, terms: Sequence[str], k: int, question: Question, eligible: Eligibility
) -> dict[int, float]:
    """Return the label scores of the k best eligible facts whose tags or kind hold a term, ties in order of arrival."""
    labels = state.labels
    if not labels.numbers:
        return {}
    try:
        # Labels are few and short; all of them are scored, and eligibility is looked up by fact.
        rows, scores, _ = labels.index.search(list(terms), len(labels.numbers), work_max=question.budget.work)
    except WorkExceeded as error:
        raise QueryLimit("work", question.budget.work) from error
    numbers = np.array(labels.numbers)[rows]
    # A change of annotations takes a new row, so the order of rows is not that of arrival.
    order = np.lexsort((numbers, -np.array(scores)))
    found: dict[int, float] = {}
    for at in order.tolist():
        number = int(numbers[at])
        if _is_eligible(state, number, question, eligible):
            found[number] = scores[at]
            if len(found) == k:
                break
    return found


def _is_eligible(state: SpaceState, number: int, question: Question, eligible: Eligibility) -> bool:
    if not state.is_live(number):
        return False
    if eligible.rows is not None and number not in eligible.rows:
        return False
    if eligible.mask is not None and not eligible.mask[number]:
        return False
    if eligible.times is not None:
        start, end, superseded = (int(column[number]) for column in eligible.times)
        return status_at(start, end, superseded, question.as_of) is Status.CURRENT
    return True


def phrase_scores(
    state: SpaceState, reader: FactReader, query: str, numbers: Sequence[int]
) -> dict[int, float]:
    """Return the BM25 weight of the whole query as one term, for the candidates that hold it.

    Its document frequency is the number of candidates that hold it: the rarer among them, the more
    it decides.
    """
    wanted = state.profile.document_terms(query)
    if len(wanted) < 2:
        return {}
    counts: dict[int, tuple[int, int]] = {}
    for number, record in zip(numbers, reader.get_many(state, numbers), strict=True):
        terms = state.profile.document_terms(record.text)
        if times := _occurrences(wanted, terms):
            counts[number] = (times, len(terms))
    weight = idf(state.index.document_count, max(1, len(counts)))
    k1, b = state.index.parameters
    average = state.index.total_length / max(1, state.index.document_count)
    return {
        number: contribution(weight, times, norm(length, average_length=average, k1=k1, b=b))
        for number, (times, length) in counts.items()
    }


def _occurrences(wanted: Sequence[str], terms: Sequence[str]) -> int:
    first, size = wanted[0], len(wanted)
    found, at = 0, 0
    while at + size <= len(terms):
        if terms[at] == first and list(terms[at : at + size]) == list(wanted):
            found += 1
            at += size
        else:
            at += 1
    return found
