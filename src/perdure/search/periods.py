"""Periods that a question names: a year, a month or a day, in figures or with an English month."""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

DAY_MS = 86_400_000
MONTHS = {name.lower(): number for number, name in enumerate(calendar.month_name) if name}
SHORT = {name[:3]: number for name, number in MONTHS.items() if name != "may"} | {"sept": 9}
VERBS = frozenset({"may", "march", "mar"})  # in lower case, or where a sentence begins, these are other words

_YEAR = r"(?P<year>(?:19|20)\d\d)"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_MONTH = rf"(?P<name>{'|'.join([*MONTHS, *SHORT])})\.?"
# Longest forms first: what one has taken, no later one reads again.
_FORMS = [
    re.compile(form, re.IGNORECASE)
    for form in (
        r"\b(?P<year>(?:19|20)\d\d)-(?P<month>\d\d)(?:-(?P<day>\d\d))?\b",
        rf"\b{_DAY}(?:\s+of)?\s+{_MONTH},?\s*{_YEAR}\b",
        rf"\b{_MONTH}\s+{_DAY},?\s*{_YEAR}\b",
        rf"\b{_MONTH},?\s+(?:of\s+)?{_YEAR}\b",
        rf"\b{_DAY}(?:\s+of)?\s+{_MONTH}(?!\w)",
        rf"\b{_MONTH}\s+{_DAY}(?!\w)",
        rf"\b(?P<name>{'|'.join(MONTHS)})\b",
        rf"\b{_YEAR}\b",
    )
]
TEXT_MAX = 4_096  # characters of a question that are looked through; longer ones are texts, not questions


class Period(NamedTuple):
    """A year, a month or a day; None where not named. A month without a year is that month of every year."""

    year: int | None
    month: int | None
    day: int | None

    def __str__(self) -> str:
        """As ISO 8601 writes it, `--05` for the month of every year."""
        year = "-" if self.year is None else f"{self.year:04d}"
        return "-".join([year, *(f"{part:02d}" for part in (self.month, self.day) if part is not None)])


def named_periods(question: str) -> tuple[Period, ...]:
    """Return the periods that a question names, each once, in the order of the forms."""
    found: dict[Period, None] = {}
    used: list[tuple[int, int]] = []
    for form in _FORMS:
        for match in form.finditer(question[:TEXT_MAX]):
            start, end = match.span()
            if any(a < end and start < b for a, b in used):
                continue
            period = _period(match.groupdict(), first=start == 0)
            if period is not None:
                used.append((start, end))
                found[period] = None
    return tuple(found)


def _period(told: dict[str, Any], *, first: bool) -> Period | None:
    name = told.get("name")
    year = int(told["year"]) if told.get("year") else None
    day = int(told["day"]) if told.get("day") else None
    month = int(told["month"]) if told.get("month") else None
    if name is not None:
        lower = name.lower()
        if lower in VERBS and year is None and day is None and (first or not name[0].isupper()):
            return None
        month = MONTHS.get(lower) or SHORT[lower]
    if month is not None and not 1 <= month <= 12:
        return None
    # In a year that is not named any February may have 29 days.
    if month is not None and day is not None and not 1 <= day <= calendar.monthrange(year or 2024, month)[1]:
        return None
    return Period(year, month, day)


def within(times: NDArray[np.int64], periods: Sequence[Period], tail_days: int) -> NDArray[np.bool_]:
    """Tell for each time (milliseconds) whether it lies in one of the periods or up to `tail_days` after its end."""
    inside = np.zeros(len(times), dtype=np.bool_)
    years = [
        int(year) + 1970
        for year in np.unique(times.astype("datetime64[ms]").astype("datetime64[Y]").astype(np.int64))
    ]
    for period in periods:
        for start, end in _spans(period, years):
            inside |= (times >= start) & (times < end + tail_days * DAY_MS)
    return inside


def _spans(period: Period, years: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the beginning and the end of a period, in each of the years (and the one before) if it names none."""
    chosen = (
        {period.year} if period.year is not None else {near for year in years for near in (year - 1, year)}
    )
    for year in sorted(chosen):
        if period.month is None:
            yield _millis(year, 1, 1), _millis(year + 1, 1, 1)
        elif period.day is None:
            yield _millis(year, period.month, 1), _millis(year + period.month // 12, period.month % 12 + 1, 1)
        elif period.day <= calendar.monthrange(year, period.month)[1]:
            start = _millis(year, period.month, period.day)
            yield start, start + DAY_MS


def _millis(year: int, month: int, day: int) -> int:
    # Not datetime: the year after 9999 and the one before 1 are bounds here.
    return int(np.datetime64(f"{year:04d}-{month:02d}-{day:02d}", "ms").astype(np.int64))
