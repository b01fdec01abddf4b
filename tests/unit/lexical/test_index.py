"""What the lexical index does, by example, on every implementation."""

from __future__ import annotations

import threading
from array import array

import numpy as np
import pytest

from perdure.errors import InvalidRequest, Unavailable
from perdure.lexical import index as lexical_index
from perdure.lexical import reference
from perdure.lexical.bm25 import LENGTH_MAX, TF_MAX, WorkExceeded, idf
from perdure.lexical.index import kernel_name, load_index, new_index

try:
    from perdure.lexical import _kernel as kernel
except ImportError:
    kernel = None

needs_kernel = pytest.mark.skipif(kernel is None, reason="the compiled kernel was not built")


@pytest.fixture(params=["reference", pytest.param("compiled", marks=needs_kernel)])
def chosen(request, monkeypatch):
    monkeypatch.setenv("PERDURE_KERNEL", request.param)
    return request.param


@pytest.fixture
def index(chosen):
    return new_index(1.2, 0.75)


def test_the_environment_chooses_the_implementation(chosen):
    assert kernel_name() == chosen
    expected = reference if chosen == "reference" else kernel
    assert isinstance(new_index(), expected.Index)
    assert isinstance(load_index(new_index().dump()), expected.Index)


def test_an_unknown_implementation_is_refused(monkeypatch):
    monkeypatch.setenv("PERDURE_KERNEL", "fast")
    with pytest.raises(InvalidRequest, match="compiled or reference"):
        kernel_name()


def test_without_a_kernel_the_twin_serves_and_insisting_on_the_kernel_fails(monkeypatch):
    monkeypatch.setattr(lexical_index, "kernel", None)
    monkeypatch.delenv("PERDURE_KERNEL", raising=False)
    assert kernel_name() == "reference"
    monkeypatch.setenv("PERDURE_KERNEL", "compiled")
    with pytest.raises(Unavailable, match="not built"):
        kernel_name()


@pytest.mark.parametrize(
    ("k1", "b"), [(-0.1, 0.5), (1001, 0.5), (0.9, -0.1), (0.9, 1.1), (float("nan"), 0.4)]
)
def test_parameters_out_of_range_are_refused(chosen, k1, b):
    with pytest.raises(InvalidRequest, match="must be from 0"):
        new_index(k1, b)


def test_an_added_row_is_found_at_once(index):
    assert index.search(["paris"], 10) == ([], [], 0)
    assert index.add(["alice", "lives", "in", "paris"]) == 0
    rows, scores, _ = index.search(["paris"], 10)
    assert rows == [0]
    assert scores[0] > 0


def test_a_rarer_term_weighs_more_and_equal_rows_come_in_order_of_arrival(index):
    for terms in (["a", "x"], ["a", "y"], ["a", "x"], ["b", "x"]):
        index.add(terms)
    assert index.search(["a", "y"], 10)[0] == [1, 0, 2]
    assert index.search(["a"], 2)[0] == [0, 1]


def test_a_repeated_query_term_counts_once(index):
    index.add(["a", "b"])
    index.add(["b"])
    for repeats in (2, 30):
        assert index.search(["a", "b"] * repeats, 5) == index.search(["a", "b"], 5)


@pytest.mark.parametrize("hidden", [0, 6])
def test_rows_that_tie_at_the_last_place_fill_it_in_order_of_arrival(index, hidden):
    """All rows of the rare term score the same, which is also the least that a row must reach."""
    rare = [row for row in range(3000) if row % 30 == 0]
    for row in range(3000):
        index.add(["rare" if row in rare else "common", "pad"])
    for row in rare[:hidden]:
        index.hide(row)
    mask = bytes(row % 60 == 0 for row in range(3000))
    for k in (1, 10, 40):
        found, scores, _ = index.search(["rare", "common"], k)
        assert found == rare[hidden:][:k]
        assert len(set(scores)) == 1
        assert (
            index.search(["rare", "common"], k, mask=mask)[0]
            == [row for row in rare[hidden:] if row % 60 == 0][:k]
        )


def test_a_hidden_row_leaves_results_and_statistics_and_comes_back_unchanged(index):
    for terms in (["a", "b"], ["a"], ["c", "c", "c"]):
        index.add(terms)
    before = index.search(["a", "b"], 10), index.document_frequency("a"), index.total_length
    index.hide(0)
    assert index.search(["a", "b"], 10)[0] == [1]
    assert (index.document_count, index.total_length, index.document_frequency("b")) == (2, 4, 0)
    assert index.row_terms(0) == [("a", 1), ("b", 1)]
    index.show(0)
    assert (index.search(["a", "b"], 10), index.document_frequency("a"), index.total_length) == before


