"""Evidence recall on a small archive of the shape of LoCoMo: what is read, scored, compared and refused."""

from __future__ import annotations

import argparse
import json
import math
import sys
import zipfile

import numpy as np
import pytest
from bench import quality
from bench.locomo import Question, conversations
from bench.quality import Gate, Row
from hypothesis import given
from hypothesis import strategies as st

from perdure import NewFact

THINGS = ("violin", "bicycle", "lantern", "camera", "kettle", "tent")
PEOPLE = ("Ann", "Ben")
QUESTIONS = [
    {"question": "What did Ann buy besides a violin?", "category": 4, "evidence": ["D1:2"]},
    {"question": "Which camera did Ben take along in May 2023?", "category": 2, "evidence": ["D4:1; D4:02"]},
    {"question": "Did Ann lose the kettle?", "category": 5, "evidence": ["D:5:1", "D9:9"]},
    {"question": "What is not in here?", "category": 1, "evidence": ["D77:1"]},
    {"question": "What is without evidence?", "category": 3, "evidence": []},
]


def conversation():
    """One conversation of six sessions of three turns."""
    told = {"qa": QUESTIONS}
    for number, thing in enumerate(THINGS, 1):
        told[f"session_{number}_date_time"] = f"1:56 pm on 8 {['May', 'June'][number % 2]}, 2023"
        texts = (
            f"I have got a {thing}.",
            "And I like the colour of it.",
            f"Good night, {PEOPLE[number % 2]}!",
        )
        told[f"session_{number}"] = [
            {"speaker": PEOPLE[turn % 2], "dia_id": f"D{number}:{turn + 1}", "text": text}
            for turn, text in enumerate(texts)
        ]
    return told


@pytest.fixture
def archive(tmp_path):
    path = tmp_path / "conversations.zip"
    with zipfile.ZipFile(path, "w") as file:
        for name in ("3", "7"):
            file.writestr(f"folder/{name}.json", json.dumps(conversation()))
    return path


@pytest.fixture
def run(monkeypatch, capsys):
    def run_(*args):
        monkeypatch.setattr(sys, "argv", ["quality", *map(str, args)])
        code = quality.main()
        return code, capsys.readouterr()

    return run_


def row(category, value, milliseconds=1.0):
    return Row(category, dict.fromkeys(quality.METRICS, value), milliseconds)


def test_questions_have_their_evidence_in_one_spelling_and_those_without_any_are_left_out(archive):
    told = list(conversations(archive))
    assert [one.name for one in told] == ["3", "7"]
    assert told[0].questions == (
        Question("What did Ann buy besides a violin?", 4, frozenset({"D1:2"})),
        Question("Which camera did Ben take along in May 2023?", 2, frozenset({"D4:1", "D4:2"})),
        Question("Did Ann lose the kettle?", 5, frozenset({"D5:1"})),
    )
    first = told[0].facts[0]
    assert first.text == "[1:56 pm on 8 June, 2023] Ann: I have got a violin."
    assert (first.source.uri, first.source.position, first.source.actor) == ("3/session-1", 0, "Ann")


def test_what_is_left_out_is_not_in_the_texts(archive):
    bare = next(iter(conversations(archive, frozenset({"date"}))))
    assert bare.facts[0].text == "Ann: I have got a violin."


def test_scores_are_shares_of_the_evidence_and_sessions_count_in_order_of_appearance():
    session_of = {"a": 1, "b": 1, "c": 2, "d": 3}
    found = quality.scores(["a", "b", "c"], frozenset({"c", "d"}), session_of)
    best = 1 + 1 / math.log2(3)
    assert found == pytest.approx(
        {
            "R@5": 0.5,
            "R@10": 0.5,
            "R@20": 0.5,
            "nDCG@10": 0.5 / best,
            "MRR": 1 / 3,
            "s-hit@1": 0.0,
            "s-hit@5": 1.0,
        }
    )
    assert list(found) == list(quality.METRICS)


def test_the_reference_finds_words_as_they_are_written_and_nothing_else(archive):
    told = next(iter(conversations(archive, frozenset({"date"}))))
    reference = quality.Reference(told)
    assert reference.ask("Violin!") == ["D1:1"]
    assert reference.ask("violins") == []
    assert reference.ask("colour night")[0] in {"D1:2", "D2:2", "D1:3", "D2:3"}
    assert len(reference.ask("I")) == 12


