"""Laws of the lexical index: each implementation gives what floats over plain dictionaries give, bit for bit."""

from __future__ import annotations

import math
import random
import struct
import zlib
from array import array
from collections import Counter
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from effort import examples
from perdure.lexical import reference
from perdure.lexical.bm25 import WorkExceeded

try:
    from perdure.lexical import _kernel as kernel
except ImportError:
    kernel = None

MODULES = [
    reference,
    pytest.param(
        kernel, marks=pytest.mark.skipif(kernel is None, reason="the compiled kernel was not built")
    ),
]
# UTF-16 would sort the last two the other way round; the fifth needs three bytes of UTF-8.
WORDS = ["a", "b", "ab", "é", "東京", "\uffee", "\U0001f600"]
PARAMETERS = [(0.9, 0.4), (1.2, 0.75), (0.0, 0.4), (3.0, 1.0), (0.9, 0.0)]

every_implementation = pytest.mark.parametrize("module", MODULES, ids=["reference", "compiled"])
both_implementations = pytest.mark.skipif(kernel is None, reason="the compiled kernel was not built")


class Model:
    """The definition: rows as lists of words, and the formula over all of them at each question."""

    def __init__(self, k1: float, b: float) -> None:
        self.k1, self.b = k1, b
        self.rows: list[list[str]] = []
        self.hidden: set[int] = set()

    def is_live(self, row: int) -> bool:
        return bool(self.rows[row]) and row not in self.hidden

    @property
    def live(self) -> list[int]:
        return [row for row in range(len(self.rows)) if self.is_live(row)]

    def frequency(self, word: str) -> int:
        return sum(word in self.rows[row] for row in self.live)

    def total_length(self) -> int:
        return sum(len(self.rows[row]) for row in self.live)

    def score_all(self, words: list[str]) -> dict[int, float]:
        live = self.live
        count, scores = len(live), {}
        average = self.total_length() / count if count else 0.0
        counted = {row: Counter(self.rows[row]) for row in live}
        frequency = {word: sum(word in counted[row] for row in live) for word in set(words)}
        order = sorted((n, word) for word, n in frequency.items() if n)
        for row in live:
            parts = []
            for n, word in order:
                tf = counted[row][word]
                if tf:
                    weight = math.log(1.0 + (count - n + 0.5) / (n + 0.5))
                    norm = self.k1 * (1.0 - self.b + self.b * len(self.rows[row]) / average)
                    parts.append(weight * (tf / (tf + norm)))
            if parts:
                score = 0.0
                for part in parts:
                    score += part
                scores[row] = score
        return scores

    def search(
        self, words: list[str], k: int, eligible: set[int] | None = None
    ) -> tuple[list[int], list[str]]:
        scores = self.score_all(words)
        rows = [row for row in scores if eligible is None or row in eligible]
        best = sorted(rows, key=lambda row: (-scores[row], row))[:k]
        return best, [scores[row].hex() for row in best]


def bits(found: tuple[list[int], list[float], int]) -> tuple[list[int], list[str]]:
    return found[0], [score.hex() for score in found[1]]


def change(index: Any, model: Model, action: str, row: int, words: list[str]) -> None:
    """Make one change on both; where it does not apply, the index must refuse it and stay as it is."""
    if action == "add" or not model.rows:
        assert index.add(words) == len(model.rows)
        model.rows.append(list(words))
        return
    row %= len(model.rows)
    erased, hidden = not model.rows[row], row in model.hidden
    if erased or (action == "hide" and hidden) or (action == "show" and not hidden):
        with pytest.raises(ValueError, match=str(row)):
            getattr(index, action)(row)
        return
    getattr(index, action)(row)
    if action == "hide":
        model.hidden.add(row)
    else:
        model.hidden.discard(row)
    if action == "erase":
        model.rows[row] = []


word_lists = st.lists(st.sampled_from(WORDS), max_size=12)
changes = st.lists(
    st.tuples(
        st.sampled_from(["add", "add", "add", "hide", "show", "erase"]), st.integers(0, 40), word_lists
    ),
    max_size=40,
)
parameters = st.sampled_from(PARAMETERS)


def grown(module: Any, history: list[tuple[str, int, list[str]]], k1: float, b: float) -> tuple[Any, Model]:
    index, model = module.Index(k1, b), Model(k1, b)
    for action, row, words in history:
        change(index, model, action, row, words)
    return index, model


