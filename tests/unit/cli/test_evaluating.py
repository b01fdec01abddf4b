"""The command eval: what it prints, and its exit codes."""

from __future__ import annotations

import json

import pytest

from unit.cli.command_line import remember

PARIS = {"id": "paris", "text": "Alice lives in Paris", "validFrom": "2020-01-01"}
BERLIN = {"id": "berlin", "text": "Alice lives in Berlin", "validFrom": "2024-01-01", "supersedes": ["paris"]}
GOOD = [
    {"clock": "2020-02-01", "remember": PARIS},
    {"clock": "2024-02-01", "remember": BERLIN},
    {"query": "where does Alice live", "expect": ["berlin"], "absent": ["paris"], "category": "now"},
    {"query": "Alice", "options": {"asOf": "2022-01-01"}, "expect": ["paris"], "category": "then"},
]
MISS = {"query": "her address", "expect": ["berlin"], "category": "words", "name": "other words"}
LEAK = {"query": "Alice", "options": {"history": "all"}, "expect": ["berlin"], "absent": ["paris"]}


@pytest.fixture
def scenario(tmp_path):
    def write(*entries, name="trial.jsonl"):
        path = tmp_path / name
        path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
        return str(path)

    return write


def test_a_table_has_a_row_per_category_and_one_for_all(run, scenario, store_path):
    outcome = run("eval", scenario(*GOOD, MISS))
    assert outcome.code == 0
    table = [line.split() for line in outcome.out.splitlines()]
    assert table[0] == [
        "cases",
        "R@1",
        "R@5",
        "R@10",
        "hit@1",
        "hit@5",
        "hit@10",
        "nDCG@10",
        "MRR",
        "exact",
        "absent",
        "category",
    ]
    assert table[1] == ["1", *["1.000"] * 10, "now"]
    assert table[2] == ["1", *["1.000"] * 9, "-", "then"]
    assert table[3] == ["1", *["0.000"] * 9, "-", "words"]
    assert table[4] == ["3", *["0.667"] * 9, "1.000", "(all)"]
    assert "1 case of 3" in outcome.out
    assert not store_path.exists()


def test_json_has_the_means_and_the_cases_that_failed_by_place(run, scenario):
    path = scenario(*GOOD, MISS)
    told = run("eval", path, "--json").json
    assert told["ok"] is True
    assert told["evaluation"]["all"]["cases"] == 3
    assert told["evaluation"]["categories"]["then"]["MRR"] == 1
    [failure] = told["evaluation"]["failures"]
    assert failure == {
        "file": path,
        "line": 5,
        "entry": None,
        "name": "other words",
        "category": "words",
        "returned": [],
        "missed": ["berlin"],
        "unwanted": [],
    }


def test_why_explains_what_was_missed_and_what_must_not_have_come_back(run, scenario):
    outcome = run("eval", scenario(*GOOD, MISS, LEAK), "--why")
    assert "trial.jsonl, line 5: other words" in outcome.out
    assert "missed berlin" in outcome.out
    assert "None of the query's words is in it (current)." in outcome.out
    assert "unwanted paris" in outcome.out
    assert "It comes back (superseded); it shares: Alice." in outcome.out
    told = run("eval", scenario(*GOOD, MISS), "--why", "--json").json
    [why] = told["evaluation"]["failures"][0]["why"]
    assert (why["id"], why["expected"], why["explanation"]["reason"]) == ("berlin", True, "no-match")


def test_a_fact_that_must_not_come_back_makes_the_exit_code_1(run, scenario):
    outcome = run("eval", scenario(*GOOD, LEAK))
    assert outcome.code == 1
    assert "1 case gave a fact that must not come back" in outcome.err
    assert run("eval", scenario(*GOOD, LEAK), "--json").json["ok"] is False


def test_a_result_where_none_is_expected_makes_the_exit_code_1(run, scenario):
    assert run("eval", scenario(*GOOD, {"query": "Alice", "expect": []})).code == 1
    assert run("eval", scenario(*GOOD, {"query": "Bob", "expect": []})).code == 0


def test_a_minimum_that_is_missed_makes_the_exit_code_1(run, scenario):
    path = scenario(*GOOD, MISS)
    assert run("eval", path, "--min", "R@10=0.66", "--min", "exact=.5").code == 0
    outcome = run("eval", path, "--min", "R@10=0.67", "--min", "exact=.5")
    assert outcome.code == 1
    assert "R@10 is 0.6667, below the minimum of 0.67" in outcome.err
    told = run("eval", path, "--min", "R@10=0.67", "--json")
    assert told.code == 1
    assert told.json["belowMinimum"] == [{"metric": "R@10", "value": 2 / 3, "minimum": 0.67}]


@pytest.mark.parametrize(
    "told", ["R@10", "R@10=", "R@10=2", "R@10=-1", "recall=0.5", "R@10=nan", "R@10=0.5x"]
)
def test_a_minimum_of_another_form_is_a_wrong_value(run, scenario, told):
    outcome = run("eval", scenario(*GOOD), "--min", told, "--json")
    assert outcome.code == 2
    assert outcome.error["field"] == "min"


def test_a_minimum_of_a_metric_that_no_case_has_is_a_wrong_value(run, scenario):
    outcome = run("eval", scenario(*GOOD), "--min", "order=0.5", "--json")
    assert (outcome.code, outcome.error["field"]) == (2, "min")


