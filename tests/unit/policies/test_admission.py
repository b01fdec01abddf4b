"""What the standard admission takes in and what it refuses, measured on a small set of texts."""

from __future__ import annotations

import time
from string import ascii_letters, digits

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.errors import InvalidRequest
from perdure.policies import AdmitAll, Decision, StandardAdmission, find_refusal
from unit.policies.admission_texts import KEPT, KNOWN_FALSE_ALARMS, KNOWN_MISSES, SENSITIVE, SMALL_TALK

STANDARD = StandardAdmission()


def refusal(text: str, tags: tuple[str, ...] = (), **told) -> str | None:
    return find_refusal(StandardAdmission(**told), text, tags)


@pytest.mark.parametrize("text", SENSITIVE)
def test_secrets_are_refused_as_sensitive(text):
    assert (refusal(text) or "").startswith("sensitive:")


@pytest.mark.parametrize("text", SMALL_TALK)
def test_small_talk_is_refused_as_such(text):
    assert (refusal(text) or "").startswith("small talk:")


@pytest.mark.parametrize("text", KEPT)
def test_what_only_looks_like_a_secret_or_like_small_talk_is_kept(text):
    assert STANDARD.decide(text, ()) == Decision(True)


def test_the_set_is_large_enough_to_say_something_and_its_errors_are_those_that_are_known():
    assert len(SENSITIVE) + len(SMALL_TALK) >= 60
    assert len(KEPT) >= 55
    assert [text for text in KNOWN_MISSES if refusal(text) is not None] == []
    assert [text for text in KNOWN_FALSE_ALARMS if refusal(text) is None] == []


@pytest.mark.parametrize("text", SENSITIVE)
def test_a_reason_holds_nothing_of_the_text(text):
    reason = refusal(text) or ""
    secrets = [word for word in text.split() if any(c in digits for c in word) or not word.isalpha()]
    assert [word for word in secrets if len(word) > 3 and word in reason] == []


@pytest.mark.parametrize("text", SENSITIVE)
def test_secrets_are_kept_where_they_are_allowed(text):
    assert refusal(text, allow_sensitive=True) is None


@pytest.mark.parametrize("text", SMALL_TALK)
def test_small_talk_is_kept_where_it_is_not_ignored(text):
    assert refusal(text, ignore_small_talk=False) is None


@pytest.mark.parametrize(
    "text", ["She changed her password last week", "Access tokens expire", "密码需要更换", "das Kennwort"]
)
def test_strict_words_refuse_the_bare_words_for_a_secret(text):
    assert refusal(text) is None
    assert (refusal(text, strict_words=True) or "").startswith("sensitive:")


def test_strict_words_do_not_refuse_longer_words_that_hold_them():
    assert refusal("The secretary tokenised the passwordless login", strict_words=True) is None


def test_preferences_and_tasks_are_refused_by_their_tag_and_only_where_told():
    assert refusal("She prefers tea", ("preference",)) is None
    assert "rememberPreferences" in (
        refusal("She prefers tea", ("preference",), remember_preferences=False) or ""
    )
    assert refusal("Buy milk", ("task",)) is None
    assert "rememberTasks" in (refusal("Buy milk", ("task",), remember_tasks=False) or "")
    assert refusal("Buy milk", ("tasks", "Task"), remember_tasks=False) is None


def card_number(start: str, length: int) -> str:
    """A number with the right check digit."""
    for last in digits:
        number = start.ljust(length - 1, "7") + last
        total = 0
        for place, digit in enumerate(reversed(number)):
            double = int(digit) * 2 if place % 2 else int(digit)
            total += sum(map(int, str(double)))
        if total % 10 == 0:
            return number
    raise AssertionError


@pytest.mark.parametrize(
    ("start", "length"),
    [
        ("4", 13),
        ("4", 16),
        ("51", 16),
        ("2221", 16),
        ("2720", 16),
        ("34", 15),
        ("6011", 16),
        ("3528", 16),
        ("36", 14),
    ],
)
def test_a_card_number_needs_a_known_beginning_its_length_and_the_right_check_digit(start, length):
    number = card_number(start, length)
    wrong = number[:-1] + str((int(number[-1]) + 1) % 10)
    assert refusal(f"it is {number}.") is not None
    assert refusal(f"it is {wrong}.") is None
    assert refusal(f"it is {number}0123456789.") is None
    assert refusal("it is " + " ".join(number)) is not None


@given(st.text(), st.lists(st.sampled_from(["preference", "task", "other"]), unique=True))
def test_a_decision_is_the_same_each_time_and_a_refusal_has_a_reason(text, tags):
    decision = STANDARD.decide(text, tags)
    assert decision == STANDARD.decide(text, tags)
    assert decision.admitted or decision.reason


@given(st.text(ascii_letters + " .,", max_size=60).filter(lambda text: "pass" not in text.lower()))
def test_letters_alone_without_a_word_for_a_secret_are_never_sensitive(text):
    words = ("key", "token", "secret", "credential", "pin", "tan", "ssn", "pwd", "par", "has", "clav", "kenn")
    if not any(word in text.lower() for word in words):
        assert not (refusal(text) or "").startswith("sensitive:")


@pytest.mark.parametrize(
    "text",
    [
        "password for " * 5_000,
        "password " * 7_000,
        "1 " * 32_000,
        "sk-" * 21_000,
        "a" * 65_536,
        "eyJ" * 21_000,
        "x://" * 16_000,
        "-----BEGIN " * 5_000,
        "password for " + "x" * 65_000,
        "password" + " " * 65_000,
        "a." * 32_000,
        "-M" * 32_000,
        "-eyJ" * 16_000,
        "x://a:" * 10_000,
    ],
    ids=lambda text: text[:12],
)
def test_the_longest_text_is_judged_in_reasonable_time(text):
    begun = time.thread_time()
    STANDARD.decide(text, ())
    assert time.thread_time() - begun < 2.0


def test_the_default_takes_everything_in():
    assert all(AdmitAll().decide(text, ("task",)).admitted for text in (*SENSITIVE, *SMALL_TALK))


class Odd:
    def __init__(self, answer: object) -> None:
        self.answer = answer

    def decide(self, text, tags):
        return self.answer


@pytest.mark.parametrize("answer", [None, True, "no", Decision("yes"), Decision(False, 7)])
def test_a_policy_that_returns_no_decision_is_told_so(answer):
    with pytest.raises(InvalidRequest, match="must return a Decision") as caught:
        find_refusal(Odd(answer), "text", ())
    assert caught.value.field == "admission"


def test_a_refusal_without_a_reason_says_at_least_who_refused():
    assert find_refusal(Odd(Decision(False)), "text", ()) == "the admission policy refused it"


def test_a_switch_that_is_no_flag_is_refused_by_name():
    with pytest.raises(InvalidRequest, match="strict_words must be true or false, got int"):
        StandardAdmission(strict_words=1)
