"""Paths into a JSON object: `a.b`, `a[0].b`, and `a\\.b` for the key `a.b`.

A step is a key of an object or, in brackets, the place of an array's element from 0. No step passes through an
array without a place. A backslash before a dot, a bracket, a backslash, `$` or `@` makes it a part of the key. Not
addressable are the empty key within a path (the path `""` is the one top-level key of that name) and whatever lies
deeper than DEPTH_MAX steps. Such keys are compared as part of the value of their parent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from perdure.errors import InvalidRequest

DEPTH_MAX = 32  # steps of a path
PLACE_DIGITS_MAX = 9  # no array within the limits of metadata has as many elements
SHOWN_MAX = 64  # characters of a caller's key that an error shows

Path = tuple[str | int, ...]
"""Keys and places; the first step is a key."""


class _Absent:
    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent()
"""What a path finds where it leads nowhere; null is a value."""

_KEY = re.compile(r"(?:[^.\[\]\\]|\\[.\[\]\\$@])*")
_ESCAPED = re.compile(r"\\(.)")
_PLACE = re.compile(r"\[(0|[1-9][0-9]*)\]", re.ASCII)


def parse_path(written: str, *, field: str, place: str) -> Path:
    """Return the steps of a written path.

    Args:
        field, place: what an error names: the argument, and where in it the path stands.

    Raises:
        InvalidRequest: it is no path, or has more than DEPTH_MAX steps.
    """
    if not written:
        return ("",)
    steps: list[str | int] = []
    at = 0
    while True:
        key = _KEY.match(written, at)
        if key is None or not key.group():
            raise _no_path(written, field, place)
        steps.append(_ESCAPED.sub(r"\1", key.group()))
        at = key.end()
        while (inside := _PLACE.match(written, at)) is not None:
            if len(inside.group(1)) > PLACE_DIGITS_MAX:
                raise _no_path(written, field, place)
            steps.append(int(inside.group(1)))
            at = inside.end()
        if len(steps) > DEPTH_MAX:
            raise InvalidRequest(
                f"{place} has a path of more than {DEPTH_MAX} steps; compare the value of a key further up",
                field=field,
                place=place,
            )
        if at == len(written):
            return tuple(steps)
        if written[at] != ".":
            raise _no_path(written, field, place)
        at += 1


def find_value(value: Any, path: Path) -> Any:
    """Return what the path leads to in a JSON value, or ABSENT."""
    for step in path:
        if isinstance(step, str):
            if not isinstance(value, Mapping) or step not in value:
                return ABSENT
            value = value[step]
        elif isinstance(step, int) and isinstance(value, list) and step < len(value):
            value = value[step]
        else:
            return ABSENT
    return value


def _no_path(written: str, field: str, place: str) -> InvalidRequest:
    return InvalidRequest(
        f"{place} has the key {written[:SHOWN_MAX]!r}, which is no path: write a.b or a[0].b, and a "
        "backslash before a dot, a bracket or a backslash that belongs to a key",
        field=field,
        place=place,
    )