def assert_statistics(index: Any, model: Model) -> None:
    assert index.rows == len(model.rows)
    assert index.document_count == len(model.live)
    assert index.total_length == model.total_length()
    for word in WORDS:
        assert index.document_frequency(word) == model.frequency(word)
    for row, words in enumerate(model.rows):
        assert index.is_live(row) == model.is_live(row)
        assert index.row_length(row) == len(words)
        assert index.row_terms(row) == list(Counter(words).items())


@every_implementation
@given(changes, parameters)
def test_after_any_changes_the_statistics_are_those_of_the_live_rows(module, history, chosen):
    assert_statistics(*grown(module, history, *chosen))


@every_implementation
@given(changes, parameters, word_lists, st.integers(0, 45))
def test_a_search_gives_the_rows_and_score_bits_of_the_definition(module, history, chosen, words, k):
    index, model = grown(module, history, *chosen)
    assert bits(index.search(words, k)) == model.search(words, k)


instants = st.integers(-3, 3) | st.sampled_from([-(2**63), 2**63 - 1])


@every_implementation
@given(changes, word_lists, st.integers(1, 10), st.data())
def test_times_masks_and_row_lists_decide_before_the_best_are_taken(module, history, words, k, data):
    index, model = grown(module, history, 0.9, 0.4)
    count, at, options = len(model.rows), data.draw(instants), {}
    eligible = set(range(count))
    column = st.lists(instants, min_size=count, max_size=count + 2)
    if data.draw(st.booleans()):
        start, stop, ended = (array("q", data.draw(column)) for _ in range(3))
        options |= {"times": (start, stop, ended), "at": at}
        eligible &= {row for row in range(count) if start[row] <= at < stop[row] and at < ended[row]}
    if data.draw(st.booleans()):
        mask = bytes(data.draw(st.lists(st.sampled_from([0, 0, 1, 255]), min_size=count, max_size=count + 2)))
        options["mask"] = mask
        eligible &= {row for row in range(count) if mask[row]}
    if data.draw(st.booleans()):
        rows = sorted(data.draw(st.sets(st.integers(0, count - 1)))) if count else []
        options["rows"] = array("i", rows)
        eligible &= set(rows)
    assert bits(index.search(words, k, **options)) == model.search(words, k, eligible)


@every_implementation
@given(changes, parameters, word_lists)
def test_scores_of_given_rows_are_those_of_the_definition(module, history, chosen, words):
    index, model = grown(module, history, *chosen)
    expected = model.score_all(words)
    rows = [*reversed(model.live), *model.live]
    assert [score.hex() for score in index.scores(words, rows)] == [
        expected.get(row, 0.0).hex() for row in rows
    ]


@every_implementation
@given(changes, parameters, word_lists)
def test_an_index_with_a_history_answers_like_one_that_only_ever_held_its_live_rows(
    module, history, chosen, words
):
    index, model = grown(module, history, *chosen)
    fresh = module.Index(*chosen)
    numbers = {fresh.add(model.rows[row]): row for row in model.live}
    rows, scores = bits(fresh.search(words, 100))
    assert bits(index.search(words, 100)) == ([numbers[row] for row in rows], scores)


@every_implementation
@given(changes, parameters, word_lists)
def test_a_loaded_snapshot_is_the_index_that_was_dumped(module, history, chosen, words):
    index, model = grown(module, history, *chosen)
    loaded = module.load(index.dump())
    assert loaded.parameters == index.parameters
    assert_statistics(loaded, model)
    assert bits(loaded.search(words, 9)) == model.search(words, 9)
    for row in sorted(model.hidden):
        change(loaded, model, "show", row, [])
    change(loaded, model, "add", 0, words)
    assert_statistics(loaded, model)
    assert loaded.dump() == module.load(loaded.dump()).dump()


@every_implementation
@given(changes, word_lists)
def test_compaction_changes_no_answer(module, history, words):
    index, model = grown(module, history, 0.9, 0.4)
    before = index.dump()
    index.compact()
    assert index.dump() == before
    change(index, model, "add", 0, words)
    assert_statistics(index, model)
    assert bits(index.search(words, 5)) == model.search(words, 5)


@both_implementations
@given(changes, parameters)
def test_both_implementations_write_the_same_snapshot(history, chosen):
    assert grown(kernel, history, *chosen)[0].dump() == grown(reference, history, *chosen)[0].dump()


BLOB = grown(
    reference, [("add", 0, ["a"] * 5 + ["b"]), ("add", 0, ["é", "a", "b"]), ("hide", 0, [])], 0.9, 0.4
)[0].dump()


