"""Instants: integer milliseconds inside; datetimes, integers or ISO 8601 text outside."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from perdure.base.text import shown_number
from perdure.errors import InvalidRequest

Instant = datetime | int | str
"""What a caller may give as a moment: an aware or naive datetime (naive means UTC), integer
milliseconds since 1970-01-01T00:00:00Z, or ISO 8601 text (a date alone is its midnight, UTC)."""

EARLIEST = -62_135_596_800_000  # 0001-01-01T00:00:00.000Z, the first instant a datetime can show
LATEST = 253_402_300_799_999  # 9999-12-31T23:59:59.999Z, the last one
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NAIVE_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - naive means UTC here
_MILLISECOND = timedelta(milliseconds=1)
_DAY = timedelta(days=1)
# What the code of a caller's time zone may raise, the refusals by datetime of what it returned included.
_ZONE_ERRORS = (TypeError, ValueError, ArithmeticError, LookupError, AttributeError, RuntimeError, OSError)
_ISO = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})(?:[Tt ](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?\s?([Zz]|[+-]\d{2}:?\d{2})?)?",
    re.ASCII,
)


def to_millis(value: Instant, *, field: str) -> int:
    """Return the instant as integer milliseconds since 1970; parts below a millisecond floor.

    Raises:
        InvalidRequest: not an instant, or outside years 1 to 9999 after conversion to UTC.
    """
    if type(value) is int:
        return _checked(value, field)
    if isinstance(value, datetime):
        return _checked(_from_datetime(value, field), field)
    if isinstance(value, str):
        return _checked(_from_text(str.__str__(value), field), field)
    raise InvalidRequest(
        f"{field} must be a datetime, integer milliseconds or ISO 8601 text, got {type(value).__name__}",
        field=field,
    )


def find_millis(value: Instant | None, *, field: str) -> int | None:
    """Return None for None, otherwise as `to_millis`."""
    return None if value is None else to_millis(value, field=field)


def to_datetime(millis: int) -> datetime:
    """Return an aware UTC datetime for milliseconds within years 1 to 9999."""
    return EPOCH + timedelta(milliseconds=millis)


def to_iso(millis: int) -> str:
    """Return ISO 8601 text in UTC with a Z, to the millisecond where there are any."""
    moment = EPOCH + timedelta(milliseconds=millis)
    text = moment.strftime("%H:%M:%S")
    fraction = f".{moment.microsecond // 1000:03d}" if moment.microsecond else ""
    return f"{moment.year:04d}-{moment.month:02d}-{moment.day:02d}T{text}{fraction}Z"


def _checked(millis: int, field: str) -> int:
    if not EARLIEST <= millis <= LATEST:
        raise InvalidRequest(
            f"{field} must lie in the years 1 to 9999 (UTC), got {shown_number(millis)} milliseconds since 1970",
            field=field,
        )
    return millis


def _from_datetime(value: datetime, field: str) -> int:
    # Read by the methods of datetime itself, since a derived type may have changed its own. Subtracting keeps an
    # aware datetime at the edge of the calendar from overflowing in astimezone.
    local = datetime.combine(datetime.date(value), datetime.time(value))
    return (local - _NAIVE_EPOCH - _offset_of(value, field)) // _MILLISECOND


def _offset_of(value: datetime, field: str) -> timedelta:
    """Return how far the datetime is ahead of UTC; nothing where it does not say."""
    try:
        offset = value.utcoffset()
    except _ZONE_ERRORS as error:
        raise InvalidRequest(
            f"{field} has a time zone that failed to tell its offset ({type(error).__name__}); use another zone",
            field=field,
        ) from error
    if offset is None:
        return timedelta(0)
    if not isinstance(offset, timedelta) or abs(offset) >= _DAY:
        raise InvalidRequest(
            f"{field} has a time zone whose offset is no timedelta of less than a day; use another zone",
            field=field,
        )
    return offset


def _from_text(text: str, field: str) -> int:
    match = _ISO.fullmatch(text.strip())
    if match is None:
        raise InvalidRequest(
            f"{field} is not an ISO 8601 time; write it like 2024-05-31 or 2024-05-31T13:45:00Z", field=field
        )
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    try:
        naive = datetime(  # noqa: DTZ001 - the offset is applied below
            int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0)
        )
    except ValueError as error:
        raise InvalidRequest(f"{field} is not a date of the calendar: {error}", field=field) from error
    whole = (naive - _NAIVE_EPOCH) // _MILLISECOND
    return whole + int(((fraction or "") + "000")[:3]) - _offset_millis(zone, field)


def _offset_millis(zone: str | None, field: str) -> int:
    if zone is None or zone in "Zz":
        return 0
    hours, minutes = int(zone[1:3]), int(zone[-2:])
    if hours > 23 or minutes > 59:
        raise InvalidRequest(f"{field} has an impossible offset {zone}; use at most ±23:59", field=field)
    return (hours * 60 + minutes) * 60_000 * (-1 if zone[0] == "-" else 1)
