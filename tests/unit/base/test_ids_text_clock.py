"""Ids, folded text and clocks."""

from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure import InvalidRequest, ManualClock, SystemClock
from perdure.base.ids import checked_id, derived_id, keyed_hash, random_secret
from perdure.base.instants import EARLIEST, LATEST
from perdure.base.text import folded, folded_space, shown_kind, shown_number


@given(st.text())
def test_an_id_is_1_to_256_bytes_without_controls_or_our_prefix(text):
    wrong = (
        not 1 <= len(text.encode()) <= 256
        or text.startswith("perdure:")
        or any(unicodedata.category(character) == "Cc" for character in text)
    )
    if wrong:
        with pytest.raises(InvalidRequest):
            checked_id(text)
    else:
        assert checked_id(text) is text


@given(st.binary(), st.binary())
def test_derived_ids_are_equal_exactly_when_the_content_is(a, b):
    assert (derived_id(a) == derived_id(b)) == (a == b)
    assert checked_id(derived_id(a)).startswith("mem-")
    assert len(derived_id(a)) == 36


def test_a_derived_id_is_the_same_in_every_process_and_version():
    assert derived_id(b'{"text":"Alice lives in Paris"}') == DERIVED


DERIVED = "mem-49dd9ce1a789d55906f354c6e7567090"


@given(st.binary(max_size=8), st.binary(max_size=8))
def test_keyed_hashes_depend_on_the_secret_the_use_and_the_value(a, b):
    one, two = bytes(32), bytes([1] * 32)
    assert (keyed_hash(one, b"use", a) == keyed_hash(one, b"use", b)) == (a == b)
    assert keyed_hash(one, b"use", a) != keyed_hash(two, b"use", a)
    assert keyed_hash(one, b"use", a) != keyed_hash(one, b"another use", a)
    assert len(keyed_hash(one, b"use", a, 12)) == 12


def test_secrets_are_random_and_of_the_size_asked():
    assert len({random_secret() for _ in range(100)}) == 100
    assert [len(random_secret(size)) for size in (16, 32)] == [16, 32]


@given(st.text())
def test_folding_is_stable_and_blind_to_case_spaces_and_spelling(text):
    assert folded(folded(text)) == folded(text)
    assert folded_space(folded_space(text)) == folded_space(text)
    assert folded_space(f" \t{text}\n") == folded_space(text)
    for spelling in ("NFC", "NFD", "NFKC", "NFKD"):
        assert folded(unicodedata.normalize(spelling, text)) == folded(text)
    assert folded(f"  {text}\u3000") == folded(text)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Café", "CAFE\u0301"),
        ("straße", "STRASSE"),
        ("ﬁne", "FINE"),
        ("a \n b", "A B"),
        ("Ⅳ", "iv"),
        ("ΣΑΣ", "σας"),
    ],
)
def test_spellings_that_a_person_calls_the_same_fold_to_the_same(a, b):
    assert a != b
    assert folded(a) == folded(b)
    assert folded_space(a) != folded_space(b)


# Soft hyphen, joiners, directions, a byte order mark, a filler, a picture's variant, a tag, controls.
UNSEEN = (
    "\u00ad\u034f\u061c\u115f\u180e\u200b\u200c\u200d\u200e\u200f\u202a\u202e\u2060\u2064\u2066\u3164\ufe0f\ufeff"
    "\uffa0\U000e0041\x00\x07\x7f"
)


@given(st.text(max_size=20), st.lists(st.tuples(st.integers(0, 20), st.sampled_from(UNSEEN)), max_size=5))
def test_what_nobody_sees_does_not_tell_texts_apart(text, hidden):
    spiked = text
    for position, character in hidden:
        spiked = spiked[:position] + character + spiked[position:]
    assert folded(spiked) == folded(text)


def test_every_character_that_folding_drops_is_invisible_and_every_space_is_kept():
    dropped = [chr(point) for point in range(0x110000) if folded(f"a{chr(point)}b") == "ab"]
    assert set(UNSEEN) <= set(dropped)
    assert {unicodedata.category(character) for character in dropped} <= {"Cc", "Cf", "Cn", "Lo", "Mn"}
    assert not any(character.isspace() for character in dropped)
    assert folded("a\u2003\x1f\x85\nb") == "a b"


MARKS = st.sampled_from("\u0301\u0323\u0f73\u0344\u3099\u0345")


@given(
    st.lists(st.tuples(st.sampled_from("aé가\uff76"), st.lists(MARKS, max_size=80)), min_size=20, max_size=40)
)
def test_long_runs_of_marks_fold_as_the_normal_form_says(parts):
    text = "".join(base + "".join(marks) for base, marks in parts)
    once = unicodedata.normalize("NFKC", text).casefold()
    assert folded(text) == unicodedata.normalize("NFKC", once)


@pytest.mark.parametrize(
    "marks", ["\u0301\u0323" * 125_000, "\u0f73" * 125_000, "\u0301" * 99 + "\u0323" * 250_000]
)
def test_a_quarter_of_a_million_marks_fold_within_seconds(marks):
    begin = time.thread_time()
    assert folded("a" + marks)
    assert time.thread_time() - begin < 10  # in square time: minutes


def test_different_words_do_not_fold_to_the_same():
    assert len({folded(text) for text in ("a", "b", "ab", "a b", "á", "1", "")}) == 7


@pytest.mark.parametrize("number", [0, -5, 10**30, 1.5, float("inf")])
def test_a_number_of_few_digits_is_shown_whole(number):
    assert shown_number(number) == str(number)


def test_a_number_of_many_digits_is_shown_by_its_size():
    assert shown_number(10**5000) == "an integer of 16610 bits"
    assert shown_number(-(10**5000)) == "an integer of 16610 bits"


def test_a_value_that_may_be_peoples_text_is_shown_by_length_or_type():
    assert shown_kind("said so") == "a text of 7 characters"
    assert (shown_kind(5), shown_kind(b"x"), shown_kind(None)) == ("int", "bytes", "NoneType")


def test_a_manual_clock_moves_only_when_told_and_stays_in_the_calendar():
    clock = ManualClock("2026-01-01")
    assert clock.now() == clock.now() == 1_767_225_600_000
    assert clock.advance(5) == clock.now() == 1_767_225_600_005
    assert clock.advance(-10) == 1_767_225_599_995
    clock.set("1960-01-01")
    assert clock.now() < 0
    clock.set(LATEST)
    for move in (lambda: clock.advance(1), lambda: clock.set(EARLIEST - 1), lambda: clock.set(True)):
        with pytest.raises(InvalidRequest):
            move()
        assert clock.now() == LATEST
    assert ManualClock().now() == 0


def test_the_systems_clock_tells_whole_milliseconds_of_this_age():
    now = SystemClock().now()
    assert type(now) is int
    assert ManualClock("2024-01-01").now() < now < ManualClock("2200-01-01").now()
