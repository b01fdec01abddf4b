"""Things that people tripped over in other memories, tried through the command line."""

from __future__ import annotations

import json

import pytest

from unit.cli.command_line import remember, texts


def recalled(run, query: str, *options: str) -> list[str]:
    outcome = run("recall", *options, "--json", "--", query)
    assert outcome.code == 0, outcome.err
    return texts(outcome)


def imported(run, *facts: str) -> None:
    """Tell facts in one go; their ids are their places."""
    data = "".join(json.dumps({"text": text, "id": str(place)}) + "\n" for place, text in enumerate(facts))
    assert run("import", "-", stdin=data).code == 0


def test_times_without_a_zone_are_utc_and_offsets_are_kept(run, latest):
    remember(
        run, "Ana lives in Oslo", *latest, "--subject", "ana/city", "--valid-from", "2024-01-01T00:00:00"
    )
    rome = remember(
        run,
        "Ana lives in Rome",
        *latest,
        "--subject",
        "ana/city",
        "--valid-from",
        "2025-01-01T00:00:00+02:00",
    )
    assert recalled(run, "where does Ana live", "--as-of", "2024-06-01") == ["Ana lives in Oslo"]
    assert "2024-12-31T22:00:00Z" in run("get", rome).out


def test_the_same_sentence_with_two_intervals_is_two_facts(run, latest):
    spans = [("Acme", "2018", "2020"), ("Initech", "2020", "2023"), ("Acme", "2023", None)]
    ids = []
    for firm, start, stop in spans:
        options = [*latest, "--subject", "bo/job", "--valid-from", f"{start}-01-01"]
        options += ["--valid-to", f"{stop}-01-01"] if stop else []
        ids.append(remember(run, f"Bo works at {firm}", *options))
    assert len(set(ids)) == 3
    for year, firm in (("2019", "Acme"), ("2021", "Initech"), ("2024", "Acme")):
        assert recalled(run, "where does Bo work", "--as-of", f"{year}-06-01") == [f"Bo works at {firm}"]
    again = run("remember", "Bo works at Acme", "--subject", "bo/job", "--valid-from", "2023-01-01", "--json")
    assert (again.json["id"], again.json["outcome"]) == (ids[2], "existing")


def test_dates_long_before_1970_and_far_ahead_round_trip(run, latest, tmp_path):
    dates = ["0001-01-01", "1815-12-10", "1969-12-31T23:59:59.5Z", "9999-12-31T23:59:59.999999Z"]
    told = [
        remember(run, f"fact {at}", *latest, "--subject", "t8/x", "--valid-from", date)
        for at, date in enumerate(dates)
    ]
    facts = {fact["id"]: fact["validFrom"] for fact in run("list", "--json").json["items"]}
    assert [facts[id_] for id_ in told] == [-62135596800000, -4861728000000, -500, 253402300799999]
    assert recalled(run, "fact", "--as-of", "1900-01-01") == ["fact 1"]
    assert [fact["id"] for fact in run("history", told[0], "--json").json["history"]] == told

    other = ("--store", str(tmp_path / "other"))
    assert run("import", "-", *other, stdin=run("export").out).code == 0
    again = {fact["id"]: fact["validFrom"] for fact in run("list", *other, "--json").json["items"]}
    assert again == facts
    for year in ("0000", "10000"):
        outcome = run("remember", "x", "--valid-from", f"{year}-01-01", "--json")
        assert (outcome.code, outcome.error["field"]) == (2, "validFrom")
    assert len(run("list", "--json").json["items"]) == 4


def test_the_boundary_instant_belongs_to_the_new_fact_only(run, latest):
    remember(run, "the plan is basic", *latest, "--subject", "s/plan", "--valid-from", "2024-01-01")
    remember(run, "the plan is pro", *latest, "--subject", "s/plan", "--valid-from", "2024-07-01")
    for moment, plan in (
        ("2024-06-30T23:59:59Z", "basic"),
        ("2024-07-01T00:00Z", "pro"),
        ("2025-01-01", "pro"),
    ):
        assert recalled(run, "the plan", "--as-of", moment) == [f"the plan is {plan}"]


