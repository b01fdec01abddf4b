"""Whether two runs of the same cases differ, or only seem to: a paired bootstrap."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perdure.errors import InvalidRequest
from perdure.evaluation.metrics import METRICS
from perdure.evaluation.running import Answer, Run

ROUNDS = 10_000  # the ends of a 95 % interval then vary by about a hundredth of its width
SEED = 0
INTERVAL = (0.025, 0.975)
BLOCK_CELLS = 4_000_000  # cells of a block of resamples: 32 MB


@dataclass(frozen=True, slots=True)
class Difference:
    """One metric of two runs over the cases that have it, all of them or those of one category.

    `difference` is second minus first; `low` and `high` bound its 95 % interval. Where that holds 0, the two
    cannot be told apart by these cases.
    """

    category: str | None
    metric: str
    cases: int
    first: float
    second: float
    difference: float
    low: float
    high: float


def compare(first: Run, second: Run, *, rounds: int = ROUNDS, seed: int = SEED) -> list[Difference]:
    """Return each metric's difference, over all cases and then by category.

    Cases are drawn with replacement, both runs' answers to a case together, `rounds` times; the interval is
    between the percentiles 2.5 and 97.5 of the means. The same runs and seed give the same intervals.

    Raises:
        InvalidRequest: the runs did not answer the same cases.
    """
    if [answer.case for answer in first.answers] != [answer.case for answer in second.answers]:
        raise InvalidRequest("the two runs answered other cases; run both on the same scenarios")
    generator = np.random.default_rng(seed)
    pairs = list(zip(first.answers, second.answers, strict=True))
    groups: list[tuple[str | None, list[tuple[Answer, Answer]]]] = [(None, pairs)]
    groups += [(name, [pair for pair in pairs if pair[0].case.category == name]) for name in first.categories]
    return [
        _difference(name, metric, group, rounds, generator)
        for name, group in groups
        for metric in METRICS
        if any(metric in pair[0].scores for pair in group)
    ]


def _difference(
    category: str | None,
    metric: str,
    group: list[tuple[Answer, Answer]],
    rounds: int,
    generator: np.random.Generator,
) -> Difference:
    told = [(a.scores[metric], b.scores[metric]) for a, b in group if metric in a.scores]
    values = np.array(told, dtype=np.float64)
    first, second = values.mean(axis=0)
    means = _resampled(values[:, 1] - values[:, 0], rounds, generator)
    low, high = np.quantile(means, INTERVAL)
    return Difference(
        category,
        metric,
        len(told),
        float(first),
        float(second),
        float(second - first),
        float(low),
        float(high),
    )


def _resampled(values: np.ndarray, rounds: int, generator: np.random.Generator) -> np.ndarray:
    if not values.any():
        return np.zeros(rounds)
    block = max(1, BLOCK_CELLS // len(values))
    means = []
    for start in range(0, rounds, block):
        drawn = generator.integers(len(values), size=(min(block, rounds - start), len(values)))
        means.append(values[drawn].mean(axis=1))
    return np.concatenate(means)
