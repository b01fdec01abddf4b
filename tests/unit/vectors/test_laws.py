"""The laws of the exact index, on both scans, beside an oracle that scores every row in plain Python floats."""

from __future__ import annotations

import math
import struct
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from perdure.vectors import coding
from perdure.vectors.cosine import norms
from perdure.vectors.exact import ExactIndex

SCANS = ["reference", *(["compiled"] if coding.kernel is not None else [])]
DIMENSIONS = (1, 2, 8, 17, 384)


def folded(products: list[float]) -> float:
    """Add up in the published order: the upper part onto the lower, at the greatest power of two."""
    while len(products) > 1:
        half = 1 << ((len(products) - 1).bit_length() - 1)
        upper = products[half:]
        products = [a + b for a, b in zip(products, upper, strict=False)] + products[len(upper) : half]
    return products[0]


def cosine(query: list[float], vector: list[float]) -> float:
    product = folded([a * b for a, b in zip(query, vector, strict=True)])
    lengths = [math.sqrt(folded([a * a for a in each])) for each in (query, vector)]
    return max(-1.0, min(1.0, product / (lengths[0] * lengths[1])))


def bits(scores: list[float]) -> list[bytes]:
    return [struct.pack("<d", score) for score in scores]


def expected(
    vectors: dict[int, np.ndarray], query: np.ndarray, k: int, wanted: set[int] | None = None
) -> tuple[list[int], list[bytes]]:
    told = query.tolist()
    scored = [
        (-cosine(told, vector.tolist()), row)
        for row, vector in vectors.items()
        if wanted is None or row in wanted
    ]
    best = sorted(scored)[:k]
    return [row for _, row in best], bits([-negative for negative, _ in best])


def found(index: ExactIndex, query: np.ndarray, k: int, **options) -> tuple[list[int], list[bytes]]:
    rows, scores = index.search(query, k, **options)
    return rows, bits(scores)


def new_index(scan: str, dimension: int) -> ExactIndex:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PERDURE_KERNEL", scan)
        return ExactIndex(dimension)


def directed(matrix: np.ndarray) -> np.ndarray:
    """Give a row that is all zero a direction."""
    matrix[~matrix.any(axis=1), 0] = 1.0
    return matrix


def gaussian(rng, count, dimension):
    return rng.standard_normal((count, dimension), dtype=np.float32)


def clustered(rng, count, dimension):
    centres = gaussian(rng, 4, dimension)
    return centres[rng.integers(4, size=count)] + np.float32(0.05) * gaussian(rng, count, dimension)


def one_hot(rng, count, dimension):
    return np.eye(dimension, dtype=np.float32)[np.arange(count) % dimension]


def duplicates(rng, count, dimension):
    return gaussian(rng, 3, dimension)[rng.integers(3, size=count)]


def near_ties(rng, count, dimension):
    """One vector, of which single numbers are moved by the least step that there is."""
    matrix = np.repeat(gaussian(rng, 1, dimension), count, axis=0)
    at = rng.integers(dimension, size=count)
    matrix[np.arange(count), at] = np.nextafter(matrix[np.arange(count), at], np.float32(np.inf))
    return matrix


def constant(rng, count, dimension):
    return np.repeat(rng.standard_normal((count, 1), dtype=np.float32), dimension, axis=1)


def far_magnitudes(rng, count, dimension):
    """Elements from the denormal to the greatest, of one magnitude in a row or of all."""
    exponents = rng.uniform(-44, 38, (count, 1 if rng.integers(2) else dimension))
    signs = rng.choice([-1.0, 1.0], (count, dimension))
    return (signs * rng.uniform(0.1, 1, (count, dimension)) * 10.0**exponents).astype(np.float32)


def few_values(rng, count, dimension):
    return rng.integers(-1, 2, (count, dimension)).astype(np.float32)


def aligned(rng, count, dimension):
    """Rows whose codes are alike while all that the codes leave out points to one corner, or away from it.

    The first row is that corner, which codes leave nothing of. So a bound that forgets a part of what was left
    out is below the score.
    """
    corner = rng.choice([-1.0, 1.0], dimension)
    whole = rng.integers(-2, 3, (1, dimension)) + rng.integers(20, 60, (count, 1)) * corner
    matrix = whole + 0.49 * rng.choice([-1.0, 1.0], (count, 1)) * corner
    matrix[:, 0] = 127 * corner[0]
    matrix[0] = corner
    return matrix.astype(np.float32)


KINDS = (gaussian, clustered, one_hot, duplicates, near_ties, constant, far_magnitudes, few_values, aligned)


