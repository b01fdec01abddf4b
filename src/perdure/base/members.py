"""Errors about a member of a list: the place of the member before what they say of its fields."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from perdure.errors import Blocked, Conflict, InvalidRequest, NotFound, PerdureError


def place_in(error: PerdureError, member: str, **details: Any) -> None:
    """Say that an error is about a member of a list: of `facts[1]` the field `text` is `facts[1].text`."""
    field, message = error.field or "", error.message
    rest = message[len(field) :]
    begins = field != "" and message.startswith(field) and not (rest[:1].isalnum() or rest[:1] == "_")
    error.message = f"{member}{'.' if begins else ': '}{message}"
    error.args = (error.message,)
    error.field = f"{member}.{field}" if field else member
    error.details |= details


@contextmanager
def within(member: str) -> Iterator[None]:
    """Have every refusal of the block name the member, of a list or an object, that it is about; see `place_in`."""
    try:
        yield
    except (InvalidRequest, NotFound, Conflict, Blocked) as error:
        place_in(error, member)
        raise