@every_implementation
@given(st.integers(0, len(BLOB) - 1), st.integers(1, 255))
def test_a_snapshot_with_one_changed_byte_is_refused(module, place, difference):
    damaged = bytearray(BLOB)
    damaged[place] ^= difference
    with pytest.raises(ValueError, match="damaged"):
        module.load(bytes(damaged))


@every_implementation
@given(st.integers(0, len(BLOB) - 1))
def test_a_snapshot_that_was_cut_short_is_refused(module, size):
    with pytest.raises(ValueError, match="damaged"):
        module.load(BLOB[:size])


def is_refused(module: Any, blob: bytes) -> bool:
    try:
        module.load(blob)
    except ValueError:
        return True
    return False


@both_implementations
@settings(max_examples=examples(150))
@given(
    st.lists(st.tuples(st.integers(2, len(BLOB) // 4 - 2), st.integers(0, 31)), min_size=1, max_size=3),
    st.sampled_from([0, 0, 0, 4, -4, 1]),
)
def test_damage_under_a_valid_checksum_is_refused_by_both_implementations_or_by_neither(flips, longer):
    """Both loaders check the structure itself: what they take is an index that holds together."""
    body = bytearray(BLOB[:-4])
    for word, bit in flips:
        (value,) = struct.unpack_from("<I", body, 4 * word)
        struct.pack_into("<I", body, 4 * word, value ^ 1 << bit)
    body = body[:longer] if longer < 0 else body + bytes(longer)
    blob = bytes(body) + struct.pack("<I", zlib.crc32(body))
    assume(math.isfinite(struct.unpack_from("<d", body, 16)[0]))
    refused = is_refused(kernel, blob)
    assert refused == is_refused(reference, blob)
    if not refused:
        assert kernel.load(blob).dump() == reference.load(blob).dump() == blob


# Sizes at which lists are pruned, common terms have dense rows, and rows are scored window by window.
def large(module: Any, seed: int, rows: int, vocabulary: int) -> tuple[Any, Model]:
    chance = random.Random(seed)
    words = [f"w{number}" for number in range(vocabulary)]
    weights = [1 / (number + 1) for number in range(vocabulary)]
    index, model = module.Index(0.9, 0.4), Model(0.9, 0.4)
    for _ in range(rows):
        change(index, model, "add", 0, chance.choices(words, weights, k=chance.choice([1, 5, 12, 24, 40])))
    for _ in range(rows // 2):
        change(index, model, chance.choice(["hide", "show", "erase"]), chance.randrange(rows), [])
    return index, model


@every_implementation
@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([300, 1500, 2600]), st.sampled_from([15, 300]))
@example(1, 2600, 300)
def test_pruning_never_changes_an_answer(module, seed, rows, vocabulary):
    index, model = large(module, seed, rows, vocabulary)
    chance = random.Random(seed + 1)
    start = array("q", [chance.randrange(100) for _ in range(rows)])
    stop = array("q", [begun + 60 for begun in start])
    ended = array("q", [begun + chance.randrange(120) for begun in start])
    valid = {row for row in range(rows) if start[row] <= 70 < stop[row] and ended[row] > 70}
    mask = bytes(chance.random() < 0.2 for _ in range(rows))
    masked = {row for row in range(rows) if mask[row]}
    for count in (1, 2, 4, 7, 30):
        words = [f"w{int(vocabulary * chance.random() ** 3)}" for _ in range(count)]
        k = chance.choice([1, 3, 10, 100, rows])
        assert bits(index.search(words, k)) == model.search(words, k)
        assert bits(index.search(words, k, times=(start, stop, ended), at=70)) == model.search(
            words, k, valid
        )
        assert bits(index.search(words, k, mask=mask)) == model.search(words, k, masked)
        found, longer = index.search(words, k), index.search(words, k + 1)
        assert longer[0][:k] == found[0]
        assert longer[1][:k] == found[1]


@every_implementation
@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6), st.lists(st.integers(0, 30), min_size=1, max_size=6))
def test_a_search_is_refused_exactly_when_its_work_is_over_the_limit(module, seed, numbers):
    index, _ = large(module, seed, 400, 30)
    words = [f"w{number}" for number in numbers]
    rows, scores, work = index.search(words, 5)
    assert index.search(words, 5, work_max=work) == (rows, scores, work)
    assume(work > 0)
    with pytest.raises(WorkExceeded) as refused:
        index.search(words, 5, work_max=work - 1)
    assert refused.value.limit == work - 1
    assert refused.value.used > refused.value.limit
