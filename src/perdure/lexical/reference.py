"""The lexical index in NumPy: the readable reference, and the fallback where no kernel was built.

It gives what the compiled kernel gives, bit for bit; perdure.lexical.index.LexicalIndex says what that is.
Searching is exact MaxScore: terms are taken in the order in which a row's score is summed, rarest first. Once
the remaining terms together cannot lift a row to the k-th best score seen, no new rows are taken in, and rows
that fell behind are dropped before the next term is looked up for those that are left.
"""

from __future__ import annotations

from array import array
from collections import Counter
from typing import Unpack

import numpy as np
import numpy.typing as npt

from perdure.lexical import bm25, snapshot
from perdure.lexical.bm25 import LENGTH_MAX, TF_MAX, WorkExceeded
from perdure.lexical.postings import Column, Postings, Rows, SoughtTerm, probe
from perdure.lexical.restriction import Flags, Restriction
from perdure.lexical.search_options import SearchOptions
from perdure.lexical.snapshot import ERASED, HIDDEN, LIVE

Scores = npt.NDArray[np.float64]

MARGIN = 1 + 1e-9  # raises sums of bounds: rounding must not make them too small


class Index:
    """An exact lexical index; perdure.lexical.index.LexicalIndex describes its methods."""

    def __init__(self, k1: float, b: float) -> None:
        bm25.check_parameters(k1, b)
        self.parameters = (float(k1), float(b))
        self.document_count = 0
        self.total_length = 0
        self._numbers: dict[str, int] = {}
        self._terms: list[str] = []
        self._postings: list[Postings] = []
        self._forward: list[array[int]] = []  # per row: term, tf, term, tf …
        self._lengths, self._states = Column(np.int32), Column(np.uint8)

    @property
    def rows(self) -> int:
        return len(self._forward)

    def add(self, terms: list[str], /) -> int:
        tfs = Counter(_checked_terms(terms))  # keeps the order of first appearance
        row, entries = self.rows, array("i")
        for term, tf in tfs.items():
            entries.extend((self._intern(term), min(tf, TF_MAX)))
        self._forward.append(entries)
        self._lengths.append(min(len(terms), LENGTH_MAX))
        self._states.append(LIVE if terms else ERASED)
        for number, tf in _pairs(entries):
            self._postings[number].rows.append(row)
            self._postings[number].tfs.append(tf)
        self._count(row, 1 if terms else 0)
        return row

    def hide(self, row: int, /) -> None:
        self._check_state(row, LIVE, "is not live: only a live row can be hidden")
        self._count(row, -1)
        self._states.values[row] = HIDDEN

    def show(self, row: int, /) -> None:
        self._check_state(row, HIDDEN, "is not hidden: only a hidden row can be shown")
        self._count(row, 1)
        self._states.values[row] = LIVE

    def erase(self, row: int, /) -> None:
        self._check_row(row)
        if self._states.values[row] == ERASED:
            raise ValueError(f"row {row} is already erased, or never had terms")
        if self.is_live(row):
            self._count(row, -1)
        for number, _ in _pairs(self._forward[row]):
            self._postings[number].delete(row)
        self._forward[row] = array("i")
        self._lengths.values[row] = 0
        self._states.values[row] = ERASED

    def compact(self) -> None:
        self.__dict__.update(load(self.dump()).__dict__)

    def is_live(self, row: int, /) -> bool:
        self._check_row(row)
        return bool(self._states.values[row] == LIVE)

    def document_frequency(self, term: str, /) -> int:
        number = self._numbers.get(_checked_terms([term])[0])
        return 0 if number is None else self._postings[number].document_frequency

    def row_length(self, row: int, /) -> int:
        self._check_row(row)
        return int(self._lengths.values[row])

    def row_terms(self, row: int, /) -> list[tuple[str, int]]:
        self._check_row(row)
        return [(self._terms[number], tf) for number, tf in _pairs(self._forward[row])]

    def shares(self, term: str, /) -> tuple[bytes, bytes]:
        number = self._numbers.get(_checked_terms([term])[0])
        if number is None or not self._postings[number].document_frequency:
            return b"", b""
        rows, tfs = self._postings[number].rows.values, self._postings[number].tfs.values
        live = self._states.values[rows] == LIVE
        found = self.contributions(SoughtTerm(self._postings[number], 1.0, 0.0), rows[live], tfs[live])
        return rows[live].astype(np.int32).tobytes(), found.tobytes()

    def search(
        self, terms: list[str], k: int, **options: Unpack[SearchOptions]
    ) -> tuple[list[int], list[float], int]:
        if k < 0:
            raise ValueError(f"k must be at least 0, got {k}")
        restriction = Restriction(self.rows, self._states.values, **options)
        sought = self._seek(terms)
        if not sought or k == 0:
            return [], [], 0
        k = min(k, self.document_count)
        scan = Scan(self, sought, restriction)
        rows, scores = scan.all_matches() if restriction.rows is not None else scan.best_matches(k)
        keep = restriction.eligible(rows)
        return *_best(rows[keep], scores[keep], k), scan.work

    def scores(self, terms: list[str], rows: list[int], /) -> list[float]:
        for row in rows:
            if not self.is_live(row):
                raise ValueError(f"row {row} is not live")
        wanted = np.array(rows, dtype=np.int32)
        scores = np.zeros(len(rows))
        for term in self._seek(terms):
            scores += self.contributions(term, *probe(term, wanted))
        return [float(score) for score in scores]

    def dump(self) -> bytes:
        entries = np.frombuffer(b"".join(map(bytes, self._forward)), dtype=np.int32).astype(np.int64)
        contents = snapshot.Contents(
            *self.parameters,
            lengths=self._lengths.values.astype(np.int64),
            states=self._states.values.astype(np.int64),
            entry_counts=np.array([len(each) // 2 for each in self._forward], dtype=np.int64),
            numbers=entries[::2],
            tfs=entries[1::2],
            terms=self._terms,
        )
        return snapshot.encode(contents)

    def memory_bytes(self) -> int:
        columns = [self._lengths, self._states]
        for postings in self._postings:
            columns += [postings.rows, postings.tfs]
        names = sum(len(term) for term in self._terms)
        per_object = 100  # about what an array, an entry of a dict or a str takes beyond its contents
        forward = sum(4 * len(entries) + per_object for entries in self._forward)
        objects = per_object * (2 * len(self._terms) + len(columns))
        return forward + names + objects + sum(column.memory_bytes for column in columns)

    def contributions(self, term: SoughtTerm, rows: Rows, tfs: npt.NDArray[np.int32]) -> Scores:
        """Return what a term adds to the scores of rows, given its tf in each."""
        k1, b = self.parameters
        average = self.total_length / self.document_count
        norms = k1 * (1.0 - b + b * self._lengths.values[rows] / average)
        shares = np.zeros(len(rows))
        np.divide(tfs, tfs + norms, out=shares, where=tfs > 0)
        return term.weight * shares

    def _intern(self, term: str) -> int:
        number = self._numbers.setdefault(term, len(self._terms))
        if number == len(self._terms):
            self._terms.append(term)
            self._postings.append(Postings())
        return number

    def _count(self, row: int, sign: int) -> None:
        self.document_count += sign
        self.total_length += sign * int(self._lengths.values[row])
        for number, _ in _pairs(self._forward[row]):
            self._postings[number].document_frequency += sign

    def _check_row(self, row: int) -> None:
        if not 0 <= row < self.rows:
            raise ValueError(f"row must be from 0 to {self.rows - 1}, got {row}")

    def _check_state(self, row: int, state: int, problem: str) -> None:
        self._check_row(row)
        if self._states.values[row] != state:
            raise ValueError(f"row {row} {problem}")

    def _seek(self, terms: list[str]) -> list[SoughtTerm]:
        """Return the distinct terms that live rows hold, in the order in which contributions are added."""
        known = {self._numbers[term] for term in _checked_terms(terms) if term in self._numbers}
        order = sorted((self._postings[number].document_frequency, self._terms[number]) for number in known)
        return [self._weigh(self._postings[self._numbers[term]]) for frequency, term in order if frequency]

    def _weigh(self, postings: Postings) -> SoughtTerm:
        k1, b = self.parameters
        weight = bm25.idf(self.document_count, postings.document_frequency)
        least_norm = bm25.norm(0, average_length=self.total_length / self.document_count, k1=k1, b=b)
        bound = bm25.contribution(weight, int(postings.tfs.values.max()), least_norm)
        return SoughtTerm(postings, weight, bound * MARGIN)


def load(blob: bytes) -> Index:
    """Return the index that a snapshot holds. ValueError if the bytes are damaged."""
    contents = snapshot.decode(blob)
    index = Index(contents.k1, contents.b)
    for term in contents.terms:
        index._intern(term)
    index._lengths.extend(contents.lengths)
    index._states.extend(contents.states)
    entries = np.stack((contents.numbers, contents.tfs), axis=1).astype(np.int32)
    stops = np.cumsum(contents.entry_counts)
    for start, stop in zip(stops - contents.entry_counts, stops, strict=True):
        index._forward.append(array("i", entries[start:stop].tobytes()))
    live = contents.states == LIVE
    index.document_count, index.total_length = int(live.sum()), int(contents.lengths[live].sum())
    _load_postings(index, contents, live)
    return index


def _load_postings(index: Index, contents: snapshot.Contents, live: Flags) -> None:
    rows = np.repeat(np.arange(len(live)), contents.entry_counts)
    order = np.argsort(contents.numbers, kind="stable")  # by term, and within a term by row
    counts = np.bincount(contents.numbers, minlength=len(contents.terms))
    frequencies = np.bincount(contents.numbers[live[rows]], minlength=len(contents.terms))
    stops = np.cumsum(counts)
    for number, postings in enumerate(index._postings):
        mine = order[stops[number] - counts[number] : stops[number]]
        postings.rows.extend(rows[mine])
        postings.tfs.extend(contents.tfs[mine])
        postings.document_frequency = int(frequencies[number])


class Scan:
    """One search over the postings of the sought terms; work counts the postings and rows it tested."""

    def __init__(self, index: Index, sought: list[SoughtTerm], restriction: Restriction) -> None:
        self.work = 0
        self._index, self._sought, self._restriction = index, sought, restriction

    def all_matches(self) -> tuple[Rows, Scores]:
        """Score the given rows; return those that hold a term."""
        rows = self._restriction.rows
        assert rows is not None
        self._spend(len(rows))
        scores = np.zeros(len(rows))
        for term in self._sought:
            scores += self._index.contributions(term, *probe(term, rows))
        return rows[scores > 0], scores[scores > 0]

    def best_matches(self, k: int) -> tuple[Rows, Scores]:
        """Return rows and scores, ascending by row; the k best eligible rows are among them."""
        sums = np.zeros(self._index.rows)
        theta = 0.0
        taken = 0
        for term in self._sought:
            if self._rest(taken) < theta:
                break
            postings = term.postings.rows.values
            self._spend(len(postings))
            sums[postings] += self._index.contributions(term, postings, term.postings.tfs.values)
            taken += 1
            if taken < len(self._sought):
                theta = max(theta, self._kth_best(postings, sums[postings], k))
        rows: Rows = np.flatnonzero(sums).astype(np.int32)
        return self._finish(rows, sums[rows], taken, k)

    def _finish(self, rows: Rows, scores: Scores, taken: int, k: int) -> tuple[Rows, Scores]:
        """Look the remaining terms up for the rows that can still be among the k best."""
        for place in range(taken, len(self._sought)):
            theta = self._kth_best(rows, scores, k)
            keep = scores + self._rest(place) >= theta
            rows, scores = rows[keep], scores[keep]
            self._spend(len(rows))
            term = self._sought[place]
            scores = scores + self._index.contributions(term, *probe(term, rows))
        return rows, scores

    def _rest(self, place: int) -> float:
        """No row gains more than this from the terms at this place and after it."""
        return sum(term.bound for term in self._sought[place:]) * MARGIN

    def _kth_best(self, rows: Rows, scores: Scores, k: int) -> float:
        eligible = scores[self._restriction.eligible(rows)]
        return float(np.partition(eligible, -k)[-k]) if len(eligible) >= k else 0.0

    def _spend(self, units: int) -> None:
        self.work += units
        if self.work > self._restriction.work_max:
            raise WorkExceeded(self.work, self._restriction.work_max)


def _best(rows: Rows, scores: Scores, k: int) -> tuple[list[int], list[float]]:
    if len(rows) > k:
        keep = scores >= np.partition(scores, -k)[-k]
        rows, scores = rows[keep], scores[keep]
    order = np.lexsort((rows, -scores))[:k]
    return rows[order].tolist(), scores[order].tolist()


def _pairs(entries: array[int]) -> zip[tuple[int, int]]:
    return zip(entries[::2], entries[1::2], strict=True)


def _checked_terms(terms: list[str]) -> list[str]:
    if not isinstance(terms, list | tuple):
        raise TypeError("expected a list or tuple")
    for term in terms:
        if not isinstance(term, str):
            raise TypeError("terms must be a list of str")
        term.encode()  # a lone surrogate is an error here and not at the next snapshot
    return terms
