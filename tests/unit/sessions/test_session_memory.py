"""What a session holds, for how long, and what outlives it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from backends import chosen, open_at
from perdure import Blocked, InvalidRequest, ManualClock, MemoryConfig, Store
from perdure.extraction import Extraction, RuleExtractor
from perdure.sessions import SessionMemory, SessionTurn

NOW = datetime(2026, 3, 1, tzinfo=UTC)
HOUR_MS = 3_600_000


@pytest.fixture
def clock():
    return ManualClock(NOW)


@pytest.fixture(params=["process", *chosen("memory", "sqlite", "journal")])
def begin(request, clock, tmp_path):
    """Return what begins a session, or goes on with it where it is kept."""
    if request.param == "process":
        yield lambda **options: SessionMemory(clock=clock, **options)
        return
    with open_at(tmp_path / "store", request.param, clock=clock) as store:
        yield lambda **options: store.session("talk", **options)


def test_turns_come_back_in_order_with_who_said_them_when_and_where(begin, clock):
    session = begin()
    first = session.add_turn("user", "Remember that I prefer concise answers.")
    clock.advance(1_000)
    session.add_turn("assistant", "I will.\nPromise.")
    assert first == SessionTurn("user", "Remember that I prefer concise answers.", NOW, 0)
    assert [(turn.role, turn.content, turn.position) for turn in session.get_turns()] == [
        ("user", "Remember that I prefer concise answers.", 0),
        ("assistant", "I will.\nPromise.", 1),
    ]
    assert session.get_turns()[1].at == NOW + timedelta(seconds=1)


def test_a_summary_has_the_last_turns_oldest_first(begin):
    session = begin()
    for number in range(4):
        session.add_turn("user" if number % 2 else "assistant", f"turn {number}")
    assert session.summarize() == "assistant: turn 0\nuser: turn 1\nassistant: turn 2\nuser: turn 3"
    assert session.summarize(2) == "assistant: turn 2\nuser: turn 3"
    assert session.summarize(max_turns=99) == session.summarize()
    assert session.summarize(0) == ""


@pytest.mark.parametrize("wrong", [-1, 1.5, True, "2"])
def test_a_summary_of_no_number_of_turns_is_refused(begin, wrong):
    with pytest.raises(InvalidRequest) as refused:
        begin().summarize(wrong)
    assert refused.value.field == "max_turns"


def test_what_is_too_old_counts_no_more(begin, clock):
    session = begin(ttl=timedelta(hours=1))
    session.add_turn("user", "old")
    clock.advance(HOUR_MS - 1)
    assert [turn.content for turn in session.get_turns()] == ["old"]
    session.add_turn("user", "new")
    clock.advance(1)
    assert [turn.content for turn in session.get_turns()] == ["new"]
    assert session.summarize() == "user: new"
    assert session.expire() in (0, 1)  # adding may have erased it already
    assert [(turn.content, turn.position) for turn in session.get_turns()] == [("new", 1)]


def test_only_the_last_turns_count(begin):
    session = begin(max_turns=2)
    for number in range(40):
        session.add_turn("user", f"turn {number}")
    assert [(turn.content, turn.position) for turn in session.get_turns()] == [
        ("turn 38", 38),
        ("turn 39", 39),
    ]
    assert session.add_turn("user", "one more").position == 40


def test_clearing_leaves_nothing(begin):
    session = begin()
    session.add_turn("user", "a secret plan")
    assert session.clear() == 1
    assert (session.get_turns(), session.summarize(), session.clear()) == ([], "", 0)


@pytest.mark.parametrize(
    ("role", "content", "field"),
    [("", "text", "role"), ("a\nb", "text", "role"), ("x" * 65, "text", "role"), (7, "text", "role"),
     ("user", "", "text"), ("user", 7, "text"), ("user", "\ud800", "text")],
)  # fmt: skip
def test_a_malformed_turn_is_refused_and_nothing_is_added(begin, role, content, field):
    session = begin()
    with pytest.raises(InvalidRequest) as refused:
        session.add_turn(role, content)
    assert refused.value.field == field
    assert session.get_turns() == []


@pytest.mark.parametrize(
    "wrong", [{"ttl": 5}, {"ttl": timedelta(0)}, {"max_turns": 0}, {"max_turns": True}, {"session_id": ""}]
)
def test_a_malformed_session_is_refused(wrong):
    with pytest.raises(InvalidRequest) as refused:
        SessionMemory(**wrong)
    assert refused.value.field == next(iter(wrong))


def test_a_kept_session_is_gone_on_with_by_its_id_and_apart_from_others(tmp_path, clock):
    with Store.open(tmp_path / "store", clock=clock) as store:
        store.session("one", "alice").add_turn("user", "first")
        store.session("two", "alice").add_turn("user", "of another session")
        store.session("one", "bob").add_turn("user", "of another person")
    with Store.open(tmp_path / "store", clock=clock) as store:
        session = store.session("one", "alice")
        assert session.add_turn("user", "second").position == 1
        assert [turn.content for turn in session.get_turns()] == ["first", "second"]
        assert store.memory("alice").recall("first") == []


def test_policies_link_and_remove_no_turn(tmp_path, clock):
    config = MemoryConfig(supersession="latest-by-subject", dedup="merge-exact", admission="standard")
    with Store.open(tmp_path / "store", clock=clock, config=config) as store:
        session = store.session("one")
        for _ in range(2):
            session.add_turn("user", "the very same words, said twice in a row")
        session.add_turn("user", "hi")
        assert len(session.get_turns()) == 3


def test_what_was_forgotten_with_a_block_is_not_said_again(tmp_path, clock):
    with Store.open(tmp_path / "store", clock=clock) as store:
        session = store.session("one")
        session.add_turn("user", "the plan that nobody may keep")
        memory = store.memory(scope="#sessions")
        memory.forget(text="the plan that nobody may keep", block=True)
        assert session.get_turns() == []
        with pytest.raises(Blocked):
            session.add_turn("user", "the plan that nobody may keep")


def test_cleared_and_expired_turns_leave_no_bytes_in_the_files(tmp_path, clock):
    place = tmp_path / "store"
    with Store.open(place, clock=clock) as store:
        session = store.session("one", ttl=timedelta(hours=1))
        session.add_turn("user", "XQZ-canary-7731 is in here")
        assert _holds(place, b"XQZ-canary-7731")
        clock.advance(2 * HOUR_MS)
        assert session.expire() == 1
        assert not _holds(place, b"xqz-canary-7731")
        session.add_turn("user", "YQZ-canary-7732 is in here")
        assert session.clear() == 1
        assert not _holds(place, b"yqz-canary-7732")


def _holds(place, marker):
    return any(marker.lower() in path.read_bytes().lower() for path in place.rglob("*") if path.is_file())


def test_handing_over_makes_a_version_of_the_session_and_leaves_out_other_roles(begin, clock):
    session = begin()
    session.add_turn("user", "I live in Paris.")
    session.add_turn("tool", "weather: rain")
    session.add_turn("assistant", "It rains there.")
    with Store.open(":memory:", clock=clock) as store:
        conversation = store.conversation("alice")
        done = session.handover(conversation)
        again = session.handover(conversation)
        kept = conversation.get(session.session_id, done.conversation.version)
    assert (done.conversation.outcome, again.conversation.outcome) == ("created", "existing")
    assert done.left_out == (1,)
    assert [(turn.role, turn.text) for turn in kept.turns] == [
        ("user", "I live in Paris."),
        ("assistant", "It rains there."),
    ]


def test_candidates_of_a_handed_over_session_cite_its_turns(begin, clock):
    session = begin()
    session.add_turn("user", "Hello. I live in Paris!")
    with Store.open(":memory:", clock=clock) as store:
        repository = store.repository("alice")
        extraction = Extraction(repository, RuleExtractor())
        done = session.handover(store.conversation("alice"), extraction=extraction)
        (id_,) = done.extracted.created
        node = repository.get(id_)
        assert session.handover(extraction=extraction).extracted.existing == (id_,)
        assert session.handover(store.conversation("alice"), extraction=extraction).extracted.existing == (
            id_,
        )
        assert store.memory("alice").recall("Paris") == []
    (evidence,) = node.evidence
    assert (evidence.quote, evidence.start) == ("I live in Paris", 7)
    assert evidence.uri.startswith("perdure:turn/")
    assert (node.status.value, node.subject) == ("candidate", "user/home")


def test_a_session_without_anything_to_hand_over_says_so(begin):
    session = begin()
    session.add_turn("tool", "rain")
    with Store.open(":memory:") as store, pytest.raises(InvalidRequest):
        session.handover(store.conversation())
    with pytest.raises(InvalidRequest):
        session.handover()


def test_a_session_that_went_on_makes_another_version_and_only_the_candidates_that_are_new(begin, clock):
    session = begin()
    session.add_turn("user", "I live in Paris.")
    with Store.open(":memory:", clock=clock) as store:
        conversation, extraction = (
            store.conversation("al"),
            Extraction(store.repository("al"), RuleExtractor()),
        )
        first = session.handover(conversation, extraction=extraction)
        clock.advance(1_000)
        session.add_turn("user", "I work at Acme.")
        second = session.handover(conversation, extraction=extraction)
        assert second.conversation.version != first.conversation.version
        assert second.extracted.existing == first.extracted.created
        assert len(second.extracted.created) == 1


def test_a_kept_session_whose_turns_all_expired_goes_on_and_is_handed_over_as_another_version(
    tmp_path, clock
):
    with Store.open(tmp_path / "store", clock=clock) as store:
        conversation, extraction = (
            store.conversation("al"),
            Extraction(store.repository("al"), RuleExtractor()),
        )
        session = store.session("day", "al", ttl=timedelta(hours=1))
        session.add_turn("user", "I live in Rome.")
        session.handover(conversation, extraction=extraction)
        clock.advance(2 * HOUR_MS)
        session.expire()
        session.add_turn("user", "I live in Oslo.")
        done = session.handover(conversation, extraction=extraction)
        assert (done.conversation.outcome, len(done.extracted.created)) == ("created", 1)
        assert conversation.list().total == 2


def test_what_somebody_tells_of_a_kept_turn_later_is_not_what_was_said(tmp_path, clock):
    with Store.open(tmp_path / "store", clock=clock) as store:
        session = store.session("one", "al")
        for number in range(2):
            session.add_turn("user", f"words {number}")
        memory = store.memory("al", "#sessions")
        memory.correct("changed", id=memory.list(limit=1).items[0].id)
        assert [(turn.content, turn.position) for turn in session.get_turns()] == [
            ("words 0", 0),
            ("words 1", 1),
        ]
        assert session.add_turn("user", "words 2").position == 2
        assert session.handover(store.conversation("al")).conversation.turns == 3


@pytest.fixture
def store(clock):
    with Store.open(":memory:", clock=clock) as store:
        yield store


def _handed_over(store, session):
    """Tell the session something that makes a candidate, and hand it over; return what the candidate quotes now."""
    session.add_turn("user", "I live in Paris now.")
    repository = store.repository()
    session.handover(extraction=Extraction(repository, RuleExtractor()))
    (node,) = repository.review_queue().items

    def quoted():
        (found,) = repository.get(node.id).evidence
        return found.quote

    assert quoted() == "I live in Paris now"
    return quoted


@pytest.fixture(params=["process", "kept"])
def kept(request, store, clock):
    def begin(session_id="talk", **options):
        if request.param == "kept":
            return store.session(session_id, **options)
        return SessionMemory(session_id, clock=clock, **options)

    return begin


def test_a_session_that_is_cleared_takes_along_what_candidates_quote_of_it(store, kept):
    session = kept()
    quoted = _handed_over(store, session)
    assert kept("another").clear() == 0
    assert quoted() == "I live in Paris now"
    assert session.clear() == 1
    assert quoted() is None
    assert len(store.repository().review_queue().items) == 1


def test_a_turn_that_expires_leaves_what_candidates_quote_of_it_until_the_session_is_cleared(
    store, kept, clock
):
    session = kept(ttl=timedelta(hours=1))
    quoted = _handed_over(store, session)
    clock.advance(HOUR_MS)
    assert session.expire() == 1
    assert quoted() == "I live in Paris now"
    assert session.clear() == 0
    assert quoted() is None


@pytest.mark.parametrize(
    "forget",
    [
        lambda store: store.memory(scope="#sessions").forget(all=True),
        lambda store: store.memory(scope="#sessions").forget(ids=["perdure:session/talk/0"]),
        lambda store: store.erase("", "#sessions"),
    ],
)
def test_whatever_forgets_the_turns_of_a_kept_session_takes_along_what_is_quoted_of_them(store, forget):
    session = store.session("talk")
    quoted = _handed_over(store, session)
    source = {"uri": "perdure:session/talk/0", "quote": "live in Paris"}
    store.memory().remember("lives in Paris", id="paris", source=source)
    forget(store)
    assert session.get_turns() == []
    assert (quoted(), store.memory().get("paris").source.quote) == (None, None)
    assert store.verify().ok


class Meanwhile:
    """Extracts by rules, and has something happen in another thread before the candidates are made."""

    def __init__(self, happening):
        self.happening = happening

    def extract(self, turns):
        drafts = RuleExtractor().extract(turns)
        with ThreadPoolExecutor(1) as pool:
            pool.submit(self.happening).result()
        return drafts


def _quotes(store):
    return [node.evidence[0].quote for node in store.repository().review_queue().items]


@pytest.mark.parametrize("max_turns", [None, 2])
@pytest.mark.parametrize("later", [0, 1, 3], ids=["empty", "one more", "as many more as count"])
def test_a_session_that_is_cleared_while_it_is_handed_over_is_quoted_by_no_candidate_once_that_ends(
    store, kept, later, max_turns
):
    session = kept(max_turns=max_turns)
    session.add_turn("user", "Hello.")
    session.add_turn("user", "I live in Paris now.")

    def clear():
        assert session.clear() == 2
        for number in range(later):
            session.add_turn("user", f"word {number}")

    session.handover(extraction=Extraction(store.repository(), Meanwhile(clear)))
    assert _quotes(store) == [None]
    assert len(session.get_turns()) == min(later, max_turns or later)
    session.clear()
    assert store.verify().ok


def test_a_kept_session_that_is_cleared_or_forgotten_elsewhere_while_it_is_handed_over_is_quoted_by_nothing(
    store,
):
    for number, clear in enumerate(
        (
            lambda name: store.session(name).clear(),
            lambda _: store.memory(scope="#sessions").forget(all=True),
        )
    ):
        session = store.session(f"s{number}")
        session.add_turn("user", f"I live in Paris {number}.")
        extractor = Meanwhile(lambda: clear(session.session_id))  # noqa: B023
        session.handover(extraction=Extraction(store.repository(), extractor))
    assert _quotes(store) == [None, None]


def test_a_handover_that_fails_once_its_session_was_cleared_leaves_no_quote(store, kept, monkeypatch):
    session, repository = kept(), store.repository()
    session.add_turn("user", "I live in Paris now.")
    session.add_turn("user", "I work in Lyon now.")
    extraction, propose = Extraction(repository, Meanwhile(session.clear)), Extraction._propose

    def propose_one(own, node):
        propose(own, node)
        raise RuntimeError

    monkeypatch.setattr(Extraction, "_propose", propose_one)
    with pytest.raises(RuntimeError):
        session.handover(extraction=extraction)
    assert _quotes(store) == [None]


@pytest.mark.parametrize("how", ["by time", "by number"])
def test_a_turn_that_expires_while_it_is_handed_over_is_quoted_still(store, kept, clock, how):
    bound = {"ttl": timedelta(hours=1)} if how == "by time" else {"max_turns": 1}
    session = kept(**bound)
    session.add_turn("user", "I live in Paris now.")

    def go_on():
        clock.advance(HOUR_MS)
        session.add_turn("user", "word")
        session.expire()

    session.handover(extraction=Extraction(store.repository(), Meanwhile(go_on)))
    assert [turn.content for turn in session.get_turns()] == ["word"]
    assert _quotes(store) == ["I live in Paris now"]


def test_turns_whose_time_goes_by_as_they_are_handed_over_and_cleared_are_quoted_by_nothing_once_cleared_again(
    store, kept, clock
):
    session = kept(ttl=timedelta(hours=1))
    session.add_turn("user", "I live in Paris now.")

    def go_on():
        assert session.clear() == 1
        clock.advance(HOUR_MS)

    session.handover(extraction=Extraction(store.repository(), Meanwhile(go_on)))
    assert session.clear() == 0
    assert _quotes(store) == [None]


def test_a_cleared_session_leaves_the_conversation_that_was_made_of_it(store, kept):
    session = kept()
    session.add_turn("user", "I live in Paris now.")
    talks = store.conversation()
    session.handover(talks, extraction=Extraction(store.repository(), RuleExtractor()))
    session.clear()
    (node,) = store.repository().review_queue().items
    assert node.evidence[0].quote == "I live in Paris now"
    talks.forget("talk")
    (node,) = store.repository().review_queue().items
    assert node.evidence[0].quote is None