@pytest.mark.parametrize("name", ["3f2a9c1e-7b1d-4e0a-9c55-0d9f6a1b2c3d", "team-alpha", "a%b_c", "-x"])
def test_hyphens_in_names_and_texts_are_no_operators(run, name):
    whose = ("--principal", name)
    for text in ("ticket ABC-1234 closed", "state-of-the-art", "e-mail", "ABC 9 1234"):
        remember(run, text, *whose)
    assert recalled(run, "ABC-1234", *whose)[0] == "ticket ABC-1234 closed"
    assert recalled(run, "abc-1234", *whose)[0] == "ticket ABC-1234 closed"
    for query, text in (
        ("state-of-the-art", "state-of-the-art"),
        ("e-mail", "e-mail"),
        ("-closed", "ticket ABC-1234 closed"),
    ):
        assert recalled(run, query, *whose)[0] == text
    assert "ticket ABC-1234 closed" in recalled(run, "1234", *whose)


OPERATORS = [
    "don't", '"unterminated', "a:b", "col:val", "foo*", "*", "(", ")", "NEAR(a b)", "a AND", "OR", "NOT x",
    "^x", "+x", "GB/s", "C++", "C#", ".NET", "%", "_", "\\", "';DROP TABLE facts;--", "{}", "a&b|!c", "<->", ":*",
]  # fmt: skip


def test_operators_and_punctuation_in_a_query_are_text(run):
    told = [f"row {place} about {operator} here" for place, operator in enumerate(OPERATORS)]
    imported(run, *told, "plain C is a language")
    for operator, text in zip(OPERATORS, told, strict=True):
        outcome = run("recall", "--k", "50", "--json", "--", operator)
        # A sign alone may ask for nothing; then it says so, and never fails or returns everything.
        assert outcome.code == 0 or (outcome.code == 2 and "query" in outcome.err)
        if outcome.code == 0 and any(letter.isalnum() for letter in operator):
            assert text in texts(outcome)
        if outcome.code == 0:
            assert len(texts(outcome)) < len(told)
    assert recalled(run, "C++")[0] == "row 15 about C++ here"
    assert recalled(run, "C#")[0] == "row 16 about C# here"
    assert run("list", "--json").json["total"] == len(told) + 1


def test_chinese_japanese_and_korean_texts_are_found_by_their_words(run):
    imported(
        run,
        "我喜欢在上海喝咖啡",
        "東京タワーへ行きました",
        "저는 서울에서 일합니다",
        "今日はOpenAIの会議",
        "お茶です",
    )
    for query, place in (
        ("咖啡", 0), ("上海", 0), ("東京", 1), ("タワー", 1), ("서울", 2), ("일합니다", 2),
        ("会議", 3), ("openai", 3), ("茶", 4),
    ):  # fmt: skip
        hits = run("recall", query, "--json").json["results"]
        assert hits[0]["fact"]["id"] == str(place)
    assert recalled(run, "電車") == []


def test_numbers_are_found_whole(run):
    rows = [
        "port 5432 is open",
        "order 00123",
        "call +47 912 34 567",
        "v1.2.10",
        "2024-05-01",
        "₹1,00,000",
        "v1.2.1",
    ]
    imported(run, *rows)
    for query, row in (
        ("5432", rows[0]), ("00123", rows[1]), ("1.2.10", rows[3]), ("2024-05-01", rows[4]), ("1.2.1", rows[6]),
    ):  # fmt: skip
        assert recalled(run, query)[0] == row
    assert recalled(run, "12")[:1] != [rows[1]]


def test_a_result_count_of_none_is_the_default_and_bad_ones_are_refused(run):
    imported(run, *(f"apple {number}" for number in range(12)))
    assert len(recalled(run, "apple")) == 10
    assert len(recalled(run, "apple", "--k", "1")) == 1
    for value in ("0", "-1", "2.5", "true", "1000000000"):
        assert run("recall", "apple", "--k", value).code == 2
        assert run("list", "--limit", value).code == 2
