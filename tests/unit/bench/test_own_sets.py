"""Our own sets: the committed form is what the generators make, and the engine answers it as it should."""

from __future__ import annotations

import pytest
from bench.own_sets import HALVES, SETS, SMALL, lines, measured, scenario
from bench.sets.concepts import CONCEPTS

from perdure.evaluation import Trial
from perdure.evaluation.reporting import is_failed
from perdure.lexical.profile import get_profile


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("name", SETS)
def test_the_committed_form_is_what_the_generator_makes(name, half):
    assert (SMALL / f"{name}-{half}.jsonl").read_bytes() == lines(name, half, small=True)


@pytest.mark.parametrize("name", SETS)
def test_no_question_is_in_both_halves(name):
    # Names of programming languages are few, so that some stand in both.
    dev, test = (
        {
            case.query
            for case in scenario(name, half, small=True).cases
            if case.category != "identifier: symbol"
        }
        for half in HALVES
    )
    assert dev & test == set()


@pytest.mark.parametrize("half", HALVES)
def test_what_holds_at_a_moment_is_exactly_what_the_oracle_says(half):
    found = measured("updates", half, Trial(), small=True)
    assert [str(answer.case.place) for answer in found.answers if answer.scores["exact"] < 1] == []
    assert found.leaks == ()
    assert len(found.answers) >= 100


@pytest.mark.slow
@pytest.mark.parametrize("half", HALVES)
def test_so_it_is_in_a_thousand_other_stories(half):
    found = measured("updates", half, Trial())
    assert [str(answer.case.place) for answer in found.answers if answer.scores["exact"] < 1] == []


@pytest.mark.parametrize("half", HALVES)
def test_words_of_every_script_are_found_before_what_nearly_matches(half):
    found = measured("multilingual", half, Trial(), small=True)
    # Other forms of a word need a stemmer of its language, and names in camel case are one word.
    hard = ("inflected", "camel case, by parts")
    failed = {
        answer.case.category
        for answer in found.answers
        if not str(answer.case.category).endswith(hard) and answer.scores["hit@1"] < 1
    }
    assert failed == set()


@pytest.mark.parametrize("half", HALVES)
def test_a_name_that_nothing_else_has_is_found_whatever_stands_beside_it(half):
    found = measured("paraphrases", half, Trial(), small=True)
    assert found.means("name")["R@10"] == 1
    assert any(is_failed(answer) for answer in found.of("paraphrase"))


@pytest.mark.parametrize(("fact", "question", "near"), CONCEPTS)
def test_a_paraphrase_shares_no_word_with_its_fact_and_some_with_what_is_near(fact, question, near):
    profile = get_profile("english.v1")
    asked = set(profile.query_terms(question))
    assert asked & set(profile.document_terms(fact)) == set()
    assert asked & set(profile.document_terms(near))
