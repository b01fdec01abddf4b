"""What the exact vector index does, by example, on every scan."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest

from perdure.errors import InvalidRequest, Unavailable
from perdure.vectors import coding
from perdure.vectors.exact import ExactIndex

needs_kernel = pytest.mark.skipif(coding.kernel is None, reason="the compiled scan was not built")
DIMENSION = 12


@pytest.fixture(params=["reference", pytest.param("compiled", marks=needs_kernel)])
def chosen(request, monkeypatch):
    monkeypatch.setenv("PERDURE_KERNEL", request.param)
    return request.param


@pytest.fixture
def index(chosen):
    return ExactIndex(DIMENSION)


def vector(*numbers: float) -> np.ndarray:
    full = np.zeros(DIMENSION, dtype=np.float32)
    full[: len(numbers)] = numbers
    return full


def random_vectors(count: int, seed: int = 5) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((count, DIMENSION), dtype=np.float32)


def arrays_within(root: object) -> list[np.ndarray]:
    """Return every array that an object keeps, however deep."""
    seen, waiting, arrays = set(), [root], []
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen or isinstance(thing, type):
            continue
        seen.add(id(thing))
        if isinstance(thing, np.ndarray):
            arrays.append(thing)
        elif type(thing).__module__.startswith(("perdure", "builtins")):
            waiting += [one for one in gc.get_referents(thing) if type(one).__name__ != "module"]
    return arrays


def test_the_environment_chooses_the_scan(chosen):
    assert coding.kernel_name() == chosen


def test_an_unknown_scan_is_refused(monkeypatch):
    monkeypatch.setenv("PERDURE_KERNEL", "fast")
    with pytest.raises(InvalidRequest, match="compiled or reference"):
        ExactIndex(3)


def test_without_a_kernel_the_twin_serves_and_insisting_on_the_kernel_fails(monkeypatch):
    monkeypatch.setattr(coding, "kernel", None)
    monkeypatch.delenv("PERDURE_KERNEL", raising=False)
    assert coding.kernel_name() == "reference"
    monkeypatch.setenv("PERDURE_KERNEL", "compiled")
    with pytest.raises(Unavailable, match="not built"):
        ExactIndex(3)


def test_the_nearest_come_first_and_scores_are_cosines_whatever_the_lengths(index):
    index.put(4, vector(0, 5))
    index.put(9, vector(30, 0))
    index.put(2, vector(-1, 0))
    index.put(7, vector(1e-30, 1e-30))
    rows, scores = index.search(vector(2, 0), 10)
    assert rows == [9, 7, 4, 2]
    assert scores == pytest.approx([1.0, 0.5**0.5, 0.0, -1.0], abs=1e-15)


def test_equal_scores_are_ordered_by_row_and_the_first_rows_are_kept_at_the_boundary(index):
    index.put_many([40, 3, 17, 5, 21], np.repeat(vector(1, 2, 3)[np.newaxis], 5, axis=0))
    assert index.search(vector(3, 2, 1), 3)[0] == [3, 5, 17]


def test_ties_at_the_boundary_are_ordered_by_row_among_thousands(index):
    count = 3000
    matrix = np.eye(DIMENSION, dtype=np.float32)[np.arange(count) % DIMENSION]
    rows = np.random.default_rng(1).permutation(count)
    index.put_many(rows, matrix[rows])
    found, scores = index.search(vector(0, 0, 0, 1), 20)
    assert found == list(range(3, 3 + 20 * DIMENSION, DIMENSION))
    assert scores == [1.0] * 20


def test_an_empty_index_finds_nothing(index):
    assert index.search(vector(1), 5) == ([], [])
    assert index.search(vector(1), 5, mask=b"\1") == ([], [])
    assert index.search(vector(1), 5, rows=np.array([3], dtype=np.int32)) == ([], [])
    assert index.scores(vector(1), []) == []
    index.put_many([], np.empty((0, DIMENSION), dtype=np.float32))
    assert index.count == 0


def test_no_row_is_returned_for_k_0_and_all_for_a_k_above_the_count(index):
    index.put_many(range(1000), random_vectors(1000))
    assert index.search(vector(1), 0) == ([], [])
    assert sorted(index.search(vector(1), 5000)[0]) == list(range(1000))


def test_a_hidden_row_is_not_found_until_it_is_shown_but_is_kept(index):
    index.put_many(range(1000), random_vectors(1000))
    before = index.search(random_vectors(1)[0], 5)
    assert before[0][0] == 0
    index.hide(0)
    assert 0 not in index.search(random_vectors(1)[0], 1000)[0]
    assert 0 in index
    assert index.count == 1000
    assert index.scores(random_vectors(1)[0], [0]) == [1.0]
    index.show(0)
    assert index.search(random_vectors(1)[0], 5) == before


def test_a_hidden_row_that_is_put_again_is_found(index):
    index.put(1, vector(1))
    index.hide(1)
    index.put(1, vector(0, 1))
    assert index.search(vector(0, 1), 1) == ([1], [1.0])


def test_the_last_of_a_row_that_is_given_twice_stays(index):
    index.put_many([6, 6, 8], np.stack([vector(1), vector(0, 1), vector(0, 0, 1)]))
    assert index.vector(6).tolist() == vector(0, 1).tolist()
    assert index.count == 2


def test_an_erased_row_leaves_none_of_its_numbers_in_memory(index):
    index.put_many(range(700), random_vectors(700))
    unmistakable = np.linspace(0.611, 0.977, DIMENSION, dtype=np.float32)
    index.put(300, unmistakable)
    assert any(unmistakable.tobytes() in each.tobytes() for each in arrays_within(index))
    index.erase(300)
    assert not any(unmistakable.tobytes() in each.tobytes() for each in arrays_within(index))
    # Nor anything that was derived of it: an index that never held it is the same, byte for byte.
    other = ExactIndex(DIMENSION)
    other.put_many(range(700), random_vectors(700))
    other.erase(300)
    pairs = zip(arrays_within(index), arrays_within(other), strict=True)
    assert all(ours.tobytes() == theirs.tobytes() for ours, theirs in pairs)


def test_an_erased_row_is_gone_and_its_room_is_used_again(index):
    index.put_many(range(700), random_vectors(700))
    size = index.memory_bytes()
    for row in range(100):
        index.erase(row)
    assert index.count == 600
    assert 5 not in index
    assert min(index.search(vector(1), 700)[0]) == 100
    index.put_many(range(700, 800), random_vectors(100))
    assert index.memory_bytes() <= size
    assert index.count == 700


def test_vectors_are_copied_in_and_out(index):
    given = vector(1, 2)
    index.put(0, given)
    given[0] = 9
    index.vector(0)[1] = 9
    assert index.vector(0).tolist() == vector(1, 2).tolist()


def test_rows_far_apart_take_room_for_themselves_only(index):
    index.put(0, vector(1))
    index.put(2**31 - 2, vector(0, 1))
    assert index.search(vector(1, 2), 2)[0] == [2**31 - 2, 0]
    assert index.memory_bytes() < 500_000


def test_a_mask_may_be_any_bytes_and_rows_past_its_end_are_out(index):
    index.put_many(range(600), random_vectors(600))
    mask = bytes([0] * 400 + [255] * 100)
    wanted = index.search(vector(1), 600, rows=np.arange(400, 500, dtype=np.int32))
    assert len(wanted[0]) == 100
    for form in (mask, bytearray(mask), memoryview(mask), np.frombuffer(mask, dtype=np.uint8)):
        assert index.search(vector(1), 600, mask=form) == wanted
    assert index.search(vector(1), 600, mask=np.frombuffer(mask, dtype=np.uint8) != 0) == wanted


@pytest.mark.parametrize("dimension", [0, -1, 2**16 + 1])
def test_a_dimension_out_of_range_is_refused(dimension):
    with pytest.raises(ValueError, match="dimension must be from 1 to 65536"):
        ExactIndex(dimension)


@pytest.mark.parametrize(
    ("row", "given", "message"),
    [
        (-1, vector(1), "row must be from 0"),
        (2**31 - 1, vector(1), "row must be from 0"),
        (1, vector(), "row 1 is all zero"),
        (1, vector(1, float("nan")), "row 1 holds a number that is not finite"),
        (1, vector(1, float("-inf")), "not finite"),
        (1, np.ones(DIMENSION + 1, dtype=np.float32), r"\(1, 12\), got float32 of shape \(1, 13\)"),
        (1, np.ones(DIMENSION), "got float64"),
        (1, np.ones((1, DIMENSION), dtype=np.float32), "shape"),
    ],
)
def test_a_row_or_vector_that_cannot_be_stored_is_refused_and_changes_nothing(index, row, given, message):
    index.put(1, vector(5))
    with pytest.raises(ValueError, match=message):
        index.put(row, given)
    assert index.count == 1
    assert index.vector(1).tolist() == vector(5).tolist()


def test_one_wrong_vector_of_many_lets_none_in(index):
    matrix = random_vectors(3)
    matrix[1] = 0
    with pytest.raises(ValueError, match="row 8 is all zero"):
        index.put_many([7, 8, 9], matrix)
    assert index.count == 0


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (vector(), "query is all zero"),
        (vector(float("inf")), "query holds a number that is not finite"),
        (np.ones(3, dtype=np.float32), r"query must be float32 of shape \(12,\)"),
        (np.ones(DIMENSION), "got float64"),
    ],
)
def test_a_query_without_a_direction_is_refused(index, query, message):
    index.put(1, vector(5))
    with pytest.raises(ValueError, match=message):
        index.search(query, 1)
    with pytest.raises(ValueError, match=message):
        index.scores(query, [1])


def test_a_negative_k_and_rows_out_of_order_are_refused(index):
    with pytest.raises(ValueError, match="k must be at least 0, got -1"):
        index.search(vector(1), -1)
    for rows in ([3, 2], [2, 2]):
        with pytest.raises(ValueError, match="ascending"):
            index.search(vector(1), 1, rows=np.array(rows))


def test_rows_without_a_vector_are_refused_by_name_but_passed_over_in_a_search(index):
    index.put(1, vector(1))
    for change in (index.erase, index.hide, index.show, index.vector):
        with pytest.raises(ValueError, match="row 2 has no vector"):
            change(2)
    with pytest.raises(ValueError, match="row 2 has no vector"):
        index.scores(vector(1), [1, 2])
    assert index.search(vector(1), 5, rows=np.array([0, 1, 2, 99999], dtype=np.int32))[0] == [1]


def test_hiding_twice_and_showing_what_is_not_hidden_are_refused(index):
    index.put(1, vector(1))
    with pytest.raises(ValueError, match="row 1 is not hidden"):
        index.show(1)
    index.hide(1)
    with pytest.raises(ValueError, match="row 1 is already hidden"):
        index.hide(1)


def test_searches_in_several_threads_answer_as_alone(index):
    index.put_many(range(20_000), random_vectors(20_000))
    queries = random_vectors(30, seed=9)
    alone = [index.search(query, 10) for query in queries]
    answers: list[list] = [[], []]

    def read(into: list) -> None:
        into.extend(index.search(query, 10) for query in queries)

    threads = [threading.Thread(target=read, args=(each,)) for each in answers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [alone, alone]


@needs_kernel
def test_the_kernel_refuses_what_does_not_fit_together():
    codes, query = np.zeros((3, 64), dtype=np.int8), np.zeros(64, dtype=np.int8)
    columns = np.zeros(3, dtype=np.float32)
    weights = (1.0, 1.0, 0.0)

    def bounds(places, out_count, *, sought=query, scales=columns, peak_count=1):
        out, peaks = np.empty(out_count, dtype=np.float32), np.empty(peak_count, dtype=np.float32)
        coding.kernel.upper_bounds(codes, sought, scales, columns, places, out, peaks, weights)

    bounds(None, 3)
    bounds(np.array([2, 0, 0, 1]), 4)
    for places in ([3], [-1]):
        with pytest.raises(ValueError, match="outside"):
            bounds(np.array(places), 1)
        with pytest.raises(ValueError, match="outside"):
            coding.kernel.products(codes.view(np.float32), np.ones(16), np.array(places), np.empty(1))
    for wrong in (
        lambda: bounds(None, 4),
        lambda: bounds(np.array([1]), 2),
        lambda: bounds(None, 3, sought=query[:32]),
        lambda: bounds(None, 3, scales=columns[:2]),
        lambda: bounds(None, 3, peak_count=2),
        lambda: bounds(None, 3, peak_count=0),
        lambda: coding.kernel.products(codes, np.ones(7), np.array([0]), np.empty(1)),
        lambda: coding.kernel.products(codes, np.ones(16), np.array([0]), np.empty(2)),
        lambda: coding.kernel.products(codes, np.ones(0), np.array([0]), np.empty(1)),
    ):
        with pytest.raises(ValueError, match=r"must|missing"):
            wrong()


@needs_kernel
@pytest.mark.parametrize("sign", [1, -1])
def test_products_of_the_greatest_codes_are_exact_at_the_greatest_dimension(sign):
    stride = coding.DIMENSION_MAX
    query = np.full(stride, 127, dtype=np.int8)
    codes = np.full((5, stride), sign * 127, dtype=np.int8)
    out = np.empty(5, dtype=np.float32)
    ones = np.ones(5, dtype=np.float32)
    coding.kernel.upper_bounds(
        codes, query, ones, ones, None, out, np.empty(1, dtype=np.float32), (1.0, 0.0, 0.0)
    )
    assert out.tolist() == [float(np.float32(sign * 127 * 127 * stride))] * 5
