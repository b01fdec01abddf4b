"""What an extractor reads becomes candidates, and nothing else does."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure import InvalidRequest, ManualClock, Store, Unavailable, as_prompt
from perdure.conversation import SourceTurn
from perdure.extraction import CandidateDraft, Extraction, OpenAIExtractor, Quote, RuleExtractor
from perdure.repository import ChangeSet, Evidence, SetStatus
from unit.embedders.stub_endpoint import endpoint

NOW = datetime(2026, 3, 1, tzinfo=UTC)


class Fixed:
    """Proposes what a test says, and keeps what it was shown."""

    def __init__(self, *drafts):
        self.drafts, self.shown = drafts, None

    def extract(self, turns):
        self.shown = list(turns)
        return list(self.drafts)


def turn(text, position=0, role="user"):
    return SourceTurn(
        uri=f"chat/1/{position}",
        session_id="1",
        version="1",
        position=position,
        source_id=str(position),
        role=role,
        text=text,
        observation_time=NOW,
    )


@pytest.fixture
def store():
    with Store.open(":memory:", clock=ManualClock(NOW)) as opened:
        yield opened


def run(store, turns, *drafts, recalled=()):
    return Extraction(store.repository(), Fixed(*drafts)).run(turns, recalled=recalled)


def test_a_draft_becomes_a_candidate_that_quotes_its_turn_and_is_not_recalled(store):
    done = run(
        store,
        [turn("We ship on Fridays.")],
        CandidateDraft("Releases are on Fridays", (Quote(0, "on Fridays"),)),
    )
    node = store.repository().get(done.created[0])
    assert (node.status.value, node.confidence, done.refused) == ("candidate", 0.0, ())
    assert [(e.kind.value, e.uri, e.quote, e.start, e.end) for e in node.evidence] == [
        ("session_turn", "chat/1/0", "on Fridays", 8, 18)
    ]
    assert store.memory().recall("Fridays") == []


def test_extracting_again_makes_nothing_new_and_another_turn_makes_another_candidate(store):
    draft = CandidateDraft("Releases are on Fridays", (Quote(0, "Fridays"),))
    first = run(store, [turn("Fridays it is")], draft)
    assert run(store, [turn("Fridays it is")], draft).existing == first.created
    other = run(store, [turn("Fridays it is", position=5)], draft)
    assert other.created != ()
    assert other.created != first.created
    assert store.repository().review_queue().total == 2


def test_what_was_rejected_or_forgotten_does_not_come_back(store):
    draft = CandidateDraft("Releases are on Fridays", (Quote(0, "Fridays"),))
    (id_,) = run(store, [turn("Fridays it is")], draft).created
    repository = store.repository()
    no = Evidence("desk", "d", "manual", NOW)
    repository.apply(
        ChangeSet(
            "no", NOW, [SetStatus(node_id=id_, expected_revision=1, status="tombstoned", evidence=[no])]
        )
    )
    assert run(store, [turn("Fridays it is")], draft).existing == (id_,)
    assert repository.get(id_).status.value == "tombstoned"
    repository.forget([id_])
    assert [one.reason for one in run(store, [turn("Fridays it is")], draft).refused] == ["forgotten"]
    assert repository.get(id_) is None


@pytest.mark.parametrize(
    ("draft", "reason"),
    [
        (CandidateDraft("x y", ()), "no-quote"),
        (CandidateDraft("x y", (Quote(0, "  "),)), "no-quote"),
        (CandidateDraft("x y", (Quote(0, "not there"),)), "quote-not-found"),
        (CandidateDraft("x y", (Quote(7, "Fridays"),)), "quote-not-found"),
        (CandidateDraft("x y", (Quote(-1, "Fridays"),)), "quote-not-found"),
        (CandidateDraft("x y", (Quote(0, "Fridays", 3),)), "quote-not-found"),
        (CandidateDraft("", (Quote(0, "Fridays"),)), "invalid"),
        (CandidateDraft("x y", (Quote(0, "Fridays"),), kind="working"), "invalid"),
        (CandidateDraft("x y", (Quote(0, "Fridays"),), confidence=2.0), "invalid"),
        (CandidateDraft("x y", (Quote(0, "Fridays"),), labels={"a": object()}), "invalid"),
    ],
)
def test_a_draft_that_does_not_hold_is_refused_with_the_reason_and_the_others_are_kept(store, draft, reason):
    good = CandidateDraft("Releases are on Fridays", (Quote(0, "Fridays"),))
    done = run(store, [turn("Fridays it is")], draft, good)
    assert [(one.draft, one.reason) for one in done.refused] == [(0, reason)]
    assert len(done.created) == 1


def test_what_a_recall_brought_is_no_evidence_for_itself(store):
    store.memory().remember("Alice lives in Berlin")
    hits = store.memory().recall("Alice")
    draft = CandidateDraft("Alice lives in Berlin", (Quote(0, "alice  lives in berlin"),))
    turns = [turn("I recall: alice  lives in berlin, and it rains.")]
    for recalled in (hits, [hits[0].fact], [hits[0].text]):
        assert [one.reason for one in run(store, turns, draft, recalled=recalled).refused] == ["echo"]
    own = CandidateDraft("It rains", (Quote(0, "it rains"),))
    assert len(run(store, turns, own, recalled=hits).created) == 1


@pytest.mark.parametrize(
    "quote",
    [
        "Bo works at Acme.",
        '"Bo works at Acme"',
        "I recall: Bo works at Acme",
        "You told me bo works  at ACME, right?",
        "works at Acme",
    ],
)
def test_an_echo_is_known_whatever_stands_around_it(store, quote):
    store.memory().remember("Bo works at Acme")
    hits = store.memory().recall("Bo")
    done = run(store, [turn(quote)], CandidateDraft("Bo works at Acme", (Quote(0, quote),)), recalled=hits)
    assert [one.reason for one in done.refused] == ["echo"]


@pytest.mark.parametrize(
    ("recalled", "quote"), [("Acme", "Bo left Acme for Initech"), ("tea", "He likes steak")]
)
def test_a_word_alone_that_was_recalled_makes_no_echo_of_what_holds_it(store, recalled, quote):
    done = run(store, [turn(quote)], CandidateDraft("a claim", (Quote(0, quote),)), recalled=[recalled])
    assert done.refused == ()


def test_an_echo_is_known_in_scripts_without_spaces(store):
    quote = "我知道我喜欢在上海喝咖啡。"
    draft = CandidateDraft("喜欢咖啡", (Quote(0, quote),))
    assert run(store, [turn(quote)], draft, recalled=["我喜欢在上海喝咖啡"]).refused[0].reason == "echo"


def test_what_a_prompt_fenced_is_blanked_before_the_extractor_sees_it(store):
    store.memory().remember("Alice lives in Berlin </facts>")
    prompt = as_prompt(store.memory().recall("Alice")) + "Where does she live? In Rome."
    extractor = Fixed(CandidateDraft("Alice lives in Rome", (Quote(0, "In Rome"),)))
    done = Extraction(store.repository(), extractor).run([turn(prompt)])
    assert "Berlin" not in extractor.shown[0].text
    assert len(extractor.shown[0].text) == len(prompt)
    (evidence,) = store.repository().get(done.created[0]).evidence
    assert prompt[evidence.start : evidence.end] == "In Rome"


@given(before=st.text(max_size=40), quote=st.text(min_size=1, max_size=20), after=st.text(max_size=40))
def test_the_place_of_a_quote_is_where_it_stands(before, quote, after):
    text = before + quote + after
    if not quote.strip() or "<facts>" in text:
        return
    with Store.open(":memory:", clock=ManualClock(NOW)) as store:
        done = run(store, [turn(text)], CandidateDraft("a claim", (Quote(0, quote),)))
        for id_ in done.created:
            (evidence,) = store.repository().get(id_).evidence
            assert text[evidence.start : evidence.end] == quote == evidence.quote
        assert len(done.created) + len(done.refused) == 1


def test_rules_find_their_few_forms_and_nothing_else():
    turns = [
        turn(
            "My favourite colour is green. I work for Acme; I think.\nRemember that the gate code changes. Nice!"
        ),
        turn("I live in hope", 1, role="assistant"),
        turn("We talked about it is fine", 2),
    ]
    drafts = RuleExtractor().extract(turns)
    assert [(d.content, d.subject, d.quotes[0].text) for d in drafts] == [
        ("The user's favourite colour is green", "user/favourite colour", "My favourite colour is green"),
        ("The user works for Acme; I think", "user/employer", "I work for Acme; I think"),
        ("the gate code changes", None, "Remember that the gate code changes"),
    ]
    assert RuleExtractor().extract(turns) == drafts
    assert all(turns[d.quotes[0].turn].text.startswith(d.quotes[0].text, d.quotes[0].start) for d in drafts)


@pytest.mark.parametrize("wrong", [None, "text", [1], [{"content": "x"}]])
def test_an_extractor_that_returns_no_drafts_is_named(store, wrong):
    class Wrong:
        def extract(self, turns):
            return wrong

    with pytest.raises(InvalidRequest) as refused:
        Extraction(store.repository(), Wrong()).run([turn("text")])
    assert refused.value.field == "extractor"
    with pytest.raises(InvalidRequest):
        Extraction(store.repository(), object())


def completion(content):
    body = json.dumps({"choices": [{"message": {"content": content}}]}).encode()
    return lambda handler, _: handler.say(200, body)


def test_a_model_is_asked_with_the_turns_and_its_answer_becomes_candidates(store, monkeypatch):
    monkeypatch.setenv("EXTRACTOR_KEY", "sk-test")
    answer = {
        "candidates": [
            {
                "content": "Releases are on Fridays",
                "quotes": [{"turn": 0, "text": "Fridays"}],
                "confidence": 0.8,
            },
            {"content": "Nobody said so", "quotes": [{"turn": 0, "text": "Mondays"}]},
        ]
    }
    with endpoint(completion(json.dumps(answer))) as server:
        extractor = OpenAIExtractor(url=server.url, model_name="small", key_env="EXTRACTOR_KEY")
        done = Extraction(store.repository(), extractor).run([turn("Fridays it is")])
        assert extractor.extract([]) == []
        ((path, headers, request),) = server.requests
    assert path.endswith("/v1/chat/completions")
    assert headers["Authorization"] == "Bearer sk-test"
    assert request["model"] == "small"
    assert "Fridays it is" in request["messages"][1]["content"]
    assert len(done.created) == 1
    assert [one.reason for one in done.refused] == ["quote-not-found"]
    assert store.repository().get(done.created[0]).confidence == 0.8


@pytest.mark.parametrize(
    "answer",
    [
        lambda handler, _: handler.say(401, b"the secret is sk-test"),
        lambda handler, _: handler.say(200, b"not json"),
        lambda handler, _: handler.say(200, b'{"choices": []}'),
        completion("sorry, I cannot"),
        completion('{"candidates": [{"content": 7}]}'),
    ],
    ids=["refused", "no json", "no choice", "no candidates", "wrong types"],
)
def test_an_endpoint_that_gives_no_candidates_is_unavailable_and_nothing_of_it_is_told(answer):
    with endpoint(answer) as server:
        extractor = OpenAIExtractor(url=server.url, model_name="small", retries=0)
        with pytest.raises(Unavailable) as failed:
            extractor.extract([turn("Fridays it is")])
    assert "extractor's endpoint" in failed.value.message
    assert not any(word in str(failed.value) for word in ("sk-test", "Fridays", "sorry", "secret"))


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"url": "ftp://x"}, "url"),
        ({"url": "http://u:p@x/"}, "url"),
        ({"model_name": ""}, "model_name"),
        ({"timeout_ms": 0}, "timeout_ms"),
        ({"retries": -1}, "retries"),
        ({"key_env": "A", "key_file": "b"}, "key_file"),
    ],
)
def test_a_wrong_setting_of_the_model_is_named(wrong, field):
    with pytest.raises(InvalidRequest) as refused:
        OpenAIExtractor(**{"url": "http://localhost/v1", "model_name": "small", **wrong})
    assert refused.value.field == field
