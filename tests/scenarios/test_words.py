"""Every character of a text and of a query is text: found as written, in any script, and never a command."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from perdure import InvalidRequest, Memory, Store
from scenarios.stores import ids, texts

NOISE = ["the weather is fine", "a list of many other things", "the cat sat on the mat", "eine andere Zeile"]


def filled(memory: Memory, rows: list[str]) -> Memory:
    memory.remember_many(rows)
    return memory


def first(memory: Memory, query: str) -> str | None:
    found = memory.recall(query)
    return found[0].text if found else None


HYPHENATED = {
    "ABC-1234": "ticket ABC-1234 closed",
    "abc-1234": "ticket ABC-1234 closed",
    "ticket ABC-1234 closed": "ticket ABC-1234 closed",
    "1234": "ticket ABC-1234 closed",
    "-closed": "ticket ABC-1234 closed",
    "state-of-the-art": "a state-of-the-art model",
    "state of the art": "a state-of-the-art model",
    "e-mail": "send an e-mail to Bo",
    "3f2a9c1e-7b1d-4e0a-9c55-0d9f6a1b2c3d": "session 3f2a9c1e-7b1d-4e0a-9c55-0d9f6a1b2c3d is open",
}


@pytest.mark.parametrize("scope", ["3f2a9c1e-7b1d-4e0a-9c55-0d9f6a1b2c3d", "team-alpha"])
def test_hyphens_are_text_in_names_in_rows_and_in_queries(store, scope):
    rows = [*dict.fromkeys(HYPHENATED.values()), "ABC 9 and then 1234 of them", *NOISE]
    memory = filled(store.memory(scope=scope), rows)
    for query, row in HYPHENATED.items():
        assert first(memory, query) == row


SYMBOLS = {
    "don't": "we don't smoke",
    '"unterminated': 'an "unterminated quotation',
    "a:b": "the ratio a:b matters",
    "col:val": "write col:val there",
    "foo*": "foo* is a pattern",
    "*": "a lone * here",
    "(": "an open ( bracket",
    ")": "a closed ) bracket",
    "NEAR(a b)": "call NEAR(a b) twice",
    "a AND": "a AND gate has two inputs",
    "OR": "an OR gate",
    "NOT x": "compute NOT x first",
    "^x": "the power ^x grows",
    "+x": "the sign +x stays",
    "GB/s": "it copies 3 GB/s easily",
    "C++": "we compile C++ code",
    "C#": "they teach C# there",
    ".NET": "built on .NET long ago",
    "%": "half is 50 % of it",
    "_": "an _ underscore",
    "\\": "a \\ backslash",
    "';DROP TABLE facts;--": "he typed ';DROP TABLE facts;-- in vain",
    "{}": "an empty {} object",
    "a&b|!c": "the term a&b|!c is odd",
    "<->": "the arrow <-> points twice",
    ":*": "the suffix :* is a prefix",
}


def test_operators_and_punctuation_in_a_query_are_literal_text(memory):
    filled(memory, [*SYMBOLS.values(), "vitamin C is plain", "C is a letter", *NOISE])
    for query, row in SYMBOLS.items():
        assert first(memory, query) == row, query
    assert memory.list().total == len(SYMBOLS) + 2 + len(NOISE)


@given(st.text(max_size=40))
@settings(max_examples=examples(50), deadline=None)
def test_any_text_at_all_is_a_query_or_is_refused_as_blank(memory_of_symbols, query):
    try:
        memory_of_symbols.recall(query)
    except InvalidRequest as error:
        assert error.field == "query"  # noqa: PT017 - any text: most are fine
    assert memory_of_symbols.list().total == len(SYMBOLS)


@given(st.text(min_size=1, max_size=40))
@settings(max_examples=examples(40), deadline=None)
def test_any_text_that_may_be_told_is_found_by_itself(text):
    with Store.open(":memory:") as store:
        memory = filled(store.memory(), NOISE)
        try:
            reply = memory.remember(text)
        except InvalidRequest as error:
            assert error.field == "text"  # noqa: PT017 - a blank text
            return
        assert reply.id in ids(memory.recall(text, k=10))


@pytest.fixture(scope="module")
def memory_of_symbols():
    with Store.open(":memory:") as store:
        yield filled(store.memory(), list(SYMBOLS.values()))


CJK = {
    "咖啡": "我喜欢在上海喝咖啡",
    "上海": "我喜欢在上海喝咖啡",
    "東京": "東京タワーへ行きました",
    "タワー": "東京タワーへ行きました",
    "서울": "저는 서울에서 일합니다",
    "일합니다": "저는 서울에서 일합니다",
    "会議": "今日はOpenAIの会議",
    "openai": "今日はOpenAIの会議",
    "茶": "她每天喝一杯茶",
}


def test_chinese_japanese_and_korean_are_found_without_spaces(memory):
    filled(memory, [*dict.fromkeys(CJK.values()), *NOISE])
    for query, row in CJK.items():
        assert first(memory, query) == row, query
    for query in ("電車", "北京", "부산", "水曜", "龍"):
        assert memory.recall(query) == [], query


NUMBERS = {
    "5432": "port 5432 is open",
    "00123": "order 00123",
    "91234567": "call +47 912 34 567",
    "912 34 567": "call +47 912 34 567",
    "1.2.10": "v1.2.10",
    "v1.2.10": "v1.2.10",
    "2024-05-01": "2024-05-01",
    "100000": "₹1,00,000",
}


def test_numbers_are_found_as_they_are_written_and_not_by_their_beginnings(memory):
    filled(memory, [*dict.fromkeys(NUMBERS.values()), "v1.2.1 came before", "room 12 is free", *NOISE])
    for query, row in NUMBERS.items():
        assert first(memory, query) == row, query
    assert first(memory, "12") == "room 12 is free"
    assert first(memory, "1.2.1") == "v1.2.1 came before"
    assert "order 00123" not in texts(memory.recall("12"))[:1]
    assert first(memory, "5433") is None
