"""Which value a path leads to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure import InvalidRequest
from perdure.filters.paths import ABSENT, DEPTH_MAX, find_value, parse_path

ROW = {
    "a": {"b": 1, "c": [{"d": 2}, [3, None]], "": 4, "@x": 5, "$y": 6},
    "a.b": 7,
    "t": "text",
    "list": [8],
    "": 9,
    "with space": 10,
    "ключ": {"日本": 11},
    "$z": 12,
    "[\\]": {".": 13},
}


def steps(written: str):
    return parse_path(written, field="filter", place="filter")


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("a.b", 1),
        ("a.c[0].d", 2),
        ("a.c[1][0]", 3),
        ("a.c[1][1]", None),
        ("a.@x", 5),
        ("a.$y", 6),
        ("a\\.b", 7),
        ("", 9),
        ("with space", 10),
        ("ключ.日本", 11),
        ("a.\\@x", 5),
        ("\\$z", 12),
        ("\\[\\\\\\].\\.", 13),
        ("list", [8]),
        ("list[1]", ABSENT),
        ("list.0", ABSENT),
        ("list[999999999]", ABSENT),
        ("a.c.d", ABSENT),
        ("a[0]", ABSENT),
        ("t[0]", ABSENT),
        ("t.x", ABSENT),
        ("A.b", ABSENT),
        ("nothing.at.all", ABSENT),
    ],
)
def test_a_path_leads_to_a_value_or_nowhere(written, found):
    assert find_value(ROW, steps(written)) is found or find_value(ROW, steps(written)) == found


@pytest.mark.parametrize(
    "written",
    [
        ".",
        "a.",
        ".a",
        "a..b",
        "[0]",
        "a[",
        "a]",
        "a[]",
        "a[-1]",
        "a[01]",
        "a[x]",
        "a[0]b",
        "a[٣]",
        "a\\b",
        "a\\",
        "a[1234567890]",
    ],
)
def test_what_is_no_path_is_refused_by_name(written):
    with pytest.raises(InvalidRequest) as refused:
        steps(written)
    assert repr(written) in str(refused.value)
    assert refused.value.field == "filter"


def test_a_path_has_32_steps_at_most():
    assert len(steps(".".join("a" * DEPTH_MAX))) == DEPTH_MAX
    assert len(steps("a" + "[0]" * (DEPTH_MAX - 1))) == DEPTH_MAX
    for longer in (".".join("a" * (DEPTH_MAX + 1)), "a" + "[0]" * DEPTH_MAX):
        with pytest.raises(InvalidRequest, match="32"):
            steps(longer)


keys = st.text(st.characters(exclude_characters="[]\\", exclude_categories=["Cs"]), min_size=1, max_size=4)


@given(keys, st.lists(keys | st.integers(0, 3), max_size=6))
def test_every_key_without_brackets_and_backslashes_can_be_addressed(first, rest):
    written, row = first.replace(".", "\\."), "here"
    for step in rest:
        written += f"[{step}]" if isinstance(step, int) else "." + step.replace(".", "\\.")
    for step in reversed([first, *rest]):
        row = [*[None] * step, row] if isinstance(step, int) else {step: row}
    assert find_value(row, steps(written)) == "here"
