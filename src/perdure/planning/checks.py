"""Checks of single fields, shared by every request. Each refuses with the field, the value and the remedy."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
import numpy as np

from perdure.base.canonical import checked_json, checked_text
from perdure.base.instants import to_iso
from perdure.base.text import counted, shown_choice, shown_number, shown_real
from perdure.contract import limits
from perdure.errors import InvalidRequest
from perdure.lexical.profile import count_words, is_blank
from perdure.log.records import SourceFields
from perdure.model.fact import FACT_KINDS, Source

SHOWN_MAX = 64  # characters of a caller's name for a field that an error shows
SOURCE_TEXTS = ("uri", "quote", "actor")
SOURCE_NUMBERS = ("start", "end", "position")


def checked_body(text: str, bytes_max: int, remedy: str) -> tuple[str, int]:
    """Return a text that is to be stored and its size in bytes: visible, valid, at most `bytes_max`."""
    text = checked_text(text, field="text")
    size = len(text) if text.isascii() else len(text.encode())
    if size > bytes_max:
        raise InvalidRequest(
            f"text takes {size} bytes; at most {bytes_max} are allowed: split it into several {remedy}",
            field="text",
        )
    if is_blank(text):
        raise InvalidRequest("text holds no word", field="text")
    return text, size


def checked_fact_text(text: str) -> str:
    """Return the text of a fact: 1 to 4,096 words, at most 65,536 bytes."""
    text, size = checked_body(text, limits.TEXT_BYTES_MAX, "facts, or store it as a document")
    if size > limits.TEXT_WORDS_MAX and (words := count_words(text)) > limits.TEXT_WORDS_MAX:
        raise InvalidRequest(
            f"text has {words} words; at most {limits.TEXT_WORDS_MAX} are allowed: split it into several facts",
            field="text",
        )
    return text


def checked_name(value: str, field: str) -> str:
    """Return an exact name (subject, entity, tag): 1 to 1,024 bytes of valid text."""
    value = checked_text(value, field=field)
    size = len(value) if value.isascii() else len(value.encode())
    if not 1 <= size <= limits.NAME_BYTES_MAX:
        raise InvalidRequest(f"{field} must take 1 to {limits.NAME_BYTES_MAX} bytes, got {size}", field=field)
    return value


def checked_names(values: Iterable[str] | None, field: str, at_most: int) -> tuple[str, ...]:
    """Return the names sorted and without repeats; None and empty are the same."""
    if values is None:
        return ()
    told = enumerate(members_of(values, field, "texts"))
    names = tuple(sorted({checked_name(value, f"{field}[{place}]") for place, value in told}))
    if len(names) > at_most:
        raise InvalidRequest(f"{field} has {len(names)} members; at most {at_most} are allowed", field=field)
    return names


def members_of(values: Any, field: str, what: str) -> Iterator[Any]:
    """Return an iterator over a list that was told; what the caller's own list raises later passes through.

    A text and an object are no lists. `what` names the members in the refusal.
    """
    try:
        if not isinstance(values, str | bytes | Mapping):
            return iter(values)
    except TypeError:
        pass  # also a NumPy array without dimensions, which only looks like a list
    raise InvalidRequest(f"{field} must be a list of {what}, got {type(values).__name__}", field=field)


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
    return None if value is None else checked_choice(value, "kind", FACT_KINDS)


def checked_importance(value: float | None) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidRequest(
            f"importance must be a number from 0 to 1, got {type(value).__name__}", field="importance"
        )
    value = plain_number(value)
    # An integer may be too large for a float, so the range is checked first; NaN is in no range.
    if not 0 <= value <= 1:
        raise InvalidRequest(
            f"importance must be a number from 0 to 1, got {shown_real(value)}", field="importance"
        )
    return float(value)


def plain_number(value: float) -> float:
    """Return the int or float that a number of a derived type stands for."""
    return int.__int__(value) if isinstance(value, int) else float.__float__(value)


def checked_flag(value: bool | None, field: str) -> bool:
    """Return a flag; None is the same as leaving it out, so False."""
    if value is None:
        return False
    if not isinstance(value, bool):
        raise InvalidRequest(f"{field} must be true or false, got {type(value).__name__}", field=field)
    return value


def checked_count(value: int, field: str, low: int, high: int) -> int:
    """Return a plain integer within low..high; booleans and fractions are refused, nothing is capped."""
    if isinstance(value, bool) or not isinstance(value, int):
        got = shown_number(value) if isinstance(value, float) else type(value).__name__
        raise InvalidRequest(f"{field} must be a whole number, got {got}", field=field)
    value = int.__int__(value)
    if not low <= value <= high:
        raise InvalidRequest(f"{field} must be {low} to {high}, got {shown_number(value)}", field=field)
    return value


def checked_choice(value: str, field: str, allowed: tuple[str, ...]) -> str:
    """Return the one of the allowed names that was told, as a plain str."""
    # Not `value in allowed`: an array compares member by member and has no truth.
    name = str.__str__(value) if issubclass(type(value), str) else None
    if name is None or name not in allowed:
        raise InvalidRequest(
            f"{field} must be one of {', '.join(allowed)}, got {shown_choice(value)}", field=field
        )
    return name


def refuse_empty_interval(valid_from: int, valid_to: int) -> None:
    """Raise InvalidRequest unless valid_from lies before valid_to."""
    if valid_to <= valid_from:
        raise InvalidRequest(
            f"valid_to ({to_iso(valid_to)}) must lie after valid_from ({to_iso(valid_from)}); valid_to is exclusive",
            field="valid_to",
        )


def checked_reason(value: str | None) -> str | None:
    if value is None:
        return None
    value = checked_text(value, field="reason")
    if len(value.encode()) > limits.REASON_BYTES_MAX:
        raise InvalidRequest(
            f"reason takes more than {limits.REASON_BYTES_MAX} bytes; shorten it", field="reason"
        )
    return value


def checked_idempotency_key(value: str | None) -> str | None:
    if value is None:
        return None
    value = checked_text(value, field="idempotency_key")
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
    _refuse_unknown(fields)
    texts = {name: _checked_source_text(fields.get(name), f"source.{name}") for name in SOURCE_TEXTS}
    numbers = {
        name: None
        if (told := fields.get(name)) is None
        else checked_count(told, f"source.{name}", 0, 2**53 - 1)
        for name in SOURCE_NUMBERS
    }
    start, end = numbers["start"], numbers["end"]
    if start is not None and end is not None and end < start:
        raise InvalidRequest("source.end must not lie before source.start", field="source.end")
    found = SourceFields(
        uri=texts["uri"],
        quote=texts["quote"],
        start=start,
        end=end,
        position=numbers["position"],
        actor=texts["actor"],
    )
    return None if found == SourceFields() else found


def _refuse_unknown(fields: dict[Any, Any]) -> None:
    known = (*SOURCE_TEXTS, *SOURCE_NUMBERS)
    unknown = sorted(
        str.__str__(key)[:SHOWN_MAX] if isinstance(key, str) else type(key).__name__
        for key in fields
        if key not in known
    )
    if unknown:
        raise InvalidRequest(
            f"source has the unknown field {unknown[0]!r}; it has {', '.join(known)}", field="source"
        )


def _checked_source_text(value: Any, field: str) -> str | None:
    if value is None:
        return None
    text = checked_text(value, field=field)
    if len(text.encode()) > limits.SOURCE_TEXT_BYTES_MAX:
        raise InvalidRequest(
            f"{field} takes more than {limits.SOURCE_TEXT_BYTES_MAX} bytes; shorten it", field=field
        )
    return text


def json_bytes(value: dict[str, Any] | None) -> bytes | None:
    """Return plain JSON that gives the caller's numbers back as they were told (1.0 stays 1.0)."""
    return None if value is None else msgspec.json.encode(value)


