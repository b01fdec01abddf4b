"""Checks of single fields, shared by every request. Each refuses with the field, the value and the remedy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from perdure.base.canonical import checked_json, checked_text
from perdure.base.text import shown_number
from perdure.contract import limits
from perdure.errors import InvalidRequest
from perdure.lexical.profile import count_words, is_blank
from perdure.log.records import SourceFields
from perdure.model.fact import FACT_KINDS, Source


def checked_fact_text(text: str) -> str:
    """Return the text of a fact: 1 to 4,096 words, at most 65,536 bytes."""
    checked_text(text, field="text")
    size = len(text) if text.isascii() else len(text.encode())
    if size > limits.TEXT_BYTES_MAX:
        raise InvalidRequest(
            f"text takes {size} bytes; at most {limits.TEXT_BYTES_MAX} are allowed: split it into several "
            "facts, or store it as a document",
            field="text",
        )
    if is_blank(text):
        raise InvalidRequest("text holds no word", field="text")
    if size > limits.TEXT_WORDS_MAX and (words := count_words(text)) > limits.TEXT_WORDS_MAX:
        raise InvalidRequest(
            f"text has {words} words; at most {limits.TEXT_WORDS_MAX} are allowed: split it into several facts",
            field="text",
        )
    return text


def checked_name(value: str, field: str) -> str:
    """Return an exact name (subject, entity, tag): 1 to 1,024 bytes of valid text."""
    checked_text(value, field=field)
    size = len(value) if value.isascii() else len(value.encode())
    if not 1 <= size <= limits.NAME_BYTES_MAX:
        raise InvalidRequest(f"{field} must take 1 to {limits.NAME_BYTES_MAX} bytes, got {size}", field=field)
    return value


def checked_names(values: Iterable[str] | None, field: str, at_most: int) -> tuple[str, ...]:
    """Return the names sorted and without repeats; None and empty are the same."""
    if values is None:
        return ()
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise InvalidRequest(f"{field} must be a list of texts, got {type(values).__name__}", field=field)
    names = tuple(sorted({checked_name(value, field) for value in values}))
    if len(names) > at_most:
        raise InvalidRequest(f"{field} has {len(names)} members; at most {at_most} are allowed", field=field)
    return names


def checked_metadata(value: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return a private copy of the caller's metadata; None and {} are the same."""
    if value is None:
        return None
    copy = checked_json(value, field="metadata", bytes_max=limits.METADATA_BYTES_MAX)
    if limits.METADATA_KEY_RESERVED in copy:
        raise InvalidRequest(
            f"metadata has the key {limits.METADATA_KEY_RESERVED!r}, which is reserved", field="metadata"
        )
    return copy or None


def checked_kind(value: str | None) -> str | None:
    if value is not None and value not in FACT_KINDS:
        shown = repr(value) if isinstance(value, str) and len(value) <= 32 else type(value).__name__
        raise InvalidRequest(f"kind must be one of {', '.join(FACT_KINDS)}, got {shown}", field="kind")
    return value


def checked_importance(value: float | None) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidRequest(
            f"importance must be a number from 0 to 1, got {type(value).__name__}", field="importance"
        )
    # An integer may be too large for a float, so the range is checked first; NaN is in no range.
    if not 0 <= value <= 1:
        raise InvalidRequest(
            f"importance must be a number from 0 to 1, got {shown_number(value)}", field="importance"
        )
    return float(value)


def checked_flag(value: bool | None, field: str) -> bool:
    """Return a flag; None is the same as leaving it out, so False."""
    if value is None:
        return False
    if not isinstance(value, bool):
        raise InvalidRequest(f"{field} must be true or false, got {type(value).__name__}", field=field)
    return value


def checked_count(value: int, field: str, low: int, high: int) -> int:
    """Return an integer within low..high; booleans and fractions are refused, nothing is capped."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidRequest(f"{field} must be an integer, got {type(value).__name__}", field=field)
    if not low <= value <= high:
        raise InvalidRequest(f"{field} must be {low} to {high}, got {shown_number(value)}", field=field)
    return value


def checked_choice(value: str, field: str, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        shown = repr(value) if isinstance(value, str) and len(value) <= 32 else type(value).__name__
        raise InvalidRequest(f"{field} must be one of {', '.join(allowed)}, got {shown}", field=field)
    return value


def refuse_empty_interval(valid_from: int, valid_to: int) -> None:
    """Raise InvalidRequest unless valid_from lies before valid_to."""
    if valid_to <= valid_from:
        raise InvalidRequest(
            f"valid_to ({valid_to}) must lie after valid_from ({valid_from}); valid_to is exclusive",
            field="valid_to",
        )


def checked_reason(value: str | None) -> str | None:
    if value is None:
        return None
    checked_text(value, field="reason")
    if len(value.encode()) > limits.REASON_BYTES_MAX:
        raise InvalidRequest(
            f"reason takes more than {limits.REASON_BYTES_MAX} bytes; shorten it", field="reason"
        )
    return value


def checked_idempotency_key(value: str | None) -> str | None:
    if value is None:
        return None
    checked_text(value, field="idempotency_key")
    if not 1 <= len(value.encode()) <= limits.IDEMPOTENCY_KEY_BYTES_MAX:
        raise InvalidRequest(
            f"idempotency_key must take 1 to {limits.IDEMPOTENCY_KEY_BYTES_MAX} bytes",
            field="idempotency_key",
        )
    return value


def checked_source(value: Source | Mapping[str, Any] | None) -> SourceFields | None:
    """Return where a fact comes from; a source without any field is none."""
    if value is None:
        return None
    if isinstance(value, Source):
        fields = {name: getattr(value, name) for name in SourceFields.__struct_fields__}
    elif isinstance(value, Mapping):
        fields = dict(value)
    else:
        raise InvalidRequest(
            f"source must be a Source or an object, got {type(value).__name__}", field="source"
        )
    unknown = sorted(str(key) for key in set(fields) - set(SourceFields.__struct_fields__))
    if unknown:
        raise InvalidRequest(
            f"source has the unknown field {unknown[0][:64]!r}; it has uri, quote, start, end, position and actor",
            field="source",
        )
    for name in ("uri", "quote", "actor"):
        _check_source_text(fields.get(name), f"source.{name}")
    for name in ("start", "end", "position"):
        if fields.get(name) is not None:
            checked_count(fields[name], f"source.{name}", 0, 2**53 - 1)
    if fields.get("start") is not None and fields.get("end") is not None and fields["end"] < fields["start"]:
        raise InvalidRequest("source.end must not lie before source.start", field="source.end")
    found = SourceFields(**fields)
    return None if found == SourceFields() else found


def _check_source_text(value: Any, field: str) -> None:
    if value is None:
        return
    checked_text(value, field=field)
    if len(value.encode()) > limits.SOURCE_TEXT_BYTES_MAX:
        raise InvalidRequest(
            f"{field} takes more than {limits.SOURCE_TEXT_BYTES_MAX} bytes; shorten it", field=field
        )


def json_bytes(value: dict[str, Any] | None) -> bytes | None:
    """Return plain JSON that gives the caller's numbers back as they were told (1.0 stays 1.0)."""
    return None if value is None else msgspec.json.encode(value)
