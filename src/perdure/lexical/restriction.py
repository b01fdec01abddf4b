"""Read the options of a lexical search from their buffers, and decide which rows may be found."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from perdure.base.text import counted
from perdure.lexical.postings import Rows
from perdure.lexical.search_options import WORK_UNLIMITED, SearchOptions
from perdure.lexical.snapshot import LIVE

Flags = npt.NDArray[np.bool_]


class Restriction:
    """Which rows may be found, and how much work that may take."""

    def __init__(
        self, row_count: int, states: npt.NDArray[np.uint8], **options: Unpack[SearchOptions]
    ) -> None:
        unknown = sorted(options.keys() - SearchOptions.__annotations__.keys())
        if unknown:
            raise TypeError(f"search() has no argument {unknown[0]!r}")
        self._states = states
        self._at = options.get("at", 0)
        self._times = _columns(options.get("times"), row_count)
        mask = options.get("mask")
        self._mask = None if mask is None else _buffer(mask, "uib", 1, "mask", row_count)
        rows = options.get("rows")
        self.rows = None if rows is None else _walk(rows, row_count)
        self.work_max = options.get("work_max", WORK_UNLIMITED)
        if self.work_max < 0:
            raise ValueError(f"work_max must be at least 0, got {self.work_max}")

    def eligible(self, rows: Rows) -> Flags:
        """Tell for each row whether it may be found."""
        keep: Flags = self._states[rows] == LIVE
        if self._mask is not None:
            keep &= self._mask[rows] != 0
        if self._times is not None:
            valid_from, valid_to, superseded_from = (column[rows] for column in self._times)
            keep &= (valid_from <= self._at) & (self._at < valid_to) & (self._at < superseded_from)
        return keep


def _buffer(values: Any, kinds: str, size: int, name: str, row_count: int) -> npt.NDArray[Any]:
    column = np.asarray(memoryview(values))
    if column.ndim != 1 or column.dtype.kind not in kinds or column.dtype.itemsize != size:
        raise TypeError(f"{name} must be a one-dimensional buffer of {size}-byte integers")
    if len(column) < row_count:
        raise ValueError(
            f"{name} has {counted(len(column), 'entry', 'entries')}, the index has {counted(row_count, 'row')}"
        )
    return column


def _columns(times: Any, row_count: int) -> list[npt.NDArray[np.int64]] | None:
    if times is None:
        return None
    if not isinstance(times, tuple) or len(times) != 3:
        raise TypeError("times must be a tuple of valid_from, valid_to and superseded_from")
    names = ("times[0] (valid_from)", "times[1] (valid_to)", "times[2] (superseded_from)")
    return [_buffer(column, "i", 8, name, row_count) for column, name in zip(times, names, strict=True)]


def _walk(rows: Any, row_count: int) -> Rows:
    walked: Rows = _buffer(rows, "i", 4, "rows", 0)
    outside = (walked < 0) | (walked >= row_count)
    if outside.any():
        raise ValueError(f"rows must be from 0 to {row_count - 1}, got {walked[outside][0]}")
    if (np.diff(walked) <= 0).any():
        raise ValueError("rows must ascend without repeats")
    return walked
