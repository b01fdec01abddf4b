"""A change set that quotes a turn, and a forget of the turn by another server: the words are gone in either order."""

from __future__ import annotations

import threading
from contextlib import nullcontext
from itertools import count

import pytest

from backends import POSTGRES
from governed import change, create_active, moment, opened
from perdure.errors import Busy
from perdure.log.protocol import Batch
from perdure.memory import citing
from perdure.model.conversation import ConversationInput, ConversationTurn
from perdure.model.node import Evidence
from perdure.planning.erasing import erase_spaces
from perdure.repository.quotes import CheckedQuotes
from perdure.repository_errors import QuoteNotFound

SAID = "my locker code is 4417-quartz"
WORDS = "4417-quartz"
URI = "perdure:turn/monday/1/t1"


class Stopped(BaseException):
    """In place of a kill."""


class Other(threading.Thread):
    """What another server does; what came of it, once it has ended."""

    def __init__(self, work):
        super().__init__()
        self.work, self.reply, self.error = work, None, None

    def run(self):
        try:
            self.reply = self.work()
        except Exception as error:  # noqa: BLE001 - told by the test
            self.error = error


class Followed(list):
    """Has something begin as soon as the last of its items was taken and dealt with."""

    def __init__(self, items, happening):
        super().__init__(items)
        self.happening = happening

    def __iter__(self):
        yield from super().__iter__()
        self.happening()


@pytest.fixture(params=["sqlite", POSTGRES])
def backend(request):
    return request.param


@pytest.fixture
def stores(tmp_path, backend):
    with opened(tmp_path, backend) as first, opened(tmp_path, backend) as second:
        turn = ConversationTurn(source_id="t1", role="user", text=SAID, observation_time=moment(0))
        first.conversation("alice", "work").remember(
            ConversationInput(session_id="monday", version="1", turns=(turn,))
        )
        yield first, second


def forget_turn(store):
    return store.conversation("alice", "work").forget("monday").certificate


def erase_everything(store):
    return store.erase("alice", "work").certificate


def forget_with_citing(store):
    return store.conversation("alice", "work").forget("monday", include_derived=True).certificate


def quoting(name):
    proof = Evidence(URI, "digest", "manual", moment(0), WORDS, None)
    return change(f"key of {name}", create_active(name, evidence=[proof]))


def words_left(store):
    node = store.repository("alice", "work").get("n")
    return [] if node is None else [one.quote for one in node.evidence if one.quote is not None]


WAYS = pytest.mark.parametrize("forget", [forget_turn, forget_with_citing, erase_everything])


@WAYS
@pytest.mark.parametrize("exists", [False, True], ids=["first write", "later write"])
def test_a_turn_that_goes_between_the_look_at_it_and_the_append_is_not_quoted(
    stores, backend, forget, exists, monkeypatch
):
    first, second = stores
    repository = first.repository("alice", "work")
    if exists:
        repository.apply(change("before", create_active("before")))
    other, looked = Other(lambda: forget(second)), CheckedQuotes.hold
    # For the turn that this very write has: in files it is the store's, and who erases all asks for that everywhere.
    waits = backend != POSTGRES or (exists and forget is erase_everything)

    def hold(quotes, draft):
        looked(quotes, draft)
        if other.ident is None:
            other.start()
            if not waits:
                other.join()

    monkeypatch.setattr(CheckedQuotes, "hold", hold)
    with nullcontext() if waits else pytest.raises(QuoteNotFound):
        repository.apply(quoting("n"))
    other.join()
    assert other.error is None
    assert words_left(second) == words_left(first) == []
    assert not other.reply.pending
    assert second.check_certificate(other.reply) == ()
    assert second.verify().ok


@WAYS
def test_a_turn_that_is_to_go_while_what_quotes_it_is_appended_goes_after_it_and_takes_the_quote(
    stores, forget, monkeypatch
):
    first, second = stores
    other, looked = Other(lambda: forget(second)), CheckedQuotes.hold

    def hold(quotes, draft):
        looked(quotes, draft)
        draft.unerased = Followed(draft.unerased, other.start)

    monkeypatch.setattr(CheckedQuotes, "hold", hold)
    first.repository("alice", "work").apply(quoting("n"))
    other.join()
    assert other.error is None
    assert words_left(second) == words_left(first) == []
    assert second.check_certificate(other.reply) == ()
    assert second.verify().ok