def test_an_erased_row_keeps_its_number_and_nothing_else(index):
    index.add(["secret", "plan"])
    index.add(["plan"])
    index.erase(0)
    assert index.rows == 2
    assert index.row_terms(0) == []
    assert index.row_length(0) == 0
    assert index.search(["secret"], 5)[0] == []
    assert b"secret" not in index.dump()
    assert index.add(["plan"]) == 2


def test_a_hidden_row_can_be_erased(index):
    index.add(["a"])
    index.hide(0)
    index.erase(0)
    with pytest.raises(ValueError, match="row 0 is not hidden"):
        index.show(0)
    assert (index.document_count, index.total_length) == (0, 0)


def test_a_row_without_terms_is_never_counted(index):
    assert index.add([]) == 0
    assert index.document_count == 0
    assert not index.is_live(0)
    with pytest.raises(ValueError, match="row 0"):
        index.hide(0)


def test_what_does_not_apply_is_refused_and_changes_nothing(index):
    index.add(["a"])
    before = index.dump()
    with pytest.raises(ValueError, match="row 0 is not hidden"):
        index.show(0)
    for call in (index.hide, index.show, index.erase, index.is_live, index.row_length, index.row_terms):
        for row in (-1, 1, 2**70):
            with pytest.raises(ValueError, match="row must be from 0 to 0"):
                call(row)
    for terms in ("a", ["b", 3], None):
        with pytest.raises(TypeError):
            index.add(terms)
    with pytest.raises(ValueError, match="surrogates not allowed"):
        index.add(["b", "\ud800"])
    assert index.dump() == before


def test_scores_are_given_for_live_rows_only(index):
    index.add(["a"])
    index.add(["b"])
    index.hide(1)
    assert index.scores(["zzz"], [0, 0]) == [0.0, 0.0]
    with pytest.raises(ValueError, match="row 1 is not live"):
        index.scores(["a"], [0, 1])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"mask": bytes(1)}, ValueError, "mask has 1 entry, the index has 2 rows"),
        ({"mask": array("i", [1, 1])}, TypeError, "mask must be"),
        ({"rows": array("i", [1, 0])}, ValueError, "rows must ascend"),
        ({"rows": array("i", [0, 0])}, ValueError, "rows must ascend"),
        ({"rows": array("i", [2])}, ValueError, "rows must be from 0 to 1, got 2"),
        ({"rows": array("i", [-1])}, ValueError, "rows must be from 0 to 1, got -1"),
        ({"rows": array("q", [0])}, TypeError, "rows must be"),
        ({"times": (array("q", [0, 0]),) * 2}, TypeError, "times must be a tuple"),
        ({"times": (array("q", [0]),) * 3}, ValueError, "has 1 entry"),
        ({"times": (array("d", [0, 0]),) * 3}, TypeError, "8-byte integers"),
        ({"work_max": -1}, ValueError, "work_max must be at least 0, got -1"),
        ({"nonsense": 1}, TypeError, "nonsense"),
    ],
)
def test_a_malformed_search_is_refused(index, options, error, message):
    index.add(["a"])
    index.add(["a", "b"])
    with pytest.raises(error, match=message):
        index.search(["a"], 5, **options)


def test_a_negative_k_is_refused_and_a_k_of_zero_finds_nothing(index):
    index.add(["a"])
    with pytest.raises(ValueError, match="k must be at least 0, got -1"):
        index.search(["a"], -1)
    assert index.search(["a"], 0)[:2] == ([], [])


@pytest.mark.parametrize("kind", [np.uint8, np.bool_])
def test_numpy_columns_and_masks_are_accepted(index, kind):
    for _ in range(3):
        index.add(["a"])
    column = np.zeros(3, dtype=np.int64)
    assert index.search(["a"], 5, mask=np.array([0, 1, 1], dtype=kind))[0] == [1, 2]
    assert index.search(["a"], 5, times=(column, column + 9, np.array([1, 9, 9])), at=4)[0] == [1, 2]
    assert index.search(["a"], 5, rows=np.array([0, 2], dtype=np.int32))[0] == [0, 2]


def test_a_search_stops_at_its_work_limit(index):
    for _ in range(10):
        index.add(["a"])
    with pytest.raises(WorkExceeded, match="over its limit of 3"):
        index.search(["a"], 5, work_max=3)
    with pytest.raises(WorkExceeded):
        index.search(["a"], 5, rows=array("i", range(4)), work_max=3)