def test_a_second_configuration_is_compared_case_by_case(run, scenario, tmp_path):
    plain = {key: value for key, value in BERLIN.items() if key != "supersedes"}
    told = [{"clock": "2024-02-01", "remember": [{**PARIS, "subject": "home"}, {**plain, "subject": "home"}]}]
    cases = [{"query": "Alice", "expect": ["berlin"], "category": c} for c in "aab"]
    latest = tmp_path / "latest.json"
    latest.write_text('{"supersession":"latest-by-subject"}')
    path = scenario(*told, *cases)
    outcome = run("eval", path, "--compare", str(latest))
    assert outcome.code == 0
    row = next(line.split() for line in outcome.out.splitlines() if line.startswith("exact"))
    assert row == ["exact", "3", "0.000", "1.000", "+1.000", "+1.000", "to", "+1.000", "(all)"]
    same = run("eval", path, "--config", str(latest), "--compare", str(latest), "--json").json
    assert {one["difference"] for one in same["differences"]} == {0}
    assert {one["category"] for one in same["differences"]} == {None, "a", "b"}
    assert same["second"]["all"] == same["evaluation"]["all"]


def test_options_of_recall_hold_for_every_case_and_are_compared(run, scenario):
    path = scenario(*GOOD)
    told = run("eval", path, "--options", '{"k":1}', "--compare-options", '{"history":"all"}', "--json")
    assert told.code == 0
    assert told.json["evaluation"]["all"]["exact"] == 1
    assert told.json["second"]["all"]["absent"] == 0


@pytest.mark.parametrize(
    ("options", "field"),
    [
        (("--options", '{"kk":1}'), "options"),
        (("--options", "[1]"), "options"),
        (("--compare-options", '{"asOf":"soon"}'), "compare_options.asOf"),
        (("--compare", "nowhere.json"), "compare"),
        (("--on-store", "--compare", "nowhere.json"), "compare"),
    ],
)
def test_a_wrong_option_is_refused_by_name(run, scenario, options, field):
    outcome = run("eval", scenario(*GOOD), *options, "--json")
    assert (outcome.code, outcome.error["field"]) == (2, field)


def test_a_wrong_file_is_refused_by_file_and_line(run, scenario):
    outcome = run("eval", scenario(*GOOD), scenario({"remembr": "x"}, name="other.jsonl"), "--json")
    assert outcome.code == 2
    assert "other.jsonl, line 1: unknown field 'remembr'" in outcome.error["message"]
    assert outcome.error["details"]["line"] == 1
    assert run("eval", scenario(*GOOD[:2])).code == 2


def test_a_file_that_cannot_be_read_is_a_wrong_value(run, scenario, tmp_path):
    for wrong in ("nowhere.jsonl", str(tmp_path)):
        outcome = run("eval", scenario(*GOOD), wrong, "--json")
        assert outcome.code == 2
        assert outcome.error["message"].startswith(f"{wrong} cannot be read: ")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--options", '{"minScore":-1}'), "--options: minScore must be"),
        (("--options", '{"minScore":-1}', "--compare-options", '{"k":1}'), "--options: minScore must be"),
        (("--compare-options", '{"minScore":-1}'), "--compare-options: minScore must be"),
        (
            ("--options", '{"k":1}', "--compare-options", '{"mode":"meaning"}'),
            "--compare-options: mode must be",
        ),
        (("--compare-options", '{"asOf":"soon"}'), "compare_options.asOf is not an ISO 8601 time"),
        (("--compare-options", '{"kk":1}'), "unknown field 'kk' of --compare-options"),
    ],
)
def test_a_wrong_option_is_told_by_the_option_that_gave_it_and_as_it_is_written(run, scenario, options, said):
    outcome = run("eval", scenario(*GOOD), *options)
    assert outcome.code == 2
    assert outcome.err.startswith(f"perdure: {said}")


def test_both_runs_of_a_comparison_are_named_counted_and_explained(run, scenario):
    path = scenario(*GOOD, MISS)
    outcome = run("eval", path, "--compare-options", '{"minScore":100}', "--why")
    first, second = outcome.out.split("Second run:\n")[:2]
    assert first.startswith("First run:\n")
    assert first.count("missed berlin") == 1
    assert second.count("scores less than --min-score") == 2
    assert "First run: 1 case of 3 missed" in outcome.out
    assert "Second run: 3 cases of 3 missed" in outcome.out
    assert outcome.code == 0  # which looks at the first alone
    told = run("eval", path, "--compare-options", '{"minScore":100}', "--why", "--json").json
    assert [len(failure["why"]) for failure in told["second"]["failures"]] == [1, 1, 1]


def test_standard_input_is_a_scenario(run):
    text = "".join(json.dumps(entry) + "\n" for entry in GOOD)
    assert run("eval", "-", stdin=text).code == 0
    assert run("eval", "-", "-", stdin=text).code == 2


def test_a_store_that_exists_is_asked_and_not_changed(run, scenario):
    remember(run, "Alice plays the oboe", "--id", "oboe")
    before = run("stats", "--json").json["records"]
    case = {"query": "oboe", "expect": ["oboe"]}
    assert run("eval", scenario(case), "--on-store", "--min", "exact=1").code == 0
    assert run("eval", scenario(*GOOD), "--on-store").code == 2
    assert run("eval", scenario({**case, "clock": 5}), "--on-store").code == 2
    assert run("stats", "--json").json["records"] == before


def test_asking_a_store_that_is_not_there_makes_none(run, scenario, store_path):
    assert run("eval", scenario({"query": "x", "absent": ["a"]}), "--on-store").code == 1
    assert not store_path.exists()
