"""Canonical JSON: one byte form per value, so that equal values compare, hash and filter alike."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from perdure.errors import InvalidJson, InvalidRequest

DEPTH_MAX = 128  # nesting that every decoder we meet accepts
SAFE_INTEGER = 2**53 - 1  # the integers that JSON readers agree on

_encode = msgspec.json.Encoder(order="deterministic").encode
decode_json = msgspec.json.Decoder().decode


def canonical_json(value: Any) -> bytes:
    """Return compact JSON with sorted keys and shortest numbers; equal values give equal bytes.

    1 and 1.0 are equal, true is not 1, arrays keep their order, text is not normalised.
    The value must have passed `checked_json` or be built from our own types.
    """
    return _encode(_shortened(value))


def checked_json(value: Mapping[str, Any], *, field: str, bytes_max: int) -> dict[str, Any]:
    """Return a private copy of a JSON object, refusing what JSON cannot hold exactly.

    Raises:
        InvalidRequest: not an object, a key that is no text, a value that is not JSON, a number
            that is not finite or an integer outside ±(2**53 - 1), a lone surrogate, more than
            DEPTH_MAX objects and arrays inside one another, or longer than `bytes_max` in canonical form.
    """
    if not isinstance(value, Mapping):
        raise InvalidRequest(f"{field} must be an object, got {type(value).__name__}", field=field)
    copy: dict[str, Any] = _copied(value, field, 1)
    size = len(canonical_json(copy))
    if size > bytes_max:
        raise InvalidRequest(
            f"{field} takes {size} bytes as JSON; at most {bytes_max} are allowed", field=field
        )
    return copy


def checked_text(value: str, *, field: str) -> str:
    """Return the text as a plain str if it is valid Unicode (no lone surrogate).

    Texts of derived types (enums, texts of NumPy) are taken as what they spell: no codec knows them.
    """
    # The type is asked, not the object, which may pretend to be of another class.
    if not issubclass(type(value), str):
        raise InvalidRequest(f"{field} must be text, got {type(value).__name__}", field=field)
    value = str.__str__(value)
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise InvalidRequest(
                f"{field} has a lone surrogate at position {error.start}; send valid Unicode", field=field
            ) from error
    return value


def _copied(value: Any, field: str, depth: int) -> Any:
    # Values of derived types (enums, numbers of NumPy) are stored as the plain value that they stand for.
    if isinstance(value, str):
        return checked_text(value, field=field)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return _checked_integer(int.__int__(value), field)
    if isinstance(value, float):
        return _checked_float(float.__float__(value), field)
    if depth > DEPTH_MAX:
        raise InvalidRequest(f"{field} is nested deeper than {DEPTH_MAX} levels", field=field)
    if isinstance(value, Mapping):
        return {_checked_key(key, field): _copied(item, field, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_copied(item, field, depth + 1) for item in value]
    raise InvalidRequest(
        f"{field} holds a {type(value).__name__}; only text, numbers, booleans, null, arrays and objects are JSON",
        field=field,
    )


def _checked_key(key: Any, field: str) -> str:
    if not isinstance(key, str):
        raise InvalidRequest(f"{field} has a key of type {type(key).__name__}; keys are text", field=field)
    return checked_text(key, field=field)


def _checked_float(value: float, field: str) -> float:
    if not math.isfinite(value):
        raise InvalidRequest(f"{field} holds {value}; numbers must be finite", field=field)
    return value


def _checked_integer(value: int, field: str) -> int:
    if abs(value) > SAFE_INTEGER:
        raise InvalidRequest(f"{field} holds an integer outside ±(2**53 - 1); write it as text", field=field)
    return value


def _shortened(value: Any) -> Any:
    if type(value) is float:
        return int(value) if value.is_integer() and abs(value) <= SAFE_INTEGER else value
    if type(value) is dict:
        return {key: _shortened(item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return [_shortened(item) for item in value]
    # The encoder takes no derived texts.
    return str.__str__(value) if isinstance(value, str) else value


def strict_json(data: bytes | str, *, field: str = "JSON") -> Any:
    """Decode JSON text, refusing duplicate keys, NaN tokens and nesting deeper than DEPTH_MAX.

    The fast codec would keep the last of duplicate keys without a word.
    """

    try:
        text = data if isinstance(data, str) else data.decode(json.detect_encoding(data), "surrogatepass")
        value = _strict_decoder(field).decode(text)
    except RecursionError as error:
        raise InvalidRequest(f"{field} is nested deeper than {DEPTH_MAX} levels", field=field) from error
    except ValueError as error:
        if isinstance(error, InvalidRequest):
            raise
        raise InvalidRequest(f"{field} {_fault_of(error)}", field=field) from error
    if text.count("[") + text.count("{") > DEPTH_MAX:
        _refuse_depth(value, field)
    return value


@lru_cache(maxsize=64)
def _strict_decoder(field: str) -> json.JSONDecoder:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise InvalidRequest(f"{field} has an object with a duplicate key", field=field)
        return found

    def no_constant(token: str) -> Any:
        raise InvalidRequest(f"{field} holds {token}; numbers must be finite", field=field)

    return json.JSONDecoder(object_pairs_hook=unique, parse_constant=no_constant)


def strict_json_bytes(data: bytes, *, field: str) -> Any:
    """Decode JSON text in UTF-8 as `strict_json`, telling what is no JSON from what is none that we take.

    Raises:
        InvalidJson: it is malformed, not UTF-8, or holds NaN or an infinity.
        InvalidRequest: it is JSON, but holds a key twice or too long an integer, or is nested too deeply.
    """
    try:
        return strict_json(data.decode("utf-8"), field=field)
    except UnicodeDecodeError as error:
        raise InvalidJson(f"the {field} is not UTF-8 at byte {error.start + 1}", field=field) from error
    except InvalidRequest as error:
        if _is_json(data):
            raise
        raise InvalidJson(error.message, field=field) from error


def _is_json(data: bytes) -> bool:
    """Whether it is JSON by the standard, duplicate keys and all."""
    try:
        decode_json(data)
    except (RecursionError, msgspec.ValidationError):  # too deep, or a number out of range: not malformed
        return True
    except msgspec.DecodeError:
        return False
    return True


def _fault_of(error: ValueError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"is not valid JSON{_place_of(error)}"
    if isinstance(error, UnicodeDecodeError):
        return "is not valid JSON"
    return f"holds an integer of more than {sys.get_int_max_str_digits()} digits"


def _place_of(error: json.JSONDecodeError) -> str:
    # What is one line may be a line of a file, whose number the caller knows.
    is_one_line = "\n" not in error.doc.strip()
    return f" at column {error.colno}" if is_one_line else f" at line {error.lineno}, column {error.colno}"


def _refuse_depth(value: Any, field: str) -> None:
    level = [value]
    for _ in range(DEPTH_MAX + 1):
        holders = [item for item in level if isinstance(item, dict | list)]
        if not holders:
            return
        level = [item for holder in holders for item in (holder.values() if type(holder) is dict else holder)]
    raise InvalidRequest(f"{field} is nested deeper than {DEPTH_MAX} levels", field=field)
