"""Numbers, moments and digests of lines, held to what a record may hold."""

from __future__ import annotations

from perdure.base.canonical import checked_text
from perdure.base.instants import EARLIEST, LATEST
from perdure.base.text import shown_number
from perdure.errors import InvalidRequest
from perdure.planning import checks
from perdure.temporal.columns import BEGINNING
from perdure.transfer.lines import Beginning

DIGEST_BYTES = 16  # of every keyed digest that a record holds
NUMBER_MAX = 2**31 - 1  # of facts in a space
OUTCOME_CHARACTERS_MAX = 64  # of an operation's or an outcome's name


def checked_number(value: int, field: str) -> int:
    return checks.checked_count(value, field, 0, NUMBER_MAX)


def checked_numbers(values: tuple[int, ...], field: str) -> tuple[int, ...]:
    return tuple(checked_number(value, field) for value in values) if values else ()


def checked_moment(value: int, field: str) -> int:
    if not EARLIEST <= value <= LATEST:
        raise InvalidRequest(
            f"{field} must be milliseconds in the years 1 to 9999, got {shown_number(value)}", field=field
        )
    return value


def find_moment(value: int | None, field: str) -> int | None:
    return None if value is None else checked_moment(value, field)


def find_instant(value: int | Beginning | None, field: str) -> int | None:
    return BEGINNING if value == "beginning" else find_moment(value, field)


def checked_digest(value: str, field: str) -> bytes:
    found = checked_hex(value, field)
    if len(found) != DIGEST_BYTES:
        raise InvalidRequest(f"{field} must be {DIGEST_BYTES} bytes in hexadecimal", field=field)
    return found


def checked_hex(value: str, field: str) -> bytes:
    try:
        return bytes.fromhex(value)
    except ValueError as error:
        raise InvalidRequest(f"{field} must be hexadecimal", field=field) from error


def checked_short(value: str, field: str) -> str:
    if len(checked_text(value, field=field)) > OUTCOME_CHARACTERS_MAX:
        raise InvalidRequest(f"{field} is longer than {OUTCOME_CHARACTERS_MAX} characters", field=field)
    return value
