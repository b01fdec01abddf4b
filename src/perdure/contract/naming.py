"""The names of fields on the wire and in Python: `validFrom` and `valid_from`."""

from __future__ import annotations

import re
from collections.abc import Callable

_HUMP = re.compile(r"(?<!^)(?=[A-Z])")


def camel_case(name: str) -> str:
    """Return a field's name as it is on the wire: `valid_from` is `validFrom`."""
    first, *others = name.split("_")
    return first + "".join(other.capitalize() for other in others)


_FIELDS = [
    "aggregation_only",
    "allow_destructive",
    "analysis_profile",
    "as_of",
    "body_bytes",
    "byte_count",
    "candidate_limit",
    "context_id",
    "contract_version",
    "created_after",
    "created_at",
    "created_before",
    "dry_run",
    "effective_time",
    "embedder_model",
    "embedding_dimension",
    "event_before",
    "event_time",
    "evidence_uri",
    "expected_revision",
    "fact_id",
    "fact_kind",
    "filtered_by",
    "final_score",
    "foreign_receipts",
    "has_more",
    "head_digest",
    "historical_factor",
    "history_id",
    "idempotency_key",
    "if_version",
    "include_chain",
    "include_derived",
    "ingest_time",
    "ingested_before",
    "known_at",
    "known_from",
    "known_to",
    "last_at",
    "last_used_at",
    "lexical_score",
    "matched_terms",
    "max_bytes",
    "max_nodes",
    "max_rounds",
    "max_sources",
    "min_score",
    "new_id",
    "new_text",
    "node_id",
    "node_revision",
    "observation_time",
    "occurred_at",
    "query_bytes",
    "recency_factor",
    "reclaimable_bytes",
    "recorded_at",
    "retrieval_score",
    "revision_kind",
    "semantic_score",
    "session_id",
    "size_bytes",
    "source_id",
    "subquery_weight",
    "superseded_by",
    "time_ranges",
    "updated_after",
    "updated_at",
    "updated_before",
    "valid_during",
    "valid_from",
    "valid_to",
    "within_validity",
    "without_vector",
]
_IN_PYTHON = {camel_case(name): name for name in _FIELDS}

# What callers sent: a value in quotes, as repr() writes it, and a path below an argument whose keys are their own.
_THEIRS = (
    r"""(?<!\w)'(?:[^'\\]|\\.)*'(?!\w)|(?<!\w)"(?:[^"\\]|\\.)*"(?!\w)"""
    r"|(?<![A-Za-z0-9_])(?:filter|metadata|matching)[.\[]\S*"
)
# A name after @ or a backslash is a key in a filter, the same on every surface.
_SNAKE = re.compile(
    rf"{_THEIRS}|(?<![\w.-])(?P<flag>[a-z][a-z0-9_]*)=(?P<value>True|False)(?!\w)"
    rf"|(?<![A-Za-z0-9_@\\])(?P<name>{'|'.join(_FIELDS)})(?![A-Za-z0-9_])",
    re.S,
)
_CAMEL = re.compile(
    rf"{_THEIRS}|(?<![\w.-])(?P<flag>[a-z][A-Za-z0-9]*): (?P<value>true|false)(?!\w)"
    rf"|(?<![A-Za-z0-9_@\\])(?P<name>{'|'.join(_IN_PYTHON)})(?![A-Za-z0-9_])",
    re.S,
)


def snake_case(name: str) -> str:
    """Return the name of one field as it is in Python: `validFrom` is `valid_from`; the inverse of `camel_case`."""
    return _HUMP.sub("_", name).lower()


def on_the_wire(message: str, place: str = "") -> str:
    """Return a message with names and flags as they are on the wire: `dry_run=True` is `dryRun: true`.

    What callers sent stays as it is: values in quotes, and keys of their own below a filter or metadata.

    Args:
        place: where in such an argument the message points, as it stands in it.
    """
    return _beside(place, message, lambda part: _SNAKE.sub(_wire_name, part))


def python_names(message: str, place: str = "") -> str:
    """Return a message with names and flags as they are in Python; the inverse of `on_the_wire`."""
    return _beside(place, message, lambda part: _CAMEL.sub(_python_name, part))


def outside_of_values(message: str, rename: Callable[[str], str]) -> str:
    """Return a message with all renamed but what callers sent: values in quotes, and keys of their own."""
    return "".join(
        part if at % 2 else rename(part)
        for at, part in enumerate(re.split(f"({_THEIRS})", message, flags=re.S))
    )


def _beside(place: str, message: str, rename: Callable[[str], str]) -> str:
    """Return a message renamed before and after the first mention of a place, which may hold anything."""
    if not place:
        return rename(message)
    before, found, after = message.partition(place)
    return rename(before) + found + rename(after)


def _wire_name(found: re.Match[str]) -> str:
    if flag := found["flag"]:
        return f"{camel_case(flag)}: {found['value'].lower()}"
    return camel_case(found["name"]) if found["name"] else found[0]


def _python_name(found: re.Match[str]) -> str:
    if flag := found["flag"]:
        return f"{snake_case(flag)}={found['value'].capitalize()}"
    return _IN_PYTHON[found["name"]] if found["name"] else found[0]
