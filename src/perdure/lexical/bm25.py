"""BM25 as Perdure computes it: the formula, its parameters and its caps.

A row's score for a set of query terms is the sum, over the terms that the row holds, of

    idf(N, n) * (tf / (tf + K))        K = k1 * (1 - b + b * length / average)

where N is the number of live rows, n how many of them hold the term, tf how often this row holds it,
length the number of the row's terms and average the mean length of the live rows, total_length / N.
The constant factor k1 + 1 of the textbook is left out: it changes no order.

Everything counted is an integer; only the score is a float64, computed as written above, term after
term in ascending order of (n, term by code points). So a score depends on what the index holds and not on
how it came to hold it, and every implementation gives the same bits.

Source: Robertson & Zaragoza 2009, section 3. The leading 1 in idf is Lucene's.
"""

from __future__ import annotations

import math

from perdure.base.text import shown_real
from perdure.errors import InvalidRequest

TF_MAX = 4095
"""A term counts at most this often in a row: beyond it tf / (tf + K) is within 0.1 % of its limit."""

LENGTH_MAX = 1_000_000
"""A row counts at most this many terms in its length."""

K1_MAX = 1000.0
"""Far above any useful k1; it keeps every contribution of a matching term above 0."""


class WorkExceeded(Exception):
    """A search would have tested more postings or rows than its limit; there is no partial answer."""

    def __init__(self, used: int, limit: int) -> None:
        super().__init__(
            f"the search stopped after {used} postings and rows, over its limit of {limit}: "
            "narrow it, or raise work_max"
        )
        self.used, self.limit = used, limit


def check_parameters(k1: float, b: float) -> None:
    """Raise InvalidRequest unless k1 is from 0 to K1_MAX and b from 0 to 1."""
    if not 0 <= k1 <= K1_MAX:
        raise InvalidRequest(f"k1 must be from 0 to {K1_MAX:g}, got {shown_real(k1)}", field="k1")
    if not 0 <= b <= 1:
        raise InvalidRequest(f"b must be from 0 to 1, got {shown_real(b)}", field="b")


def idf(document_count: int, document_frequency: int) -> float:
    """Return a term's inverse document frequency, in nats, always above 0.

    document_frequency is from 1 to document_count. The logarithm is the platform's libm.
    """
    return math.log(1.0 + (document_count - document_frequency + 0.5) / (document_frequency + 0.5))


def norm(length: int, *, average_length: float, k1: float, b: float) -> float:
    """Return K: the tf at which a term of a row of this length reaches half of its idf."""
    return k1 * (1.0 - b + b * length / average_length)


def contribution(weight: float, tf: int, norm: float) -> float:
    """Return what a term of this idf and tf adds to the score of a row with this norm."""
    return weight * (tf / (tf + norm))
