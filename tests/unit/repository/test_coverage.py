"""Coverage: the share of a query's words and two-character pieces that a text holds."""

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.repository.coverage import coverage, tokens


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("C++ v1.2 don't 東京tower 数", {"c", "v1", "2", "don", "t", "東京", "tower", "数"}),
        (
            "Rust 数据库迁移 cargo_fmt",
            {"rust", "cargo", "fmt", "数据库迁移", "数据", "据库", "库迁", "迁移"},
        ),
        ("ひらがな", {"ひらがな", "ひら", "らが", "がな"}),
        ("한국어", {"한국어", "한국", "국어"}),
        ("दिल्ली", {"दिल", "ली"}),
        ("ⓐⓑ x²", {"ⓐⓑ", "x²"}),
        ("!? …", set()),
        ("", set()),
    ],
)
def test_a_text_is_cut_into_words_and_pairs(text, expected):
    assert tokens(text) == expected


def test_the_share_is_of_the_querys_tokens():
    asked = tokens("数据库迁移验证")
    assert len(asked) == 7
    assert coverage(asked, "部署前执行数据库迁移并验证架构版本") == 5 / 7


@given(st.text(min_size=1))
def test_a_text_covers_itself_in_any_case(text):
    asked = tokens(text)
    if asked:
        assert coverage(asked, text) == 1.0
        assert coverage(asked, f"before {text} after") <= 1.0


@pytest.mark.skipif(
    unicodedata.unidata_version != "14.0.0",
    reason="the table is that of Unicode 14, others know more letters",
)
def test_every_letter_and_number_is_part_of_a_word():
    told = [chr(point) for point in range(sys.maxunicode + 1) if not 0xD800 <= point <= 0xDFFF]
    letters = [one for one in told if unicodedata.category(one)[0] in "LN"]
    missing = [one for one in letters if one.lower() == one and not tokens(one)]
    assert missing == []