@pytest.mark.parametrize("exists", [False, True], ids=["first write", "later write"])
@pytest.mark.parametrize("forget", [forget_turn, forget_with_citing])
def test_who_is_stopped_once_the_turn_is_gone_leaves_no_quote_that_came_as_it_went(
    stores, forget, exists, monkeypatch
):
    first, second = stores
    repository, look = first.repository("alice", "work"), citing._take
    if exists:
        repository.apply(change("before", create_active("before")))
    quoted = list[str]()

    def take(*told):
        if first.conversation("alice", "work").get("monday", "1") is None:
            raise Stopped
        found = look(*told)
        if not quoted:
            quoted.append(repository.apply(quoting("n")).nodes[0].id)
        return found

    monkeypatch.setattr(citing, "_take", take)
    with pytest.raises(Stopped):
        forget(second)
    assert quoted == ["n"]
    assert words_left(second) == words_left(first) == []
    assert second.verify().ok


@pytest.mark.parametrize("scope", ["work#conversation", "work"])
def test_who_is_stopped_once_all_conversations_are_erased_leaves_no_quote_that_came_as_they_went(
    stores, scope, monkeypatch
):
    first, second = stores
    first.repository("alice", "work").apply(change("before", create_active("before")))
    take, quoted = citing.QuotedBeside.erase_quotes, list[str]()

    def taking(*told):
        if first.conversation("alice", "work").get("monday", "1") is None:
            raise Stopped
        take(*told)
        if not quoted:
            quoted.append(first.repository("alice", "work").apply(quoting("n")).nodes[0].id)

    monkeypatch.setattr(citing.QuotedBeside, "erase_quotes", taking)
    with pytest.raises(Stopped):
        second.erase("alice", scope)
    assert quoted == ["n"]
    assert words_left(second) == words_left(first) == []
    assert (first.repository("alice", "work").get("n") is None) == (scope == "work")
    assert second.verify().ok


def test_turns_that_are_quoted_again_and_again_as_they_are_forgotten_stay(stores, monkeypatch):
    first, second = stores
    repository, look, names = first.repository("alice", "work"), citing._take, count()

    def take(*told):
        found = look(*told)
        repository.apply(quoting(f"n{next(names)}"))
        return found

    monkeypatch.setattr(citing, "_take", take)
    with pytest.raises(Busy, match="still there"):
        forget_turn(second)
    assert first.conversation("alice", "work").get("monday", "1") is not None
    monkeypatch.undo()
    forget_turn(second)
    for number in range(next(names)):
        assert repository.get(f"n{number}").evidence[0].quote is None


def test_turns_that_are_told_and_quoted_as_all_conversations_are_erased_leave_no_quote(stores, monkeypatch):
    first, second = stores

    def erase_after_others(*told):
        turn = ConversationTurn(source_id="t1", role="user", text=SAID, observation_time=moment(0))
        first.conversation("alice", "work").remember(
            ConversationInput(session_id="tuesday", version="1", turns=(turn,))
        )
        proof = Evidence(URI.replace("monday", "tuesday"), "digest", "manual", moment(0), WORDS, None)
        first.repository("alice", "work").apply(change("late", create_active("n", evidence=[proof])))
        return erase_spaces(*told)

    monkeypatch.setattr("perdure.store.erase_spaces", erase_after_others)
    certificate = second.erase("alice", "work#conversation").certificate
    assert first.repository("alice", "work").get("n").evidence[0].uri.endswith("tuesday/1/t1")
    assert words_left(second) == words_left(first) == []
    assert second.check_certificate(certificate) == ()


def test_what_an_append_rests_on_is_kept_from_being_erased_until_it_is_committed(tmp_path, backend):
    with opened(tmp_path, backend) as store, opened(tmp_path, backend, timeout_s=0.2) as hasty:
        own, rested = (store.log.create_space(name * 16, b"first") for name in (b"a", b"b"))
        known = store.log.head(rested)
        erasing = Other(lambda: hasty.log.append(rested, known, Batch([], erase=[1])))

        def erase():
            erasing.start()
            erasing.join()

        rests = Followed([(rested, known)], erase)
        store.log.append(own, store.log.head(own), Batch([b"resting"], unerased=rests))
        assert isinstance(erasing.error, Busy)
        hasty.log.append(rested, known, Batch([], erase=[1]))
