"""The names of fields on the wire and in Python: `validFrom` and `valid_from`."""

from __future__ import annotations

import re

_HUMP = re.compile(r"(?<!^)(?=[A-Z])")


def camel_case(name: str) -> str:
    """Return a field's name as it is on the wire: `valid_from` is `validFrom`."""
    first, *others = name.split("_")
    return first + "".join(other.capitalize() for other in others)


_FIELDS = [
    "allow_destructive",
    "as_of",
    "candidate_limit",
    "context_id",
    "contract_version",
    "dry_run",
    "event_before",
    "event_time",
    "idempotency_key",
    "if_version",
    "include_chain",
    "include_derived",
    "ingested_before",
    "known_at",
    "max_bytes",
    "min_score",
    "new_id",
    "new_text",
    "valid_during",
    "valid_from",
    "valid_to",
]
_SNAKE = re.compile(rf"(?<![A-Za-z0-9_])(?:{'|'.join(_FIELDS)})(?![A-Za-z0-9_])")
_IN_PYTHON = {camel_case(name): name for name in _FIELDS}
_CAMEL = re.compile(rf"(?<![A-Za-z0-9_])(?:{'|'.join(_IN_PYTHON)})(?![A-Za-z0-9_])")


def snake_case(name: str) -> str:
    """Return the name of one field as it is in Python: `validFrom` is `valid_from`; the inverse of `camel_case`."""
    return _HUMP.sub("_", name).lower()


def on_the_wire(message: str) -> str:
    """Return a message with the names of fields as they are on the wire."""
    return _SNAKE.sub(lambda found: camel_case(found[0]), message)


def python_names(message: str) -> str:
    """Return a message with the names of fields as they are in Python; the inverse of `on_the_wire`."""
    return _CAMEL.sub(lambda found: _IN_PYTHON[found[0]], message)
