"""What may be asked of a lexical search beyond its terms: who is eligible, and how much work it may do."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, TypedDict

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    Int64Buffer = array[int] | npt.NDArray[np.int64]
    Int32Buffer = array[int] | npt.NDArray[np.int32]
    ByteBuffer = bytes | bytearray | memoryview | npt.NDArray[np.uint8] | npt.NDArray[np.bool_]

WORK_UNLIMITED = 2**62


class SearchOptions(TypedDict, total=False):
    """The keywords of LexicalIndex.search. Every restriction given must hold for a row to be found.

    times: columns valid_from, valid_to and superseded_from of int64, one buffer each, at least as long as
        the index has rows. A row is eligible if valid_from <= at < valid_to and at < superseded_from.
    at: the instant for times, 0 if not given; without times it means nothing.
    mask: one byte a row, at least as long as the index has rows; any byte but 0 means eligible.
    rows: row numbers, int32, ascending without repeats: only these are looked at, one by one. Best for
        up to about 2,000 of them; above that a mask is faster.
    work_max: raise WorkExceeded once more postings and rows than this were tested. How many a query needs
        depends on the implementation, the same query on the same index always needs the same.
    """

    times: tuple[Int64Buffer, Int64Buffer, Int64Buffer] | None
    at: int
    mask: ByteBuffer | None
    rows: Int32Buffer | None
    work_max: int