class Case(NamedTuple):
    """An index after random changes, what it should hold, and a source of what to ask."""

    index: ExactIndex
    stored: dict[int, np.ndarray]
    visible: dict[int, np.ndarray]
    rng: np.random.Generator

    def query(self, kind) -> np.ndarray:
        if self.stored and self.rng.integers(2):
            return self.stored[int(self.rng.choice(list(self.stored)))]
        return directed(kind(self.rng, 1, self.index.dimension))[0]


def changed_index(scan: str, seed: int, dimension: int, kind) -> Case:
    rng = np.random.default_rng(seed)
    count = int(rng.choice([1, 5, 60, 700])) if dimension < 100 else int(rng.choice([5, 60, 300]))
    numbers = np.arange(count) if rng.integers(2) else rng.choice(3 * count, count, replace=False)
    if rng.integers(4) == 0:
        numbers = numbers + int(rng.integers(1, 2**31 - 2 - 3 * count))
    matrix = directed(kind(rng, count, dimension))
    index = new_index(scan, dimension)
    index.put_many(numbers, matrix)
    stored = dict(zip(numbers.tolist(), matrix, strict=True))
    hidden: set[int] = set()
    for row in rng.choice(numbers, min(count, 40), replace=False).tolist():
        change = int(rng.integers(4))
        if change == 0:
            index.erase(row)
            del stored[row]
        elif change == 1:
            index.hide(row)
            hidden.add(row)
        elif change == 2:
            stored[row] = directed(kind(rng, 1, dimension))[0]
            index.put(row, stored[row])
        else:
            index.hide(row)
            index.show(row)
    for row in range(count // 10):
        stored[row] = directed(kind(rng, 1, dimension))[0]
        index.put(row, stored[row])
        hidden.discard(row)
    visible = {row: vector for row, vector in stored.items() if row not in hidden}
    return Case(index, stored, visible, rng)


cases = {
    "scan": st.sampled_from(SCANS),
    "seed": st.integers(0, 2**32 - 1),
    "dimension": st.sampled_from(DIMENSIONS),
    "kind": st.sampled_from(KINDS),
}


@given(**cases)
@settings(max_examples=examples(24), deadline=None)
def test_a_search_is_every_row_scored_one_by_one_in_the_published_order(scan, seed, dimension, kind):
    case = changed_index(scan, seed, dimension, kind)
    query = case.query(kind)
    for k in (1, 7, 20, len(case.visible), len(case.visible) + 5):
        assert found(case.index, query, k) == expected(case.visible, query, k)


@given(**cases, share=st.sampled_from([0.0, 0.02, 0.3, 0.9, 1.0]))
@settings(max_examples=examples(24), deadline=None)
def test_a_mask_and_a_list_of_rows_leave_the_best_of_what_they_allow(scan, seed, dimension, kind, share):
    case = changed_index(scan, seed, dimension, kind)
    stop = min(max(case.stored, default=0) + 2, 5000)
    flags = (case.rng.random(stop) < share).astype(np.uint8) * np.uint8(case.rng.integers(1, 256))
    flags = flags[: int(case.rng.integers(stop + 1))] if case.rng.integers(2) else flags
    among = np.array(
        [row for row in sorted({*case.stored, 1, 4}) if case.rng.random() < share], dtype=np.int32
    )
    flagged, listed = set(np.flatnonzero(flags).tolist()), set(among.tolist())
    query = case.query(kind)
    for k in (1, 20):
        assert found(case.index, query, k, mask=flags.tobytes()) == expected(case.visible, query, k, flagged)
        assert found(case.index, query, k, rows=among) == expected(case.visible, query, k, listed)
        both = expected(case.visible, query, k, flagged & listed)
        assert found(case.index, query, k, mask=flags.tobytes(), rows=among) == both


@given(**cases)
@settings(max_examples=examples(16), deadline=None)
def test_scores_are_the_bits_of_the_search_whatever_else_is_asked_or_stored(scan, seed, dimension, kind):
    case = changed_index(scan, seed, dimension, kind)
    query = case.query(kind)
    rows, scores = case.index.search(query, len(case.visible))
    assert bits(case.index.scores(query, rows)) == bits(scores)
    order = case.rng.permutation(len(rows))
    mixed = [rows[at] for at in order]
    assert bits(case.index.scores(query, mixed)) == bits([scores[at] for at in order])
    for at in order[:5]:
        alone = new_index(scan, dimension)
        alone.put(3, case.visible[rows[at]])
        assert bits(alone.search(query, 1)[1]) == bits([scores[at]])
        assert bits(case.index.scores(query, [rows[at]])) == bits([scores[at]])


@given(**cases)
@settings(max_examples=examples(16), deadline=None)
def test_scores_are_near_the_cosine_of_exact_arithmetic(scan, seed, dimension, kind):
    case = changed_index(scan, seed, dimension, kind)
    query = case.query(kind)
    for row, score in zip(*case.index.search(query, 10), strict=True):
        pairs = list(zip(query.tolist(), case.visible[row].tolist(), strict=True))
        product = math.fsum(a * b for a, b in pairs)
        lengths = [math.sqrt(math.fsum(pair[side] ** 2 for pair in pairs)) for side in (0, 1)]
        assert abs(score - product / lengths[0] / lengths[1]) < 1e-13
        assert -1.0 <= score <= 1.0


@given(**cases)
@settings(max_examples=examples(12), deadline=None)
def test_what_is_stored_is_what_was_put(scan, seed, dimension, kind):
    case = changed_index(scan, seed, dimension, kind)
    assert case.index.count == len(case.stored)
    for row, vector in case.stored.items():
        assert row in case.index
        assert case.index.vector(row).tobytes() == vector.tobytes()


@given(seed=cases["seed"], kind=cases["kind"])
@settings(max_examples=8, deadline=None)
def test_both_scans_answer_alike_over_several_blocks_of_wide_vectors(seed, kind):
    rng = np.random.default_rng(seed)
    count, dimension = 1500, 1536
    matrix = directed(kind(rng, count, dimension))
    query = matrix[0] if rng.integers(2) else directed(kind(rng, 1, dimension))[0]
    answers = []
    for scan in SCANS:
        index = new_index(scan, dimension)
        index.put_many(range(count), matrix)
        every = index.scores(query, range(count))
        order = sorted(range(count), key=lambda row: (-every[row], row))[:20]
        assert found(index, query, 20) == (order, bits([every[row] for row in order]))
        answers.append(bits(every))
    assert answers.count(answers[0]) == len(answers)


@given(**cases)
@settings(max_examples=examples(24), deadline=None)
def test_no_score_is_above_its_bound(scan, seed, dimension, kind):
    rng = np.random.default_rng(seed)
    count = 50
    matrix = directed(kind(rng, count, dimension))
    index = new_index(scan, dimension)
    index.put_many(range(count), matrix)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PERDURE_KERNEL", scan)
        bounding = coding.new_coding(dimension)
    columns = bounding.encode(matrix, norms(matrix))
    some = np.sort(rng.choice(count, 9, replace=False))
    for query in (matrix[0], directed(kind(rng, 1, dimension))[0]):
        sought = bounding.seek(query, float(norms(query[np.newaxis])[0]))
        for places, rows in ((None, np.arange(count)), (some, some)):
            room = np.empty(len(rows) + 2, dtype=np.float32)
            bounds = coding.Bounds(room[: len(rows)], room[len(rows) :][: -(-len(rows) // coding.GROUP)])
            bounding.upper_bounds(sought, matrix, columns, places, bounds)
            assert (bounds.each > index.scores(query, rows)).all()
            assert bounds.peaks.tolist() == [
                max(bounds.each[start : start + coding.GROUP].tolist())
                for start in range(0, len(rows), coding.GROUP)
            ]


@given(scan=cases["scan"], seed=cases["seed"], dimension=st.sampled_from([8, 17, 384]))
@settings(max_examples=examples(12), deadline=None)
def test_what_codes_leave_out_loses_no_row(scan, seed, dimension):
    matrix = aligned(np.random.default_rng(seed), 600, dimension)
    index = new_index(scan, dimension)
    index.put_many(range(1, 600), matrix[1:])
    every = index.scores(matrix[0], range(1, 600))
    order = sorted(range(1, 600), key=lambda row: (-every[row - 1], row))[:20]
    assert index.search(matrix[0], 20) == (order, [every[row - 1] for row in order])


@given(**cases)
@settings(max_examples=examples(8), deadline=None)
def test_loading_at_once_and_putting_one_by_one_are_the_same(scan, seed, dimension, kind):
    rng = np.random.default_rng(seed)
    count = 40
    matrix = directed(kind(rng, count, dimension))
    rows = rng.integers(0, 50, count)  # repeats: the later vector stays
    at_once, one_by_one = new_index(scan, dimension), new_index(scan, dimension)
    at_once.put_many(rows, matrix)
    for row, vector in zip(rows.tolist(), matrix, strict=True):
        one_by_one.put(row, vector)
    query = directed(kind(rng, 1, dimension))[0]
    assert found(at_once, query, 50) == found(one_by_one, query, 50)
    assert at_once.count == one_by_one.count == len(set(rows.tolist()))
