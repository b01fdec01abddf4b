"""Wrong command lines: each is refused with exit code 2, names what is wrong and changes nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.cli.arguments import arranged, wants_json
from perdure.errors import InvalidRequest
from unit.cli.command_line import remember, texts

READS = [
    ("recall", "x"),
    ("explain", "x", "a"),
    ("get", "a"),
    ("history", "a"),
    ("list",),
]


@pytest.mark.parametrize("read", READS, ids=lambda read: read[0])
@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--as_off", "2020-01-01"), "--as_off"),
        (("--as-of", "banana"), "asOf"),
        (("--known-at", "2020-13-01"), "knownAt"),
        (("--as-of", "0000-01-01"), "asOf"),
        (("--as-of", "2020-01-01", "--as-of", "2021-01-01"), "--as-of"),
    ],
)
def test_an_unknown_option_a_bad_time_and_a_repeat_are_refused_on_every_read(run, read, options, named):
    remember(run, "x", "--id", "a")
    outcome = run(*read, *options, "--json")
    assert outcome.code == 2
    assert outcome.error["code"] == "invalid_request"
    assert named in outcome.error["message"]


@pytest.mark.parametrize("value", ["0", "-1", "2.5", "true", "five", "", "1000000000", "1e3", "١"])
@pytest.mark.parametrize(
    ("command", "option"),
    [
        (("recall", "x"), "--k"),
        (("explain", "x", "a"), "--k"),
        (("list",), "--limit"),
        (("changes",), "--limit"),
    ],
)
def test_a_count_is_a_whole_number_in_its_range(run, command, option, value):
    outcome = run(*command, option, value)
    assert outcome.code == 2
    assert option.removeprefix("--") in outcome.err
    assert outcome.out == ""


@pytest.mark.parametrize("value", ["-7", "-0.5", "-987654321"])
@pytest.mark.parametrize(
    ("command", "option"),
    [
        (("remember", "x"), "--importance"),
        (("correct", "y", "--id", "a"), "--importance"),
        (("annotate", "a"), "--importance"),
        (("recall", "x"), "--min-score"),
        (("recall", "x"), "--weight-lexical"),
        (("recall", "x"), "--weight-semantic"),
        (("reindex",), "--k1"),
        (("reindex",), "--b"),
        (("conversation", "recall", "x"), "--subquery-weight"),
        (("propose", "x", "--evidence", "u", "--quote", "x"), "--confidence"),
        (("serve",), "--rate"),
        (("serve",), "--request-timeout"),
    ],
)
def test_a_number_that_is_refused_is_told_as_it_was_typed(run, command, option, value):
    remember(run, "x", "--id", "a")
    outcome = run(*command, f"{option}={value}")
    assert (outcome.code, f"got {value}\n" in f"{outcome.err}\n") == (2, True), outcome.err


def test_one_is_a_count_and_none_is_the_default(run):
    for number in range(12):
        remember(run, f"apple {number}")
    assert len(texts(run("recall", "apple", "--k", "1", "--json"))) == 1
    assert len(texts(run("recall", "apple", "--json"))) == 10


@pytest.mark.parametrize("blank", ["", "   ", "\n\t", "\u200b"])
def test_a_blank_query_is_refused_and_points_to_list(run, blank):
    remember(run, "a fact")
    outcome = run("recall", blank, "--json")
    assert outcome.code == 2
    assert "perdure list" in outcome.error["message"]
    assert run("recall", "-", stdin=blank).code == 2


@pytest.mark.parametrize(
    "line",
    [
        ("recall",),
        ("recall", "two", "words"),
        ("recall", "x", "--history", "some"),
        ("recall", "x", "--kind", "odd"),
        ("recall", "x", "--filter", "[1]"),
        ("recall", "x", "--filter", '{"a":1,"a":2}'),
        ("recall", "x", "--filter", "{"),
        ("recall", "x", "--min-score", "nan"),
        ("recall", "x", "--min-score", "-1"),
        ("recall", "x", "--k", "5", "--candidate-limit", "4"),
        ("list", "--order", "random"),
        ("list", "--status", "odd"),
        ("list", "--cursor", "odd"),
        ("remember", "x", "--importance", "2"),
        ("remember", "x", "--metadata", '{"a":NaN}'),
        ("remember", "x", "--valid-from", "2020-01-02", "--valid-to", "2020-01-01"),
        ("remember", "x", "--valid-from", "10000-01-01"),
        ("remember", "x", "--supersedes", "nothing"),
        ("remember", "x", "--source", '{"page":1}'),
        ("remember", "x", "--principal", "a\x07b"),
        ("end", "a", "--at", "soon"),
        ("import", "x.jsonl", "--format", "yaml"),
        ("remember", "x", "--subject"),
        ("remember", "--subject", "--", "x"),
        ("remember", "x", "--subject", "--tag", "t"),
        ("remember", "x", "--subject", "-h"),
        ("remember", "x", "--store"),
        ("remember", "x", "--store", ""),
        ("remember", "x", "--config", ""),
        ("--store", "--principal", "remember", "x"),
        ("--principal", "a", "--principal", "b", "remember", "x"),
        ("--store",),
        ("recall", "x", "--pinned=yes"),
        ("bogus",),
        ("--nonsense", "list"),
        (),
    ],
    ids=" ".join,
)
def test_a_wrong_line_is_exit_code_2_and_stores_nothing(run, line):
    outcome = run(*line)
    assert outcome.code == 2
    assert outcome.err.count("\n") == (1 if line else 0)
    assert texts(run("list", "--json")) == []


def test_a_wrong_configuration_names_its_field(run, tmp_path):
    path = tmp_path / "config.json"
    path.write_text('{"defaultK": 0}')
    outcome = run("list", "--config", str(path), "--json")
    assert (outcome.code, outcome.error["field"]) == (2, "defaultK")
    assert run("list", "--config", str(tmp_path / "absent.json")).code == 2


def test_the_configuration_in_force_is_printed_and_may_come_from_the_environment(run, tmp_path, monkeypatch):
    path = tmp_path / "config.json"
    path.write_text('{"defaultK": 3}')
    assert run("config", "--json").json["defaultK"] == 10
    monkeypatch.setenv("PERDURE_CONFIG", str(path))
    assert run("config", "--json").json["defaultK"] == 3
    assert '"defaultK": 3' in run("config").out


def test_shared_options_may_stand_before_or_after_the_command(run, tmp_path):
    there = ("--store", str(tmp_path / "other"), "--principal", "p")
    remember(run, "x", *there)
    assert texts(run(*there, "--json", "list")) == ["x"]
    assert texts(run("--principal", "someone else", "list", *there, "--json")) == ["x"]


def test_a_word_that_begins_with_a_hyphen_is_text(run):
    for text in ("-closed", "-1", "-h5"):
        remember(run, text)
        assert text in texts(run("recall", text, "--json"))
    assert run("recall", "--", "--json").code == 0


def test_help_names_every_command(run):
    shown = run("--help")
    assert shown.code == 0
    for name in ("remember", "recall", "explain", "history", "get", "list", "correct", "end", "forget", "import", "export", "stats", "demo", "config", "apply-forgetting", "consolidate"):  # fmt: skip
        assert f"\n  {name} " in shown.out
        assert "--json" in run(name, "--help").out


class _Option:
    param_type_name = "option"

    def __init__(self, name: str, *, flag: bool = False, multiple: bool = False) -> None:
        self.name, self.opts, self.secondary_opts = name, [f"--{name}"], []
        self.is_flag, self.multiple = flag, multiple


class _Word:
    param_type_name, name, opts, secondary_opts, nargs = "argument", "words", ["words"], [], -1


def test_a_forgotten_value_makes_no_folder_and_stores_nothing(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for line in (
        ("remember", "x", "--store"),
        ("remember", "--store", "--", "x"),
        ("--store", "--json", "remember", "x"),
    ):
        assert run(*line).code == 2
    assert list(tmp_path.iterdir()) == []


PARAMS = [_Option("value"), _Option("many", multiple=True), _Option("flag", flag=True), _Word()]
words = st.text(min_size=0, max_size=5).filter(lambda w: not w.startswith("--") and w != "-h")


@given(st.lists(words, min_size=1), st.lists(words), st.booleans())
def test_words_keep_their_order_wherever_options_stand_between_them(some, values, flag):
    given_options = [*(part for value in values for part in ("--many", value)), *(["--flag"] if flag else [])]
    for at in range(len(some) + 1):
        found = arranged([*some[:at], *given_options, *some[at:]], PARAMS)
        assert found == [*given_options, "--", *some]


hyphened = st.text(max_size=5).map(lambda rest: f"--{rest}")


@given(st.lists(words), st.none() | hyphened | st.just("-h"), st.lists(words))
def test_what_follows_an_option_is_never_taken_for_its_value_where_it_looks_like_an_option(
    before, next_, after
):
    line = [*before, "--value", *([] if next_ is None else [next_, *after])]
    with pytest.raises(InvalidRequest, match="--value needs a value"):
        arranged(line, PARAMS)


@given(hyphened)
def test_a_value_that_begins_with_two_hyphens_is_joined_to_its_option(value):
    assert arranged(["a", f"--value={value}"], PARAMS) == [f"--value={value}", "--", "a"]


def test_what_follows_two_hyphens_is_text():
    assert arranged(["a", "--", "--flag", "--value"], PARAMS) == ["--", "a", "--flag", "--value"]
    assert not wants_json(["a", "--", "--json"])
    assert wants_json(["a", "--json"])


def test_a_repeat_of_an_option_with_one_value_is_refused():
    with pytest.raises(InvalidRequest, match="--value is given twice"):
        arranged(["--value", "1", "--value=2"], PARAMS)


def test_a_command_without_words_refuses_them(run):
    assert run("list", "-x").code == 2


def test_an_option_with_one_hyphen_too_few_is_told_the_right_one(run):
    told = run("recall", "x", "-k", "3")
    assert told.code == 2
    assert "give --k" in told.err
    assert "too many words" in run("recall", "x", "y", "-quiet").err
