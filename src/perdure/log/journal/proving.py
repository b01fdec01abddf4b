"""Finding the lines of a journal that are still what was written, wherever in the file they have got to.

The digest of a line covers its number, so a line proves its number as well. Where lines were lost, inserted or moved,
the numbers near the expected one are tried first; where two lines in a row fit none of these, all are. What is left then may be any line that is still missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hmac import compare_digest
from itertools import pairwise
from typing import NamedTuple

from perdure.log.journal.lines import Digest, LineParts, find_parts
from perdure.log.protocol import Progress

NEAR = 64  # how far from the expected number a line is looked for at once, either way
# Numbers tried far from the expected ones, in all, a long line counting more than once: some 20 seconds.
TRIES_MAX = 5_000_000
LINES_MAX = 10_000_000  # a damaged mark may say anything; no journal that fits into memory has more
_FEW = 1_000  # so many lines may be lost of a file that has hardly any left
_TRY_BYTES = 512
_STEP = 1_000  # lines between two words of progress
_START = re.compile(rb'\{"v":')  # never within a line: a quotation mark in a text is escaped


class Piece(NamedTuple):
    """A stretch of the file that looks like a line: what its parts may be."""

    forms: tuple[LineParts, ...]


class Proven(NamedTuple):
    """A line that is what was written as this number of the journal."""

    number: int
    place: int  # of its piece, from 0
    raw: bytes  # with its line feed


def find_pieces(data: bytes) -> Iterator[Piece]:
    """Yield all that looks like a line, in the order of the file, with or without its line feed."""
    starts = (found.start() for found in _START.finditer(data))
    for start, following in pairwise([*starts, len(data) + 1]):
        feed = data.find(b"\n", start, following)
        if feed >= 0:
            yield _piece(data[start:feed])
        else:
            # The line feed is lost, or another byte stands in its place.
            yield _piece(data[start:following], data[start : following - 1])


def _piece(*texts: bytes) -> Piece:
    ends = {text[: text.rfind(b"}") + 1]: None for text in texts}
    return Piece(tuple(parts for text in ends if (parts := find_parts(text + b"\n")) is not None))


def find_proven(
    pieces: list[Piece], digest: Digest, acknowledged: int, progress: Progress | None = None
) -> list[Proven]:
    """Return the lines after line 1 that their digest proves, in the order of the file; one number may have several.

    Args:
        acknowledged: how many lines there were, as far as that is known.
        progress: told the pieces that were looked at, of all.
    """
    highest = max(2 * len(pieces) + _FEW, min(acknowledged, LINES_MAX))
    search = _Search(pieces, digest, highest)
    for index in range(len(pieces)):
        search.take(index)
        if progress is not None and ((index + 1) % _STEP == 0 or index + 1 == len(pieces)):
            progress(index + 1, len(pieces))
    numbers = [line.number for line in search.found.values()]
    search.take_strays(max(min(acknowledged, LINES_MAX), len(pieces), *numbers, 0))
    return [search.found[index] for index in sorted(search.found)]


@dataclass(slots=True)
class _Search:
    pieces: list[Piece]
    digest: Digest
    highest: int
    found: dict[int, Proven] = field(default_factory=dict)  # by place
    _shift: int = 1  # what is added to an index for the number that is expected there
    _run: list[int] = field(default_factory=list)  # unproven pieces since the last proven one
    _tries: int = TRIES_MAX

    def take(self, index: int) -> None:
        """Look at the next piece; once one is proven, at the unproven ones before it again."""
        line = self._near(index)
        if line is None:
            self._run.append(index)
            length = len(self._run)
            if length == 1 or length & (length - 1):  # at 2, 4, 8 … a long damage costs few searches
                return
            line = self._anywhere(index)
            if line is None:
                return
        self._keep(line)
        run, self._run = self._run, []
        for earlier in reversed(run):
            if earlier != index and (found := self._near(earlier)) is not None:
                self.found[earlier] = found

    def take_strays(self, last: int) -> None:
        """Look for the lines that are far from all others among the numbers up to `last` that are missing."""
        missing = dict.fromkeys(range(2, last + 1))
        for known in self.found.values():
            missing.pop(known.number, None)
        for index, piece in enumerate(self.pieces):
            if index not in self.found and self._affords(piece, len(missing)):
                line = self._first(index, missing)
                if line is not None:
                    self.found[index] = line
                    del missing[line.number]

    def _keep(self, line: Proven) -> None:
        self.found[line.place] = line
        self._shift = line.number - line.place

    def _near(self, index: int) -> Proven | None:
        return self._first(index, _around(index + self._shift, NEAR, self.highest))

    def _anywhere(self, index: int) -> Proven | None:
        if not self._affords(self.pieces[index], self.highest):
            return None
        return self._first(index, _around(index + self._shift, self.highest, self.highest))

    def _affords(self, piece: Piece, numbers: int) -> bool:
        """Whether a piece may be tried under so many numbers; takes them from what is left to try."""
        cost = sum(1 + len(parts.after) // _TRY_BYTES for parts in piece.forms) * numbers
        if cost > self._tries:
            return False
        self._tries -= cost
        return True

    def _first(self, index: int, numbers: Iterable[int]) -> Proven | None:
        """Return the piece as a line of the first of these numbers by which it is proven."""
        for number in numbers:
            for parts in self.pieces[index].forms:
                if compare_digest(self.digest(number, parts.before, parts.after), parts.sha):
                    return Proven(number, index, parts.raw)
        return None


def _around(expected: int, reach: int, highest: int) -> Iterator[int]:
    """Yield the numbers of lines after line 1, from the expected one outwards."""
    for offset in range(reach + 1):
        for number in {expected + offset: None, expected - offset: None}:
            if 2 <= number <= highest:
                yield number
