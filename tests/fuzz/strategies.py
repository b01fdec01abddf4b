"""Texts and records of every odd kind."""

from __future__ import annotations

import types
from typing import Any, get_args, get_type_hints

from hypothesis import strategies as st

from perdure.log import records

ODD = (
    "aZé\u0301İıßΣς09١९ 1\t-.,'’@/+#:_*(%=&~^\\$\u200d\u200b\ufe0f漢かが\u3099한กำ\u05d0\u05b8\u0645\u064e"
    "👍\U0001f3fd🇳\U0001fae8\U000e0067\u2028ﬁ½\ufdfa\u20e3\ud800"
)
PIECES = (
    "ABC-1234", "v1.2.10", "src/api/v2/user.py", "C++", ".NET", "a@b.org", "2024-05-01T10:30:00Z", "U.S.A.", "10:30",
    "3f2a9c1e-7b1d-4e0a-9c55-0d9f6a1b2c3d", "₹1,00,000", "+47 912 34 567", "don't", "O'Brien's", "東京タワー", "サ",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467", "🇳🇴🇸🇪", "**so**", "::", "...", "'", "\u0301", "९१२ ३४",
)  # fmt: skip

characters = st.characters(codec="utf-8")
texts = st.one_of(
    st.text(max_size=40),
    st.text(alphabet=ODD, max_size=40),
    st.lists(st.one_of(st.sampled_from(PIECES), st.text(alphabet=ODD, max_size=4)), max_size=8).map("".join),
    st.lists(st.sampled_from(PIECES), max_size=6).map(" ".join),
)


def values(kind: Any) -> st.SearchStrategy[Any]:
    """Values of a field's type, small and at the edges of what a record can hold."""
    options = get_args(kind)
    if isinstance(kind, types.UnionType):
        return st.one_of(*map(values, options))
    if getattr(kind, "__origin__", None) is tuple:
        if Ellipsis not in options:
            return st.tuples(*map(values, options))
        return st.lists(values(options[0]), max_size=3).map(tuple)
    simple: dict[Any, st.SearchStrategy[Any]] = {
        int: st.integers(-(2**63), 2**63 - 1),
        float: st.floats(allow_nan=False),
        bool: st.booleans(),
        str: st.text(characters, max_size=12),
        bytes: st.binary(max_size=12),
        type(None): st.none(),
    }
    return simple[kind] if kind in simple else structs(kind)


def structs(kind: Any) -> st.SearchStrategy[Any]:
    hints = get_type_hints(kind)
    return st.builds(kind, **{name: values(hints[name]) for name in kind.__struct_fields__})


KINDS: tuple[Any, ...] = get_args(records.Record)
stored_records = st.sampled_from(KINDS).flatmap(structs)