def test_neighbours_bring_back_the_turn_after_the_words(archive, run):
    code, told = run(archive)
    assert code == 0
    table = told.out.split("| step | R@5")[1].split("\n\n")[0].splitlines()[2:]
    first = {key: float(value) for key, value, *_ in (line.strip("| ").split(" | ") for line in table)}
    assert list(first) == ["reference", "analysis", "neighbours", "actor", "context"]
    assert first["neighbours"] == 100.0
    assert first["reference"] < 100.0


def test_a_bar_that_is_not_reached_ends_with_one_and_is_named(archive, run, tmp_path):
    out = tmp_path / "report.md"
    code, told = run(archive, "--min", "reference:R@5=99", "--min", "s-hit@5=50", "--out", out)
    assert code == 1
    assert "TOO LOW  reference: R@5 is" in told.err
    assert told.err.count("TOO LOW") == 1
    assert out.read_text() == told.out


def test_a_bar_for_a_step_that_was_not_measured_is_not_reached():
    found = {"context": [row(1, 1.0)]}
    assert quality.missed(found, [Gate("hybrid", "R@10", 1.0)]) == [
        "hybrid was not measured; measured: context"
    ]
    assert quality.missed(found, [Gate(None, "R@10", 100.0)]) == []


def test_a_bar_without_any_question_is_not_reached():
    assert len(quality.missed({"context": [row(5, 1.0)]}, [Gate(None, "R@10", 0.0)])) == 1


@pytest.mark.parametrize("told", ["R@10", "R@11=5", "R@10=", "R@10=x", "a b:R@10=5", ""])
def test_a_bar_of_another_form_is_refused(told):
    with pytest.raises(argparse.ArgumentTypeError, match="METRIC=VALUE"):
        quality.read_gate(told)


def test_the_adversarial_questions_do_not_count_in_one_to_four():
    rows = [row(1, 1.0), row(5, 0.0)]
    assert quality.mean(quality.scored(rows), "R@10") == 100.0
    assert quality.mean(rows, "R@10") == 50.0


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=8))
def test_what_one_way_gains_the_other_loses(pairs):
    first, second = ([row(1, pair[side] / 4) for pair in pairs] for side in (0, 1))
    gained, lost = (quality.gain(a, b, "MRR") for a, b in ((first, second), (second, first)))
    assert gained.mean == pytest.approx(-lost.mean)
    assert (gained.low, gained.high) == pytest.approx((-lost.high, -lost.low))
    assert gained.low <= gained.mean + 1e-9
    assert gained.high >= gained.mean - 1e-9
    assert quality.gain(first, second, "MRR") == gained


class ByLetters:
    """Vectors of the letters of a text; nothing to say of a text without any."""

    model, dimension, query_task = "letters", 26, None

    def embed_documents(self, texts):
        return np.array([[text.lower().count(chr(97 + place)) for place in range(26)] for text in texts])

    def embed_query(self, text):
        return self.embed_documents([text])[0]


def test_vectors_are_told_with_the_facts_and_none_where_there_is_nothing_to_say():
    told = quality.with_vectors([NewFact(text="Abba"), NewFact(text="42")], ByLetters())
    assert told[0].embedding == [2, 2, *[0] * 24]
    assert told[1].embedding is None
    assert quality.with_vectors(told, None) == told


def test_an_embedder_adds_a_step_that_finds_by_vectors(archive):
    told = next(iter(conversations(archive)))
    step = quality.Told(ByLetters()).step("semantic", mode="semantic")
    ranked = step.prepare(told)("violin")
    assert len(ranked) == len(told.facts)  # words alone would find one
    assert [one.key for one in quality.steps(archive, ByLetters(), None, None)][-1] == "hybrid"


def test_an_embedder_that_fails_ends_the_run(archive):
    class Broken(ByLetters):
        def embed_documents(self, texts):
            raise OSError("out of reach")

    told = next(iter(conversations(archive)))
    with pytest.raises(OSError, match="out of reach"):
        quality.Told(Broken()).step("hybrid").prepare(told)


def test_other_weights_are_compared_with_the_defaults(archive, run):
    code, told = run(archive, "--sensitivity")
    assert code == 0
    gains = told.out.split("| step | on top of")[1].splitlines()[2:]
    assert gains
    assert all(" | defaults | " in line for line in gains if line)


def test_a_question_without_a_vector_is_asked_by_its_words():
    told = quality.Told(ByLetters())
    assert told.options("42") == {}
    assert told.options("b")["embedding"][1] == 1
    assert quality.Told().options("b") == {}
