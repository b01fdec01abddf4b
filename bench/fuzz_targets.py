"""The targets of `bench.fuzz`: laws of what reads text and bytes from outside."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from io import BytesIO
from typing import Any

from perdure.base.canonical import DEPTH_MAX, canonical_json, checked_json, strict_json
from perdure.errors import InvalidRequest, PerdureError
from perdure.filters.evaluate import matches
from perdure.filters.grammar import parse_filter
from perdure.importers.entries import Bad
from perdure.importers.jsonlines import fact_of, read_lines
from perdure.lexical.languages import PROFILES
from perdure.lexical.profile import get_profile, is_blank
from perdure.log.records import VERSION, decode, encode
from perdure.memory.config import MemoryConfig

KEYS = (
    "a", "b", "a.b", "a[0]", "a\\.b", "", "@tags", "@kind", "@importance", "@eventTime", "@validTo", "@sourceUri", "@x",
    "$and", "$or", "$not", "$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$nin", "$exists", "$contains", "$x",
    "~~", "text", "id", "tags", "metadata", "source", "validFrom", "valid_from", "supersedes",
)  # fmt: skip
SCALARS: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2**53, 1.5, 1e300, "", "a", "semantic", "1970-01-01", "\ud800", "\0",
)  # fmt: skip
GOVERNED_TAGS = (
    7,
    *range(15, 23),
)  # of removals; of nodes, change sets, accesses, conversations, turns and on
ROW = {"a": [{"b": 1}, "x"], "b": {"a": None, "a.b": True}, "a.b": 1.5, "": "a"}
ROW_FIELDS = {"@tags": ["a", "b"], "@kind": "semantic", "@importance": 0.5, "@eventTime": 5}


def analysis(data: bytes) -> None:
    profile = get_profile(PROFILES[data[0] % len(PROFILES)] if data else PROFILES[0])
    text = data[1:].decode("utf-8", "replace")
    held, asked = profile.document_terms(text), profile.query_terms(text)
    assert bool(held) is bool(asked) is not is_blank(text)
    assert set(asked) <= set(held)
    assert {term for _, terms in profile.query_words(text) for term in terms} == set(asked)


def records(data: bytes) -> None:
    with suppress(PerdureError):
        record = decode(data)
        assert decode(encode(record)) == record or record != record  # NaN


def governed(data: bytes) -> None:
    """As `records`, for those of nodes, conversations and erasures: the first byte chooses which."""
    tag = GOVERNED_TAGS[data[0] % len(GOVERNED_TAGS)] if data else GOVERNED_TAGS[0]
    # An array of up to 65,535 fields, the first of which is the number of the type.
    size = data[1] if len(data) > 1 else 0
    records(bytes((VERSION, 0xDC, 0, size, tag)) + data[2:])


def configuration(data: bytes) -> None:
    with suppress(PerdureError):
        MemoryConfig.from_json(data)


def json(data: bytes) -> None:
    with suppress(InvalidRequest):
        value = strict_json(data)
        with suppress(InvalidRequest):
            value = checked_json(value, field="value", bytes_max=1_000_000)
            assert canonical_json(strict_json(canonical_json(value))) == canonical_json(value)


def lines(data: bytes) -> None:
    entries = list(read_lines(BytesIO(data), "f"))
    assert len(entries) <= data.count(b"\n") + 1
    assert all(not isinstance(one, Bad) or one.reason for one in entries)
    with suppress(InvalidRequest):
        fact_of(built(data))


def filters(data: bytes) -> None:
    with suppress(InvalidRequest):
        value = strict_json(data[1:]) if data[:1] > b"\x7f" else built(data)
        tree = parse_filter(value)
        assert parse_filter(value) == tree
        assert matches(tree, ROW, ROW_FIELDS) is not matches(parse_filter({"$not": value}), ROW, ROW_FIELDS)


def built(data: bytes) -> Any:
    """Return a JSON value that the bytes describe: coverage finds its way through choices, not through quotes."""
    return _value(iter(data), DEPTH_MAX // 2)


def _value(data: Iterator[int], depth: int) -> Any:
    kind, count = divmod(next(data, 0), 4)
    if depth and kind % 2:
        pick = [next(data, 0) for _ in range(count + 1)]
        return {KEYS[one % len(KEYS)]: _value(data, depth - 1) for one in pick}
    if depth and kind % 3 == 0 and kind:
        return [_value(data, depth - 1) for _ in range(count)]
    return SCALARS[next(data, 0) % len(SCALARS)]


TARGETS: dict[str, Callable[[bytes], None]] = {
    "analysis": analysis,
    "records": records,
    "governed": governed,
    "configuration": configuration,
    "json": json,
    "lines": lines,
    "filters": filters,
}