def checked_embedding(value: Any, field: str, dimension: int | None = None) -> bytes:
    """Return a vector as float32 bytes: 1 to 4,096 finite numbers, not all 0, of `dimension` where one is set."""
    if isinstance(value, str | bytes | Mapping):
        raise InvalidRequest(f"{field} must be a list of numbers, got {type(value).__name__}", field=field)
    try:
        numbers = np.asarray(value)
    except (ValueError, TypeError, OverflowError) as error:
        raise InvalidRequest(f"{field} must be a flat list of numbers", field=field) from error
    # NumPy takes truth among numbers for numbers.
    has_truth = isinstance(value, list | tuple) and not {bool, np.bool_}.isdisjoint(map(type, value))
    if numbers.ndim != 1 or numbers.dtype.kind not in "iuf" or has_truth:
        raise InvalidRequest(f"{field} must be a flat list of numbers", field=field)
    if not 1 <= len(numbers) <= limits.DIMENSION_MAX:
        raise InvalidRequest(
            f"{field} has {counted(len(numbers), 'number')}; 1 to {limits.DIMENSION_MAX} are allowed",
            field=field,
        )
    if dimension is not None and len(numbers) != dimension:
        raise InvalidRequest(
            f"{field} has {counted(len(numbers), 'dimension')}, embeddingDimension is {dimension}",
            field=field,
        )
    with np.errstate(over="ignore"):  # what does not fit is infinite then, and refused
        told = numbers.astype("<f4")
    told += 0  # -0 is 0, so that equal vectors have equal bytes
    return checked_vector_bytes(told.tobytes(), field)


def checked_vector_bytes(data: bytes, field: str) -> bytes:
    """Return float32 bytes if they are a vector: 1 to 4,096 finite numbers, not all 0."""
    if len(data) % 4 or not 4 <= len(data) <= 4 * limits.DIMENSION_MAX:
        raise InvalidRequest(
            f"{field} must be 1 to {limits.DIMENSION_MAX} numbers of 4 bytes, got {counted(len(data), 'byte')}",
            field=field,
        )
    numbers = np.frombuffer(data, dtype="<f4")
    if not np.isfinite(numbers).all():
        raise InvalidRequest(f"{field} must hold finite numbers that fit into float32", field=field)
    if not numbers.any():
        raise InvalidRequest(f"{field} is 0 everywhere, which points nowhere", field=field)
    return data


def checked_model(value: str) -> str:
    """Return an embedder's fingerprint: valid text of at most 256 bytes."""
    if len(checked_text(value, field="model").encode()) > limits.MODEL_BYTES_MAX:
        raise InvalidRequest(f"model must take at most {limits.MODEL_BYTES_MAX} bytes", field="model")
    return value


def wrong_units(given: int, units: int) -> InvalidRequest:
    """Return the error for a list of vectors that does not fit a document's units."""
    return InvalidRequest(
        f"embedding has {counted(given, 'vector')}, but the text is cut into {counted(units, 'unit')}: give one for each",
        field="embedding",
    )


def checked_real(value: Any, field: str, at_least: float = 0.0, at_most: float = math.inf) -> float:
    """Return a finite number in a range; booleans are none."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    value = plain_number(value) if number else value
    # Compared, not converted to a float: an integer may be too large for a float. NaN is in no range.
    if not number or not at_least <= value <= min(at_most, sys.float_info.max):
        shown = shown_real(value) if number else type(value).__name__
        limit = "" if at_most == math.inf else f" and at most {at_most:g}"
        raise InvalidRequest(
            f"{field} must be a finite number of at least {at_least:g}{limit}, got {shown}", field=field
        )
    return float(value)
