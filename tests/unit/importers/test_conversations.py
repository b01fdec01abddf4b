"""Conversations: a fact per turn, with its date, speaker, picture and place."""

from __future__ import annotations

from typing import Any

import pytest

from perdure.errors import InvalidRequest
from perdure.importers.conversations import is_conversation, read_conversations, session_instant, turn_text
from perdure.importers.entries import Bad, Found


def talk(**changes: Any) -> dict[str, Any]:
    return {
        "speaker_a": "Ana",
        "speaker_b": "Bo",
        "session_2_date_time": "9:05 am on 3 June, 2023",
        "session_2": [{"speaker": "Bo", "dia_id": "D2:1", "text": "Back again."}],
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"speaker": "Ana", "dia_id": "D1:1", "text": "I got a kite!"},
            {
                "speaker": "Bo",
                "dia_id": "D1:2",
                "text": "Look at mine.",
                "img_url": ["https://example.org/1.jpg"],
                "blip_caption": "a red kite over a beach",
                "query": "kite beach",
            },
        ],
        "events_session_1": {"Ana": []},
        **changes,
    }


def read(document: Any) -> list[Found | Bad]:
    return list(read_conversations(document, "talk", "talk.json"))


def facts(document: Any) -> list[Any]:
    return [entry.fact for entry in read(document) if isinstance(entry, Found)]


def test_turns_come_in_the_order_of_the_sessions_numbers():
    assert [fact.id for fact in facts(talk())] == ["talk/D1:1", "talk/D1:2", "talk/D2:1"]


def test_a_fact_holds_the_date_the_speaker_the_words_and_what_is_known_of_the_picture():
    first, second, _ = facts(talk())
    assert first.text == "[1:56 pm on 8 May, 2023] Ana: I got a kite!"
    assert second.text == ("[1:56 pm on 8 May, 2023] Bo: Look at mine. (a red kite over a beach; kite beach)")
    assert second.metadata == {"dia_id": "D1:2", "session": 1}
    assert (second.source.uri, second.source.position, second.source.actor) == ("talk/session-1", 1, "Bo")
    assert first.event_time == 1_683_554_160_000


def test_a_sample_brings_its_own_name_and_a_list_numbers_those_without():
    sample = {"sample_id": "conv-26", "conversation": talk(), "qa": []}
    assert {entry.conversation for entry in read([sample]) if isinstance(entry, Found)} == {"conv-26"}
    named = {
        entry.conversation for entry in read([{"conversation": talk()}, talk()]) if isinstance(entry, Found)
    }
    assert named == {"talk-1", "talk-2"}


def test_a_session_without_a_date_is_dated_by_nothing():
    document = talk()
    del document["session_1_date_time"]
    first = facts(document)[0]
    assert (first.text, first.event_time) == ("Ana: I got a kite!", None)


@pytest.mark.parametrize(
    ("changes", "place", "said"),
    [
        ({"session_2": "words"}, "session_2", "list"),
        ({"session_2_date_time": "once upon a time"}, "session_2", "session_2_date_time"),
        ({"session_2_date_time": 7}, "session_2", "session_2_date_time"),
        ({"session_2": [7]}, "session_2[0]", "object"),
        ({"session_2": [{"speaker": "Bo", "text": "x"}]}, "session_2[0]", "dia_id is missing"),
        (
            {"session_2": [{"speaker": "Bo", "dia_id": "D2:1", "text": None}]},
            "session_2[0]",
            "text must be text",
        ),
        ({"session_2": [{"speaker": "Bo", "dia_id": "D1:1", "text": "x"}]}, "session_2[0]", "earlier turn"),
    ],
)
def test_what_is_wrong_is_told_by_its_place_and_the_rest_is_kept(changes, place, said):
    found = read(talk(**changes))
    (bad,) = [entry for entry in found if isinstance(entry, Bad)]
    assert bad.place.entry == place
    assert said in bad.reason
    assert len(found) == 3


@pytest.mark.parametrize(
    ("date", "millis"),
    [
        ("1:56 pm on 8 May, 2023", 1_683_554_160_000),
        ("12:06 am on 11 November, 2022", 1_668_125_160_000),
        ("12:30 pm on 1 January, 2024", 1_704_112_200_000),
        ("8 May, 2023", 1_683_504_000_000),
        ("2023-05-08T13:56:00Z", 1_683_554_160_000),
    ],
)
def test_dates_of_sessions_are_read_as_utc(date, millis):
    assert session_instant(date) == millis


@pytest.mark.parametrize("date", ["", "13:56 pm on 8 May, 2023", "1:56 pm on 31 June, 2023", "tomorrow"])
def test_what_is_no_date_is_refused(date):
    with pytest.raises(InvalidRequest):
        session_instant(date)


def test_only_what_has_sessions_is_a_conversation():
    assert is_conversation(talk())
    assert is_conversation([{"conversation": talk()}])
    for other in ({"text": "x"}, [], [1], "session_1", None, {"session_one": []}):
        assert not is_conversation(other)


def test_a_text_without_a_date_or_picture_is_speaker_and_words():
    assert turn_text("Ana", "Hi") == "Ana: Hi"
    assert turn_text("Ana", "Hi", picture=("", "dog")) == "Ana: Hi (dog)"