def test_counts_beyond_the_caps_count_as_the_caps(index):
    index.add(["a"] * (TF_MAX + 5) + ["b"])
    index.add(["b"] * (LENGTH_MAX + 5))
    assert index.row_terms(0) == [("a", TF_MAX), ("b", 1)]
    assert index.row_length(0) == TF_MAX + 6
    assert index.row_length(1) == LENGTH_MAX
    assert load_index(index.dump()).row_terms(1) == [("b", TF_MAX)]


def test_a_snapshot_may_be_read_by_the_other_implementation(index, monkeypatch):
    index.add(["a", "b"])
    index.add(["c"] * 7)
    index.hide(1)
    monkeypatch.delenv("PERDURE_KERNEL")
    loaded = load_index(index.dump())
    assert loaded.dump() == index.dump()
    assert loaded.parameters == (1.2, 0.75)


def test_bytes_that_are_no_snapshot_are_refused(chosen):
    for blob in (b"", b"PerdLexI", bytes(100)):
        with pytest.raises(ValueError, match="damaged"):
            load_index(blob)


def test_compaction_forgets_terms_that_no_row_holds(index):
    for number in range(100):
        index.add([f"unique{number}"])
    index.add(["kept"])
    before = index.memory_bytes()
    for number in range(100):
        index.erase(number)
    index.compact()
    assert index.memory_bytes() < before
    assert index.rows == 101
    assert index.search(["kept"], 1)[0] == [100]


def test_erasing_most_of_a_large_index_leaves_exact_answers(index):
    terms = [[f"t{number % 7}", f"t{number % 11}", "all"] for number in range(6000)]
    for row in terms:
        index.add(row)
    for number in range(5900):
        index.erase(number)
    fresh = new_index(1.2, 0.75)
    for row in terms[5900:]:
        fresh.add(row)
    rows, scores, _ = fresh.search(["t3", "t8", "all"], 50)
    assert index.search(["t3", "t8", "all"], 50)[:2] == ([row + 5900 for row in rows], scores)


@needs_kernel
def test_more_pairs_of_count_and_length_than_codes_are_scored_exactly():
    """A posting holds a 16-bit code for its pair; the pairs beyond those are read from the rows."""
    compiled, twin = kernel.Index(0.9, 0.4), reference.Index(0.9, 0.4)
    for length in range(260):
        row = [term for tf in range(1, 280) for term in [f"t{tf}"] * tf] + ["pad"] * (length + 1)
        assert compiled.add(row) == twin.add(row)
    terms = ["t3", "t100", "t250", "t279", "pad"]
    rows = list(range(260))
    for index in (compiled, kernel.load(compiled.dump())):
        assert index.search(terms, 300)[:2] == twin.search(terms, 300)[:2]
        assert index.search(terms, 3)[:2] == twin.search(terms, 3)[:2]
        assert index.scores(terms, rows) == twin.scores(terms, rows)
        index.erase(259)
        assert 259 not in index.search(terms, 300)[0]


@needs_kernel
def test_long_searches_of_several_threads_give_what_one_gives():
    compiled = kernel.Index(0.9, 0.4)
    for number in range(60_000):
        compiled.add(["all", f"t{number % 5}", f"u{number % 3}"])
    questions = [["all"], ["all", "t1"], ["t2", "u1", "all"], ["u0", "t4"]] * 5
    expected = [compiled.search(terms, 2000) for terms in questions]
    answers: list[list[object]] = [[] for _ in range(4)]

    def ask(into: list[object]) -> None:
        into.extend(compiled.search(terms, 2000) for terms in questions)

    threads = [threading.Thread(target=ask, args=(answer,)) for answer in answers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [expected] * 4


def test_shares_give_the_very_bits_of_a_search(index):
    for terms in (["a", "b"], ["a", "a", "c"], ["b"], ["c", "c", "c", "d"]):
        index.add(terms)
    index.hide(index.add(["a"]))
    index.erase(index.add(["a", "b"]))
    asked = sorted("abc", key=lambda term: (index.document_frequency(term), term))
    sums = np.zeros(index.rows)
    for term in asked:
        rows, shares = index.shares(term)
        held = np.frombuffer(rows, dtype=np.int32)
        assert held.tolist() == [row for row in range(4) if term in dict(index.row_terms(row))]
        sums[held] += idf(index.document_count, index.document_frequency(term)) * np.frombuffer(shares)
    rows, scores, _ = index.search(["a", "b", "c"], 10)
    assert [sums[row] for row in rows] == scores
    assert index.shares("nowhere") == (b"", b"")
