"""The LongMemEval run on a small file of the same shape: its checks hold, its scores are right, bad files are refused."""

from __future__ import annotations

import json
import sys

import pytest
from bench import longmemeval

DATES = [f"2023/05/{day:02} (Mon) 10:{day:02}" for day in range(1, 13)]
TOPICS = ["kettle", "lantern", "ladder", "violin", "bicycle", "teapot", "camera", "umbrella", "sofa", "tent"]


def talk(topic, extra=""):
    return [
        {"role": "user", "content": f"I bought a {topic} today. {extra}", "has_answer": bool(extra)},
        {"role": "assistant", "content": f"How nice, enjoy the {topic}!"},
        {"role": "user", "content": " "},
    ]


def question(number, topic, *, answers, kind="single-session-user", suffix="", asked=DATES[-1]):
    sessions = {f"s{place}": talk(one) for place, one in enumerate(TOPICS)}
    for answer in answers:
        sessions[answer] = talk(topic, f"The {topic} cost ninety euros")
    return {
        "question_id": f"q{number}{suffix}",
        "question_type": kind,
        "question": f"How much was the {topic}?",
        "question_date": asked,
        "answer": "ninety euros",
        "answer_session_ids": answers,
        "haystack_session_ids": list(sessions),
        "haystack_dates": DATES[: len(sessions)],
        "haystack_sessions": list(sessions.values()),
    }


@pytest.fixture
def file(tmp_path):
    def write(questions):
        path = tmp_path / "longmemeval.json"
        path.write_text(json.dumps(questions))
        return path

    return write


@pytest.fixture
def run(monkeypatch, capsys):
    def run_(*args):
        monkeypatch.setattr(sys, "argv", ["longmemeval", *map(str, args)])
        code = longmemeval.main()
        return code, capsys.readouterr().out

    return run_


def test_every_check_holds_and_every_type_has_a_row(file, run, tmp_path):
    questions = [
        question(1, "kettle", answers=["s0"]),
        question(2, "violin", answers=["s3", "s10"], kind="multi-session"),
        question(
            3, "sofa", answers=["s8"], kind="temporal-reasoning", asked=DATES[4]
        ),  # the evidence is in the future
        question(4, "piano", answers=[], suffix="_abs"),
    ]
    out = tmp_path / "report.md"
    code, told = run(file(questions), "--out", out)
    assert code == 0
    for name in longmemeval.CHECKS:
        assert f"check {name}: 0 of 4 questions failed" in told
    assert "| (all) | 3 | 1.000 | 1.000 | 1.000 |" in told
    assert "| multi-session | 1 |" in told
    assert out.read_text() == told


def test_what_the_figures_are_worth_is_said(file, run):
    questions = [question(n, "kettle", answers=["s0"]) for n in range(3)]
    _, told = run(file(questions), "--sample", 2)
    assert "sanity check on 2 scored questions" in told
    assert "No value was tuned on this file" in told
    assert "No id of a held-out part was read" in told
    assert not any("sanity check" in line for line in longmemeval.honesty(470, sampled=False))


def test_a_session_that_does_not_come_back_in_time_counts_as_missed(file):
    found = longmemeval.ask({**question(1, "kettle", answers=["s0"]), "question": "the violin"})
    assert found.scores == {"recall_any@5": 0, "recall_any@10": 0, "recall_all@5": 0}
    assert found.failed == ()


def test_a_turn_that_is_longer_than_a_fact_is_told_in_pieces():
    long = question(1, "kettle", answers=["s0"])
    long["haystack_sessions"][0][0]["content"] = "word " * 7_000 + "kettle"
    assert longmemeval.ask(long).facts == 2 * len(TOPICS) + 2


@pytest.mark.parametrize("missing", ["question_date", "haystack_dates", "answer_session_ids"])
def test_a_file_of_another_form_is_refused_by_field(file, missing):
    other = question(1, "kettle", answers=["s0"])
    del other[missing]
    with pytest.raises(SystemExit, match=missing):
        longmemeval.read(file([question(2, "kettle", answers=["s0"]), other]))


def test_dates_and_sessions_that_do_not_pair_up_are_refused(file):
    other = question(1, "kettle", answers=["s0"])
    other["haystack_dates"].pop()
    with pytest.raises(SystemExit, match="question 0"):
        longmemeval.read(file([other]))
